package model

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// name is one of few, so that lines meet.
func name() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"a", "b-1", "c.2", "claude-sonnet-5-5", "gpt-5.4", "sonnet", "opus", "x/y:1"})
}

func word() *rapid.Generator[string] {
	amount := rapid.Map(rapid.IntRange(0, 4000), func(n int) string { return strconv.FormatFloat(float64(n)/100, 'f', -1, 64) })
	return rapid.Custom(func(t *rapid.T) string {
		key := rapid.SampledFrom([]string{"window", "output", "long", "in", "out", "cache-read", "cache-write", "long-in", "long-out", "long-cache-read", "alias"}).Draw(t, "key")
		switch key {
		case "alias":
			return key + "=" + strings.Join(rapid.SliceOfN(name(), 0, 3).Draw(t, "aliases"), ",")
		case "window", "output", "long":
			return fmt.Sprintf("%s=%d", key, rapid.IntRange(1, 300000).Draw(t, "n"))
		}
		return key + "=" + amount.Draw(t, "price")
	})
}

func lines() *rapid.Generator[[]string] {
	line := rapid.Custom(func(t *rapid.T) string {
		words := rapid.SliceOfN(word(), 0, 4).Draw(t, "words")
		if rapid.Bool().Draw(t, "priced") {
			words = append(words, "in=1", "out=2")
		}
		return strings.Join(append([]string{name().Draw(t, "id")}, words...), " ")
	})
	return rapid.SliceOfN(line, 0, 8)
}

// Lines that are good one by one are good together; what is bad alone is bad in company, unless what came before gave the rest.
func TestWithIsLineByLine(t *testing.T) {
	base := Known()
	rapid.Check(t, func(t *rapid.T) {
		var good []string
		for _, line := range lines().Draw(t, "lines") {
			if _, err := base.With([]string{line}); err == nil {
				good = append(good, line)
			}
		}
		all, err := base.With(good)
		if err != nil {
			t.Fatalf("%q: %v", good, err)
		}
		step := base
		for _, line := range good {
			if step, err = step.With([]string{line}); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
		}
		if !reflect.DeepEqual(all.Models(), step.Models()) {
			t.Fatalf("%q: at once %+v, one by one %+v", good, all.Models(), step.Models())
		}
	})
}

// A line changes its own model and takes its aliases from others: nothing else. Every alias has one model.
func TestWithChangesNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base, err := Known().With(nil)
		if err != nil {
			t.Fatal(err)
		}
		before := base.Models()
		for _, line := range lines().Draw(t, "lines") {
			next, err := base.With([]string{line})
			if err != nil {
				continue
			}
			if !reflect.DeepEqual(base.Models(), before) {
				t.Fatalf("%q changed the table below", line)
			}
			id, _, _ := strings.Cut(line, " ")
			owner := map[string]string{}
			for i, m := range next.Models() {
				for _, alias := range m.Aliases {
					if other, taken := owner[alias]; taken {
						t.Fatalf("%q: %s is %s and %s", line, alias, other, m.ID)
					}
					owner[alias] = m.ID
					if r := next.Resolve(alias); r.ID != m.ID {
						t.Fatalf("%q: %s leads to %s, not %s", line, alias, r.ID, m.ID)
					}
				}
				if m.ID == id || i >= len(before) {
					continue
				}
				was := before[i]
				was.Aliases, m.Aliases = nil, nil
				if !reflect.DeepEqual(was, m) {
					t.Fatalf("%q: %+v became %+v", line, was, m)
				}
			}
			base, before = next, next.Models()
		}
	})
}

// More tokens never cost less, within one band of prices.
func TestCostGrows(t *testing.T) {
	models := Known().Models()
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.SampledFrom(models).Draw(t, "model")
		n := rapid.IntRange(0, 1_000_000)
		few := Tokens{In: n.Draw(t, "in"), Out: n.Draw(t, "out"), CacheRead: n.Draw(t, "read"), CacheWrite: n.Draw(t, "write")}
		more := Tokens{In: few.In + n.Draw(t, "+in"), Out: few.Out + n.Draw(t, "+out"), CacheRead: few.CacheRead + n.Draw(t, "+read"), CacheWrite: few.CacheWrite}
		a, known := m.Cost(few)
		b, _ := m.Cost(more)
		if !known || a < 0 || b < a {
			t.Fatalf("%s: %+v costs %v, %+v costs %v", m.ID, few, a, more, b)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		small, "a", "a alias=b,c window=1 output=2\n# x\n\nd alias=e", "a in=0.5 out=1 cache-read=0 long=9 long-in=1 long-out=2 long-cache-write=0",
		"a alias=", "a\r\nb\r\n", "a in=1", "\xff=", "a window=1 window=1", "a alias=a", "a in=1e309 out=1",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tab, err := parseTable("t", text)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "t:") || strings.ContainsAny(err.Error(), "\n\x1b") {
				t.Fatalf("%q: %q", text, err)
			}
			return
		}
		var lines []string
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
				lines = append(lines, line)
			}
		}
		again, err := Table{}.With(lines)
		if err != nil || !reflect.DeepEqual(tab.Models(), again.Models()) || len(lines) != len(tab.Models()) {
			t.Fatalf("%q: With gives %+v, %v, Parse %+v", text, again.Models(), err, tab.Models())
		}
		for _, m := range tab.Models() {
			if r := tab.Resolve(m.ID); !reflect.DeepEqual(r, m) {
				t.Fatalf("%q: %q leads to %+v, want %+v", text, m.ID, r, m)
			}
			if usd, known := m.Cost(Tokens{In: 1, Out: 1, CacheRead: 1, CacheWrite: 1}); known != m.Priced || !(usd >= 0) {
				t.Fatalf("%+v costs %v, %v", m, usd, known)
			}
		}
	})
}
