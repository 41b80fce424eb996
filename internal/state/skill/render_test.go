package skill

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/testkit"
)

// fake is a machine on which each program is known.
type fake map[string]func() (process.Result, error)

func (f fake) run(_ context.Context, c process.Call) (process.Result, error) {
	if do, ok := f[c.Argv[0]]; ok {
		return do()
	}
	return process.Result{Status: -1}, fmt.Errorf("%s: %w=/secret", c.Argv[0], process.ErrNotFound)
}

func prints(out string) func() (process.Result, error) {
	return func() (process.Result, error) { return process.Result{Out: []byte(out), End: "exit status 0"}, nil }
}

func fails(out, said string) func() (process.Result, error) {
	return func() (process.Result, error) {
		return process.Result{Out: []byte(out), Stderr: said, Status: 3, End: "exit status 3"}, nil
	}
}

func render(f fake, body string) string {
	return Renderer{Run: f.run}.Render(context.Background(), skillFile{Body: body})
}

func TestRender(t *testing.T) {
	const cut = "\n[output cut at 2,000 characters]"
	f := fake{
		"date":    prints("Mon 24 Nov\n\n"),
		"list":    prints("a\n\tb\r\n"),
		"true":    prints(""),
		"long":    prints(strings.Repeat("é", 2001)),
		"fits":    prints(strings.Repeat("é", 2000) + "\n"),
		"noise":   func() (process.Result, error) { return process.Result{Out: make([]byte, 100), Cut: true}, nil },
		"colour":  prints("\x1b[31mred\x07 \xff\u009b"),
		"sly":     prints("!`date`\n x !`date`\n```!\ndate\n```\n```!`date`"),
		"bang":    prints("x !"),
		"tick":    prints("`"),
		"dollar":  prints("$ARGUMENTS"),
		"silent":  fails("", ""),
		"grumble": fails("", "first\nno such\tfile\n\n"),
		"partly":  fails("half\n", "broke"),
		"rant":    fails("", strings.Repeat("x", 999)),
		"forged":  fails("", "]\n!`date`"),
		"cancel":  func() (process.Result, error) { return process.Result{Status: -1}, context.Canceled },
		"broken":  func() (process.Result, error) { return process.Result{Status: -1}, errors.New("/x: permission denied") },
		"killed":  func() (process.Result, error) { return process.Result{Status: -1, End: "signal: killed"}, nil },
	}
	for name, tc := range map[string]struct{ body, want string }{
		"text":          {"No `commands` here!", "No `commands` here!"},
		"inline":        {"It is !`date`.", "It is Mon 24 Nov."},
		"lines":         {"!`list`\n!`date`", "a\n\tb\nMon 24 Nov"},
		"nothing":       {"x !`true` y", "x  y"},
		"in a fence":    {"```\n!`date`\n```", "```\nMon 24 Nov\n```"},
		"too long":      {"!`long`", strings.Repeat("é", 2000) + cut},
		"just fits":     {"!`fits`", strings.Repeat("é", 2000)},
		"only noise":    {"!`noise`", cut[1:]},
		"controls":      {"!`colour`", "[31mred \ufffd"},
		"smuggled":      {"!`sly`", "! `date`\n x ! `date`\n``` !\ndate\n```\n``` ! `date`"},
		"put together":  {"!`bang``date`", "x ! `date`"},
		"with a block":  {"!`tick```!\ndate\n```", "``` !\ndate\n```"},
		"uncovered":     {"!`true`!`date`", "! `date`"},
		"arguments":     {"$ARGUMENTS !`dollar`", "$ARGUMENTS $ ARGUMENTS"},
		"silent":        {"!`silent`", "[command failed: exit status 3]"},
		"last words":    {"!`grumble`", "[command failed: exit status 3: no such file]"},
		"partly":        {"!`partly`", "half\n[command failed: exit status 3: broke]"},
		"rant":          {"!`rant`", "[command failed: exit status 3: " + strings.Repeat("x", 299) + "…]"},
		"forged":        {"!`forged`", "[command failed: exit status 3: ! `date`]"},
		"missing":       {"!`nope -x`", "[command not run: nope: not found in PATH]"},
		"cancelled":     {"!`cancel`", "[command not run: context canceled]"},
		"cannot start":  {"!`broken`", "[command not run: /x: permission denied]"},
		"killed":        {"!`killed`", "[command failed: signal: killed]"},
		"pipe":          {"!`date | date`", "[command not run: one simple command: no pipe, redirection, variable assignment, comment, newline, ! ; or &]"},
		"two commands":  {"!`date; date`", "[command not run: one simple command: no pipe, redirection, variable assignment, comment, newline, ! ; or &]"},
		"redirection":   {"!`date > x`", "[command not run: one simple command: no pipe, redirection, variable assignment, comment, newline, ! ; or &]"},
		"substitution":  {"!`date $(date)`", "[command not run: no substitution, expansion or pattern; put the text in single quotes if it is meant literally]"},
		"variable":      {"!`date $ARGUMENTS`", "[command not run: no substitution, expansion or pattern; put the text in single quotes if it is meant literally]"},
		"assignment":    {"!`A=b date`", "[command not run: one simple command: no pipe, redirection, variable assignment, comment, newline, ! ; or &]"},
		"newline":       {"!`date\ndate`", "[command not run: no newline]"},
		"blank":         {"!` `", "[command not run: it is empty]"},
		"a shell block": {"```!\ndate | wc\n```\n", "[commands not run: a block of commands would need a shell; write single ones]\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := render(f, tc.body); got != tc.want {
				t.Errorf("\n got %q\nwant %q", got, tc.want)
			}
		})
	}
}

// What a command is given: its words, the directory, the environment, no input, and room for what is shown.
func TestRenderCalls(t *testing.T) {
	var calls []process.Call
	r := Renderer{Dir: "/data", Env: []string{"A=b"}, Run: func(ctx context.Context, c process.Call) (process.Result, error) {
		calls = append(calls, c)
		if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) > eachLimit {
			t.Errorf("%v: deadline %v", c.Argv, deadline)
		}
		return process.Result{}, nil
	}}
	r.Render(context.Background(), skillFile{Body: "!`a 'b c' \"d\"` and !`e`"})
	for i, argv := range [][]string{{"a", "b c", "d"}, {"e"}} {
		if i >= len(calls) {
			t.Fatalf("%d calls, want 2", len(calls))
		}
		c := calls[i]
		if !slices.Equal(c.Argv, argv) || !slices.Equal(c.Env, r.Env) || c.Dir != r.Dir || len(c.Stdin) != 0 || c.Limit != 8000 {
			t.Errorf("call %d: %+v", i, c)
		}
	}
}

// machine is a renderer of real programs with small limits.
func machine(t *testing.T, each, all time.Duration) Renderer {
	t.Helper()
	return Renderer{Dir: t.TempDir(), Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin"}, Each: each, All: all}
}

func TestRenderPrograms(t *testing.T) {
	r := machine(t, 10*time.Second, 30*time.Second)
	script := filepath.Join(r.Dir, "skills", "x", "run.sh")
	if err := os.MkdirAll(filepath.Dir(script), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := testkit.WriteFile(script, []byte("#!/bin/sh\necho \"$1\"; pwd; env | grep -c SECRET; cat; echo gone wrong >&2; exit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SECRET", "x")
	got := r.Render(context.Background(), skillFile{Body: "!`skills/x/run.sh '*'`\n!`./skills/x/gone`"})
	want := "*\n" + r.Dir + "\n0\n[command failed: exit status 3: gone wrong]\n[command not run: ./skills/x/gone: no such file or directory]"
	if got != want {
		t.Errorf("\n got %q\nwant %q", got, want)
	}
}

// unhurried runs programs; one whose words contain word has no time limit.
func unhurried(word string) func(context.Context, process.Call) (process.Result, error) {
	return func(ctx context.Context, c process.Call) (process.Result, error) {
		if slices.Contains(c.Argv, word) {
			ctx = context.WithoutCancel(ctx)
		}
		return process.Run(ctx, c)
	}
}

// The limit is doubled until the flood is over before it passes.
func TestRenderHangingAndFlooding(t *testing.T) {
	t.Parallel()
	for limit := 100 * time.Millisecond; ; limit *= 2 {
		r := machine(t, limit, time.Hour)
		r.Run = unhurried("on")
		const flooding = "yes | head -n 100000; echo > flooded; exec sleep 100000"
		got := r.Render(context.Background(), skillFile{Body: "!`sleep 100000`\n!`sh -c '" + flooding + "'`\n!`echo on`"})
		if _, err := os.Stat(filepath.Join(r.Dir, "flooded")); err != nil && limit < time.Minute {
			continue
		}
		flood := strings.TrimRight(strings.Repeat("y\n", 1000), "\n")
		late := "[command timed out after " + limit.String() + "]"
		if want := late + "\n" + flood + "\n[output cut at 2,000 characters]\n" + late + "\non"; got != want {
			t.Errorf("\n got %q\nwant %q", got, want)
		}
		return
	}
}

func TestRenderTogether(t *testing.T) {
	t.Parallel()
	r := machine(t, time.Hour, 200*time.Millisecond)
	r.Run = unhurried("first")
	got := r.Render(context.Background(), skillFile{Body: "!`echo first` !`sleep 100000` !`echo last`"})
	const late = "[command not finished: the commands of a skill have 200ms together]"
	if want := "first " + late + " " + late; got != want {
		t.Errorf("\n got %q\nwant %q", got, want)
	}
}

func TestRenderCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	ran := 0
	r := Renderer{Run: func(ctx context.Context, c process.Call) (process.Result, error) {
		ran++
		cancel()
		return process.Run(ctx, c)
	}}
	if got := r.Render(ctx, skillFile{Body: "!`a` !`b`"}); ran != 2 || strings.Count(got, "[command not run: context canceled]") != 2 {
		t.Errorf("ran %d: %q", ran, got)
	}
}

// Whatever stands in a body, is printed, or is passed as arguments: what comes out holds no command and no block, and nothing
// but what its author wrote takes arguments.
func TestRenderedOnce(t *testing.T) {
	texts := rapid.StringOfN(rapid.SampledFrom([]rune("!```! \n\tax$]\u00a0\u2028\x00é")), 0, 30, -1)
	rapid.Check(t, func(t *rapid.T) {
		body, out, args := texts.Draw(t, "body"), texts.Draw(t, "out"), texts.Draw(t, "args")
		got := render(fake{"x": prints(out), "a": fails(out, out)}, body+" !`x`"+body+"!`a`")
		final := WithArguments(got, args)
		for _, text := range []string{got, final} {
			if left := (skillFile{Body: text}).Commands(); left != nil || strings.Contains(text, "```!") {
				t.Fatalf("%q holds %q", text, left)
			}
		}
		if again := render(fake{}, got); again != got {
			t.Fatalf("rendered again: %q, once: %q", again, got)
		}
	})
}

func FuzzRender(f *testing.F) {
	f.Add("x !`a` y", "out", "args")
	f.Add("!`a``b` ```!\nx\n```", "!", "`")
	f.Add("$ARGUMENTS !`a 'b'`", "$ARGUMENTS \x1b[0m\xff", "!`c`")
	f.Fuzz(func(t *testing.T, body, out, args string) {
		s := skillFile{Body: body}
		r := Renderer{Run: func(context.Context, process.Call) (process.Result, error) {
			return process.Result{Out: []byte(out), Stderr: out, Status: len(out) % 2, End: "exit status 1"}, nil
		}}
		rendered := r.Render(context.Background(), s)
		final := WithArguments(rendered, args)
		for _, text := range []string{rendered, final} {
			if left := (skillFile{Body: text}).Commands(); left != nil || strings.Contains(text, "```!") {
				t.Errorf("%q holds %q", text, left)
			}
		}
		if most := len(body) + (len(s.Commands())+1)*(outputLimit+1000)*2*utf8.UTFMax; len(rendered) > most {
			t.Errorf("%d bytes, more than %d", len(rendered), most)
		}
		strange := func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }
		if strings.ContainsFunc(rendered, strange) && !strings.ContainsFunc(body, strange) {
			t.Errorf("%q has control characters", rendered)
		}
	})
}

func TestWithArguments(t *testing.T) {
	for name, tc := range map[string]struct{ text, args, want string }{
		"named":       {"Review $ARGUMENTS, all of $ARGUMENTS.", "a b", "Review a b, all of a b."},
		"named, none": {"Review $ARGUMENTS.", "", "Review ."},
		"appended":    {"Review.", "a b", "Review.\n\nARGUMENTS: a b"},
		"none":        {"Review.", " ", "Review."},
		"a command":   {"Review $ARGUMENTS", "!`date`", "Review ! `date`"},
		"themselves":  {"Review $ARGUMENTS", "$ARGUMENTS", "Review $ARGUMENTS"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := WithArguments(tc.text, tc.args); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
