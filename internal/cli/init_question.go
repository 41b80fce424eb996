package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/agent/notify"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/turn"
	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/app/doctor"
	"github.com/ollim/ollim/internal/app/setup"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/provider"
	"github.com/ollim/ollim/internal/state/runlog"
)

func (w *initWalk) askQuestion(ctx context.Context, a *interview) (err error) {
	if failure := w.Open().Failure; failure != "" && !a.yes {
		a.say("The last test question failed: %s", failure)
		w.o.testEngine, err = w.askAgain(ctx, false)
		return err
	}
	text := "Ask the engine a test question"
	if !w.scripted() {
		text += ", for about a cent"
	}
	w.o.testEngine, err = a.sure(ctx, text, true)
	return err
}

// scripted reports whether the engine is a script, which costs nothing.
func (w *initWalk) scripted() bool { return strings.HasPrefix(w.Home.Config.Engine, "script:") }

// putQuestion asks the engine the test question, in the environment of automatic runs. After a failure the owner may change the engine, its
// service and its key. The question stays open until it is answered, or declined before it failed.
func (w *initWalk) putQuestion(ctx context.Context) error {
	if !w.o.testEngine {
		return w.leave(func(open *setup.Open) { open.Question = false })
	}
	var refused bool
	work := func() error {
		r, err := w.question(ctx)
		if ctx.Err() != nil {
			return err
		}
		refused = notify.Kind(r.Fault) == notify.Key || errors.Is(err, engine.ErrKey)
		left := w.leave(func(open *setup.Open) {
			open.Question, open.Untested, open.Failure = err != nil, err != nil, ""
			if err != nil {
				open.Failure = strings.TrimPrefix(err.Error(), "failed: ")
			}
		})
		return cmp.Or(w.addressHint(err), left)
	}
	return w.retry(ctx, "the test question", work, func() (bool, error) { return w.askAgain(ctx, refused) })
}

// addressHint adds to an error how to change the address of the engine's service, if one is set.
func (w *initWalk) addressHint(err error) error {
	address, _ := w.Home.ServiceAddress()
	if err == nil || address == "" {
		return err
	}
	change := "to change the address " + address + ": ollim init --base-url ADDRESS"
	if h, ok := errors.AsType[*app.Hinted](err); ok {
		change = h.Hint + "; " + change
	}
	return hint(err, "%s", change)
}

// askAgain asks whether to put the test question once more, and with what. If the key was refused, another one is asked for first.
func (w *initWalk) askAgain(ctx context.Context, refused bool) (bool, error) {
	if refused {
		w.asks.say("The service does not accept the key, or there is none.")
		again, err := w.asks.sure(ctx, "Give a key", true)
		if err == nil && again {
			err = w.askKey(ctx, w.asks)
		}
		if err != nil {
			return false, err
		}
		if again && w.secret != "" {
			return true, w.setKey(ctx)
		}
	}
	answer, err := w.asks.value(ctx, "Next: again, change (engine, address, key) or on", "change", func(answer string) error {
		if !slices.Contains([]string{"again", "change", "on"}, answer) {
			return errors.New("write again, change or on")
		}
		return nil
	})
	if err != nil || answer != "change" {
		return answer == "again", err
	}
	return w.changeEngine(ctx)
}

// changeEngine asks for the engine, its service and its key again, and stores the answers. The present values are the standard answers. It
// reports whether there is an engine to test; the answer none changes nothing.
func (w *initWalk) changeEngine(ctx context.Context) (bool, error) {
	w.asks.say("")
	before := w.present()
	w.o.Answers, w.o.key, w.secret = setup.Answers{}, keySource{}, ""
	if err := w.askEngine(ctx, w.asks); err != nil || w.o.Engine == setup.None {
		return false, err
	}
	if o := &w.o.Service; w.o.Engine == engine.Native { // without an address or a model the old one would stay
		o.URL, o.Model = cmp.Or(o.URL, provider.Vendor(o.Provider)), cmp.Or(o.Model, "sonnet")
	}
	if w.o.Engine == before {
		w.o.Engine = "" // so that the configured path of the claude command stays
	}
	if err := w.make(ctx, true); err != nil {
		return false, err
	}
	if name, _, err := w.Home.EngineKey(ctx); err != nil || name == "" {
		return err == nil, err
	}
	if err := w.giveKey(ctx, w.asks, true); err != nil {
		return false, err
	}
	return true, w.setKey(ctx)
}

func (w *initWalk) question(ctx context.Context) (runlog.Record, error) {
	answer := ""
	stop := w.d.watch("test question")
	r, err := w.Home.Turns(false).Ask(ctx, doctor.TestQuestion(string(w.Dir)), turn.Options{Owner: true, Observe: run.Observer{Event: func(e runlog.Event) {
		w.d.follow(e)
		if e.Type == runlog.Result {
			answer = e.Text
		}
	}}})
	stop()
	if r.ID == "" {
		return r, explain(err)
	}
	if answer != "" && r.Outcome == runlog.OK {
		_, _ = fmt.Fprintln(w.d.Out, answer)
		_ = w.d.flush() // a failed write shows at the end
	}
	w.d.account("init", "test question", r)
	return r, (&fireOptions{}).verdict(w.d, r, err)
}
