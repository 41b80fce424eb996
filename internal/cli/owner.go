package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/state/approval"
	"github.com/ollim/ollim/internal/state/job"
)

// approveOwn approves a job that the owner has just written through us. It waits instead, and a warning says so, when this
// is inside a run, or when a file that it names is not as it was approved: the owner has not seen that. The error is that of
// the book; the job stays as it was written.
func (d *Deps) approveOwn(ctx context.Context, h app.Home, j job.Job) error {
	book := h.Approvals()
	s, widened, err := book.Of(j)
	if !widened {
		return nil
	}
	last, _, bookErr := book.Last(s.Key)
	if bookErr != nil || err == nil && last.Digest == s.Digest() {
		return bookErr
	}
	if err == nil {
		err = d.OwnerOnly()
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
