package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// report is what the month came to: totals, slots, messages, dollars and files.
func (m *month) report() string {
	var b strings.Builder
	line := func(form string, args ...any) { _, _ = fmt.Fprintf(&b, form+"\n", args...) }
	ours, theirs := m.costs()
	total, charged := 0.0, 0.0
	for _, usd := range ours {
		total += usd
	}
	for _, usd := range theirs {
		charged += usd
	}
	first, end := m.days[0], m.days[len(m.days)-1]
	lived := max(len(m.days)-1, 1)
	notices, night := 0, 0
	kinds := map[string]int{}
	for _, x := range m.messages {
		k := m.kind(x)
		if kinds[k]++; isNotice(k) {
			notices++
		}
		if isNotice(k) && m.atNight(x.at) {
			night++
		}
	}
	line("TOTAL\tdays %d\truns %d\trequests %d\tours %.2f USD\tservice %.2f USD\tmessages %d\tnotices %d\tat night %d\tfiles %d\tbytes %d\tfiles a day %d\tbytes a day %d",
		lived, len(m.records()), m.service.turns, total, charged, len(m.messages), notices, night, end.files, end.bytes,
		(end.files-first.files)/int64(lived), (end.bytes-first.bytes)/int64(lived))
	outcomes := map[string]int{}
	for _, s := range m.audit() {
		outcomes[s.Outcome]++
	}
	line("SLOTS\t%s", counts(outcomes))
	line("MESSAGES\t%s", counts(kinds))
	m.reportJobs(line)
	for _, d := range m.days {
		line("DAY\t%s\tours %.4f\tservice %.4f\tfiles %d\tbytes %d", d.day, ours[d.day], theirs[d.day], d.files, d.bytes)
	}
	for _, name := range slices.Sorted(maps.Keys(end.largest)) {
		line("FILES\t%s\t%d", name, end.largest[name])
	}
	for _, d := range m.doctor {
		line("DOCTOR\t%s\t%s\t%s", d.at.Format("Jan _2 15:04"), d.cause, strings.Join(d.faults, " | "))
	}
	for _, x := range m.messages {
		if k := m.kind(x); isNotice(k) {
			line("NOTICE\t%s\t%s\t%s", x.at.Format("Jan _2 15:04"), k, plainLine(x.text))
		}
	}
	for _, c := range m.chats {
		line("CHAT\t%s", plainLine(c))
	}
	return b.String()
}

// reportJobs has a line for each job: what it cost, and the cost of a fire at the beginning and at the end.
func (m *month) reportJobs(line func(string, ...any)) {
	type sum struct {
		runs, ok, compacted int
		cost                float64
		context             int
	}
	sums := map[string]*sum{}
	for _, r := range m.records() {
		id := r.Job
		if id == "" {
			id = r.Mode
		}
		s := sums[id]
		if s == nil {
			s = &sum{}
			sums[id] = s
		}
		if s.runs++; r.Outcome == "ok" {
			s.ok++
		}
		s.cost, s.context, s.compacted = s.cost+r.Cost, max(s.context, r.Context), s.compacted+r.Compactions
	}
	for _, id := range slices.Sorted(maps.Keys(sums)) {
		s, trend := sums[id], ""
		for _, j := range m.jobs {
			if first, last, ok := m.steady(j); j.id == id && ok {
				trend = fmt.Sprintf("a fire %.4f at first, %.4f at the end", first, last)
			}
		}
		charged := 0.0
		for key, usd := range m.service.spent {
			if job, _, _ := strings.Cut(key, " "); job == id {
				charged += usd
			}
		}
		line("JOB\t%s\truns %d\tok %d\tours %.4f\tservice %.4f\tlargest context %d\tcompactions %d\t%s", id, s.runs, s.ok, s.cost, charged, s.context, s.compacted, trend)
	}
}

func counts(of map[string]int) string {
	var list []string
	for _, k := range slices.Sorted(maps.Keys(of)) {
		list = append(list, fmt.Sprintf("%s %d", k, of[k]))
	}
	return strings.Join(list, ", ")
}
