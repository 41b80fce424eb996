package queue

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/testkit/storetest"
)

// line is a queue whose runs end as the test says.
type line struct {
	Book
	t       *testing.T
	fates   map[string]Fate
	stopped []string
	runs    int
}

func newLine(t *testing.T) *line {
	t.Helper()
	l := &line{t: t, fates: map[string]Fate{}}
	l.Book = Book{
		Home: paths.Dir(t.TempDir()), Zone: time.UTC,
		Disk: store.Disk{Now: time.Now, Warn: func(m string) { t.Error(m) }, Locks: &lock.Table{}},
		Runs: func(run string) Fate { return l.fates[run] },
		Stop: func(run string) error { l.stopped = append(l.stopped, run); return nil },
	}
	return l
}

// add adds a message; the text of one with a group begins with it, as in g:text.
func (l *line) add(text string) *Ticket {
	l.t.Helper()
	group, _, found := strings.Cut(text, ":")
	if !found {
		group = ""
	}
	ticket, _, err := l.Add(l.t.Context(), Message{Text: text, Group: group})
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { runtime.KeepAlive(ticket) }) // the garbage collector would release its lock
	return ticket
}

// next returns the next turn and its run, run-1 and so on.
func (l *line) next(own ...*Ticket) *Turn {
	l.t.Helper()
	turn, err := l.Next(l.t.Context(), own, func() (string, error) {
		l.runs++
		return fmt.Sprintf("run-%d", l.runs), nil
	})
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { runtime.KeepAlive(turn) }) // the garbage collector would release its lock
	return turn
}

func texts(turn *Turn) (list []string) {
	for _, t := range turn.Tickets {
		list = append(list, t.Text)
	}
	return list
}

func (l *line) want(turn *Turn, own bool, want ...string) {
	l.t.Helper()
	if turn == nil || !slices.Equal(texts(turn), want) || turn.Own != own {
		l.t.Errorf("the turn is %+v, want %q", turn, want)
	}
}

// isEmpty checks that no file is left.
func (l *line) isEmpty() {
	l.t.Helper()
	left, err := os.ReadDir(l.Home.Queue())
	if err != nil || len(left) > 0 {
		l.t.Errorf("left: %v, %v", left, err)
	}
}

func TestGroupsAreJoined(t *testing.T) {
	l := newLine(t)
	a, b, c, d := l.add("g:a"), l.add("g:b"), l.add("c"), l.add("g:d")
	turn := l.next(a, b, d)
	l.want(turn, true, "g:a", "g:b")
	if err := turn.End(t.Context(), ""); err != nil {
		t.Error(err)
	}
	next := make(chan *Turn)
	go func() { next <- l.next(d) }() // it waits for c
	turn = l.next(c)
	l.want(turn, true, "c")
	if err := turn.End(t.Context(), ""); err != nil {
		t.Error(err)
	}
	turn = <-next
	l.want(turn, true, "g:d")
	if err := turn.End(t.Context(), ""); err != nil {
		t.Error(err)
	}
	l.isEmpty()
}

// TestDeadSenders: the next turn answers a message that no process holds, in the order of arrival, unless a run was given it.
func TestDeadSenders(t *testing.T) {
	for name, tc := range map[string]struct {
		fate    Fate
		waits   bool
		reports bool
	}{
		"never begun": {waits: true},
		"cut off":     {fate: Fate{Begun: true}, reports: true},
		"failed":      {fate: Fate{Begun: true, Done: true}, reports: true},
		"answered":    {fate: Fate{Begun: true, Done: true, OK: true, Answered: true}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLine(t)
			dead := l.add("dead")
			l.want(l.next(dead), true, "dead")
			dead.Leave()
			l.fates["run-1"] = tc.fate
			if abandoned, err := l.Abandoned(t.Context()); abandoned != tc.waits || err != nil {
				t.Errorf("abandoned: %v, %v", abandoned, err)
			}
			if name == "answered" {
				l.isEmpty()
			}
			own := l.add("own")
			if abandoned, err := l.Abandoned(t.Context()); abandoned || err != nil {
				t.Errorf("abandoned beside a sender: %v, %v", abandoned, err)
			}
			turn := l.next(own)
			if tc.waits {
				l.want(turn, false, "dead")
				if err := turn.End(t.Context(), ""); err != nil {
					t.Error(err)
				}
				turn = l.next(own)
			}
			l.want(turn, true, "own")
			if got := len(turn.CutOff) == 1 && turn.CutOff[0].Text == "dead"; got != tc.reports {
				t.Errorf("reports %+v", turn.CutOff)
			}
			l.fates[turn.Tickets[0].Run] = Fate{Begun: true, Answered: true}
			if err := turn.End(t.Context(), ""); err != nil {
				t.Error(err)
			}
			l.isEmpty()
		})
	}
}

// TestRunOfSender: a message that comes to an empty queue is answered by the run that its sender has made, one that must wait by another run,
// and so is one whose sender died before it began the run.
func TestRunOfSender(t *testing.T) {
	l := newLine(t)
	add := func(text, run string) *Ticket {
		t.Helper()
		ticket, _, err := l.Add(t.Context(), Message{Text: text, Run: run})
		if err != nil {
			t.Fatal(err)
		}
		return ticket
	}
	first, second := add("first", "mine"), add("second", "too early")
	for _, want := range []struct {
		own *Ticket
		run string
	}{{first, "mine"}, {second, "run-1"}} {
		turn := l.next(want.own)
		l.want(turn, true, want.own.Text)
		if all, err := l.load(false); err != nil || turn.Tickets[0].Run != want.run || all[0].Run != want.run {
			t.Errorf("the run is %q, the file says %+v, %v, want %q", turn.Tickets[0].Run, all, err, want.run)
		}
		if err := turn.End(t.Context(), ""); err != nil {
			t.Error(err)
		}
	}
	add("dead", "never begun").Leave()
	turn := l.next(add("own", "too late"))
	l.want(turn, false, "dead")
	if turn.Tickets[0].Run != "run-2" {
		t.Errorf("the run of a message whose sender died is %q", turn.Tickets[0].Run)
	}
}

// TestReportIsReadOnce: a report counts when the agent has begun to answer the turn that made it, also if that turn's process died
// before it removed the message.
func TestReportIsReadOnce(t *testing.T) {
	l := newLine(t)
	dead := l.add("dead")
	l.want(l.next(dead), true, "dead")
	dead.Leave()
	l.fates["run-1"] = Fate{Begun: true}
	for range 2 { // turns that were never answered
		turn := l.next(l.add("own"))
		if len(turn.CutOff) != 1 {
			t.Fatalf("reports %+v", turn.CutOff)
		}
		if err := turn.End(t.Context(), ""); err != nil {
			t.Error(err)
		}
	}
	killed := l.next(l.add("killed"))
	killed.Tickets[0].Leave()
	l.fates[killed.Tickets[0].Run] = Fate{Begun: true, Answered: true}
	turn := l.next(l.add("own"))
	if len(turn.CutOff) != 1 || turn.CutOff[0].Text != "killed" {
		t.Errorf("reports %+v", turn.CutOff)
	}
	l.fates[turn.Tickets[0].Run] = Fate{Begun: true, Answered: true, Done: true, OK: true}
	if err := turn.End(t.Context(), ""); err != nil {
		t.Error(err)
	}
	l.isEmpty()
}

// TestFirstWithoutStop: a message that cannot stop the turn in progress is not in the queue.
func TestFirstWithoutStop(t *testing.T) {
	l := newLine(t)
	l.next(l.add("running"))
	broken := errors.New("the disk is full")
	l.Stop = func(string) error { return broken }
	if ticket, _, err := l.Add(t.Context(), Message{Text: "first", First: true}); ticket != nil || !errors.Is(err, broken) {
		t.Errorf("%v, %v", ticket, err)
	}
	if c, err := l.Contents(); err != nil || len(c.Running) != 1 || len(c.Waiting) != 0 {
		t.Errorf("the queue has %+v, %v", c, err)
	}
}

// TestFirstGoesFirst: a message that goes first stops the run in progress, and comes after it and before those that wait; several
// come in their order.
func TestFirstGoesFirst(t *testing.T) {
	l := newLine(t)
	running := l.next(l.add("running"))
	waiting := l.add("waiting")
	var first []*Ticket
	for _, text := range []string{"first", "second"} {
		ticket, place, err := l.Add(t.Context(), Message{Text: text, First: true})
		if err != nil || place.Running != "run-1" || place.Ahead != 1+len(first) {
			t.Errorf("%+v, %v", place, err)
		}
		first = append(first, ticket)
	}
	if !slices.Equal(l.stopped, []string{"run-1", "run-1"}) {
		t.Errorf("stopped %q", l.stopped)
	}
	order := make(chan string, 3)
	var all sync.WaitGroup
	for _, ticket := range []*Ticket{waiting, first[1], first[0]} {
		all.Go(func() {
			turn, err := l.Next(t.Context(), []*Ticket{ticket}, func() (string, error) { return "run-" + ticket.Text, nil })
			if err != nil {
				t.Error(err)
				return
			}
			order <- ticket.Text
			if err := turn.End(t.Context(), ""); err != nil {
				t.Error(err)
			}
		})
	}
	if err := running.End(t.Context(), ""); err != nil {
		t.Error(err)
	}
	all.Wait()
	if got := []string{<-order, <-order, <-order}; !slices.Equal(got, []string{"first", "second", "waiting"}) {
		t.Errorf("%q", got)
	}
	l.isEmpty()
}

// TestRewritten: a message changes, or goes, as long as no run answers it.
func TestRewritten(t *testing.T) {
	l := newLine(t)
	a, b, c := l.add("g:a"), l.add("g:b"), l.add("g:c")
	can := func(want bool, did bool, err error) {
		t.Helper()
		if did != want || err != nil {
			t.Errorf("done: %t, %v", did, err)
		}
	}
	done, err := b.Rewrite(t.Context(), "g:new")
	can(true, done, err)
	done, err = c.Withdraw(t.Context())
	can(true, done, err)
	done, err = c.Rewrite(t.Context(), "g:again")
	can(false, done, err)
	turn := l.next(a, b, c)
	l.want(turn, true, "g:a", "g:new")
	done, err = a.Rewrite(t.Context(), "late")
	can(false, done, err)
	done, err = b.Withdraw(t.Context())
	can(false, done, err)
	if err := errors.Join(turn.End(t.Context(), ""), c.Remove()); err != nil {
		t.Error(err)
	}
	if _, err := l.Next(t.Context(), []*Ticket{c}, nil); !errors.Is(err, errGone) {
		t.Errorf("error %v", err)
	}
	l.isEmpty()
}

// TestFirstWithdrawn: a sender whose first message is withdrawn while it waits gets no turn with its other messages, which would be answered
// as if they were the first.
func TestFirstWithdrawn(t *testing.T) {
	l := newLine(t)
	a, b := l.add("g:a"), l.add("g:b")
	if done, err := a.Withdraw(t.Context()); !done || err != nil {
		t.Error(done, err)
	}
	newRun := func() (string, error) { return "run", nil }
	if turn, err := l.Next(t.Context(), []*Ticket{a, b}, newRun); turn != nil || !errors.Is(err, errGone) {
		t.Errorf("%+v, %v", turn, err)
	}
	if err := a.Remove(); err != nil {
		t.Error(err)
	}
	turn := l.next(b)
	l.want(turn, true, "g:b")
	if err := turn.End(t.Context(), ""); err != nil {
		t.Error(err)
	}
	l.isEmpty()
}

// TestWaitEnds: a sender that gives up gets the cause, and its message is still in the queue.
func TestWaitEnds(t *testing.T) {
	l := newLine(t)
	l.next(l.add("running"))
	second := l.add("second")
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	if _, err := l.Next(ctx, []*Ticket{second}, nil); !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
	held, err := l.Disk.Lock(t.Context(), l.Home.Lock("queue"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Next(ctx, []*Ticket{second}, nil); !errors.Is(err, why) {
		t.Errorf("while another process changes the queue: %v", err)
	}
	held.Release()
	c, err := l.Contents()
	if err != nil || len(c.Running) != 1 || len(c.Waiting) != 1 || c.Waiting[0].Text != "second" || len(c.CutOff) != 0 {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestFailedTurn: a message that another process could not answer is reported with the reason.
func TestFailedTurn(t *testing.T) {
	l := newLine(t)
	l.add("dead").Leave()
	turn := l.next()
	l.want(turn, false, "dead")
	if other := l.next(); other != nil {
		t.Errorf("two answer it: %+v", other)
	}
	if err := turn.End(t.Context(), "no money"); err != nil {
		t.Error(err)
	}
	if turn := l.next(); turn != nil {
		t.Errorf("it is tried again: %+v", turn)
	}
	if turn := l.next(l.add("own")); len(turn.CutOff) != 1 || turn.CutOff[0].Ended != "no money" {
		t.Errorf("reports %+v", turn.CutOff)
	}
}

// TestAttachments: files are copied when a message is sent, and removed with it or when their sender died too early.
func TestAttachments(t *testing.T) {
	l := newLine(t)
	path := filepath.Join(t.TempDir(), "cat.png")
	if err := os.WriteFile(path, []byte("meow"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(syscall.Mkfifo(path+".pipe", 0o600), os.Symlink(path, path+".link")); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"gone", "pipe", "link"} { // what an agent may put in its place
		if _, _, err := l.Add(t.Context(), Message{Text: "x", Files: []File{{Path: path + "." + kind}}}); err == nil {
			t.Errorf("a file that is %s was sent", kind)
		}
	}
	ticket, _, err := l.Add(t.Context(), Message{Text: "see", Files: []File{{"cat.png", "image/png", path}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	f := l.next(ticket).Tickets[0].Files[0]
	if text, err := os.ReadFile(f.Path); string(text) != "meow" || f.Name != "cat.png" || f.Type != "image/png" {
		t.Errorf("%+v, %q, %v", f, text, err)
	}
	lost := l.filesPath("aaaaaa")
	if err := os.MkdirAll(lost, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, age := range []time.Duration{0, 2 * time.Hour} {
		if err := os.Chtimes(lost, time.Now(), time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Abandoned(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(lost); os.IsNotExist(err) != (age > time.Hour) {
			t.Errorf("after %s: %v", age, err)
		}
	}
	if err := ticket.Remove(); err != nil {
		t.Error(err)
	}
	l.isEmpty()
}

func TestConformance(t *testing.T) {
	at := func(dir string, warn func(string)) Book {
		return Book{Home: paths.Dir(dir), Zone: time.UTC, Disk: store.Disk{Now: time.Now, Warn: warn}, Runs: func(string) Fate { return Fate{} }}
	}
	storetest.Run(t, storetest.Store{
		File: func(dir string) string { return paths.Dir(dir).Queue() },
		Lock: func(dir string) string { return paths.Dir(dir).Lock("queue") },
		Busy: lock.ErrBusy,
		Add: func(ctx context.Context, dir string, warn func(string), item string) error {
			ticket, _, err := at(dir, warn).Add(ctx, Message{Text: item})
			if err == nil {
				ticket.Leave()
			}
			return err
		},
		Count: func(dir string, warn func(string)) (int, error) {
			c, err := at(dir, warn).Contents()
			return len(c.Waiting), err
		},
	})
}
