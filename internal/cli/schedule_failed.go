package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/schedule/installer"
	"github.com/ollim/ollim/internal/state/notice"
	"github.com/ollim/ollim/internal/state/runlog"
)

// newScheduleFailed is what systemd's OnFailure= starts.
func newScheduleFailed(d *Deps) *cobra.Command {
	return &cobra.Command{
		Annotations: agentNever(programs),
		Use:         "failed UNIT", Short: "Report the failure of a unit, unless its run has reported it", Hidden: true,
		Args: checked(cobra.ExactArgs(1)),
		RunE: inAnyHome(d, func(ctx context.Context, h app.Home, args []string) error {
			return runScheduleFailed(ctx, d, h, args[0])
		}),
	}
}

// justNow is how long ago a run may have ended for its end to be the unit's.
const justNow = 5 * time.Minute

// runScheduleFailed is silent when there is a run to tell of: one that has ended just now, in whatever way, has told by itself, and
// the next tick ends and tells of one whose process died. What never came so far is told once a day.
func runScheduleFailed(ctx context.Context, d *Deps, h app.Home, name string) error {
	if status, ok := d.Lookup("MONITOR_EXIT_STATUS"); ok && (status == "65" || status == "66") {
		return nil // of a file that cannot be read the fire itself tells
	}
	id := installer.JobOf(name)
	if id != "" {
		r, err := h.Runs().Noted(h.Dir.JobLock(id))
		if err == nil && tells(h, r) {
			return nil
		}
	}
	book, day := notice.Book{Home: h.Dir, Disk: h.Disk}, d.Now().In(h.Config.Zone).Format(time.DateOnly)
	earlier := func(key string) bool {
		return strings.HasPrefix(key, "unit "+name+" ") && !strings.HasSuffix(key, " "+day)
	}
	if err := book.Forget(ctx, func(key string) bool { return !earlier(key) }); err != nil {
		return err
	}
	first, err := book.Once(ctx, "unit "+name+" "+day)
	if err != nil || !first {
		return err
	}
	return h.Updates().Add(ctx, fmt.Sprintf("%s failed before its run began; see the journal: journalctl -u %s (with --user "+
		"for user units).", name, name), "ollim")
}

// tells reports whether a job's latest run may be the unit's, so that the owner hears of it. One that is in progress is not: the unit
// was another's.
func tells(h app.Home, r runlog.Record) bool {
	if r.Done() {
		return h.Disk.Now().Sub(*r.Finished) < justNow
	}
	return !h.Runs().Attended(r)
}
