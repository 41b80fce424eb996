package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os/exec"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/schedule/installer"
)

// waiting is a waiting tick whose minutes and children the test makes.
type waiting struct {
	*starter
	now     time.Time
	minutes chan time.Time
	warned  bytes.Buffer
	did     chan string // what it does meanwhile
	result  chan error
}

func newWaiting() *waiting {
	w := &waiting{now: time.Unix(0, 0), minutes: make(chan time.Time), did: make(chan string, 10), result: make(chan error, 1)}
	w.starter = &starter{wait: true, d: &deps{App: &app.App{
		Machine: app.Machine{Now: func() time.Time { return w.now }},
	}, Stderr: &w.warned}}
	return w
}

// child starts a process that ends when the result is closed.
func (w *waiting) child(t *testing.T) io.Closer {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "cat")
	end, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	w.watch(cmd)
	return end
}

func (w *waiting) begin(ctx context.Context, minute, next error) {
	go func() {
		w.result <- w.await(ctx, w.minutes, errors.New("first"), work{
			minute: func() error { w.did <- "minute"; return minute },
			next:   func() error { w.did <- "next"; return next },
		})
	}()
}

// TestWaitingTickGoesOn: while a job runs that the tick has started, the tick does each further minute's work.
func TestWaitingTickGoesOn(t *testing.T) {
	w := newWaiting()
	long, short := w.child(t), w.child(t)
	w.begin(t.Context(), errors.New("second"), nil)
	w.minutes <- w.now
	if got := <-w.did; got != "minute" {
		t.Error(got)
	}
	_ = short.Close()
	if got := <-w.did; got != "next" {
		t.Error(got)
	}
	_ = long.Close()
	if err := <-w.result; err == nil || err.Error() != "second" || w.warned.String() != "ollim: warning: first\n" {
		t.Errorf("%v, warned %q", err, w.warned.String())
	}
}

// TestWaitingTickStartsNoMore: after an hour it only waits, so that it ends before its deadline.
func TestWaitingTickStartsNoMore(t *testing.T) {
	w := newWaiting()
	long := w.child(t)
	w.begin(t.Context(), nil, nil)
	w.minutes <- w.now
	if got := <-w.did; got != "minute" {
		t.Error(got)
	}
	w.now = w.now.Add(installer.TickPasses)
	w.minutes <- w.now
	_ = long.Close()
	if err := <-w.result; err == nil || err.Error() != "first" {
		t.Error(err)
	}
	if len(w.did) > 0 {
		t.Errorf("%s after the last minute", <-w.did)
	}
}

// TestWaitingTickIsEnded: a tick that is asked to end asks what it has started to end, and waits for that.
func TestWaitingTickIsEnded(t *testing.T) {
	w := newWaiting()
	defer w.child(t).Close()
	ctx, cancel := context.WithCancel(t.Context())
	w.begin(ctx, nil, nil)
	cancel()
	if err := <-w.result; err == nil || err.Error() != "first" || len(w.did) > 0 || len(w.started) > 0 {
		t.Errorf("%v, %d done, %d left", err, len(w.did), len(w.started))
	}
}
