package runlog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// search is what was found, each the run's number, the type and the excerpt.
func (d *desk) search(words ...string) (all []string) {
	d.t.Helper()
	for f, err := range d.Search(d.t.Context(), words, nil) {
		if err != nil {
			d.t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%s %s %s", f.Run[len(f.Run)-1:], f.Type, f.Excerpt))
	}
	return all
}

func (d *desk) finds(want []string, words ...string) {
	d.t.Helper()
	if got := d.search(words...); !slices.Equal(got, want) {
		d.t.Errorf("%q: got\n%s\nwant\n%s", words, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func (d *desk) prompt(r *Run, text string) {
	d.t.Helper()
	if err := r.Prompt(Prompt{{Text: text}}); err != nil {
		d.t.Fatal(err)
	}
}

func TestSearch(t *testing.T) {
	d := newDesk(t)
	first := d.open(Record{})
	d.prompt(first, "Look for\nthe \"zebra\".")
	d.event(first,
		Event{Type: Text, Text: "I see a ZEBRA in\x1b[31m the street."},
		Event{Type: Thinking, Text: "a zebra, hm"},
		Event{Type: ToolUse, Tool: "Read", Input: []byte(`{"file_path":"zebra.md"}`)},
		Event{Type: ToolResult, Text: strings.Repeat("grass ", 50) + "<zebra> & \"oryx\"\nmore" + strings.Repeat(" grass", 50)},
		Event{Type: Result, Text: "I see a ZEBRA in\x1b[31m the street."},
		Event{Type: ErrorEvent, Text: "no oryx"},
	)
	d.now = d.now.Add(time.Hour)
	second := d.open(Record{})
	d.event(second, Event{Type: ToolResult, Text: strings.Repeat("grass ", 20_000) + "Straße ΟΡΥΞ gnu"}, Event{Type: Result, Text: "zebra"})
	last := time.Now().Add(time.Hour)
	if err := os.Chtimes(d.Home.Run(second.ID, "events.jsonl"), last, last); err != nil {
		t.Fatal(err)
	}
	d.open(Record{})
	result := "1 tool_result …rass" + strings.Repeat(" grass", 9) + " <zebra> & \"oryx\" more" + strings.Repeat(" grass", 16) + " gra…"

	d.finds([]string{"2 result zebra", "1 prompt Look for the \"zebra\".", "1 text I see a ZEBRA in[31m the street.", "1 tool_use Read {\"file_path\":\"zebra.md\"}", result}, "zebra")
	d.finds([]string{"1 text I see a ZEBRA in[31m the street."}, "STREET", "Zebra")
	d.finds([]string{"1 prompt Look for the \"zebra\"."}, "for\nthe \"z")
	d.finds([]string{"2 tool_result …" + strings.Repeat("grass ", 10) + "Straße ΟΡΥΞ gnu"}, "straße", "ορυξ")
	d.finds([]string{"1 error no oryx"}, "no", "oryx", "no oryx")
	d.finds(nil, "unicorn")
	d.finds(nil, "zebra", "unicorn")
	d.finds(nil)
	d.finds(nil, "")
}

// TestSearchOfDamage: what cannot be read hides nothing else.
func TestSearchOfDamage(t *testing.T) {
	d := newDesk(t)
	d.finds(nil, "gnu") // there is no folder yet
	r := d.open(Record{})
	d.event(r, Event{Type: Text, Text: strings.Repeat("x", 70_000) + " gnu"}, Event{Type: Text, Text: "a gnu"})
	if err := os.Remove(d.Home.Run(r.ID, "text-1.txt")); err != nil {
		t.Fatal(err)
	}
	events, err := os.OpenFile(d.Home.Run(r.ID, "events.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer events.Close()
	if _, err := events.WriteString("gnu\n{\"type\":\"text\",\"text\":\"gnu " + strings.Repeat("y", 200_000) + "\"}\n\n{\"at\":\"2026-03-02T09:00:00Z\",\"type\":\"text\",\"text\":\"gn"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"20260302T090000.000Z-abcdef", "notes", "20260302T090000.000Z-xyz"} {
		if err := os.Mkdir(d.Home.Run(name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	d.finds([]string{"1 text a gnu", "1 text gnu " + strings.Repeat("y", 116) + "…"}, "gnu")

	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	cancel(stop)
	for _, err := range d.Search(ctx, []string{"gnu"}, nil) {
		if !errors.Is(err, stop) {
			t.Error(err)
		}
	}
	for range d.Search(t.Context(), []string{"gnu"}, nil) {
		break // and no more is asked for
	}
}

// TestSearchFindsAll: what a decoder of every line finds is found.
func TestSearchFindsAll(t *testing.T) {
	letters := rapid.SampledFrom([]rune("aAbBeE \"\\/<>&\n\tßéÉ\u2028\ufffd{}:,"))
	word := rapid.StringOfN(letters, 1, 3, -1)
	rapid.Check(t, func(rt *rapid.T) {
		d := newDesk(t)
		r := d.open(Record{})
		texts := rapid.SliceOfN(rapid.StringOfN(letters, 0, 30, -1), 1, 8).Draw(rt, "texts")
		for _, text := range texts {
			d.event(r, Event{Type: Text, Text: text})
		}
		words := rapid.SliceOfN(word, 1, 2).Draw(rt, "words")
		want := 0
		for _, text := range texts {
			if slices.IndexFunc(words, func(w string) bool { return !strings.Contains(strings.ToLower(text), strings.ToLower(w)) }) < 0 {
				want++
			}
		}
		if got := d.search(words...); len(got) != want {
			rt.Errorf("%q: found %q, want %d", words, got, want)
		}
	})
}
