package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/agent/conversation"
	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/platform/yamldoc"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/approval"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/notice"
	"github.com/ollim/ollim/internal/state/runlog"
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
	text   string // that the owner is told; "" is made of job and reason
	cause  error  // may be nil
}

func (e *barred) Error() string { return e.reason }

func (e *barred) Unwrap() []error {
	if e.cause == nil {
		return []error{e.kind}
	}
	return []error{e.kind, e.cause}
}

// find finds the job, and on the way tells the owner of every job file that cannot be used.
func (f *Firer) find(ctx context.Context, name string, o Options) (errand, error) {
	shelf, err := f.Jobs.Load()
	if err != nil {
		return errand{}, err
	}
	j, known := shelf.ByID(name)
	if !known || !o.Scheduled { // a file of that name must not keep a routine from its time
		j, err = shelf.Find(name)
	}
	var own yamldoc.Faults
	errors.As(err, &own)
	f.warn(f.tellBadFiles(ctx, shelf.Faults, own))
	f.warn(f.tellPolicy(ctx))
	if err != nil {
		return errand{}, err
	}
	id, err := runlog.NewID(f.Disk.Now(), f.Random)
	return errand{id: id, job: j, options: o, beside: shelf.Jobs}, err
}

// stillThere is for a reminder that somebody else has brought to its end, or a step further, since it was found.
func (f *Firer) stillThere(j job.Job) error {
	if j.Kind != job.Reminder {
		return nil
	}
	if _, err := os.Lstat(j.Path); errors.Is(err, fs.ErrNotExist) {
		return &job.Unknown{Name: j.ID}
	}
	return nil
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

// unapprovedPolicy is the beginning of the keys under which tool-policy.yaml is told.
const unapprovedPolicy = "unapproved-policy "

// tellPolicy tells the owner once that tool-policy.yaml waits for approval. Errors of the file and of the approvals stop every
// run, which reports them.
func (f *Firer) tellPolicy(ctx context.Context) error {
	policy, err := f.Approvals.Policy()
	if err != nil {
		return nil //nolint:nilerr // permit returns the error
	}
	key := unapprovedPolicy + policy.Subject.Digest()
	err = f.Told.Forget(ctx, func(k string) bool { return !strings.HasPrefix(k, unapprovedPolicy) || policy.Waits && k == key })
	if err != nil || !policy.Waits {
		return err
	}
	first, err := f.Told.Once(ctx, key)
	if err != nil || !first {
		return err
	}
	text := prompt.UnapprovedPolicy(approval.PolicyName)
	f.Disk.Warn(text)
	return f.Updates.Add(ctx, text, "ollim")
}

// guard takes the job's run lock.
func (f *Firer) guard(ctx context.Context, j job.Job, wait time.Duration) (*lock.Guard, error) {
	if wait == 0 {
		return lock.TryGuard(f.Home.JobLock(j.ID))
	}
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	guard, err := f.Disk.Locks.WaitGuard(waiting, f.Home.JobLock(j.ID))
	if ctx.Err() != nil && err != nil {
		return nil, ctx.Err() // stopped by a signal, not out of patience
	}
	return guard, err
}

// previous is the job's latest run before this one, whose id stands in the lock file. If its process died in the middle
// the record is ended and the owner told, as nobody else will. A record that was pruned, or never written, is the zero one.
func (f *Firer) previous(ctx context.Context, e errand) runlog.Record {
	id := strings.TrimSpace(e.guard.LastNote())
	if id == "" {
		return runlog.Record{}
	}
	cutOff, closeErr := f.Runs.Close(id)
	r, loadErr := f.Runs.Load(id)
	if closeErr != nil || loadErr != nil {
		return runlog.Record{}
	}
	if cutOff {
		f.settleCutOff(r)
	}
	if cutOff && e.job.Kind != job.Reminder { // that is tried again, and told of in the end
		f.tellFailure(ctx, r, "was cut off before it ended")
	}
	return r
}

// open takes the run's lock, begins the record and notes it in the job's lock.
func (f *Firer) open(e *errand) (*runlog.Run, error) {
	record, err := f.record(*e)
	if err != nil {
		return nil, err
	}
	record.Shown, record.Compaction = e.previous.ShownUntil(), e.previous.Compaction
	if e.running, err = f.Runs.Hold(record.ID); err != nil {
		return nil, err
	}
	if e.guard != nil { // before the record, so that the next fire finds every record that was begun
		if err := e.guard.Note(record.ID + "\n"); err != nil {
			return nil, err
		}
	}
	return f.Runs.Open(record)
}

func (f *Firer) record(e errand) (runlog.Record, error) {
	j, o := e.job, e.options
	name := f.engineOf(j, o)
	switch {
	case name == "" && !j.Plain && f.permit(j, o) == nil:
		return runlog.Record{}, ErrNoEngine
	case o.Moved && !isScript(name):
		return runlog.Record{}, ErrMovedClock
	}
	id, err := e.id, error(nil)
	if id == "" { // no slot had to be claimed in its name
		if id, err = runlog.NewID(f.Disk.Now(), f.Random); err != nil {
			return runlog.Record{}, err
		}
	}
	session, parent, err := f.room().Start(f.place(e))
	if err != nil {
		return runlog.Record{}, err
	}
	own, _, _ := f.patterns(j) // what is wrong with them is permit's to say
	deadline := f.Disk.Now().Add(j.Timeout).In(f.Zone)
	r := runlog.Record{
		ID: id, Kind: string(j.Kind), Job: j.ID, Name: j.Name(), Path: j.Path, Description: j.Description,
		Mode: string(j.Mode()), Engine: name, Model: cmp.Or(o.Model, j.Model), Started: f.Disk.Now(), Deadline: &deadline,
		PID: f.Process.PID, PIDStart: f.Process.Start, PIDGroup: f.Process.Group, BootID: f.Process.Boot, PIDNamespace: f.Process.Namespace,
		AllowPing: j.AllowPing, Update: string(j.Update), Busy: f.room().Busy(),
		Tools: own, Dirs: f.dirs(j), Skills: j.Skills, MaxChain: j.MaxChain, ChainDepth: j.ChainDepth,
		SessionBefore: session, Parent: parent, Root: e.question.Root, Private: e.question.Discard,
	}
	if j.Plain {
		r.Engine, r.Tools = "", nil
	}
	if at := e.scheduled(); !at.IsZero() {
		at = at.In(f.Zone)
		r.Scheduled = &at
	}
	return r, nil
}

// scheduled is the time that the fire is for; zero when it is for none.
func (e errand) scheduled() time.Time {
	if e.job.Kind == job.Reminder {
		return e.job.RunAt
	}
	return e.slot
}

// isScript says whether an engine plays a file: it can be told another time, and costs nothing.
func isScript(engine string) bool { return strings.HasPrefix(engine, "script:") }

// skip records a fire that did not happen because the job's lock is held.
func (f *Firer) skip(ctx context.Context, e errand) (runlog.Record, error) {
	reason := "already running since a moment ago"
	if r := f.lastRun(e.job); r.ID != "" && !r.Done() {
		reason = "already running since " + r.Started.In(f.Zone).Format("2006-01-02 15:04:05")
	}
	left := f.Runs.Leftover(f.Home.JobLock(e.job.ID))
	if left != nil {
		reason = left.Error()
	}
	record, err := f.record(e)
	if err != nil {
		return record, err
	}
	running, err := f.Runs.Hold(record.ID)
	if err != nil {
		return record, err
	}
	defer f.Runs.Leave(record.ID, running)
	r, err := f.Runs.Open(record)
	if err != nil {
		return record, err
	}
	err = r.Finish(runlog.Skipped, reason)
	if left != nil {
		f.tellLeftover(ctx, r.Record, left)
	}
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
	if j.Kind == job.Ask {
		return nil // its owner has just typed it
	}
	if _, _, err := f.patterns(j); err != nil && !j.Plain {
		return err
	}
	if err := f.outside(j); err != nil {
		return err
	}
	if err := f.approved(j); err != nil {
		return err
	}
	if name := f.engineOf(j, o); j.Subagent != "" && name != "" && name != engine.ClaudeCode {
		return &barred{kind: ErrRefused, reason: fmt.Sprintf("subagent %s: %s: %v", j.Subagent, name, engine.ErrNoAgents)}
	}
	return nil
}

// outside refuses dirs that lie in the data directory, by whatever way: what may be used there tool patterns say.
func (f *Firer) outside(j job.Job) error {
	for _, root := range j.Roots(f.UserHome) {
		home, homeErr := policy.Resolve(string(f.Home))
		dir, err := policy.Resolve(root.Dir)
		if errors.Join(homeErr, err) != nil {
			continue // there is nothing to be reached
		}
		if rel, err := filepath.Rel(home, dir); err == nil && filepath.IsLocal(rel) {
			return &barred{kind: ErrRefused, reason: fmt.Sprintf("dirs: %s is in the data directory: allowed-tools says what may be used there", root.Dir)}
		}
	}
	return nil
}

// engineOf is what runs the job; "" when nothing says.
func (f *Firer) engineOf(j job.Job, o Options) string { return cmp.Or(o.Engine, j.Engine, f.Engine) }

// approved says whether everything in which the job goes beyond what every job may do is the owner's will.
func (f *Firer) approved(j job.Job) error {
	subject, widened, err := f.Approvals.Of(j)
	if unfit := (*approval.Unfit)(nil); errors.As(err, &unfit) {
		return &barred{kind: ErrRefused, reason: unfit.Error()}
	}
	if err != nil || !widened {
		return err
	}
	ok, err := f.Approvals.Approved(subject)
	if err != nil || ok {
		return err
	}
	name := j.Name()
	return &barred{
		kind:   ErrRefused,
		reason: fmt.Sprintf("not approved: %s: ollim approve %s", strings.Join(subject.Widening(), ", "), name),
		key:    notice.Refusal(j.ID, subject.Digest()),
		text:   prompt.Unapproved(j.Label(), name, subject.Widening()),
	}
}

func (f *Firer) place(e errand) conversation.Place {
	own := func(id string) bool {
		r, err := f.Runs.Load(id)
		return err == nil && r.Job == e.job.ID
	}
	return conversation.Place{
		Mode: e.job.Mode(), Routine: e.job.ID, Session: e.question.Session, Branch: e.question.Branch, Discard: e.question.Discard,
		Since: e.previous.ShownUntil(), Own: own,
	}
}

// maxProfile is the largest file of profile that is read, in bytes; each is a part of every prompt.
const maxProfile = 1 << 20

// profile is who the agent is and whom it works for, in the owner's words; files that are not there say nothing.
func (f *Firer) profile() string {
	var texts []string
	for _, name := range []string{"IDENTITY.md", "USER.md"} {
		text, err := store.ReadText(f.Home.Path(name), maxProfile, false)
		switch {
		case err == nil:
			texts = append(texts, strings.TrimSpace(string(text)))
		case !errors.Is(err, fs.ErrNotExist):
			f.warn(fmt.Errorf("%s: %s", name, store.Cause(err)))
		}
	}
	if f.Names.User != "" {
		texts = append(texts, "Your owner is called "+f.Names.User+".")
	}
	if f.Names.Bot != "" {
		texts = append(texts, "You are called "+f.Names.Bot+".")
	}
	return strings.Join(texts, "\n\n")
}
