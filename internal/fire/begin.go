package fire

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/chat"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/job"
	"github.com/ollim/ollim/internal/lock"
	"github.com/ollim/ollim/internal/prompt"
	"github.com/ollim/ollim/internal/run"
	"github.com/ollim/ollim/internal/toolbox"
	"github.com/ollim/ollim/internal/yamldoc"
)

// Errors before a run that a caller may want to tell apart.
var (
	// ErrNoEngine: neither the job nor the configuration says what runs it.
	ErrNoEngine = errors.New("no engine is configured")
	// ErrRefused: the job may not run as it is written.
	ErrRefused = errors.New("refused")
	// ErrPaused: the job is switched off.
	ErrPaused = errors.New("paused")
	// ErrMovedClock: only the script engine can be told another time.
	ErrMovedClock = errors.New("only the script engine can run at another time")
)

// barred is why a job does not run; its words leave out the kind, which the outcome says.
type barred struct {
	kind   error // ErrRefused or ErrPaused
	reason string
	key    string // under which the owner is told once; "" is by job and reason
}

func (e *barred) Error() string { return e.reason }

func (e *barred) Unwrap() error { return e.kind }

// find finds the job, and on the way tells the owner of every job file that cannot be used.
func (f *Firer) find(ctx context.Context, name string) (job.Job, error) {
	shelf, err := f.Jobs.Load()
	if err != nil {
		return job.Job{}, err
	}
	j, err := shelf.Find(name)
	var own yamldoc.Faults
	errors.As(err, &own)
	if err := f.tellBadFiles(ctx, shelf.Faults, own); err != nil {
		f.Disk.Warn(err.Error())
	}
	return j, err
}

// badFile is the beginning of the keys under which bad files are told.
const badFile = "bad-file "

// tellBadFiles tells each fault once, on standard error too, or cron would mail it at every fire. own are those of the job
// itself, which are an error anyway.
func (f *Firer) tellBadFiles(ctx context.Context, faults, own yamldoc.Faults) error {
	present := map[string]bool{}
	for _, fault := range faults {
		key := badFile + fault.Error()
		present[key] = true
		first, err := f.Told.Once(ctx, key)
		if err != nil {
			return err
		}
		if first && !slices.Contains(own, fault) {
			f.Disk.Warn(fault.Error())
		}
		if first {
			if err := f.Updates.Add(ctx, prompt.BadFile(fault.Error()), "ollim"); err != nil {
				return err
			}
		}
	}
	return f.Told.Forget(ctx, func(key string) bool { return !strings.HasPrefix(key, badFile) || present[key] })
}

// guard takes the job's run lock.
func (f *Firer) guard(ctx context.Context, j job.Job, wait time.Duration) (*lock.Guard, error) {
	if wait == 0 {
		return lock.TryGuard(f.Home.JobLock(j.ID))
	}
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	guard, err := lock.WaitGuard(waiting, f.Home.JobLock(j.ID))
	if ctx.Err() != nil && err != nil {
		return nil, ctx.Err() // stopped by a signal, not out of patience
	}
	return guard, err
}

// previous is the job's latest run before this one, whose id stands in the lock file. If its process died in the middle
// the record is ended and the owner told, as nobody else will. A record that was pruned, or never written, is the zero one.
func (f *Firer) previous(ctx context.Context, guard *lock.Guard) run.Record {
	id := strings.TrimSpace(guard.LastNote())
	if id == "" {
		return run.Record{}
	}
	cutOff, closeErr := f.Runs.Close(id)
	r, loadErr := f.Runs.Load(id)
	if closeErr != nil || loadErr != nil {
		return run.Record{}
	}
	if cutOff {
		f.tellFailure(ctx, r, "was cut off before it ended")
	}
	return r
}

// open begins the record and notes it in the lock.
func (f *Firer) open(j job.Job, o Options, previous run.Record, guard *lock.Guard) (*run.Run, error) {
	record, err := f.record(j, o)
	if err != nil {
		return nil, err
	}
	record.Shown = previous.ShownUntil()
	if guard != nil { // before the record, so that the next fire finds every record that was begun
		if err := guard.Note(record.ID + "\n"); err != nil {
			return nil, err
		}
	}
	return f.Runs.Open(record)
}

func (f *Firer) record(j job.Job, o Options) (run.Record, error) {
	id, err := run.NewID(f.Disk.Now(), f.Random)
	if err != nil {
		return run.Record{}, err
	}
	name := cmp.Or(o.Engine, j.Engine, f.Engine)
	switch {
	case name == "" && f.permit(j, o) == nil:
		return run.Record{}, ErrNoEngine
	case o.Moved && !isScript(name):
		return run.Record{}, ErrMovedClock
	}
	session, parent, err := f.room().Start(place(j, run.Record{}))
	if err != nil {
		return run.Record{}, err
	}
	return run.Record{
		ID: id, Kind: string(j.Kind), Job: j.ID, Name: j.Name(), Path: j.Path, Description: j.Description,
		Mode: string(j.Mode()), Engine: name, Model: cmp.Or(o.Model, j.Model), Started: f.Disk.Now(),
		PID: f.Process.PID, PIDStart: f.Process.Start, PIDGroup: f.Process.Group,
		AllowPing: j.AllowPing, Update: string(j.Update), Busy: f.room().Busy(),
		SessionBefore: session, Parent: parent,
	}, nil
}

// isScript says whether an engine plays a file: it can be told another time, and costs nothing.
func isScript(engine string) bool { return strings.HasPrefix(engine, "script:") }

// skip records a fire that did not happen because the job was still running.
func (f *Firer) skip(j job.Job, o Options) (run.Record, error) {
	since := "since a moment ago"
	if r := f.lastRun(j); r.ID != "" && !r.Done() {
		since = "since " + r.Started.In(f.Zone).Format("2006-01-02 15:04:05")
	}
	record, err := f.record(j, o)
	if err != nil {
		return record, err
	}
	r, err := f.Runs.Open(record)
	if err != nil {
		return record, err
	}
	err = r.Finish(run.Skipped, "already running "+since)
	return r.Record, err
}

// permit says whether the job may run as it is written.
func (f *Firer) permit(j job.Job, o Options) error {
	if !j.Enabled {
		return &barred{kind: ErrPaused, reason: "enabled: false in its file"}
	}
	paused, until, err := f.Spend.Paused()
	if err != nil {
		f.Disk.Warn(oneLine(err))
	}
	switch {
	case !paused || o.Owner:
	case until.IsZero():
		return &barred{kind: ErrPaused, reason: "everything is paused: ollim resume"}
	default:
		return &barred{kind: ErrPaused, reason: "everything is paused until " + until.In(f.Zone).Format("2006-01-02 15:04") + ": ollim resume"}
	}
	if keys := j.Unsupported(); len(keys) > 0 {
		return &barred{kind: ErrRefused, reason: "this version has no " + strings.Join(keys, ", no ") + " yet"}
	}
	return nil
}

func place(j job.Job, previous run.Record) chat.Place {
	return chat.Place{Mode: j.Mode(), Routine: j.ID, Since: previous.ShownUntil()}
}

func (f *Firer) brief(j job.Job, o Options, previous run.Record, busy bool) prompt.Brief {
	return prompt.Brief{Job: j, Now: f.Disk.Now().In(f.Zone), Busy: busy && j.Background, Compacted: previous.Compactions > 0, Input: o.Input}
}

func (f *Firer) request(j job.Job, r *run.Run, tools *toolbox.Box, granted float64, guard *lock.Guard) engine.Request {
	var hold []*os.File
	if guard != nil {
		hold = append(hold, guard.File())
	}
	return engine.Request{
		System: prompt.System(j.Mode(), f.profile()), BuiltIns: tools.BuiltIns(), Protected: tools.Protected(),
		Run: r.ID, Model: r.Model, Thinking: j.Thinking, MaxCost: granted, Root: string(f.Home),
		Hold: hold,
	}
}

func (f *Firer) tools(r *run.Run) *toolbox.Box {
	return &toolbox.Box{Home: f.Home, Secret: f.Secret, Run: r, Updates: f.Updates, Post: f.Post, Disk: f.Disk, Busy: f.room().Busy}
}

// profile is who the agent is and whom it works for, in the owner's words; files that are not there say nothing.
func (f *Firer) profile() string {
	var texts []string
	for _, name := range []string{"IDENTITY.md", "USER.md"} {
		if info, err := os.Stat(f.Home.Path(name)); err != nil || !info.Mode().IsRegular() {
			continue // a pipe would never end
		}
		if text, err := os.ReadFile(f.Home.Path(name)); err == nil {
			texts = append(texts, strings.TrimSpace(string(text)))
		}
	}
	return strings.Join(texts, "\n\n")
}
