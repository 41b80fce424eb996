package fire

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/agent/notify"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/inbox"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/notice"
)

// Recheck closes causes that it can tell are over, and drops those about jobs that no longer exist or are disabled. A later run closes
// the other causes.
func (u Rules) Recheck(ctx context.Context, files job.Set) error {
	if u.r.Notices.Empty() {
		return nil
	}
	book := u.r.Notify()
	open, err := book.OpenCauses()
	for key, e := range open {
		switch how := u.seen(e, files); how {
		case "":
		case gone:
			err = errors.Join(err, book.Drop(ctx, key))
		default:
			err = errors.Join(err, book.Close(ctx, key, how))
		}
	}
	return err
}

// gone is the end of a cause whose subject no longer exists. The owner is not notified of it.
const gone = "gone"

// seen returns how a cause has ended; "" if it lasts or this is not known.
func (u Rules) seen(e notice.Entry, files job.Set) string {
	j, known := files.ByID(e.Subject)
	off := !known && len(files.Faults) == 0 || known && !j.Enabled // a file that cannot be read may be that of the job
	switch notify.Kind(e.Kind) {
	case notify.Service, notify.Key, notify.Engine:
		if e.Subject != "none" && len(files.Faults) == 0 && !u.uses(e.Subject, files) {
			return "is not used any more"
		}
	case notify.Job:
		if off {
			return gone
		}
	case notify.Unit:
		if strings.HasSuffix(e.Subject, "-tick.service") { // this code runs in the tick, so the tick works
			return "works again"
		}
	case notify.Approval:
		return u.approvedNow(e.Subject, j, known, off)
	case notify.Refused:
		switch {
		case off:
			return gone
		case known && u.fit(j) == nil:
			return "may run again"
		}
	case notify.Monitor:
		if e.Subject != "tick" && (off || known && j.Heartbeat == "") {
			return gone
		}
	case notify.Gone:
		if _, _, err := u.r.Inbox.First(e.Subject); known || errors.Is(err, inbox.ErrGone) {
			return gone
		}
	case notify.Leftover:
		for id := range e.Jobs {
			if lock.Free(u.r.Home.JobLock(id)) && lock.Free(u.r.Home.RunLock(e.Subject)) {
				return "can run again"
			}
		}
	}
	return ""
}

// uses reports whether the settings or a job name an engine.
func (u Rules) uses(name string, files job.Set) bool {
	return name == u.r.Settings.Engine || slices.ContainsFunc(files.Jobs, func(j job.Job) bool { return j.Engine == name })
}

func (u Rules) approvedNow(subject string, j job.Job, known, off bool) string {
	name, isSkill := strings.CutPrefix(subject, "skill:")
	switch {
	case isSkill:
		if _, err := u.r.Skills.Find(name); errors.As(err, new(*plaintext.Unknown)) {
			return gone
		}
		s, err := u.r.Approvals.OfSkill(name)
		if ok, readErr := u.r.Approvals.Approved(s); ok && errors.Join(err, readErr) == nil {
			return "is approved"
		}
	case strings.Contains(subject, "."): // a file of the owner, see Reports.policy
	case off:
		return gone
	case known && u.approved(j) == nil:
		return "is approved"
	}
	return ""
}
