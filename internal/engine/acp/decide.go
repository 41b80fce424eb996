package acp

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/runlog"
)

// slowest is how long a request waits for the update that says what the use is to do.
const slowest = 3 * time.Second

// decide answers a request for permission.
func (t *turn) decide(m message, a ask, u *use) {
	reason, err := t.verdict(a, u)
	t.mu.Lock()
	u.allowed = reason == "" && err == nil // an agent may ask several times for one use
	if reason != "" {
		t.denied = append(t.denied, reason)
		err = errors.Join(err, t.refuse(u, reason))
	}
	t.fail(err)
	t.mu.Unlock()
	_ = t.conn.answer(m.ID, a.choice(reason == "" && err == nil)) // an agent that has ended needs no answer
}

// refuse ends a use: agents need not report the end of one that was refused.
func (t *turn) refuse(u *use, reason string) error {
	u.denied = reason
	if u.ended {
		return nil
	}
	t.end(u)
	n, _ := t.profile.name(u, t.root, t.servers)
	return t.sink(runlog.Event{Type: runlog.ToolResult, Tool: n.tool, ToolID: u.id, Text: reason, IsError: true})
}

// verdict decides a request and records the use before it. A reason refuses the use.
func (t *turn) verdict(a ask, u *use) (reason string, err error) {
	for range mostAsked {
		n, known := t.await(u)
		t.mu.Lock()
		if !u.reported {
			err = t.report(u, n)
		}
		t.mu.Unlock()
		if err != nil {
			return "", err
		}
		if reason, err = t.judge(u, n, known, a); reason != "" || err != nil || t.still(u, n) {
			return reason, err
		}
	}
	return "its input has changed since the agent asked", nil
}

// mostAsked is how often a use is judged whose input changes while it is judged.
const mostAsked = 3

// judge decides a use by what is known of it. A reason refuses the use.
func (t *turn) judge(u *use, n named, known bool, a ask) (reason string, err error) {
	switch {
	case !known:
		return n.tool + ": the agent does not say what it is to do", nil
	case !a.offers():
		return n.tool + ": the agent offers no answer that allows this use only", nil
	case t.tools == nil:
		return "no tool may be used now", nil
	}
	if reason, err := t.finds(n); reason != "" || err != nil {
		return reason, err
	}
	for _, input := range n.inputs {
		raw, err := json.Marshal(input)
		if err != nil {
			return "", err
		}
		reason, err = t.tools.Verdict(t.ctx, n.tool, u.id, raw)
		select {
		case <-t.ctx.Done():
			return "the turn has ended", nil
		default:
		}
		if reason != "" || err != nil {
			return reason, err
		}
	}
	return "", nil
}

// finds refuses a search in a directory that has protected places in it: nothing but the agent itself would leave them out.
func (t *turn) finds(n named) (reason string, err error) {
	if len(t.hidden) == 0 || n.tool != "Glob" && n.tool != "Grep" {
		return "", nil
	}
	ground, err := policy.Policy{Roots: []policy.Root{{Dir: "/"}}, Protected: t.hidden}.Ground()
	if err != nil {
		return "", err
	}
	for _, input := range n.inputs {
		dir, _ := input["path"].(string)
		real, err := policy.Resolve(cmp.Or(dir, t.root))
		if err != nil {
			return n.tool + ": " + err.Error(), nil //nolint:nilerr // it is the reason of the refusal
		}
		if inside := ground.Encloses(real); inside != "" {
			return fmt.Sprintf("%s: %s is protected and lies in %s, which this agent would search without a seal: search a directory that does not contain it", n.tool, inside, real), nil
		}
	}
	return "", nil
}

// still reports whether a use is what it was when it was judged: what is still unknown of the texts of a file may come.
func (t *turn) still(u *use, judged named) bool {
	t.mu.Lock()
	now, _ := t.profile.name(u, t.root, t.servers)
	t.mu.Unlock()
	return now.tool == judged.tool && slices.EqualFunc(now.inputs, judged.inputs, func(a, b object) bool {
		return reflect.DeepEqual(a.subject(), b.subject())
	})
}

// await returns a use in the terms of a policy. It waits for an update that says enough.
func (t *turn) await(u *use) (n named, known bool) {
	late := time.NewTimer(slowest)
	defer late.Stop()
	for {
		t.mu.Lock()
		n, known = t.profile.name(u, t.root, t.servers)
		news := t.known
		t.mu.Unlock()
		if known {
			return n, true
		}
		select {
		case <-news:
		case <-late.C:
			return n, false
		}
	}
}

// unasked returns an error if the agent has used a tool although that was refused, or without asking although it asks for each.
func (t *turn) unasked() error {
	for _, u := range t.order {
		used := u.done || u.failure != "" && u.denied == "" && !t.profile.early(u)
		switch {
		case !used:
		case u.denied != "":
			return fmt.Errorf("%w: the agent has used the tool %s although ollim has refused it: %s", engine.ErrSetup, u.own, u.denied)
		case t.profile.AsksAll && !u.allowed && !slices.Contains(t.profile.Free, u.own):
			return fmt.Errorf("%w: the agent has used the tool %s without asking: its configuration is not the one that ollim has given it", engine.ErrSetup, u.own)
		}
	}
	return nil
}
