package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/schedule/forecast"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/slot"
)

// Limits of the timeline.
const (
	mostRows  = 40
	mostCells = 170 // of a row
	mostNamed = 4   // slots and runs that a cell names one by one
)

// mark is a slot or a run on the timeline.
type mark struct {
	at      time.Time
	outcome string
	run     *run // nil: the page has no run of the slot
}

// line is a row of the timeline, marks by time.
type line struct {
	name  string
	kind  int // 0: the runs of one routine or webhook; 1: those of one kind
	marks []mark
}

// rank orders outcomes: the cell of several slots has the look of the one with the highest rank.
func rank(outcome string) int {
	return slices.Index([]string{
		string(runlog.Paused), string(runlog.Gated), string(runlog.Skipped), string(runlog.OK), string(runlog.Waiting), forecast.Running,
		string(runlog.Expired), string(runlog.Refused), string(runlog.Interrupted), slot.Missed, forecast.Unaccounted,
	}, outcome)
}

// look returns how an outcome looks in a cell: the class that colours it, and its height. A problem is higher than a success, so that it
// can be found without colours.
func look(outcome string) (class markup, height int) {
	switch outcome {
	case string(runlog.OK):
		return "ok", 60
	case string(runlog.Gated):
		return "gated", 35
	case string(runlog.Paused), string(runlog.Skipped):
		return "off", 20
	case string(runlog.Waiting), forecast.Running:
		return "open", 80
	case slot.Missed, forecast.Unaccounted:
		return "missed", 100
	}
	return "bad", 100
}

// lines returns the rows of the timeline: routines and webhooks by name, then a row for each other kind of run.
func (p *Page) lines() []line {
	rows, placed := map[string]*line{}, map[*run]bool{}
	add := func(key, name string, kind int, m mark) {
		if rows[key] == nil {
			rows[key] = &line{name: name, kind: kind}
		}
		rows[key].marks = append(rows[key].marks, m)
	}
	byID := p.byID()
	for _, a := range p.slots {
		r := byID[a.Run]
		m := mark{a.Slot, a.Outcome, r}
		if placed[r] = true; r != nil { // the run may have ended since
			m.outcome = r.outcome
		}
		add(string(job.Routine)+a.Job, a.Name, 0, m)
	}
	for i := range p.runs {
		r := &p.runs[i]
		if placed[r] {
			continue
		}
		key, name, kind := r.kind, r.kind+"s", 1
		if r.kind == string(job.Routine) || r.kind == string(job.Webhook) {
			key, name, kind = r.kind+r.job, r.name, 0
		}
		add(key, name, kind, mark{r.started, r.outcome, r})
	}
	var list []line
	for _, l := range rows {
		slices.SortStableFunc(l.marks, func(a, b mark) int { return a.at.Compare(b.at) })
		list = append(list, *l)
	}
	slices.SortStableFunc(list, func(a, b line) int { return cmp.Or(a.kind-b.kind, strings.Compare(a.name, b.name)) })
	return list
}

// scale divides the time of the page into cells, each as long as step.
type scale struct {
	from, to time.Time
	step     time.Duration
}

func newScale(from, to time.Time) scale {
	s := scale{from, to, 7 * 24 * time.Hour}
	for _, step := range []time.Duration{
		time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 3 * time.Hour, 4 * time.Hour,
		6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 2 * 24 * time.Hour,
	} {
		if to.Sub(from) <= mostCells*step {
			s.step = step
			break
		}
	}
	s.from = from.Truncate(min(s.step, time.Hour))
	return s
}

// place returns the position of an instant, 0 to 100.
func (s scale) place(at time.Time) percent {
	return percent(100 * at.Sub(s.from).Seconds() / max(s.to.Sub(s.from).Seconds(), 1))
}

func (s scale) cell(at time.Time) int { return int(at.Sub(s.from) / s.step) }

// timeline writes the rows, and below them the days.
func (o *out) timeline(p *Page) {
	s, rows := newScale(p.from, p.to), p.lines()
	o.add("<section id=timeline>\n<h2>Slots and runs</h2>\n")
	o.add("<p class=key><i class=ok>ok</i> <i class=gated>gated</i> <i class=bad>failed or refused</i> <i class=missed>missed</i> " +
		"<i class=open>waiting or running</i> <i class=off>paused or skipped</i></p>\n<div class=rows>\n")
	for _, l := range rows[:min(mostRows, len(rows))] {
		counts := map[string]int{}
		for _, m := range l.marks {
			counts[m.outcome]++
		}
		o.add("<span class=name>{}</span><svg class=row role=img aria-label=\"{}: {}\">", l.name, l.name, plaintext.Tally(counts))
		o.ticks(s, nil)
		for rest := l.marks; len(rest) > 0; {
			n := 1
			for n < len(rest) && s.cell(rest[n].at) == s.cell(rest[0].at) {
				n++
			}
			o.cell(s, rest[:n])
			rest = rest[n:]
		}
		o.add("</svg><span class=count>{}</span>\n", plaintext.Tally(counts))
	}
	o.add("<span></span><svg class=axis aria-hidden=true>")
	o.ticks(s, func(x percent, class markup, label string) { o.add(`<text x="{}" y="12"{}>{}</text>`, x, class, label) })
	o.add("</svg><span></span>\n</div>\n")
	if more := len(rows) - mostRows; more > 0 {
		o.add("<p class=cut>{} left out here; their runs are below.</p>\n", plaintext.Count(more, "row"))
	}
	o.add("</section>\n")
}

// ticks draws the beginnings of days, or of quarters of a short day, or calls label with some of them.
func (o *out) ticks(s scale, label func(x percent, class markup, text string)) {
	year, month, day := s.from.Date()
	hours, days, layout := 24, 1, "Mon 2"
	switch length := s.to.Sub(s.from); {
	case length <= 12*time.Hour:
		hours, layout = 1, "15:04"
	case length <= 48*time.Hour:
		hours, layout = 6, "Mon 15:04"
	case length > 8*24*time.Hour:
		days, layout = int(length/(7*24*time.Hour))+1, "2 Jan"
	}
	for i := 1; i < 2000; i++ {
		at := time.Date(year, month, day, s.from.Hour()/hours*hours+i*hours, 0, 0, 0, s.from.Location())
		if days > 1 {
			at = time.Date(year, month, day+i*days, 0, 0, 0, 0, s.from.Location())
		}
		if !at.Before(s.to) {
			return
		}
		x := s.place(at)
		class := markup("")
		if i%2 == 0 {
			class = " class=wide"
		}
		switch {
		case label == nil:
			o.add(`<rect class=g x="{}" width="1" height="100%"/>`, x)
		case x < 94:
			label(x, class, at.Format(layout))
		}
	}
}

// cell draws the slots and runs of one cell. It leads to the run, if there is one.
func (o *out) cell(s scale, marks []mark) {
	worst := marks[0]
	for _, m := range marks[1:] {
		if a, b := badness(m), badness(worst); a > b || a == b && worst.run == nil {
			worst = m
		}
	}
	begin := s.from.Add(time.Duration(s.cell(marks[0].at)) * s.step)
	x := s.place(begin)
	width := min(s.place(begin.Add(s.step)), 100) - x
	class, height := look(worst.outcome)
	if worst.run != nil {
		o.add(`<a href="#r{}">`, worst.run.id)
	}
	o.add(`<rect class={} x="{}" y="{}%" width="{}" height="{}%"><title>{}</title></rect>`, class, x, 100-height, max(width, 0.3), height, saying(marks))
	if worst.run != nil {
		o.add("</a>")
	}
}

func badness(m mark) int {
	if r := rank(m.outcome); r >= 0 {
		return r
	}
	return 100 // failed, timeout, unreported
}

// saying names the slots and runs of a cell.
func saying(marks []mark) string {
	if len(marks) > mostNamed {
		counts := map[string]int{}
		for _, m := range marks {
			counts[m.outcome]++
		}
		return fmt.Sprintf("%s to %s: %s", marks[0].at.Format(shortTime), marks[len(marks)-1].at.Format("15:04"), plaintext.Tally(counts))
	}
	var lines []string
	for _, m := range marks {
		text := m.at.Format(shortTime) + ": "
		if m.run != nil {
			text += m.run.name + ", "
		}
		text += m.outcome
		if m.run != nil && m.run.cost > 0 {
			text += ", " + usd(m.run.cost)
		}
		lines = append(lines, text)
	}
	return strings.Join(lines, "\n")
}
