package installer

import (
	"fmt"
	"strings"

	"github.com/ollim/ollim/internal/state/job"
)

// maxLine is the longest line of a crontab, in bytes: Debian's cron cuts a command at 998 and says nothing.
const maxLine = 900

// Crontab is the block for the user's crontab, markers included: a line for each routine and one for the tick. It sets no
// variable and needs no quotes, since which shell runs a line depends on what stands above the block. The error, if any, is
// ErrUnfit.
func Crontab(h Host, jobs []job.Job) (block string, left []Left, err error) {
	if err := h.checkPaths(unquoted); err != nil {
		return "", nil, err
	}
	routines, err := h.routines(jobs)
	if err != nil {
		return "", nil, err
	}
	tick := "* * * * * " + strings.Join(h.tick(), " ")
	if len(tick) > maxLine {
		return "", nil, fmt.Errorf("%s: %w: longer than a line of a crontab", h.DataDir, ErrUnfit)
	}
	var b strings.Builder
	b.WriteString(beginLine + "\n")
	for _, j := range routines {
		fields, why := h.portable(j, "cron")
		line := fields + " " + strings.Join(h.fire(j.ID), " ")
		if why == "" && len(line) > maxLine {
			why = "its line would be too long for a crontab"
		}
		if why != "" {
			left = append(left, Left{j, why})
			continue
		}
		b.WriteString(line + "\n")
	}
	b.WriteString(tick + "\n" + endLine + "\n")
	return b.String(), left, nil
}
