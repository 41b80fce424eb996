package tools

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/order"
	"github.com/ollim/ollim/internal/state/job"
)

func callListReminders(_ context.Context, b *Set, _ struct{}) (string, error) {
	s, err := b.Jobs.Load()
	if err != nil {
		return "", err
	}
	jobs := s.Only(job.Reminder).Jobs
	if len(jobs) == 0 {
		return "No reminders.", nil
	}
	order.Sort(jobs, func(a, z job.Job) int { return a.RunAt.Compare(z.RunAt) })
	var lines []string
	for _, j := range jobs {
		lines = append(lines, fmt.Sprintf("%s  %s  %s", j.ID, j.RunAt.In(b.Zone).Format(time.RFC3339), j.Label()))
	}
	return strings.Join(lines, "\n"), nil
}
