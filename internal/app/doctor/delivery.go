package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/state/inbox"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/notice"
)

// delivery tells whether messages can reach the owner, without sending one.
func (e *examination) delivery(context.Context) string {
	post := e.home.Post()
	if !post.Configured() {
		e.fail("ollim config set delivery.command COMMAND; or put the line discord.TOKEN=… into "+e.App.SecretsFile()+", mode 600",
			"no delivery is configured: pings wait for your next conversation")
		return ""
	}
	if len(post.Command) == 0 {
		return "by Discord"
	}
	if err := process.Find(post.Command[0], string(e.home.Dir), post.Env); err != nil {
		e.fault(fmt.Errorf("delivery.command: %w", err), "ollim config set delivery.command COMMAND")
	}
	return "by " + post.Command[0]
}

// outbox counts what waits for delivery.
func (e *examination) outbox(context.Context) string {
	waiting, err := e.home.Post().Pending()
	if err != nil {
		e.fault(err, "")
		return ""
	}
	stuck := 0
	for _, m := range waiting {
		if m.Stuck {
			stuck++
		}
	}
	if len(waiting) == 0 {
		return "empty"
	}
	text := fmt.Sprintf("%d waiting", len(waiting))
	if stuck > 0 {
		text += fmt.Sprintf(", %d of them given up after a week: delete them from state/outbox", stuck)
	}
	if last := strings.TrimSpace(waiting[0].LastError); last != "" {
		text += ": " + last
	}
	e.warn("ollim tick tries again; ollim doctor --send shows why it fails", "%s", text)
	return ""
}

// heartbeats looks for monitors that did not answer the last call.
func (e *examination) heartbeats(context.Context) string {
	calls := map[string]string{} // the name in a remedy by caller
	if e.home.Config.Heartbeat != "" {
		calls["tick"] = "config.yaml"
	}
	for _, j := range e.enabled() {
		if j.Heartbeat != "" {
			calls[j.ID] = j.Name()
		}
	}
	seen, err := e.home.Notices.Seen()
	e.fault(err, "")
	for _, key := range slices.Sorted(maps.Keys(seen)) {
		rest, isHeartbeat := strings.CutPrefix(key, notice.Heartbeat)
		caller, _, _ := strings.Cut(rest, " ")
		if place, set := calls[caller]; isHeartbeat && set {
			e.warn("check the network and heartbeat in "+place, "the monitor of %s has not answered since %s", caller, e.clockText(seen[key]))
		}
	}
	if len(calls) == 0 {
		return ""
	}
	return plaintext.Count(len(calls), "monitor")
}

const (
	dialLimit = 2 * time.Second
	longWait  = time.Hour // of an event in the inbox: the rate limit, the runs at once or a spending limit hold it back
)

// webhooks looks at the secrets of webhooks, at their server, and at events that wait.
func (e *examination) webhooks(ctx context.Context) string {
	set, _ := e.home.Jobs.Load()
	hooks := set.Only(job.Webhook).Jobs
	called := 0
	for _, j := range hooks {
		if !j.Enabled {
			continue
		}
		called++
		if _, err := e.home.HookKeys(*j.Hook); err != nil {
			e.fault(fmt.Errorf("no call of %s is accepted: %w", j.Name(), err), "put that line into "+e.App.SecretsFile()+", mode 600")
		}
	}
	if called > 0 && !e.served(ctx) {
		e.warn(e.start("webhook serve", "ollim-webhook", ".socket", ".service"), "no server accepts calls at %s", e.home.Config.Webhook.Listen)
	}
	e.waiting(set)
	if called == 0 {
		return ""
	}
	return plaintext.Count(called, "webhook")
}

// served reports whether the server runs, or a socket of systemd would start it.
func (e *examination) served(ctx context.Context) bool {
	if !lock.Free(e.home.Dir.Lock("inbox")) {
		return true
	}
	c, err := (&net.Dialer{Timeout: dialLimit}).DialContext(ctx, "tcp", e.home.Config.Webhook.Listen)
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}

// waiting looks at the events that wait for their runs.
func (e *examination) waiting(set job.Set) {
	ids, err := e.home.Inbox.Hooks()
	e.fault(err, "")
	for _, id := range ids {
		first, n, err := e.home.Inbox.First(id)
		if errors.Is(err, inbox.ErrGone) {
			continue
		}
		_, known := set.ByID(id)
		switch e.fault(err, ""); {
		case err != nil:
		case !known:
			e.warn("restore or correct its file; else they are removed after keep.runs", "%s wait for the webhook %s, which does not exist", plaintext.Count(n, "event"), id)
		case e.App.Now().Sub(first.Arrived) > longWait:
			e.warn("ollim tick; see rate-limit of the webhook, webhook.jobs and the spending limits", "%s of the webhook %s wait since %s", plaintext.Count(n, "event"), id, e.clockText(first.Arrived))
		}
	}
}
