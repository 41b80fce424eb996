package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ollim/ollim/internal/engine"
)

// timed runs a test on a clock of its own and measures how long the server takes to end after what ending does.
func timed(t *testing.T, tools Tools, ending func(*peer), check func(p *peer, err error, took time.Duration)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := connect(t, tools)
		p.open()
		p.send(request(1, "it", "{}"))
		synctest.Wait()
		begin := time.Now()
		ending(p)
		err := <-p.ended
		check(p, err, time.Since(begin))
		p.stop()
		p.out.Close()
		p.in.Close()
	})
}

func endOfInput(p *peer) { p.in.Close() }

func obedient(ctx context.Context, _ string, _ json.RawMessage) engine.ToolResult {
	<-ctx.Done()
	return engine.ToolResult{Text: context.Cause(ctx).Error(), IsError: true}
}

func TestEndOfInputCancelsACallThatStillRuns(t *testing.T) {
	var lines []string
	timed(t, one(obedient), func(p *peer) {
		go func() { lines = p.rest() }()
		endOfInput(p)
	}, func(p *peer, err error, took time.Duration) {
		synctest.Wait()
		if err != nil || took != patience {
			t.Errorf("%v after %s", err, took)
		}
		if len(lines) != 1 || !strings.Contains(lines[0], "context canceled") || len(p.warnings()) != 0 {
			t.Errorf("%q, warnings %q", lines, p.warnings())
		}
	})
}

func TestEndOfInputLetsAQuickCallEnd(t *testing.T) {
	var lines []string
	quick := one(func(ctx context.Context, _ string, _ json.RawMessage) engine.ToolResult {
		select {
		case <-time.After(patience / 2):
			return engine.ToolResult{Text: "done"}
		case <-ctx.Done():
			return engine.ToolResult{Text: "cut off"}
		}
	})
	timed(t, quick, func(p *peer) {
		go func() { lines = p.rest() }()
		endOfInput(p)
	}, func(_ *peer, err error, took time.Duration) {
		synctest.Wait()
		if err != nil || took != patience/2 || len(lines) != 1 || !sameJSON(t, lines[0], result(1, "done")) {
			t.Errorf("%v after %s: %q", err, took, lines)
		}
	})
}

func TestTheEndDoesNotWaitForAToolThatDoesNotObey(t *testing.T) {
	for name, row := range map[string]struct {
		ending func(*peer)
		took   time.Duration
		err    error
	}{
		"end of input": {endOfInput, 2 * patience, nil},
		"context":      {func(p *peer) { p.stop() }, patience, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			release := make(chan struct{})
			var lines []string
			stubborn := one(func(context.Context, string, json.RawMessage) engine.ToolResult {
				<-release
				return engine.ToolResult{Text: "too late"}
			})
			synctest.Test(t, func(t *testing.T) {
				release = make(chan struct{})
				p := connect(t, stubborn)
				p.open()
				p.send(request(1, "it", "{}"))
				go func() { lines = p.rest() }()
				synctest.Wait()
				begin := time.Now()
				row.ending(p)
				err := <-p.ended
				if took := time.Since(begin); !errors.Is(err, row.err) || took != row.took {
					t.Errorf("%v after %s", err, took)
				}
				if w := p.warnings(); len(w) != 1 {
					t.Errorf("warnings %q", w)
				}
				close(release)
				synctest.Wait()
				if len(lines) != 0 {
					t.Errorf("written after the end: %q", lines)
				}
				p.in.Close()
				p.out.Close()
			})
		})
	}
}

func TestTheContextEndsACallAtOnce(t *testing.T) {
	timed(t, one(obedient), func(p *peer) {
		go p.rest()
		p.stop()
	}, func(_ *peer, err error, took time.Duration) {
		if !errors.Is(err, context.Canceled) || took != 0 {
			t.Errorf("%v after %s", err, took)
		}
	})
}

func TestAClientThatDoesNotReadHoldsNobodyUp(t *testing.T) {
	done := one(func(context.Context, string, json.RawMessage) engine.ToolResult { return engine.ToolResult{} })
	timed(t, done, func(p *peer) {
		p.send(request(2, "it", "{}"), request(3, "it", "{}"))
		endOfInput(p)
	}, func(_ *peer, err error, took time.Duration) {
		if err == nil || err.Error() != "writing to the client: it does not read" || took != 3*patience {
			t.Errorf("%v after %s", err, took)
		}
	})
	timed(t, done, func(p *peer) {
		p.send(ping) // its answer waits in the reading loop, which must still see the context
		synctest.Wait()
		p.stop()
	}, func(_ *peer, err error, took time.Duration) {
		if !errors.Is(err, context.Canceled) || took > 2*patience {
			t.Errorf("%v after %s", err, took)
		}
	})
}

func TestABrokenOutputEndsTheServer(t *testing.T) {
	timed(t, one(obedient), func(p *peer) {
		p.out.CloseWithError(errors.New("gone"))
		p.send(ping)
	}, func(_ *peer, err error, took time.Duration) {
		if err == nil || err.Error() != "writing to the client: gone" || took != 0 {
			t.Errorf("%v after %s", err, took)
		}
	})
}

func TestABrokenInputEndsTheServer(t *testing.T) {
	in := io.MultiReader(strings.NewReader(ping+"\n"), broken{})
	var out strings.Builder
	err := Server{Tools: toys{}, Warn: func(string) {}}.Serve(t.Context(), in, &out)
	if err == nil || err.Error() != "reading from the client: input/output error" || !sameJSON(t, out.String(), pong) {
		t.Errorf("%v %q", err, out.String())
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("input/output error") }

func TestAMessageWithoutAnEnd(t *testing.T) {
	err := Server{Tools: toys{}, Warn: func(string) {}}.Serve(t.Context(), endless{}, io.Discard)
	if err == nil || err.Error() != "reading from the client: a message of more than 33554432 bytes" {
		t.Error(err)
	}
}

type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	return len(b), nil
}

func TestRequestsFromAFileAreAnswered(t *testing.T) {
	for range 2000 { // the last answer and the end race
		var out strings.Builder
		in := strings.NewReader(ping + "\n" + request(1, "echo", `{"z":"no newline after this"}`))
		if err := (Server{Tools: toys{}, Warn: func(string) {}}).Serve(t.Context(), in, &out); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != 2 || !sameJSON(t, lines[0], pong) || !sameJSON(t, lines[1], result(1, `{"z":"no newline after this"}`)) {
			t.Fatalf("%q", lines)
		}
	}
}
