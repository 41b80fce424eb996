package notify

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/notice"
)

// mostJobs is how many jobs a message names.
const mostJobs = 10

// opening returns the first message about a cause.
func opening(e notice.Entry) string {
	text := e.Text
	if names := namesOf(e); len(names) > 1 || len(names) == 1 && !strings.Contains(text, names[0]) {
		text += "\nIt concerns: " + list(names)
	}
	return text + toDo(e)
}

// reminder returns the message of a later day.
func reminder(e notice.Entry, zone *time.Location) string {
	text := fmt.Sprintf("Since %s: %s", e.Since.In(zone).Format("Mon 2 Jan 15:04"), e.Text)
	if did := tally(e); did != "" {
		text += "\nSo far " + did
	}
	return text + toDo(e)
}

// NoLonger is how a spending limit ends.
const NoLonger = "no longer stops runs"

// closing returns the message about the end of a cause.
func closing(e notice.Entry, how string) string {
	if how == "" {
		how = "works again"
	}
	text := e.Name + " " + how
	if did := tally(e); did != "" {
		text += "; " + did
	}
	return text
}

func toDo(e notice.Entry) string {
	if e.Remedy == "" {
		return ""
	}
	return "\nTo do: " + e.Remedy
}

// tally returns the effects of a cause: "14 fires did not do their work, 3 slots were missed: Digest 14, Backup 3".
func tally(e notice.Entry) string {
	var all notice.Count
	for _, c := range e.Jobs {
		all.Failed, all.Missed = all.Failed+c.Failed, all.Missed+c.Missed
	}
	var parts []string
	if all.Failed > 0 {
		parts = append(parts, plaintext.Count(all.Failed, "fire")+" did not do their work")
	}
	if all.Failed == 1 {
		parts[0] = "1 fire did not do its work"
	}
	if all.Missed > 0 {
		parts = append(parts, were(all.Missed, "slot")+" missed")
	}
	text := strings.Join(parts, ", ")
	if len(e.Jobs) > 1 && text != "" {
		text += ": " + list(counted(e))
	}
	return text
}

func were(n int, noun string) string {
	if n == 1 {
		return "1 " + noun + " was"
	}
	return plaintext.Count(n, noun) + " were"
}

// namesOf returns the names of the jobs of a cause, sorted.
func namesOf(e notice.Entry) (names []string) {
	for _, c := range e.Jobs {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	return names
}

// counted returns the names of the jobs of a cause with the number of fires and slots, most first.
func counted(e notice.Entry) (names []string) {
	total := func(id string) int { c := e.Jobs[id]; return c.Failed + c.Missed }
	ids := slices.SortedFunc(maps.Keys(e.Jobs), func(a, b string) int {
		if d := total(b) - total(a); d != 0 {
			return d
		}
		return strings.Compare(e.Jobs[a].Name, e.Jobs[b].Name)
	})
	for _, id := range ids {
		names = append(names, fmt.Sprintf("%s %d", e.Jobs[id].Name, total(id)))
	}
	return names
}

func list(names []string) string {
	if more := len(names) - mostJobs; more > 0 {
		names = append(slices.Clone(names[:mostJobs]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

func oneLine(text string) string { return strings.TrimRight(strings.TrimSpace(text), ".") }

func shorten(text string, most int) string { return plaintext.Short(text, most) }
