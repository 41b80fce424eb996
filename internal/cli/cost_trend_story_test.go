package cli

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/app/overview"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
	"github.com/ollim/ollim/internal/ui"
)

// bill makes a world with a routine monitor, whose session and cost grow by 12 % from day to day, and a routine digest, which costs
// the same on each of so many days. The clock stands at noon of the day after.
func bill(t *testing.T, days int) *world {
	t.Helper()
	w, api := newNativeWorld(t)
	w.must("config", "set", "chat.model", "plain")
	w.must("config", "set", "models", "plain in=2 out=2 cache-write=2 window=200000")
	w.must("routine", "add", "monitor", "--cron", "0 9 * * *", "--background", "--session", "persistent", "--model", "plain", "Look.")
	w.must("routine", "add", "digest", "--cron", "30 9 * * *", "--background", "--isolated", "--model", "plain", "Look.")
	tokens := 30_000.0
	for range days {
		for name, size := range map[string]float64{"monitor": tokens, "digest": 5000} {
			api.Reply(anthropicapi.Reply{Text: "quiet", Usage: anthropicapi.Usage{In: int(size), Out: 1}})
			w.must("fire", name)
		}
		tokens *= 1.12
		w.pass(24*time.Hour - 4*time.Second)
	}
	w.pass(2 * time.Hour)
	return w
}

// TestTrend: status and cost show each job's share of the bill, its growth and the size of its session, and what follows, with a
// command that works when typed.
func TestTrend(t *testing.T) {
	t.Parallel()
	w := bill(t, 15)
	w.wants(w.must("cost", "--since", "7d"), "monitor\t7\t$1.4988\t749397\t0 %\t7\t96 %\t+12 %/day\t146k\n", "digest\t7\t$0.0700\t35000\t0 %\t7\t4 %\t\t5.0k\n")
	w.wants(w.must("cost", "--by", "day", "--since", "3d"), "2026-03-16\t2\t", "\t37 %\n", "2026-03-15\t2\t", "\t33 %\n", "2026-03-14\t2\t", "\t30 %\n")
	out := w.must("status")
	w.wants(out, "week\tmonitor\t6 of 6 ok\t$1.35\t96 % of cost\t+12 %/day\t146k tokens\n", "note\ta day of monitor costs $0.21, a week before it was $0.09;")
	s := w.status()
	if len(s.Findings) != 1 || s.Findings[0].Name != "The cost of monitor" || s.Week[1].Growth == nil || s.Week[1].Context < 100_000 || s.Week[1].Window != 200_000 {
		t.Fatalf("%+v", s)
	}
	if r := w.run(asTyped(t, s.Findings[0].Commands[0])...); r.status != 0 {
		t.Errorf("%s: %+v", s.Findings[0].Commands[0], r)
	}
}

// TestBillIsTold: the owner is told once that a job's cost has doubled, not each day, and once that it no longer has.
func TestBillIsTold(t *testing.T) {
	t.Parallel()
	w := bill(t, 15)
	w.writeProgram("deliver.sh", "#!/bin/sh\n{ cat; echo ==; } >>sent\n")
	w.must("config", "set", "delivery.command", "sh", "deliver.sh")
	told := func() string {
		for range 3 {
			w.must("tick")
			w.pass(time.Minute)
		}
		text := w.read("sent")
		w.remove("sent")
		return text
	}
	if text := told(); strings.Count(text, "A day of monitor costs $0.21") != 1 || !strings.Contains(text, "`ollim session compact routine:monitor \"keep what matters\"`") {
		t.Errorf("%q", text)
	}
	w.pass(9 * 24 * time.Hour)
	if text := told(); strings.Count(text, "The cost of monitor is within bounds again") != 1 {
		t.Errorf("%q", text)
	}
	if text := told(); strings.Contains(text, "monitor is") {
		t.Errorf("again: %q", text)
	}
}

// asTyped splits a command line of ollim as a shell does, for what findings have.
func asTyped(t *testing.T, line string) (args []string) {
	t.Helper()
	for i, part := range strings.Split(line, `"`) {
		if i%2 == 1 {
			args = append(args, part)
		} else {
			args = append(args, strings.Fields(part)...)
		}
	}
	if args[0] != "ollim" {
		t.Fatalf("%q", line)
	}
	return args[1:]
}

// TestMonthsLimitAhead: the owner reads when the month's limit will be reached, while there is time, and each command helps.
func TestMonthsLimitAhead(t *testing.T) {
	t.Parallel()
	w := bill(t, 9)
	w.must("config", "set", "spend.per-month", "3")
	s := w.status()
	if len(s.Findings) != 1 || s.Findings[0].Subject != overview.MonthSubject || !strings.Contains(s.Findings[0].Text, "will be reached about ") {
		t.Fatalf("%+v", s.Findings)
	}
	for _, line := range s.Findings[0].Commands {
		if r := w.run(asTyped(t, line)...); r.status != 0 {
			t.Errorf("%s: %+v", line, r)
		}
	}
	if s := w.status(); len(s.Findings) != 0 {
		t.Errorf("with a higher limit: %+v", s.Findings)
	}
}

// TestStatusFitsATerminal: lines have at most 80 columns, where they can be broken.
func TestStatusFitsATerminal(t *testing.T) {
	t.Parallel()
	w := bill(t, 15)
	w.must("routine", "add", "long", "--cron", "0 9 * * *", "--background", "--description", strings.Repeat("words ", 20), "Look.")
	w.must("routine", "add", "broken", "--cron", "0 9 * * *", "--background", "--engine", "script:"+strings.Repeat("far/", 15)+"away.yaml",
		"--description", strings.Repeat("words ", 20), "Look.")
	w.run("fire", "broken")
	if failed := w.status().Failed; len(failed) != 1 || !strings.Contains(w.onTerminal("status").out, failed[0].ID) {
		t.Errorf("%+v", failed)
	}
	w.must("config", "set", "spend.per-month", "5")
	for _, args := range [][]string{{"status"}, {"cost"}, {"status", "--week"}} {
		r := w.onTerminal(args...)
		for line := range strings.Lines(r.out) {
			if ui.Width(line) > 81 {
				t.Errorf("%q: %d columns: %s", args, ui.Width(line)-1, line)
			}
		}
		if r.status != 0 || !strings.Contains(r.out, "monitor") {
			t.Errorf("%q: %+v", args, r)
		}
	}
}

// TestForecastOfGatedRoutine: a fire is expected to cost what a fire has cost, with those whose gate was closed.
func TestForecastOfGatedRoutine(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	w.must("config", "set", "models", "plain in=2 out=2 cache-write=2")
	w.write("gates/open", "#!/bin/sh\ntest -e ../open || test -e open\n")
	w.chmod("gates/open", 0o700)
	w.must("routine", "add", "watch", "--cron", "*/10 * * * *", "--background", "--isolated", "--model", "plain", "--gate", "open", "Look.")
	fire := func(cost float64) {
		w.t.Helper()
		w.remove("open")
		if cost > 0 {
			w.write("open", "")
			api.Reply(anthropicapi.Reply{Text: "quiet", Usage: anthropicapi.Usage{In: int(cost * 500_000)}})
		}
		w.must("fire", "watch")
		w.pass(10*time.Minute - time.Second)
	}
	expected := func() float64 {
		w.t.Helper()
		var row struct{ Cost float64 }
		if err := json.Unmarshal([]byte(w.must("schedule", "list", "-n", "1", "--cost", "--json")), &row); err != nil {
			t.Fatal(err)
		}
		return row.Cost
	}
	if got := expected(); got != 0 {
		t.Errorf("a new job: %v", got)
	}
	fire(0.40)
	for range 19 {
		fire(0)
	}
	if got := fmt.Sprintf("%.4f", expected()); got != "0.0200" {
		t.Errorf("one fire of twenty costs 0.40: %s", got)
	}
	w.pass(8 * 24 * time.Hour)
	for range 5 {
		fire(0.10)
	}
	if got := fmt.Sprintf("%.4f", expected()); got != "0.0360" {
		t.Errorf("those of an earlier day as well, as there are only five in a week: %s", got)
	}
	for range 5 {
		fire(0.10)
	}
	if got := fmt.Sprintf("%.4f", expected()); got != "0.1000" {
		t.Errorf("those of the last week: %s", got)
	}
}

// TestShownCostsAddUp: the sum of a list of fires is that of the costs beside it, as a reader sees them.
func TestShownCostsAddUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("routines/cheap.md", "---\nid: cheap\ncron: \"0 * * * *\"\nbackground: true\nisolated: true\n---\nLook.\n")
	w.script("turns:\n  - - cost: 0.006552\n    - text: done\n")
	w.must("fire", "cheap")
	sum := 0.0
	for line := range strings.Lines(w.must("schedule", "list", "cheap", "--cost", "-n", "9")) {
		cells := strings.Split(line, "\t")
		cost, err := strconv.ParseFloat(strings.TrimPrefix(cells[3], "$"), 64)
		if sum += cost; err != nil || cost == 0 || cells[4] != fmt.Sprintf("$%.4f", sum) {
			t.Errorf("%v: the sum of what is shown is $%.4f: %s", err, sum, line)
		}
	}
}

// TestNothingWasDue: an audit without slots says what it looked for.
func TestNothingWasDue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if r := w.onTerminal("schedule", "audit", "--since", "2d"); r.status != 0 || r.out != "" || r.errOut != "nothing was due in the last 2d; what is due is listed 15 minutes after its time\n" {
		t.Errorf("%+v", r)
	}
}

// TestUnreadableRunIsNamed: cost and status name a run that is not in their sums because its record cannot be read.
func TestUnreadableRunIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(runFile(w.clock().UTC().Format("20060102")+"T000000.000Z-abcdef", "run.json"), "")
	for _, command := range [][]string{{"cost"}, {"cost", "--since", "1d"}, {"status"}, {"status", "--short"}} {
		if r := w.run(command...); r.status != 0 || strings.Count(r.errOut, "-abcdef/run.json: unexpected end of JSON input\n") != 1 {
			t.Errorf("%q: %+v", command, r)
		}
	}
}
