package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/ollim/ollim/internal/agent/notify"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/inbox"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/notice"
	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/state/skill"
)

// Recheck closes causes that it can see to be over, and drops those about jobs that are gone or disabled. Other causes are closed by a
// later run, see recovered.
func (r *Runner) Recheck(ctx context.Context, files job.Set) error {
	if r.Notices.Empty() {
		return nil
	}
	book := r.Notify()
	open, err := book.OpenCauses()
	for key, e := range open {
		switch how := r.seen(e, files); how {
		case "":
		case gone:
			err = errors.Join(err, book.Drop(ctx, key))
		default:
			err = errors.Join(err, book.Close(ctx, key, how))
		}
	}
	return err
}

// gone is how a cause ends whose subject no longer exists. The owner is not notified.
const gone = "gone"

// seen returns how a cause has ended; "" if it lasts or this is not known.
func (r *Runner) seen(e notice.Entry, files job.Set) string {
	j, known := files.ByID(e.Subject)
	off := !known && len(files.Faults) == 0 || known && !j.Enabled // a file that cannot be read may be that of the job
	switch notify.Kind(e.Kind) {
	case notify.Service, notify.Key, notify.Engine:
		if e.Subject != "none" && len(files.Faults) == 0 && !r.uses(e.Subject, files) {
			return "is not used any more"
		}
	case notify.Job:
		if off {
			return gone
		}
	case notify.Unit:
		if strings.HasSuffix(e.Subject, "-tick.service") { // the tick runs this code
			return "works again"
		}
	case notify.Approval:
		return r.approvedNow(e.Subject, j, known, off)
	case notify.Refused:
		switch {
		case off:
			return gone
		case known && r.fit(j) == nil:
			return "may run again"
		}
	case notify.Monitor:
		if e.Subject != "tick" && (off || known && j.Heartbeat == "") {
			return gone
		}
	case notify.Gone:
		if _, _, err := r.Inbox.First(e.Subject); known || errors.Is(err, inbox.ErrGone) {
			return gone
		}
	case notify.Leftover:
		for id := range e.Jobs {
			if lock.Free(r.Home.JobLock(id)) && lock.Free(r.Home.RunLock(e.Subject)) {
				return "can run again"
			}
		}
	}
	return ""
}

// uses reports whether the settings or a job name an engine.
func (r *Runner) uses(name string, files job.Set) bool {
	return name == r.Engine || slices.ContainsFunc(files.Jobs, func(j job.Job) bool { return j.Engine == name })
}

func (r *Runner) approvedNow(subject string, j job.Job, known, off bool) string {
	name, isSkill := strings.CutPrefix(subject, "skill:")
	switch {
	case isSkill:
		s, err := r.Approvals.OfSkill(name)
		if err != nil {
			return gone
		}
		if ok, err := r.Approvals.Approved(s); err == nil && ok {
			return "is approved"
		}
	case strings.Contains(subject, "."): // a file of the owner's, see reportPolicy
	case off:
		return gone
	case known && r.approved(j) == nil:
		return "is approved"
	}
	return ""
}

// fit returns why a job may not run as it is written, as far as this shows before it fires.
func (r *Runner) fit(j job.Job) error {
	for _, check := range []func(job.Job) error{r.CheckDirs, r.CheckTools, r.CheckPrograms, r.heldBack} {
		if err := check(j); err != nil {
			return err
		}
	}
	if _, _, err := r.patterns(j.Background); err != nil {
		return err
	}
	for _, name := range j.Skills {
		if _, err := r.Skills.Find(name); err != nil {
			return err
		}
	}
	if j.Subagent == "" {
		return nil
	}
	if name := cmp.Or(j.Engine, r.Engine); isScript(name) {
		return refuse("subagent %s: %s: this engine has no subagents", j.Subagent, name)
	}
	_, err := skill.LoadAgent(r.Home, j.Subagent)
	return err
}

// slowDelivery is the age from which a message that could not be sent shows that the delivery is broken.
const slowDelivery = 10 * time.Minute

// CheckDelivery reports that messages do not reach the owner, or do again.
func (r *Runner) CheckDelivery(ctx context.Context) error {
	waiting, err := r.Outbox.Pending()
	c := notify.Cause{
		Kind: notify.Delivery, Subject: "outbox", Name: "The delivery of messages", Remedy: "`ollim doctor --send` sends a test message and shows the error",
	}
	failing := 0
	for _, m := range waiting {
		if m.Attempts == 0 || m.Stuck {
			continue
		}
		if failing++; c.Text == "" && r.Disk.Now().Sub(m.Created) >= slowDelivery {
			c.Text = fmt.Sprintf("Messages have not reached you since %s: %s", m.Created.In(r.Zone).Format("Mon 2 Jan 15:04"), m.LastError)
		}
	}
	switch {
	case c.Text != "":
		_, openErr := r.Notify().Open(ctx, c)
		return errors.Join(err, openErr)
	case failing == 0 && err == nil:
		return r.Notify().Close(ctx, c.Key(), "")
	}
	return err
}

// FewBytes is the free space below which the disk counts as full: the notification must still be written.
const FewBytes = 50 << 20

// CheckDisk reports that the disk is full, or has space again.
func (r *Runner) CheckDisk(ctx context.Context, free uint64) error {
	c := notify.Cause{Kind: notify.Disk, Subject: "full", Name: "The disk"}
	if free >= FewBytes {
		return errors.Join(r.spaceAgain(ctx, c), r.readyForFull())
	}
	c.Text = fmt.Sprintf("The disk is full: %d MiB are free in %s, so runs cannot be recorded", free>>20, r.Home)
	c.Remedy = "free disk space: `df -h " + string(r.Home) + "`"
	_, err := r.Notify().Open(ctx, c)
	if errors.Is(err, syscall.ENOSPC) {
		r.tellDirectly(ctx, c)
	}
	return err
}

// spaceAgain reports that the disk has space again, even if tellDirectly reported the full disk and the cause could not be written.
func (r *Runner) spaceAgain(ctx context.Context, c notify.Cause) error {
	const how = "has space again"
	path := r.Home.Lock("disk")
	info, err := os.Lstat(path)
	if err != nil || !toldOfFull(info) {
		return r.Notify().Close(ctx, c.Key(), how)
	}
	open, err := r.Notify().OpenCauses()
	if _, noted := open[c.Key()]; noted {
		err = errors.Join(err, r.Notify().Close(ctx, c.Key(), how))
	} else if err == nil {
		err = r.Notify().Tell(ctx, notify.Cause{Kind: notify.News, Subject: c.Subject, Name: c.Name, Text: c.Name + " " + how})
	}
	if err != nil {
		return err
	}
	return os.Chmod(path, 0o600)
}

// toldOfFull reports whether tellDirectly has reported a full disk: it makes the lock file "disk" read-only. A copy of the directory keeps
// that mode, but not the time.
func toldOfFull(info fs.FileInfo) bool { return info.Mode()&0o200 == 0 }

// tellDirectly runs the delivery command without the outbox, once a day while nothing can be written. The time of a lock file is that of
// the last message. The file is made while there is space; setting its time and mode needs none.
func (r *Runner) tellDirectly(ctx context.Context, c notify.Cause) {
	path := r.Home.Lock("disk")
	info, err := os.Stat(path)
	if err != nil || len(r.Outbox.Command) == 0 || toldOfFull(info) && r.Disk.Now().Sub(info.ModTime()) < 24*time.Hour {
		return
	}
	err = r.Outbox.Try(ctx, outbox.Message{
		ID: "notice-disk", Kind: outbox.Failure, Label: c.Name, Critical: true, Text: c.Text + "\nTo do: " + c.Remedy, Created: r.Disk.Now(),
	})
	if r.warn(err); err == nil { // else the next tick tries again
		r.warn(errors.Join(os.Chtimes(path, r.Disk.Now(), r.Disk.Now()), os.Chmod(path, 0o400)))
	}
}

// readyForFull makes the lock file whose time and mode tellDirectly sets.
func (r *Runner) readyForFull() error {
	path := r.Home.Lock("disk")
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return store.Write(path, nil, store.Buffered)
}
