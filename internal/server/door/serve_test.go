package door

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/runtest"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/server/listener"
	"github.com/ollim/ollim/internal/testkit/doorapi"
)

// TestFailingProgram: a program that ends soon after each start is in the log three times, and then at every 60th time, with what it writes
// on standard error. The status and the file for ollim doctor always say why, until it runs.
func TestFailingProgram(t *testing.T) {
	t.Parallel()
	const starts = 61 // the next one runs
	runner, messenger := runtest.New(t, runtest.Plays(nil)), doorapi.New(t, doorapi.Options{})
	good := program(t, messenger)
	var log, status []string // read after the end
	var mu sync.Mutex        // of both
	var begun int
	quiet := &atomic.Bool{}
	p := Program{Name: "radio", Files: good.Files, Quiet: quiet, Hide: func(text string) string { return strings.ReplaceAll(text, "token", "***") }}
	warn := func(m string) {
		mu.Lock()
		defer mu.Unlock()
		log = append(log, m)
	}
	p.Start = func() (*process.Peer, error) {
		begun++
		switch {
		case begun > starts:
			return good.Start()
		case begun > 5:
			return nil, fmt.Errorf("start %d", begun)
		}
		heard := &Log{Name: "radio", Hide: p.Hide, Warn: warn, Quiet: quiet}
		return process.Open(process.Call{Argv: []string{"/bin/sh", "-c", "echo a token >&2; exit 3"}, Heard: heard, Tied: true})
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	failure := ""
	err := Serve(ctx, Options{
		Program: p, Sleep: func(context.Context, time.Duration) error {
			if failure = Failure(runner.Home, "radio"); (failure != "") != (begun >= mostLoud) {
				t.Errorf("after start %d the failure is %q", begun, failure)
			}
			return nil
		},
		Options: listener.Options{
			Home: func() (listener.Home, error) {
				return listener.Home{Dir: runner.Home, Disk: runner.Disk, Runner: runner}, nil
			},
			Notify: func(states ...string) {
				mu.Lock()
				defer mu.Unlock()
				status = append(status, states...)
				if slices.Contains(states, "READY=1") {
					go func() {
						messenger.Wait("no failure", func() bool { return Failure(runner.Home, "radio") == "" })
						stop()
					}()
				}
			},
			Actions: &listener.Actions{
				Name: "radio", Now: time.Now, Warn: warn,
				Runner: func() (*run.Runner, error) { return runner, nil },
				Ollim:  func(context.Context, ...string) (string, error) { return "", errors.New("nothing is to be run") },
			},
		},
	})
	if err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	all := strings.Join(log, "\n") + "\n"
	if n := strings.Count(all, "radio: a ***\n"); n < 1 || n > mostLoud { // a busy machine may have it late
		t.Errorf("the program's line is there %d times: %s", n, all)
	}
	for text, want := range map[string]int{
		"it ended before it said hello": 3, "token": 0, "radio: start 60": 1, "start ": 1, "ollim door test": 1,
	} {
		if got := strings.Count(all, text); got != want {
			t.Errorf("%q is there %d times, want %d: %s", text, got, want, all)
		}
	}
	if failure != "start 61" || !slices.Contains(status, "STATUS=the door does not run, and is started again: start 61") {
		t.Errorf("failure %q, status %q", failure, status)
	}
}
