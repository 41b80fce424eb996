package door

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/testkit"
	"github.com/ollim/ollim/internal/testkit/doorapi"
)

func TestMain(m *testing.M) {
	doorapi.Pipe()
	testkit.Main(m, nil)
}

// program returns the door of a scripted messenger.
func program(t *testing.T, s *doorapi.Server) Program {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	call := process.Call{Argv: []string{self}, Env: []string{s.Env()}, Tied: true}
	return Program{Name: "radio", Files: t.TempDir() + "/files", Start: func() (*process.Peer, error) { return process.Open(call) }}
}

// conform tests a door and returns the cases by name.
func conform(t *testing.T, o doorapi.Options, receive bool) (cases map[string]Case) {
	t.Helper()
	s, cases := doorapi.New(t, o), map[string]Case{}
	if receive {
		s.Say("hello", nil)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	last := receiving()[1].name
	err := Conform(ctx, program(t, s), "", receive, func(c Case) {
		if cases[c.Name] = c; c.Name == last { // the next case waits ten seconds for nothing
			stop()
		}
	})
	if err != nil && ctx.Err() == nil {
		t.Error(err)
	}
	return cases
}

// TestConform: a door that does all of the protocol has no fault and lacks nothing.
func TestConform(t *testing.T) {
	t.Parallel()
	cases := conform(t, doorapi.Options{Able: map[string]any{"file": 1000, "history": true}}, false)
	for name, c := range cases {
		if c.Err != nil || c.Lacks != "" {
			t.Errorf("%s: %q, %v", name, c.Lacks, c.Err)
		}
	}
	if len(cases) < 45 {
		t.Errorf("%d cases", len(cases))
	}
}

// TestConformPlain: what a door lacks is said, and is not asked for.
func TestConformPlain(t *testing.T) {
	t.Parallel()
	able := map[string]any{"edits": 0, "typing": false, "reactions": false, "buttons": false, "nonces": false}
	lacking := 0
	for name, c := range conform(t, doorapi.Options{Able: able}, false) {
		if c.Err != nil {
			t.Errorf("%s: %v", name, c.Err)
		}
		if c.Lacks != "" {
			lacking++
		}
	}
	if lacking < 15 {
		t.Errorf("it lacks %d things", lacking)
	}
}

// TestConformReceives: with a message of the owner's, redelivery is tested.
func TestConformReceives(t *testing.T) {
	t.Parallel()
	cases := conform(t, doorapi.Options{}, true)
	if !cases[""].Waits {
		t.Error("the owner is not asked to write a message")
	}
	for _, proof := range receiving()[:2] {
		if c, tested := cases[proof.name]; !tested || c.Err != nil {
			t.Errorf("%s: %t, %v", proof.name, tested, c.Err)
		}
	}
}

// TestConformFinds: a door that does one thing wrong fails the case of that.
func TestConformFinds(t *testing.T) {
	failed := func(text string) map[string]any { return map[string]any{"type": "failed", "error": text} }
	of := func(wanted string, wrong func(r, a map[string]any) map[string]any) func(string, map[string]any, map[string]any) map[string]any {
		return func(kind string, r, a map[string]any) map[string]any {
			if kind != wanted {
				return a
			}
			changed := wrong(r, a)
			changed["ref"] = r["ref"]
			return changed
		}
	}
	for name, tc := range map[string]struct {
		able   map[string]any
		answer func(string, map[string]any, map[string]any) map[string]any
		want   string // in the name of a case
	}{
		"no hello":        {map[string]any{"text": 0}, nil, "says hello"},
		"unknown":         {nil, of("unheard-of", func(_, _ map[string]any) map[string]any { return map[string]any{"type": "done"} }), "unknown type with failed"},
		"no id":           {nil, of("send", func(_, a map[string]any) map[string]any { delete(a, "id"); return a }), "answers with its id"},
		"bad id":          {nil, of("send", func(_, a map[string]any) map[string]any { a["id"] = "a b"; return a }), "answers with its id"},
		"one id":          {nil, of("send", func(_, a map[string]any) map[string]any { a["id"] = "1"; return a }), "another id"},
		"no nonces":       {nil, of("send", func(_, a map[string]any) map[string]any { delete(a, "text"); return a }), "a nonce that it knows"},
		"edits":           {nil, of("edit", func(_, _ map[string]any) map[string]any { return failed("no") }), "edits a message"},
		"same edit":       {nil, of("edit", func(_, _ map[string]any) map[string]any { return failed("not modified") }), "changes nothing"},
		"not permanent":   {nil, of("edit", func(_, a map[string]any) map[string]any { delete(a, "permanent"); delete(a, "refused"); return a }), "refuses to edit"},
		"reactions":       {nil, of("react", func(_, _ map[string]any) map[string]any { return failed("no") }), "adds a reaction"},
		"fetches":         {nil, of("fetch", func(_, _ map[string]any) map[string]any { return map[string]any{"type": "done"} }), "refuses to fetch"},
		"wrong type":      {nil, of("quote", func(_, a map[string]any) map[string]any { a["text"] = 7; return a }), "writes nothing but lines"},
		"empty history":   {nil, of("history", func(_, a map[string]any) map[string]any { delete(a, "messages"); return a }), "returns the history"},
		"deletes nothing": {nil, of("delete", func(_, _ map[string]any) map[string]any { return failed("gone") }), "message that is gone with done"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			able := map[string]any{"file": 1000, "history": true}
			for key, value := range tc.able {
				able[key] = value
			}
			for found, c := range conform(t, doorapi.Options{Able: able, Answer: tc.answer}, false) {
				if strings.Contains(found, tc.want) && c.Err != nil {
					return
				}
			}
			t.Errorf("no case of %q fails", tc.want)
		})
	}
}

// TestConformWithoutADoor: a program that cannot be started again ends the test of the protocol with an error.
func TestConformWithoutADoor(t *testing.T) {
	t.Parallel()
	p, starts := program(t, doorapi.New(t, doorapi.Options{})), 0
	start := p.Start
	p.Start = func() (*process.Peer, error) {
		if starts++; starts > 1 {
			return nil, errors.New("no such program")
		}
		return start()
	}
	err := Conform(t.Context(), p, "", false, func(Case) {})
	if err == nil || !strings.Contains(err.Error(), "does not start again") {
		t.Errorf("%v", err)
	}
}
