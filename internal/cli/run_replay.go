package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/agent/replay"
	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/plaintext"
)

func newRunReplay(d *deps) *cobra.Command {
	cmd := command(agentOwn(""), "replay RUN", "Build a run's requests again as today, and print the first difference from what was sent",
		inHome(d, func(ctx context.Context, h app.Home, args []string) error { return runRunReplay(ctx, d, h, args[0]) }))
	return withJSON(d, cmd, "print the result as one JSON object")
}

func runRunReplay(ctx context.Context, d *deps, h app.Home, name string) error {
	record, err := d.findRun(h, name)
	if err != nil {
		return err
	}
	r, err := h.Replay(ctx, record)
	if statusOf(err) == statusFailed { // a file of today that cannot be used; 1 says that something differs
		err = &withStatus{err, statusData}
	}
	if err != nil {
		return err
	}
	if d.json {
		err = d.emit(r)
	} else {
		err = d.answer(d.flow(strings.Join(replayLines(r), "\n"), blockIndent), nil)
	}
	if err == nil && !r.Same {
		err = &reported{statusFailed}
	}
	return err
}

// replayLines says what a replay has found.
func replayLines(r replay.Result) []string {
	what := plaintext.Count(r.Requests, "request")
	if r.Requests < r.Of && r.Same {
		what = fmt.Sprintf("%d of %s", r.Requests, plaintext.Count(r.Of, "request"))
	}
	if len(r.Only) > 0 {
		what = fmt.Sprintf("what ollim itself gave %s (%s)", r.Engine, strings.Join(r.Only, ", "))
	}
	text := []string{fmt.Sprintf("run %s: same: %s and %s about tools", printable(r.Run), what, plaintext.Count(r.Uses, "decision"))}
	if d := r.Difference; d != nil {
		text = []string{
			fmt.Sprintf("run %s: differs: %s", printable(r.Run), placeOfDifference(*d)),
			"    then: " + shownFrom(d.Then, d.Now), "    now:  " + shownFrom(d.Now, d.Then),
		}
		if len(r.Only) > 0 {
			text = append(text, "compared: "+what)
		}
	}
	for _, note := range r.Notes {
		text = append(text, "note: "+printable(note))
	}
	return text
}

// placeOfDifference says where a difference is.
func placeOfDifference(d replay.Difference) string {
	parts := []string{d.Field}
	if d.Request > 0 {
		parts = []string{fmt.Sprintf("request %d", d.Request), d.Field}
	}
	if d.Place != "" {
		parts = append(parts, plaintext.Short(printable(d.Place), shownDifference))
	}
	if d.Line > 0 {
		parts = append(parts, fmt.Sprintf("line %d", d.Line))
	}
	return strings.Join(parts, ", ")
}

// Lengths of a line that differs, in characters.
const (
	shownDifference = 300
	shownBefore     = 60 // before the difference
)

// shownFrom returns the part of a line around its difference from another one.
func shownFrom(line, other string) string {
	a, b := []rune(line), []rune(other)
	same := 0
	for same < len(a) && same < len(b) && a[same] == b[same] {
		same++
	}
	if same > shownDifference/2 {
		line = "…" + string(a[same-shownBefore:])
	}
	return plaintext.Short(printable(line), shownDifference)
}
