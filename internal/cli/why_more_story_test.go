package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
	"github.com/ollim/ollim/internal/testkit/discordapi"
)

// TestWhyInAConversation: what the agent says from an earlier turn of the conversation leads to the tool result of that turn, although the
// request of the later turn holds the same words.
func TestWhyInAConversation(t *testing.T) {
	t.Parallel()
	w, _ := newMeteredWorld(t, func(q anthropicapi.Request) anthropicapi.Reply {
		switch {
		case q.Has("how many"):
			return anthropicapi.Reply{Text: "17 trains leave Brno for Ostrava."}
		case len(q.ToolResults()) == 0:
			return anthropicapi.Use("Read", map[string]string{"file_path": "data/trains.md"})
		}
		return anthropicapi.Reply{Text: "I have read it."}
	})
	w.write("data/trains.md", "table\nBrno to Ostrava: 17 trains leave\n")
	w.must("chat", "read the table")
	first := w.last()["id"].(string)
	w.must("chat", "how many?")
	second := w.last()["id"].(string)
	steps := w.why("17 trains leave Brno for Ostrava.")
	var results []string
	for _, s := range steps {
		if s.Tool == "Read" {
			results = append(results, s.Run)
			w.wants(w.lineAt(s), "Brno to Ostrava: 17 trains leave")
		}
	}
	if len(results) != 1 || results[0] != first || steps[0].Run != second {
		t.Errorf("%s: results of %q, want of %s", stepsOf(steps), results, first)
	}
}

// TestWhyAPayload: what a webhook's agent says of an event leads to the payload.
func TestWhyAPayload(t *testing.T) {
	t.Parallel()
	w := newWorld(t).phone().world
	w.script("turns: [[{tool: ping_user, input: {message: Release 9.2 of kestrel is out}}, {text: done}]]\n")
	w.write("webhooks/ci.md", strings.Replace(branchHook, "allow-ping: false\n", "", 1))
	w.must("fire", "--inbox", w.accepts("ci", `"kestrel 9.2"`))
	steps := w.why("Release 9.2 of kestrel is out")
	if got := stepsOf(steps); !strings.HasPrefix(got, "message:ping run source:") || !strings.Contains(w.lineAt(steps[2]), "kestrel 9.2") {
		t.Fatalf("%s: %+v", got, steps)
	}
}

// TestWhyAMessageOfAMessenger: the id that a messenger gave a message leads to it, and so does that of a notice.
func TestWhyAMessageOfAMessenger(t *testing.T) {
	t.Parallel()
	w, s := newDiscordWorld(t, discordapi.Options{})
	w.script("turns: [[{tool: ping_user, input: {message: The water is at 4 degrees}}, {tool: report_updates, input: {message: r}}, {text: done}]]\n")
	w.must("routine", "add", "cold", "--cron", "0 9 * * *", "--background", "--isolated", "Go.")
	w.must("fire", "cold")
	sent := s.Messages(discordapi.DM)
	if len(sent) != 1 {
		t.Fatalf("%d messages", len(sent))
	}
	if got := stepsOf(w.why(sent[0].ID)); !strings.HasPrefix(got, "message:ping run") {
		t.Errorf("the ping: %s", got)
	}
	w.write("routines/bad.md", "---\ncorn: \"0 9 * * *\"\n---\nGo.\n")
	w.must("tick")
	steps := w.why("job", "file", "invalid", "bad.md")
	if got := stepsOf(steps); !strings.HasPrefix(got, "message:notice") || steps[0].ID == "" {
		t.Fatalf("the notice: %s, %+v", got, steps)
	}
	if again := w.why(steps[0].ID); len(again) == 0 || again[0].Text != steps[0].Text {
		t.Errorf("its id: %+v", again)
	}
}

// TestWhyTheTaskIsNoSource: a request that has no words of the message beside those of the tool's result and the task is no source.
func TestWhyTheTaskIsNoSource(t *testing.T) {
	t.Parallel()
	w, _ := newMeteredWorld(t, func(q anthropicapi.Request) anthropicapi.Reply {
		switch len(q.Messages) {
		case 1:
			return anthropicapi.Use("Read", map[string]string{"file_path": "data/df.txt"})
		case 3:
			return anthropicapi.Use("ping_user", map[string]string{"message": "The disk is 92 % full"})
		}
		return anthropicapi.Reply{Text: "Done."}
	})
	w.write("data/df.txt", "/dev/vda1 92%\n")
	w.must("routine", "add", "disk", "--cron", "0 9 * * *", "--background", "--isolated", "--allowed-tools", "Read(./**)", "Read data/df.txt. Is a disk full?")
	w.must("fire", "disk")
	if got := stepsOf(w.why("disk", "92", "full")); got != "message:ping run source:Read source:task" {
		t.Error(got)
	}
}

// TestWhyOfABacktest: a backtest and a distil were begun by a command, whoever typed it, and no message.
func TestWhyOfABacktest(t *testing.T) {
	t.Parallel()
	w, _ := newJudgedWorld(t, 12, writes(goodFilter))
	for _, args := range [][]string{{"distil", "disk"}, {"backtest", "disk", "--baseline", "--last", "6"}} {
		w.must(args...)
		w.wants(w.must("why", "last"), ", "+args[0]+" at ", ", ok: a command started it\n")
		w.pass(time.Hour)
	}
	for _, args := range [][]string{{"run", "replay", "nothing"}, {"backtest", "show", "nothing"}, {"backtest", "continue", "nothing"}} {
		if r := w.run(args...); r.status != int(statusNoJob) || !strings.Contains(r.errOut, "\nollim: hint: ollim "+args[0]+" list\n") {
			t.Errorf("%q: %+v", args, r)
		}
	}
}
