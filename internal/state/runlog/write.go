package runlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/store"
)

// large is the size in bytes from which a text or a tool's input is written to a file next to events.jsonl, so that the lines stay
// readable.
const large = 64 << 10

// Run is an open run record.
type Run struct {
	Record
	Held  *Hold // of the process that carries the run out; nil: this process only adds to it
	book  Book
	known *known
}

// Limits in bytes of the texts in run.json, which every list reads. The events have the full texts.
const (
	maxText  = 1 << 20
	maxError = 4 << 10
)

// short cuts a text to at most most bytes, with a note about what was left out.
func short(text string, most int) string {
	if len(text) <= most {
		return text
	}
	kept := strings.ToValidUTF8(text[:most], "")
	return fmt.Sprintf("%s\n[%d bytes omitted]", kept, len(text)-len(kept))
}

func (r *Run) save(d store.Durability) error {
	return store.WriteJSON(r.book.Home.Run(r.ID, "run.json"), r.Record, d)
}

// Hide replaces the values of secrets in a text.
func (r *Run) Hide(text string) string { return r.book.secrets().Hide(text) }

// locked calls do under the run's own lock, unless another process has closed the run: then the error is ErrClosed.
func (r *Run) locked(ctx context.Context, do func() error) error {
	return r.book.locked(ctx, r.ID, func() error {
		if err := r.Held.Check(); err != nil {
			return err
		}
		return do()
	})
}

// Event appends an event, stamped with the current time if it has none. Any process may call it.
func (r *Run) Event(ctx context.Context, e Event) error {
	return r.locked(ctx, func() error { return r.append(e) })
}

// Decide appends the event that decide derives from the run's standing. It holds the run's lock meanwhile, so that no two processes both
// find that nothing was sent yet. If decide fails, its error is returned and nothing is written.
func (r *Run) Decide(ctx context.Context, decide func(Standing) (Event, error)) error {
	return r.locked(ctx, func() error {
		standing, err := r.Standing()
		if err != nil {
			return err
		}
		e, err := decide(standing)
		if err != nil {
			return err
		}
		return r.append(e)
	})
}

// Hide replaces the values of secrets in an event.
func (b Book) Hide(e Event) Event {
	secrets := b.secrets()
	e.Text, e.Input = secrets.Hide(e.Text), secrets.HideJSON(e.Input)
	return e
}

// append writes an event. The caller holds the run's lock.
func (r *Run) append(e Event) error {
	if e.At.IsZero() {
		e.At = r.book.Disk.Now()
	}
	e.At = e.At.In(r.book.Zone)
	if r.Private {
		e = e.unsaid()
	}
	e = r.book.Hide(e)
	if err := r.fold(&e); err != nil {
		return err
	}
	durability := store.Buffered
	if e.Type == Ping || e.Type == Message { // after a power failure the number of a message must not be used again
		durability = store.Synced
	}
	path := r.book.Home.Run(r.ID, "events.jsonl")
	err := store.AppendJSON(path, durability, e)
	if err == nil && durability == store.Synced { // the names of the file and of the run's directory may be new
		err = errors.Join(store.SyncDir(path), store.SyncDir(filepath.Dir(path)))
	}
	if err == nil && r.Done() { // the change of the directories makes streams look at the runs of that day again
		now := r.book.Disk.Now()
		_ = os.Chtimes(filepath.Dir(r.book.Home.Run(r.ID)), now, now)
		_ = os.Chtimes(r.book.Home.Runs(), now, now)
	}
	return err
}

// fold moves a large text or input into a file of its own. The caller holds the run's lock.
func (r *Run) fold(e *Event) error {
	body := []byte(e.Text)
	if e.Type == ToolUse {
		body = e.Input
	}
	if len(body) < large {
		return nil
	}
	name := r.free(strings.ReplaceAll(string(e.Type), "_", "-"))
	if err := store.Create(r.book.Home.Run(r.ID, name), body); err != nil {
		return err
	}
	e.File = name
	if e.Type == ToolUse {
		e.Input = nil
	} else {
		e.Text = ""
	}
	return nil
}

// free returns a file name that is not used in the run's directory. It does not try store.Create with each name, which would write the
// whole body for each name that is taken.
func (r *Run) free(stem string) string {
	for n := 1; ; n++ {
		name := fmt.Sprintf("%s-%d.txt", stem, n)
		if _, err := os.Lstat(r.book.Home.Run(r.ID, name)); err != nil {
			return name
		}
	}
}

// Standing returns the current state of the run.
func (r *Run) Standing() (Standing, error) {
	var s Standing
	err := r.eachText(s.stand)
	return s, err
}

// Update changes the record of a run in progress.
func (r *Run) Update(change func(*Record)) error {
	change(&r.Record)
	return r.Save()
}

// Save writes the record of a run in progress. It does not wait for the disk; see Begin.
func (r *Run) Save() error {
	if r.Held == nil {
		return r.save(store.Buffered)
	}
	return r.locked(context.Background(), func() error { return r.save(store.Buffered) })
}

// Finish writes the end of the record, and waits until it is a fact on disk. It is the last write of a run.
func (r *Run) Finish(outcome Outcome, reason string) error {
	if r.Held == nil {
		return r.finishAt(r.book.Disk.Now(), outcome, reason)
	}
	return r.locked(context.Background(), func() error { return r.finishAt(r.book.Disk.Now(), outcome, reason) })
}

func (r *Run) finishAt(now time.Time, outcome Outcome, reason string) error {
	sumErr := r.Conclude(outcome, reason) // a run must be able to end even if its events are unreadable
	now = now.In(r.book.Zone)
	r.Finished = &now
	err := r.note(context.Background(), ended)
	if err == nil {
		err = r.save(store.Buffered)
	}
	return errors.Join(err, sumErr)
}

// Conclude sets the outcome of the run and the totals of its events in the record in memory. It does not write them.
func (r *Run) Conclude(outcome Outcome, reason string) error {
	r.Outcome, r.Error = outcome, short(r.Hide(reason), maxError)
	r.Usage, r.Turns, r.ContextBefore, r.Context, r.Fallback = Usage{}, 0, 0, 0, ""
	r.Verify, r.Requests, r.ToolCalls, r.ToolErrors, r.ToolFailed, r.ToolDenied = "", 0, 0, 0, 0, 0
	var s Standing
	var bill bill
	denied := map[string]bool{} // ids of denied uses of tools
	err := r.eachText(func(e Event) {
		s.stand(e)
		r.sum(e, denied)
		bill.add(e, r.Record)
	})
	if err != nil {
		return err
	}
	bill.end(r.Record)
	r.Cost, r.Assumed, r.ByTable = millionths(bill.Cost), millionths(bill.Assumed), 0
	if bill.Doubt != 0 {
		r.ByTable = millionths(bill.Cost + bill.Doubt)
	}
	r.Pings, r.Reports, r.Compactions = s.Pings, s.Reports, s.Compactions
	if r.Question = ""; outcome == Waiting {
		r.Question = s.Question
	}
	switch {
	case s.Wished || s.Uncompacted:
		r.Compaction = CompactionFailed
	case s.Compactions > 0:
		r.Compaction = CompactionDone
	case r.Turns > 0: // the agent was told the result that the record had
		r.Compaction = ""
	}
	return nil
}

// SoFar returns the record with the totals of the events up to now, without an outcome.
func (r *Run) SoFar() (Record, error) {
	so := *r
	err := so.Conclude("", "")
	return so.Record, err
}

// millionths rounds an amount in USD to the precision of the accounts.
func millionths(usd float64) float64 { return math.Round(usd*1e6) / 1e6 }

// Remove removes the record of a run that did not take place.
func (r *Run) Remove() error {
	if r.once() {
		if err := r.note(context.Background(), removed); err != nil {
			return err
		}
	}
	return os.RemoveAll(r.book.Home.Run(r.ID))
}

// sum adds an event to the totals, and the id of a denied use of a tool to denied.
func (r *Run) sum(e Event, denied map[string]bool) {
	switch e.Type {
	case UsageEvent:
		if e.Usage != nil {
			r.Usage, r.Requests = r.Usage.Add(*e.Usage), r.Requests+max(1, e.Count)
		}
		r.Context, r.Window, r.CompactAt = cmp.Or(e.Context, r.Context), cmp.Or(e.Window, r.Window), cmp.Or(e.CompactAt, r.CompactAt)
	case Session, Compacted:
		r.ModelUsed, r.EngineVersion, r.Effort = cmp.Or(e.Model, r.ModelUsed), cmp.Or(e.Version, r.EngineVersion), cmp.Or(e.Effort, r.Effort)
		if r.Turns == 0 {
			r.ContextBefore = cmp.Or(r.ContextBefore, e.Context, e.Before)
		}
		r.Context = cmp.Or(e.After, r.Context)
		if e.Session != "" {
			r.SessionAfter = e.Session
		}
	case FellBack:
		r.Model, r.Fallback = cmp.Or(r.Model, e.Tool), strings.TrimPrefix(r.Fallback+"; "+e.Text, "; ")
	case ToolUse:
		r.ToolCalls++
	case Verdict:
		if e.IsError {
			r.ToolDenied++
			denied[e.ToolID] = true
		}
	case ToolResult:
		if e.IsError {
			r.ToolErrors++
		}
		if e.IsError && !denied[e.ToolID] {
			r.ToolFailed++
		}
	case Verified:
		r.Verify = verifyOK
		if e.IsError {
			r.Verify = verifyFailed
		}
	case Result:
		r.Turns++
		r.say(e)
	}
}

// say makes the text of a Result the final text, unless there is none.
func (r *Run) say(e Event) {
	if e.Text != "" {
		r.Text = short(e.Text, maxText)
	}
}
