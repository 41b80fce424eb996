package model

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/state/runlog"
)

const small = `
# Two of one vendor.
claude-big-4-5 alias=big,best window=200000 output=64000 in=3 out=15 cache-read=0.30 cache-write=3.75
claude-small-4-5 alias=small window=100 in=1 out=5 long=1000 long-in=2 long-out=7.50

gpt-5.4 in=2 out=8 cache-write=0
house/own:8b window=32768 in=0 out=0
house/bare
`

func table(t *testing.T, text string) Table {
	t.Helper()
	table, err := parseTable("t", text)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func with(t *testing.T, table Table, lines ...string) Table {
	t.Helper()
	table, err := table.With(lines)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestResolve(t *testing.T) {
	tab := table(t, small)
	for name, want := range map[string]struct{ id, entry string }{
		"big":                                 {"claude-big-4-5", "claude-big-4-5"},
		"best":                                {"claude-big-4-5", "claude-big-4-5"},
		"claude-big-4-5":                      {"claude-big-4-5", "claude-big-4-5"},
		"claude-big-4-5-20250929":             {"claude-big-4-5-20250929", "claude-big-4-5"},
		"claude-big-4-5@20250929":             {"claude-big-4-5@20250929", "claude-big-4-5"},
		"anthropic/claude-big-4-5":            {"anthropic/claude-big-4-5", "claude-big-4-5"},
		"anthropic/claude-big-4.5":            {"anthropic/claude-big-4.5", "claude-big-4-5"},
		"openrouter/anthropic/claude-big-4.5": {"openrouter/anthropic/claude-big-4.5", "claude-big-4-5"},
		"anthropic/claude-big-4.5-20250929":   {"anthropic/claude-big-4.5-20250929", "claude-big-4-5"},
		"gpt-5.4-2026-03-05":                  {"gpt-5.4-2026-03-05", "gpt-5.4"},
		"openai/gpt-5.4":                      {"openai/gpt-5.4", "gpt-5.4"},
		"house/own:8b":                        {"house/own:8b", "house/own:8b"},
		"router/house/own:8b":                 {"router/house/own:8b", "house/own:8b"},
		"gpt-5-4":                             {"gpt-5-4", ""},
		"gpt-5.4-mini":                        {"gpt-5.4-mini", ""},
		"gpt-5.4-2026-3-5":                    {"gpt-5.4-2026-3-5", ""},
		"gpt-5.4-20260a05":                    {"gpt-5.4-20260a05", ""},
		"own:8b":                              {"own:8b", ""},
		"house/own:8b:free":                   {"house/own:8b:free", ""},
		"anthropic/big":                       {"anthropic/big", ""}, // an alias is ours, no service has it
		"Big":                                 {"Big", ""},
		"-20250929":                           {"-20250929", ""},
		"/":                                   {"/", ""},
		"":                                    {"", ""},
	} {
		m := tab.Resolve(name)
		if m.ID != want.id || m.Entry != want.entry || m.Known != (want.entry != "") {
			t.Errorf("Resolve(%q): %+v, want %v", name, m, want)
		}
		if !m.Known && (m.Window != 0 || m.Output != 0 || m.Priced || m.Long != 0) {
			t.Errorf("Resolve(%q) is not known, and yet %+v", name, m)
		}
	}
	if m := tab.Resolve("big"); m.Window != 200000 || m.Output != 64000 || !slices.Equal(m.Aliases, []string{"big", "best"}) {
		t.Errorf("%+v", m)
	}
}

func TestCost(t *testing.T) {
	tab := table(t, small)
	for _, c := range []struct {
		name  string
		usage runlog.Usage
		want  float64 // USD, below 0 not known
	}{
		{"big", runlog.Usage{In: 1_000_000}, 3},
		{"big", runlog.Usage{Out: 100}, 0.0015},
		{"big", runlog.Usage{In: 10, Out: 20, CacheRead: 30, CacheWrite: 40}, (10*3 + 20*15 + 30*0.30 + 40*3.75) / 1e6},
		{"small", runlog.Usage{In: 1, CacheRead: 10, CacheWrite: 100}, (1 + 10 + 125) / 1e6},
		{"small", runlog.Usage{In: 990, CacheRead: 9, CacheWrite: 1, Out: 1_000_000}, 5 + (999+1.25)/1e6},
		{"small", runlog.Usage{In: 990, CacheRead: 9, CacheWrite: 2, Out: 1_000_000}, 7.5 + (999*2+2*2.5)/1e6},
		{"gpt-5.4-2026-03-05", runlog.Usage{CacheRead: 100, CacheWrite: 100}, 200 / 1e6},
		{"house/own:8b", runlog.Usage{In: 1e9, Out: 1e9}, 0},
		{"house/bare", runlog.Usage{In: 1}, -1},
		{"nobody", runlog.Usage{In: 1}, -1},
		{"nobody", runlog.Usage{}, -1},
	} {
		usd, known := tab.Resolve(c.name).Cost(Tokens(c.usage))
		if known != (c.want >= 0) || known && math.Abs(usd-c.want) > 1e-9 || !known && usd != 0 {
			t.Errorf("%s, %+v: %v, %v, want %v", c.name, c.usage, usd, known, c.want)
		}
	}
}

func TestWith(t *testing.T) {
	base := table(t, small)
	tab := with(t, base,
		"claude-big-4-5 out=16 alias=best,mine",
		"claude-next-5 alias=big",
		"claude-next-5 in=4 out=20",
		"claude-small-4-5 alias=",
		"gpt-5.4 alias=house/bare", // an old id goes to another model
	)
	var got []string
	for _, m := range tab.Models() {
		got = append(got, m.ID+" "+strings.Join(m.Aliases, ","))
	}
	want := []string{"claude-big-4-5 best,mine", "claude-small-4-5 ", "gpt-5.4 house/bare", "house/own:8b ", "house/bare ", "claude-next-5 big"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if m := tab.Resolve("mine"); m.Price != (rates{In: 3, Out: 16, CacheRead: 0.30, CacheWrite: 3.75}) || m.Window != 200000 {
		t.Errorf("%+v", m)
	}
	if m := tab.Resolve("big"); m.ID != "claude-next-5" || m.Price != (rates{In: 4, Out: 20, CacheRead: 4, CacheWrite: 5}) || m.Window != 0 {
		t.Errorf("%+v", m)
	}
	if m := tab.Resolve("house/bare"); m.ID != "gpt-5.4" {
		t.Errorf("%+v", m)
	}
	if m := base.Resolve("big"); m.ID != "claude-big-4-5" || m.Price.Out != 15 || len(base.Models()) != 5 {
		t.Errorf("the table below changed: %+v", m)
	}
	if m := with(t, base, "claude-big-4-5 in=2").Resolve("big"); m.Price.CacheWrite != 3.75 {
		t.Errorf("a price that stands there was guessed: %+v", m)
	}
	if m := with(t, base, "gpt-5.4 cache-read=1").Resolve("gpt-5.4"); m.Price.CacheRead != 1 {
		t.Errorf("%+v", m)
	}
}

func TestFaults(t *testing.T) {
	for line, want := range map[string]string{
		"a=b":                               `"a=b" is not the name of a model: want letters, digits and -_.:/@+~`,
		"a window":                          `a: "window" is not KEY=VALUE`,
		"a # b":                             `a: "#" is not KEY=VALUE`,
		"a windw=1":                         `a: "windw": unknown key (did you mean window?)`,
		"a temperature=1":                   `a: "temperature": unknown key, want one of alias, window, output, long, in, out, cache-read, cache-write, cache-write-1h, long-in, long-out, long-cache-read, long-cache-write, long-cache-write-1h`,
		"a window=1 window=1":               "a: window: given twice",
		"a alias=b alias=c":                 "a: alias: given twice",
		"a alias= alias=":                   "a: alias: given twice",
		"a alias=b,b":                       "a: alias: b: given twice",
		"a alias=a":                         "a: alias: a: given twice",
		"a alias=b,,c":                      `a: alias: "" is not the name of a model: want letters, digits and -_.:/@+~`,
		"a window=0":                        `a: window: "0" is not a number of tokens: write one like 200000`,
		"a window=200k":                     `a: window: "200k" is not a number of tokens: write one like 200000`,
		"a output=-1":                       `a: output: "-1" is not a number of tokens: write one like 200000`,
		"a window=99999999999999999":        `a: window: "99999999999999999" is not a number of tokens: write one like 200000`,
		"a in=$3 out=1":                     `a: in: "$3" is not a price: want USD per million tokens, like 0.30`,
		"a in=3,5 out=1":                    `a: in: "3,5" is not a price: want USD per million tokens, like 0.30`,
		"a in=-1 out=1":                     `a: in: "-1" is not a price: want USD per million tokens, like 0.30`,
		"a in=1e3 out=1":                    `a: in: "1e3" is not a price: want USD per million tokens, like 0.30`,
		"a in=NaN out=1":                    `a: in: "NaN" is not a price: want USD per million tokens, like 0.30`,
		"a in=inf out=1":                    `a: in: "inf" is not a price: want USD per million tokens, like 0.30`,
		"a in= out=1":                       `a: in: "" is not a price: want USD per million tokens, like 0.30`,
		"a in=9999999 out=1":                `a: in: "9999999" is not a price: want USD per million tokens, like 0.30`,
		"a in=1":                            "a: in without out",
		"a out=1":                           "a: out without in",
		"a cache-read=1":                    "a: cache-read without in",
		"a cache-write=1":                   "a: cache-write without in",
		"a in=1 out=1 long=5":               "a: long without long-in",
		"a in=1 out=1 long-in=5":            "a: long-in without long-out",
		"a in=1 out=1 long-out=5":           "a: long-out without long-in",
		"a long=5 long-in=1 long-out=1":     "a: long-in without in",
		"a in=1 out=1 long-in=1 long-out=1": "a: long-in without long",
		"a in=1 out=1 long-cache-read=1":    "a: long-cache-read without long-in",
		"a in=1 out=1 long-cache-write=1":   "a: long-cache-write without long-in",
		"a b/c\u200b=1":                     `a: "b/c\u200b": unknown key, want one of`,
		"\x1b[1m":                           `"\x1b[1m" is not the name of a model`,
	} {
		_, err := parseTable("t", "# 1\n\n"+line+"\nz\n")
		if err == nil || !strings.HasPrefix(err.Error(), "t:3: "+want) {
			t.Errorf("parseTable(%q): %v, want %s", line, err, want)
		}
		_, err = Table{}.With([]string{"z", line})
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("With(%q): %v, want %s", line, err, want)
		}
	}
	for text, want := range map[string]string{
		"a\na":                 "t:2: a: the name a is already used by a",
		"a alias=b\nb":         "t:2: b: the name b is already used by a",
		"a\nb alias=a":         "t:2: b: the name a is already used by a",
		"a alias=c\nb alias=c": "t:2: b: the name c is already used by a",
	} {
		if _, err := parseTable("t", text); err == nil || err.Error() != want {
			t.Errorf("parseTable(%q): %v, want %s", text, err, want)
		}
	}
	if _, err := (Table{}).With([]string{" \t"}); err == nil || !strings.HasPrefix(err.Error(), "want a line such as ") {
		t.Error(err)
	}
}

// What comes with the program: every name once, and every figure of the kind that the services have.
func TestKnown(t *testing.T) {
	models := Known().Models()
	if len(models) < 20 {
		t.Fatalf("%d models", len(models))
	}
	for _, m := range models {
		if m.Window < 4096 || m.Output > m.Window || !m.Priced || m.Price.Out < m.Price.In || m.Price.CacheRead > m.Price.In || m.Long >= m.Window {
			t.Errorf("%+v", m)
		}
		local := m.Price == rates{}
		if local == (m.Output > 0) || !local && m.Price.CacheRead == 0 {
			t.Errorf("%+v", m)
		}
		if m.Long > 0 && (m.LongPrice.In <= m.Price.In || m.LongPrice.Out <= m.Price.Out || m.LongPrice.CacheRead <= m.Price.CacheRead) {
			t.Errorf("%s costs less when it is long: %+v", m.ID, m)
		}
		if strings.HasPrefix(m.ID, "claude-") && math.Abs(m.Price.CacheWrite-1.25*m.Price.In) > 1e-9 {
			t.Errorf("%+v", m)
		}
		for _, name := range append([]string{m.ID, m.ID + "-20261231", m.ID + "-2026-12-31", "somewhere/" + m.ID}, m.Aliases...) {
			if r := Known().Resolve(name); r.Entry != m.ID {
				t.Errorf("%s is %q, want %s", name, r.Entry, m.ID)
			}
		}
	}
	for alias, family := range map[string]string{"opus": "claude-opus-", "sonnet": "claude-sonnet-", "haiku": "claude-haiku-", "fable": "claude-fable-"} {
		if m := Known().Resolve(alias); !strings.HasPrefix(m.ID, family) {
			t.Errorf("%s is %q", alias, m.ID)
		}
	}
}
