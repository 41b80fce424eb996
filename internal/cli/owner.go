package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/state/approval"
	"github.com/ollim/ollim/internal/state/job"
)

func (h house) approvals() approval.Book {
	return approval.Book{Home: h.home, Disk: h.disk, Zone: h.config.Zone, User: h.user}
}

// ownerHere refuses what is the owner's alone to whatever runs inside a run, also where it has hidden OLLIM_RUN from us.
func (d *Deps) ownerHere() error {
	if err := d.outside(); err != nil {
		return err
	}
	if id, inside := process.Inside("OLLIM_RUN"); inside {
		return fmt.Errorf("%w: this is inside run %s", errNotAllowed, id)
	}
	return nil
}

// approveOwn approves a job that the owner has just written through us. It waits instead, and a warning says so, when this
// is inside a run, or when a file that it names is not as it was approved: the owner has not seen that. The error is that of
// the book; the job stays as it was written.
func (d *Deps) approveOwn(ctx context.Context, h house, j job.Job) error {
	book := h.approvals()
	s, widened, err := book.Of(j)
	if !widened {
		return nil
	}
	last, _, bookErr := book.Last(s.Key)
	if bookErr != nil || err == nil && last.Digest == s.Digest() {
		return bookErr
	}
	if err == nil {
		err = d.ownerHere()
	}
	if touched := last.Touched(s); err == nil && len(touched) > 0 {
		err = errors.New("changed since it was approved: " + strings.Join(touched, ", "))
	}
	if err != nil {
		d.warn(fmt.Sprintf("%s waits for approval: %v: ollim approve %s", j.Name(), err, j.Name()))
		return nil
	}
	return book.Approve(ctx, s, approval.Owner)
}
