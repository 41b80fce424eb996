package turn

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/runtest"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/state/queue"
	"github.com/ollim/ollim/internal/state/runlog"
)

// abandon puts a message into the queue, and leaves it there.
func abandon(t *testing.T, r *run.Runner, m Message, o Options) {
	t.Helper()
	ticket, _, err := Queue{r}.Enqueue(t.Context(), m, o)
	if err != nil {
		t.Fatal(err)
	}
	ticket.Leave()
}

// waiting returns the texts of the messages in the queue.
func waiting(t *testing.T, r *run.Runner) (texts []string) {
	t.Helper()
	contents, err := r.Queue.Contents()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range contents.Waiting {
		texts = append(texts, m.Text)
	}
	return texts
}

// TestChatAfterAbandoned: the owner's message waits for one whose sender has died: that is answered first, for its sender's owner, to whom
// the answer is sent and not shown on this terminal.
func TestChatAfterAbandoned(t *testing.T) {
	t.Parallel()
	var shown bytes.Buffer
	a, post := &agent{answers: []string{"one", "two"}}, &carrier{}
	r := runtest.New(t, a)
	r.Outbox.Carriers, r.Outbox.Terminal = []outbox.Carrier{post}, &shown
	abandon(t, r, Message{Text: "first"}, Options{Model: "haiku"})
	var place queue.Place
	record, err := Queue{r}.Chat(t.Context(), Message{Text: "second"}, Options{Owner: true, Model: "opus", Queued: func(p queue.Place) { place = p }})
	if err != nil || record.Text != "two" || !record.Owner || place.Ahead != 1 || len(a.asked) != 2 {
		t.Fatalf("%+v, %v, place %+v, asked %d times", record, err, place, len(a.asked))
	}
	for i, want := range []struct{ text, model string }{{"first", "haiku"}, {"second", "opus"}} {
		if asked := a.asked[i]; !strings.Contains(asked.Input.Prompt, want.text) || asked.Model.Name != want.model || asked.Input.Awaited != (i == 1) {
			t.Errorf("asked %+v", asked)
		}
	}
	if len(post.sent) != 1 || post.sent[0].Text != "one" || shown.Len() > 0 {
		t.Errorf("sent %+v, shown %q", post.sent, shown.String())
	}
	if left := waiting(t, r); len(left) > 0 {
		t.Errorf("%q wait", left)
	}
	if _, err := (Queue{r}).Chat(t.Context(), Message{Text: "third"}, Options{Owner: true, Queued: func(queue.Place) { t.Error("it was the only one") }}); err != nil {
		t.Error(err)
	}
}

// TestMessagesOfAGroup: messages of a group that wait together are one turn, with the texts, the inputs, the files and the ids of all. The
// turn is the owner's if one of them is.
func TestMessagesOfAGroup(t *testing.T) {
	t.Parallel()
	for _, owner := range []bool{false, true} {
		a := &agent{}
		r := runtest.New(t, a)
		r.Settings.Main.Model = "opus"
		write(t, r, "notes/a.txt", "apples\n")
		file := engine.Attachment{Name: "a.txt", Type: "text/plain", Path: r.Home.Path("notes", "a.txt")}
		var tickets []*queue.Ticket
		for _, m := range []struct {
			Message
			Options
		}{
			{Message{Text: "one", Group: "g", Source: "11"}, Options{Input: "piped", Model: "haiku"}},
			{Message{Text: "two", Group: "g", Attachments: []engine.Attachment{file}}, Options{Owner: owner}},
			{Message{Text: "three", Group: "g", Source: "13"}, Options{Input: "in"}},
			{Message{Tag: "button", Text: "four", Group: "g"}, Options{}},
		} {
			ticket, _, err := Queue{r}.Enqueue(t.Context(), m.Message, m.Options)
			if err != nil {
				t.Fatal(err)
			}
			tickets = append(tickets, ticket)
		}
		record, left, err := Queue{r}.Converse(t.Context(), tickets, Options{Owner: true})
		if err != nil || len(a.asked) != 1 || !slices.Equal(left, tickets[3:]) {
			t.Fatalf("asked %+v, %d left, %v", a.asked, len(left), err)
		}
		text := a.asked[0].Input.Prompt
		for _, part := range []string{"one\n\ntwo\n\nthree", "piped\n  in\n", "a.txt: text/plain", "apples"} {
			if !strings.Contains(text, part) {
				t.Errorf("no %q in %s", part, text)
			}
		}
		if record.Owner != owner || record.Model != "haiku" || !slices.Equal(record.Answers, []string{"11", "13"}) || strings.Contains(text, "four") {
			t.Errorf("owner %v: %+v, asked %s", owner, record, text)
		}
		if left := waiting(t, r); !slices.Equal(left, []string{"four"}) {
			t.Errorf("%q wait", left)
		}
		record, _, err = Queue{r}.Converse(t.Context(), left, Options{})
		if err != nil || len(a.asked) != 2 || !strings.HasPrefix(a.asked[1].Input.Prompt, "[button] ") || strings.Contains(a.asked[1].Input.Prompt, "INPUT") || record.Answers != nil || record.Model != "opus" {
			t.Errorf("asked %+v, %+v, %v", a.asked, record, err)
		}
	}
}

// TestReportOfACutOffTurn: the next turn says why a message has no answer: what ended its run, what the run's record says, or that its
// process ended.
func TestReportOfACutOffTurn(t *testing.T) {
	t.Parallel()
	for why, c := range map[string]struct {
		run   func(r *run.Runner, a *agent) error // what became of the message
		fails bool
	}{
		"stopped by a signal": {func(r *run.Runner, a *agent) error {
			ctx, stop := context.WithCancel(t.Context())
			a.acts = func(int, func(string, string) error) error { stop(); return ctx.Err() }
			if _, err := (Queue{r}).Chat(ctx, Message{Text: "buy tea"}, Options{Owner: true}); err == nil {
				return errors.New("it was answered")
			}
			return nil
		}, false},
		"its process ended before it did": {func(r *run.Runner, _ *agent) error {
			ticket, _, err := Queue{r}.enqueue(t.Context(), Message{Text: "buy tea"}, Options{Owner: true}, "20260302T090000.000Z-abcdef")
			ticket.Leave()
			return err
		}, false},
		"broken": {func(r *run.Runner, a *agent) error {
			a.acts = func(int, func(string, string) error) error { return errors.New("broken") }
			abandon(t, r, Message{Text: "buy tea"}, Options{})
			return Queue{r}.AnswerAbandoned(t.Context(), Options{})
		}, true},
	} {
		a, post := &agent{}, &carrier{}
		r := runtest.New(t, a)
		r.Outbox.Carriers = []outbox.Carrier{post}
		r.Queue.Runs = func(string) queue.Fate { return queue.Fate{} }
		if err := c.run(r, a); err != nil {
			t.Fatal(err)
		}
		if told := len(post.sent) == 1 && strings.Contains(post.sent[0].Text, "could not be answered ("+why+")") && strings.HasSuffix(post.sent[0].Text, "buy tea"); told != c.fails {
			t.Errorf("%s: sent %+v", why, post.sent)
		}
		r.Queue.Runs = func(string) queue.Fate { return queue.Fate{Begun: true, Answered: true} }
		a.acts = nil
		for i, want := range []bool{true, false} {
			if _, err := (Queue{r}).Chat(t.Context(), Message{Text: "hi"}, Options{Owner: true}); err != nil {
				t.Fatal(err)
			}
			text := a.asked[len(a.asked)-1].Input.Prompt
			if told := strings.Contains(text, "A turn was cut off ("+why+")") && strings.Contains(text, "buy tea"); told != want {
				t.Errorf("%s, turn %d: %s", why, i, text)
			}
		}
	}
}

// speaking is an engine whose agent may begin to answer its first turn, and is then stopped by a message.
type speaking struct {
	agent

	says bool
	stop func()
}

func (e *speaking) Run(ctx context.Context, r engine.Request, tools engine.Tools, sink engine.Sink) (engine.Result, error) {
	if len(e.asked) > 0 {
		return e.agent.Run(ctx, r, tools, sink)
	}
	e.asked = append(e.asked, r)
	if e.says {
		if err := sink(runlog.Event{Type: runlog.Text, Text: "Well"}); err != nil {
			return engine.Result{}, err
		}
	}
	e.stop()
	return engine.Result{}, context.Canceled // as soon as the run has seen the request
}

// TestMessageThatGoesFirst stops the turn in progress. The next turn reports the stopped message unless the agent had begun to answer it.
func TestMessageThatGoesFirst(t *testing.T) {
	t.Parallel()
	for _, says := range []bool{false, true} {
		e := &speaking{says: says}
		r := runtest.New(t, e)
		r.Queue.Stop = func(run string) error { return Interrupt(r.Runs, run) }
		var next []*queue.Ticket
		e.stop = func() {
			ticket, place, err := Queue{r}.Enqueue(t.Context(), Message{Text: "now", First: true}, Options{Owner: true})
			if next = append(next, ticket); err != nil || place.Running == "" {
				t.Errorf("%+v, %v", place, err)
			}
		}
		record, err := Queue{r}.Chat(t.Context(), Message{Text: "buy tea"}, Options{Owner: true})
		if record.Outcome != runlog.Interrupted || record.Error != stoppedByMessage || err == nil {
			t.Errorf("%+v, %v", record, err)
		}
		if _, _, err := (Queue{r}).Converse(t.Context(), next, Options{}); err != nil || len(e.asked) != 2 {
			t.Fatalf("asked %d times, %v", len(e.asked), err)
		}
		if told := strings.Contains(e.asked[1].Input.Prompt, "cut off ("+stoppedByMessage+")"); told == says {
			t.Errorf("says %v: %s", says, e.asked[1].Input.Prompt)
		}
	}
}

// TestMessageThatIsNotAnswered: a message stays in the queue if a signal ends its sender before its turn. It is gone if the owner withdraws
// it, or if the sender reports why it was not answered. The sender's other messages wait.
func TestMessageThatIsNotAnswered(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		cause error
		left  []string
	}{
		"signal": {context.Canceled, []string{"other", "hi", "more"}}, "withdrawn": {run.ErrWithdrawn, []string{"other", "more"}}, "no ids": {nil, []string{"more"}},
	} {
		a := &agent{}
		r := runtest.New(t, a)
		ctx, cancel := context.WithCancelCause(t.Context())
		if c.cause != nil {
			if _, _, err := (Queue{r}).Enqueue(t.Context(), Message{Text: "other"}, Options{}); err != nil { // it is held
				t.Fatal(err)
			}
			cancel(c.cause)
		}
		var own []*queue.Ticket
		for _, text := range []string{"hi", "more"} {
			ticket, _, err := Queue{r}.Enqueue(t.Context(), Message{Text: text}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			own = append(own, ticket)
		}
		if c.cause == nil {
			r.Random = strings.NewReader("")
		}
		record, left, err := Queue{r}.Converse(ctx, own, Options{})
		if err == nil || record.ID != "" || !slices.Equal(left, own[1:]) || c.cause != nil && !errors.Is(err, c.cause) {
			t.Errorf("%s: %+v, %d left, %v", what, record, len(left), err)
		}
		if !lock.Free(filepath.Join(r.Home.Queue(), own[0].ID+lock.Ext)) {
			t.Errorf("%s: it is still held", what)
		}
		if texts := waiting(t, r); !slices.Equal(texts, c.left) || len(a.asked) > 0 {
			t.Errorf("%s: %q wait, asked %d times", what, texts, len(a.asked))
		}
		cancel(nil)
	}
}

// TestStopOfDamagedRuns: a record that cannot be read keeps no other turn from being stopped; records that cannot be listed are an error.
func TestStopOfDamagedRuns(t *testing.T) {
	t.Parallel()
	e, stopped := &speaking{}, ""
	r := runtest.New(t, e)
	e.stop = func() {
		damaged, err := runlog.NewID(r.Disk.Now().AddDate(1, 0, 0), r.Random)
		if err == nil {
			err = store.Replace(r.Home.Run(damaged, "run.json"), []byte("{"))
		}
		if err != nil {
			t.Error(err)
		}
		if stopped, err = (Queue{r}).Stop(); err != nil {
			t.Error(err)
		}
	}
	if record, err := (Queue{r}).Chat(t.Context(), Message{Text: "hi"}, Options{Owner: true}); record.ID != stopped || record.Error != "stopped by the owner" || err == nil {
		t.Errorf("stopped %q: %+v, %v", stopped, record, err)
	}
	if left, err := filepath.Glob(filepath.Join(r.Home.Queue(), "*.json")); err != nil || len(left) > 0 { // the owner knows why there is no answer
		t.Errorf("%q are left, %v", left, err)
	}
	if err := errors.Join(os.RemoveAll(r.Home.Runs()), os.WriteFile(r.Home.Runs(), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if run, err := (Queue{r}).Stop(); run != "" || err == nil {
		t.Errorf("stopped %q, %v", run, err)
	}
}
