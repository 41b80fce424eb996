package script

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/yamldoc"
)

const everything = `# All there is.
turns:
  - - expect: Hello
    - think: hm
    - tool: ping_user
      input: {message: "oil: 75", list: [1, 2.5, true, null], deep: {a: 2026-03-02}}
    - tool: report_updates
  - - delay: 1m30s
    - {retry_after: 10ms, overloaded: 529, times: 2}
    - overloaded: busy
  - []
on_nudge:
  - text: sorry
  - touch: flag
  - compact: keep
  - cost: 0.25
  - error: dead
  - text: ""
summary: short
`

func TestParse(t *testing.T) {
	s, err := parse("play.yaml", []byte(everything))
	if err != nil {
		t.Fatal(err)
	}
	input := map[string]any{"message": "oil: 75", "list": []any{int64(1), 2.5, true, nil}, "deep": map[string]any{"a": "2026-03-02"}}
	turns := [][]step{
		{{Do: "expect", Text: "Hello"}, {Do: "think", Text: "hm"}, {Do: "tool", Text: "ping_user", Input: input}, {Do: "tool", Text: "report_updates"}},
		{{Do: "delay", Wait: 90 * time.Second}, {Do: "overloaded", Text: "529", Times: 2, Wait: 10 * time.Millisecond}, {Do: "overloaded", Text: "busy"}},
		nil,
	}
	onNudge := []step{
		{Do: "text", Text: "sorry"}, {Do: "touch", Text: "flag"}, {Do: "compact", Text: "keep"},
		{Do: "cost", Cost: 0.25}, {Do: "error", Text: "dead"}, {Do: "text"},
	}
	for i, want := range append(turns, onNudge) {
		got := s.OnNudge
		if i < len(s.Turns) {
			got = s.Turns[i]
		}
		if len(got) != len(want) {
			t.Fatalf("turn %d has %d steps, want %d", i, len(got), len(want))
		}
		for k := range want {
			g, w := got[k], want[k]
			if g.Do != w.Do || g.Text != w.Text || g.Wait != w.Wait || g.Cost != w.Cost || g.Times != w.Times || !reflect.DeepEqual(g.Input, w.Input) {
				t.Errorf("turn %d, step %d: %+v, want %+v", i, k, g, w)
			}
		}
	}
	if len(s.Turns) != 3 || s.Summary != "short" {
		t.Errorf("%d turns, summary %q", len(s.Turns), s.Summary)
	}
}

func TestParseFaults(t *testing.T) {
	const noAction = "want a step with an action: one of expect, think, text, tool, delay, touch, compact, cost, overloaded, error"
	const noTurn = "f: turns: want at least one turn, a list of steps"
	for name, tc := range map[string]struct{ text, want string }{
		"empty":           {"", noTurn},
		"no turns":        {"summary: x\n", noTurn},
		"turns are none":  {"summary: x\nturns: []\n", "f:2: turns: want at least one turn, a list of steps"},
		"turns are null":  {"turns:\n", "f:1: turns: want a list, not an empty value"},
		"turns are text":  {"turns: hello\n", `f:1: turns: want a list, not "hello"`},
		"a turn is null":  {"turns:\n  - []\n  -\n", "f:3: turns[1]: want a list, not an empty value"},
		"a turn is a map": {"turns:\n  - text: x\n", "f:2: turns[0]: want a list, not a section"},
		"unknown key":     {"turn:\n  - - text: x\n", "f:1: turn: unknown key (did you mean turns?)"},
		"two spellings":   {"turns:\n  - []\non-nudge: []\non_nudge: []\n", "f:4: on_nudge: given twice (as on-nudge on line 3)"},
		"nudge is text":   {"turns: [[]]\non-nudge: x\n", `f:2: on-nudge: want a list, not "x"`},
		"summary is list": {"turns: [[]]\nsummary: [x]\n", "f:2: summary: want text, not a list"},
		"not yaml":        {"turns: [\n", "f:1: not valid YAML: did not find expected node content"},

		"a step is text":     {"turns:\n  - - x\n", "f:2: turns[0][0]: want a section of `key: value` lines, not \"x\""},
		"a step is null":     {"turns:\n  - - text: x\n    -\n", "f:3: turns[0][1]: " + noAction},
		"a step is empty":    {"turns:\n  - - {}\n", "f:2: turns[0][0]: " + noAction},
		"unknown step":       {"turns:\n  - []\n  - - txet: x\n", "f:3: turns[1][0].txet: unknown key (did you mean text?)"},
		"unknown beside":     {"turns:\n  - - text: x\n      bold: true\n", "f:3: turns[0][0].bold: unknown key"},
		"two actions":        {"turns:\n  - - text: x\n      tool: y\n", "f:3: turns[0][0].tool: a step does one thing, and this one has text already"},
		"two without text":   {"turns:\n  - - cost: 1\n      delay: 1s\n", "f:3: turns[0][0].delay: a step does one thing, and this one has cost already"},
		"one action twice":   {"turns:\n  - - text: x\n      text: y\n", "f:3: turns[0][0].text: given twice (as text on line 2)"},
		"text is null":       {"turns:\n  - - text:\n", "f:2: turns[0][0].text: want text, not an empty value"},
		"text is a list":     {"turns:\n  - - text: [x]\n", "f:2: turns[0][0].text: want text, not a list"},
		"only input":         {"turns:\n  - - text: x\n    - input: {a: 1}\n", "f:3: turns[0][1]: " + noAction},
		"only times":         {"turns:\n  - - times: 1\n", "f:2: turns[0][0]: " + noAction},
		"input of text":      {"turns:\n  - - text: x\n      input:\n        a: 1\n", "f:4: turns[0][0].input: only for tool"},
		"input before":       {"turns:\n  - - input: {}\n      text: x\n", "f:2: turns[0][0].input: only for tool"},
		"input is text":      {"turns:\n  - - tool: x\n      input: y\n", "f:3: turns[0][0].input: want a section of `key: value` lines, not \"y\""},
		"input is odd":       {"turns:\n  - - tool: x\n      input:\n        a: .nan\n", "f:4: turns[0][0].input.a: want a number that JSON can have, not \".nan\""},
		"times of text":      {"turns:\n  - - text: x\n      times: 1\n", "f:3: turns[0][0].times: only for overloaded"},
		"times of tool":      {"turns:\n  - - tool: x\n      input: {}\n      times: 1\n", "f:4: turns[0][0].times: only for overloaded"},
		"times negative":     {"turns:\n  - - overloaded: x\n      times: -1\n", "f:3: turns[0][0].times: want 0 or more"},
		"times is text":      {"turns:\n  - - overloaded: x\n      times: twice\n", "f:3: turns[0][0].times: want a whole number, not \"twice\""},
		"retry of delay":     {"turns:\n  - - delay: 1s\n      retry-after: 1s\n", "f:3: turns[0][0].retry-after: only for overloaded"},
		"retry negative":     {"turns:\n  - - overloaded: x\n      retry-after: -1s\n", `f:3: turns[0][0].retry-after: "-1s" is not a duration: write one like 30m, 2h or 1d`},
		"delay negative":     {"turns:\n  - - delay: -1s\n", `f:2: turns[0][0].delay: "-1s" is not a duration: write one like 30m, 2h or 1d`},
		"delay without unit": {"turns:\n  - - delay: 5\n", `f:2: turns[0][0].delay: "5" is not a duration: write one like 30m, 2h or 1d`},
		"cost negative":      {"turns:\n  - - cost: -0.1\n", "f:2: turns[0][0].cost: want 0 or more"},
		"cost endless":       {"turns:\n  - - cost: .inf\n", "f:2: turns[0][0].cost: want a number, not \".inf\""},
		"in a nudge":         {"turns: [[]]\non-nudge:\n  - text: x\n  - {}\n", "f:4: on-nudge[1]: " + noAction},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse("f", []byte(tc.text))
			var faults yamldoc.Faults
			if !errors.As(err, &faults) || err.Error() != tc.want {
				t.Errorf("%s\n got %v\nwant %s", tc.text, err, tc.want)
			}
		})
	}
}

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "play.yaml")
	if _, err := Load(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if err := os.WriteFile(path, []byte("turns:\n  - - {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err == nil || !strings.HasPrefix(err.Error(), path+":2: turns[0][0]: ") {
		t.Errorf("fault %v", err)
	}
	if err := os.WriteFile(path, []byte(everything), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := Load(path); err != nil || len(s.Turns) != 3 {
		t.Errorf("%+v, %v", s, err)
	}
}

// Whatever the text: no panic; a fault names the file; what is read has at least one turn, and each step does one thing
// with values that can be played.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		everything, "", "turns: [[{}]]", "turns: [[{text: a, tool: b}]]", "turns:\n  - - delay: -1s", "turns: [[{input: {}}]]",
		"turns: [[{overloaded: x, times: -1, retry_after: 9d}]]", "turns: [[{cost: 1e3}]]\non-nudge: [{error: x}]", "turns:\n- - touch: ''\n  -",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := parse("f", data)
		if err != nil {
			var faults yamldoc.Faults
			if !errors.As(err, &faults) || len(faults) == 0 || !strings.HasPrefix(err.Error(), "f:") {
				t.Errorf("%q: %v", data, err)
			}
			return
		}
		if len(s.Turns) == 0 {
			t.Errorf("%q: no turns", data)
		}
		for _, steps := range append(s.Turns, s.OnNudge) {
			for _, step := range steps {
				if fault := unplayable(step); fault != "" {
					t.Errorf("%q: %+v: %s", data, step, fault)
				}
			}
		}
	})
}

func unplayable(s step) string {
	wait, times, cost := false, false, false // that the step may have
	switch s.Do {
	case "expect", "think", "text", "tool", "touch", "compact", "error":
	case "delay":
		wait = true
	case "cost":
		cost = true
	case "overloaded":
		wait, times = true, true
	default:
		return "unknown action"
	}
	switch {
	case s.Wait < 0 || s.Wait > 0 && !wait:
		return "wait"
	case s.Times < 0 || s.Times > 0 && !times:
		return "times"
	case !(s.Cost >= 0) || s.Cost > 0 && !cost:
		return "cost"
	case s.Input != nil && s.Do != "tool":
		return "input"
	}
	return ""
}
