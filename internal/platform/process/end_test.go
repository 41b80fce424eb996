package process

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

var errLate = errors.New("too late")

// ended runs a program whose ctx ends once it has written the file "ready", and measures how long it lives after that.
func ended(t *testing.T, c Call) (Result, time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	at := make(chan time.Time, 1)
	go func() {
		pid(t, c, "ready")
		at <- time.Now()
		cancel(errLate)
	}()
	r, err := Run(ctx, c)
	if !errors.Is(err, errLate) || r.Status != -1 {
		t.Errorf("%+v, %v, want the cause of ctx", r, err)
	}
	return r, time.Since(<-at)
}

// A program with an hour of grace that is not ended by the end of ctx alone hangs until the deadline of the test.
func TestEndOfContext(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		body   string // followed by: wait until ended
		grace  time.Duration
		least  time.Duration
		stderr string
		end    string
	}{
		"obeys":          {"echo so far >&2", time.Hour, 0, "so far\n", "signal: terminated"},
		"last words":     {"trap 'echo bye >&2; exit 0' TERM", time.Hour, 0, "bye\n", "exit status 0"},
		"ignores":        {"trap '' TERM", 200 * time.Millisecond, 200 * time.Millisecond, "", "signal: killed"},
		"at once":        {"trap 'echo bye >&2' TERM", 0, 0, "", "signal: killed"},
		"stopped":        {"(kill -STOP $$; while grep -qs '^State:.[^T]' /proc/$$/status; do :; done; echo $$ > ready) & while :; do sleep 0.01; done", 100 * time.Millisecond, 0, "", "signal: killed"},
		"floods":         {"yes & yes >&2 &", 100 * time.Millisecond, 0, "", "signal: terminated"},
		"never reads":    {"exec 3<&0", time.Hour, 0, "", "signal: terminated"},
		"a deaf child":   {child(`trap "" TERM`), 200 * time.Millisecond, 0, "", "signal: terminated"},
		"a silent child": {child(`trap "" TERM; exec > /dev/null 2>&1`), time.Hour, 0, "", "signal: terminated"},
		"an escaped one": {"setsid sleep 100000 & echo $! > escaped", 0, 0, "", "signal: killed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := sh(t, tc.body+"\necho $$ > ready\nwhile :; do sleep 0.01; done")
			c.Grace, c.Stdin = tc.grace, bytes.Repeat([]byte("x"), 1<<20)
			r, took := ended(t, c)
			if took < tc.least {
				t.Errorf("took %s, want at least %s", took, tc.least)
			}
			if !strings.HasSuffix(r.Stderr, tc.stderr) || r.End != tc.end {
				t.Errorf("said %.80q, %s", r.Stderr, r.End)
			}
			dead(t, pid(t, c, "ready"))
			if strings.Contains(tc.body, "> child") {
				dead(t, pid(t, c, "child"))
			}
			if strings.Contains(tc.body, "> escaped") {
				_ = syscall.Kill(pid(t, c, "escaped"), syscall.SIGKILL)
			}
		})
	}
}

// A child of a deaf program gets SIGTERM too. The grace is doubled until the child has said its last words before it passes.
func TestEndOfAGoodChild(t *testing.T) {
	t.Parallel()
	for grace := 100 * time.Millisecond; ; grace *= 2 {
		c := sh(t, child(`trap "echo bye >&2; echo > said; exit" TERM`)+"; trap '' TERM; echo $$ > ready\nwhile :; do sleep 0.01; done")
		c.Grace = grace
		r, took := ended(t, c)
		for _, name := range []string{"ready", "child"} {
			dead(t, pid(t, c, name))
		}
		if _, err := os.Stat(filepath.Join(c.Dir, "said")); err != nil && grace < time.Minute {
			continue
		}
		if took < grace || !strings.HasSuffix(r.Stderr, "bye\n") || r.End != "signal: killed" {
			t.Errorf("after %s, said %.80q, %s", took, r.Stderr, r.End)
		}
		return
	}
}

// child is a script that starts a background process in its group, and continues when that is ready.
func child(body string) string {
	return "sh -c '" + body + "; echo $$ > child; while :; do sleep 0.01; done' & while [ ! -s child ]; do sleep 0.01; done"
}

// A program may leave a process running that keeps its output open. It is not waited for for long, nor ended, nor a
// failure, and it does not become one when ctx ends in the meantime.
func TestWhatIsLeftBehind(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]bool{"ctx goes on": false, "ctx ends": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := sh(t, `echo out; exec 3<&0; echo $$ > leader; sleep 100000 <&3 & echo $! > child; exit 5`)
			c.Stdin = bytes.Repeat([]byte("x"), 1<<20)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if ends {
				go func() {
					dead(t, pid(t, c, "leader"))
					cancel()
				}()
			}
			r, err := Run(ctx, c)
			if err != nil || r.Status != 5 || string(r.Out) != "out\n" {
				t.Errorf("%+v, %v", r, err)
			}
			if child := pid(t, c, "child"); !alive(child) { // and Run has not waited for it
				t.Error("what it left behind was ended")
			} else {
				_ = syscall.Kill(child, syscall.SIGKILL)
			}
		})
	}
}
