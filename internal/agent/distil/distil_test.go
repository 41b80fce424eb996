package distil

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/backtest"
	"github.com/ollim/ollim/internal/platform/paths"
)

// used is a use of a tool in a recorded run.
func used(tool, input, text string) backtest.RecordedCall {
	return backtest.RecordedCall{Tool: tool, Input: []byte(input), Text: text}
}

// TestResult: the result of an input is what a program that repeats it prints, or there is a reason why it is not known.
func TestResult(t *testing.T) {
	for name, tc := range map[string]struct {
		use       backtest.RecordedCall
		text, why string
	}{
		"file":          {used("Read", `{}`, "     1\tdisk 50 %\n     2\t\n     3\t  x\n"), "disk 50 %\n\n  x", ""},
		"arrows":        {used("Read", `{}`, "     1→a\n     2→b\n\n<system-reminder>\nwhatever\n</system-reminder>\n"), "a\nb", ""},
		"empty file":    {used("Read", `{}`, "(the file is empty)"), "", ""},
		"picture":       {used("Read", `{}`, "image/png 3 x 4 pixels"), "", "it is not"},
		"long file":     {used("Read", `{}`, "     1\ta\n(the file continues; read it from offset 2)"), "", "cut in the record"},
		"command":       {used("Bash", `{}`, "a\nb\n"), "a\nb", ""},
		"silent":        {used("Bash", `{}`, "(no output)"), "", ""},
		"long command":  {used("Bash", `{}`, "a\n… (900 characters omitted) …\nb"), "", "cut in the record"},
		"json":          {used("WebFetch", `{}`, `{"a": 1}`), `{"a": 1}`, ""},
		"page":          {used("WebFetch", `{}`, "# Title"), "", "not JSON"},
		"failed":        {backtest.RecordedCall{Tool: "Bash", Text: "x", Failed: true}, "", "it failed"},
		"another's end": {used("Bash", `{}`, "a <system-reminder>x"), "a <system-reminder>x", ""},
	} {
		text, why := result(tc.use)
		if text != tc.text || (why == "") != (tc.why == "") || tc.why != "it is not" && !strings.Contains(why, tc.why) {
			t.Errorf("%s: %q, %q", name, text, why)
		}
	}
}

// TestUnfetched: what a plain program cannot repeat is named with the reason.
func TestUnfetched(t *testing.T) {
	for input, want := range map[string]string{
		`Bash {"command":"df -h"}`: "", `Bash {"command":"ollim ping x"}`: "a command of ollim", `Bash {"command":"if"}`: "cannot read", `Bash {}`: "no plain program",
		`Read {"file_path":"a"}`: "", `Read {"file_path":"a","limit":3}`: "a part of the file", `WebFetch {"url":"https://x/y.json"}`: "", `WebFetch {"url":"file:///x"}`: "no plain program",
		`mcp__ollim__ping_user {"message":"x"}`: "has an effect", `Write {"file_path":"a"}`: "has an effect", `Grep {"pattern":"x"}`: "no plain program",
	} {
		tool, rest, _ := strings.Cut(input, " ")
		if why := unfetched(used(tool, rest, "")); (why == "") != (want == "") || !strings.Contains(why, want) {
			t.Errorf("%s: %q, want %q", input, why, want)
		}
	}
}

// TestScript: the gate repeats the inputs, whatever is in them, and decides as the judge does.
func TestScript(t *testing.T) {
	p := Plan{ID: "ID", Job: "disk", Model: "m", Inputs: []Input{
		{Tool: "Bash", What: `printf '%s\n' "it's 5"; echo "$HOME" >/dev/null`}, {Tool: "Read", What: "/dev/null"},
	}}
	for filter, want := range map[string]int{`[ "$1" = "it's 5" ] && [ -z "$2" ] && exit 1`: 1, `[ "$1" = x ] && exit 1`: 0, "exit 0": 0} {
		gate := p.Script(filter)
		if Written(gate) != "ID" {
			t.Errorf("%s", gate)
		}
		cmd := exec.Command("/bin/sh", "-c", string(gate))
		out, _ := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != want || len(out) > 0 {
			t.Errorf("%s: %d, %s", filter, got, out)
		}
	}
	p.Inputs = append(p.Inputs, Input{Tool: "Read", What: "/nowhere"})
	if out, err := exec.Command("/bin/sh", "-c", string(p.Script("exit 1"))).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("an input that cannot be fetched: %v, %s", err, out)
	}
	if Written([]byte("#!/bin/sh\nexit 1\n")) != "" {
		t.Error("a gate of the owner is taken for one of ollim")
	}
}

// records are runs, the newest first, of which each third has pinged.
func records(n int) (r Records) {
	r.Inputs = []Input{{Tool: "Read", What: "x", Runs: n}}
	for i := range n {
		c := Case{Run: fmt.Sprint("r", i), Inputs: []string{fmt.Sprintf("sample %d: load %d", 7000+i, 10+i)}, Cost: 0.1, Started: time.Unix(0, 0).Add(time.Duration(n-i) * 24 * time.Hour)}
		if i%3 == 0 {
			c.Did, c.Inputs = []string{backtest.Pinged}, []string{fmt.Sprintf("sample %d: load %d", 7000+i, 91+i)}
		}
		r.Cases = append(r.Cases, c)
	}
	return r
}

// TestByHeart: a part that names values of single runs is refused; one with a threshold or a word is not.
func TestByHeart(t *testing.T) {
	seen := records(30).Cases
	for filter, heart := range map[string]bool{
		`n=${1##* }; [ "$n" -le 90 ] && exit 1`:                                     false,
		`case "$1" in *"load 1"[0-9]*) exit 1 ;; esac`:                              false,
		`case "$1" in *7003*|*7006*|*7009*) exit 0 ;; esac; exit 1`:                 true,
		`case "$1" in "sample 7001: load 11"|"sample 7002: load 12") exit 1;; esac`: true,
	} {
		if why := unfit(filter, seen); strings.Contains(why, "by heart") != heart {
			t.Errorf("%s: %q", filter, why)
		}
	}
}

func TestSplitAndFew(t *testing.T) {
	r := records(30)
	seen, held := r.Split()
	loud := func(runs []string) (n int) {
		for _, c := range r.Of(runs) {
			if c.Loud() {
				n++
			}
		}
		return n
	}
	if len(seen) != 15 || len(held) != 15 || loud(seen) != 5 || loud(held) != 5 || r.Few() != "" {
		t.Errorf("%v, %v, %q", seen, held, r.Few())
	}
	quiet := records(30)
	for i := range quiet.Cases {
		quiet.Cases[i].Did = nil
	}
	loudOnes := records(30)
	for i := range loudOnes.Cases {
		loudOnes.Cases[i].Did = []string{backtest.Pinged}
	}
	blind := records(30)
	blind.Inputs = nil
	for want, r := range map[string]Records{"10 are needed": records(9), "2 are needed": quiet, "nothing to skip": loudOnes, "no use of a tool": blind} {
		if got := r.Few(); !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestJudge: a part that does not end, or cannot be started, is no verdict for the gate; the money saved is that of the skipped runs.
func TestJudge(t *testing.T) {
	r := records(30)
	for i := range r.Cases {
		r.Cases[i].Failed = i == 29
	}
	d := &Distil{Plan: Plan{ID: "x", Inputs: r.Inputs, Monthly: 30}, Book: Book{paths.Dir(t.TempDir())}, Records: r}
	d.Seen, d.Held = r.Split()
	load := func(inputs []string) (n int) {
		_, text, _ := strings.Cut(inputs[0], "load ")
		_, _ = fmt.Sscan(text, &n)
		return n
	}
	for name, tc := range map[string]struct {
		start               Start
		skipped, lost, whys int
		err                 bool
	}{
		"good": {func(_ context.Context, _ []byte, in []string) (Exit, error) {
			return Exit{Status: map[bool]int{true: 1}[load(in) < 90]}, nil
		}, 9, 0, 0, false},
		"shut":   {func(context.Context, []byte, []string) (Exit, error) { return Exit{Status: 1}, nil }, 9, 5, 5, false},
		"loops":  {func(context.Context, []byte, []string) (Exit, error) { return Exit{Status: -1}, nil }, 0, 0, 15, false},
		"speaks": {func(context.Context, []byte, []string) (Exit, error) { return Exit{1, "x"}, nil }, 0, 0, 15, false},
		"broken": {func(context.Context, []byte, []string) (Exit, error) { return Exit{}, errors.New("no seal") }, 0, 0, 0, true},
	} {
		d.Start = tc.start
		var v Verdict
		err := d.judge(t.Context(), &v)
		if (err != nil) != tc.err || err == nil && (v.Skipped != tc.skipped || v.Lost != tc.lost || len(v.Why) < tc.whys || tc.whys == 0 && len(v.Why) > 0) {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
		if name == "good" && (v.String() != "9 of 10 quiet runs skipped, 0 of 5 pings lost; $1.80 a month less" || v.Bound < 0.4) {
			t.Errorf("%s, %v", v, v.Bound)
		}
	}
}
