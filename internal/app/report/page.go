package report

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	_ "embed" // for the style
	"encoding/base64"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/runlog"
)

//go:embed style.css
var style string

const shortTime = "Mon 2 Jan 15:04"

// Limits of the lists. The size of the list of runs is in bytes of the page.
const (
	allLines     = 2000 << 10
	mostProblems = 60
	firstTold    = 12 // shown at once
	mostTold     = 200
	mostHeard    = 1000 // messages read from runs whose other events are not read
	toldText     = 600
	noteText     = 160
	nameText     = 40
)

// Write writes the page.
func (p *Page) Write(to io.Writer) error {
	w := bufio.NewWriterSize(to, 64<<10)
	o := &out{to: w, secrets: p.secrets}
	p.head(o)
	p.totals(o)
	p.problems(o)
	if len(p.runs)+len(p.slots) > 0 {
		o.timeline(p)
		o.costs(p)
	}
	p.judgements(o)
	p.messages(o)
	p.list(o)
	o.add("<footer><p>Written by <code>ollim report</code>. The page holds what agents read and wrote: treat it like the data directory. " +
		"<code>ollim run log ID</code> prints all of a run.</p></footer>\n</main>\n</body>\n</html>\n")
	return w.Flush()
}

// head writes the beginning of the page, before the first part. The policy allows the one style of the page and nothing else.
func (p *Page) head(o *out) {
	hash := sha256.Sum256([]byte(style))
	title := "ollim, " + p.from.Format("2 Jan") + " to " + p.to.Format("2 Jan 2006")
	o.add(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{}</title>
<style>{}</style>
</head>
<body>
<main>
<header>
<h1>What ollim did</h1>
<p>{} to {}. Times are those of {}.</p>
</header>
<nav>`, markup(base64.StdEncoding.EncodeToString(hash[:])), title, markup(style), p.from.Format(shortTime), p.to.Format("Mon 2 Jan 2006 15:04"), p.to.Location())
	for _, part := range []struct {
		id    markup
		label string
		count int
	}{
		{"problems", "Problems", len(p.groups())}, {"timeline", "Timeline", 0}, {"cost", "Cost", 0}, {"backtests", "Backtests", len(p.backtests)}, {"told", "What you were told", len(p.told)}, {"runs", "Runs", len(p.runs)},
	} {
		if (part.id == "timeline" || part.id == "cost") && len(p.runs)+len(p.slots) == 0 {
			continue
		}
		if part.id == "backtests" && part.count == 0 {
			continue
		}
		o.add(`<a href="#{}">{}`, part.id, part.label)
		if part.count > 0 {
			o.add(" <b>{}</b>", thousands(part.count))
		}
		o.add("</a>\n")
	}
	o.add("</nav>\n")
	for i, fault := range p.Faults {
		if i == mostProblems {
			o.add("<p class=fault>{}</p>\n", plaintext.Count(len(p.Faults)-i, "more error"))
			break
		}
		o.add("<p class=fault>Could not be read: {}</p>\n", plaintext.Short(fault, 300))
	}
}

// totals writes the sums, beside their limits.
func (p *Page) totals(o *out) {
	outcomes, slots, cost, problems := map[string]int{}, map[string]int{}, 0.0, 0
	for _, r := range p.runs {
		outcomes[r.outcome]++
		cost += r.cost
	}
	for _, a := range p.slots {
		slots[a.Outcome]++
		if a.Problem() {
			problems++
		}
	}
	tile := func(name, value, about string) {
		o.add("<div><dt>{}</dt><dd>{}</dd><dd class=about>{}</dd></div>\n", name, value, about)
	}
	o.add("<dl class=totals>\n")
	tile("Runs", thousands(len(p.runs)), plaintext.Tally(outcomes))
	about := "none was due"
	if len(p.slots) > 0 {
		about = fmt.Sprintf("%s with a problem", cmp.Or(thousands(problems), "none"))
	}
	tile("Slots", thousands(len(p.slots)), about)
	tile("Cost", usd(cost), "of these runs")
	tile("Spent today", usd(p.money.today), fmt.Sprintf("%s; %s%s, %d of them started by you", limit(p.money.perDay), plaintext.Count(p.money.runs, "run"),
		most(p.money.runsPerDay), p.money.typed))
	tile("Spent this month", usd(p.money.month), limit(p.money.perMonth))
	tile("Pings left", fmt.Sprintf("%d", p.money.pings), fmt.Sprintf("of %d", p.money.capacity))
	o.add("</dl>\n")
}

func limit(usdLimit float64) string {
	if math.IsInf(usdLimit, 1) {
		return "no limit"
	}
	return "of " + usd(usdLimit)
}

func most(runs int) string {
	if runs == math.MaxInt {
		return ""
	}
	return fmt.Sprintf(" of %d", runs)
}

// group is a group of problems that look the same.
type group struct {
	runlog.Span

	outcome, note string
	jobs          map[string]int // by name
	run           string         // the newest
}

func (g *group) add(name, run string, at time.Time) {
	if !at.Before(g.Last) {
		g.run = run
	}
	g.Span = g.Extend(runlog.Span{Count: 1, First: at, Last: at})
	g.jobs[name]++
}

// groups returns the problems, the newest first.
func (p *Page) groups() []*group {
	var list []*group
	byLook, byID := map[string]*group{}, p.byID()
	of := func(outcome, note string) *group {
		note = plaintext.Short(plaintext.Line(note), noteText)
		if byLook[outcome+" "+note] == nil {
			list = append(list, &group{outcome: outcome, note: note, jobs: map[string]int{}})
			byLook[outcome+" "+note] = list[len(list)-1]
		}
		return byLook[outcome+" "+note]
	}
	for _, r := range p.runs {
		if r.problem {
			of(r.outcome, r.note).add(r.name, r.id, r.started)
		}
	}
	for _, a := range p.slots {
		if byID[a.Run] == nil && a.Problem() {
			of(a.Outcome, a.Note()).add(a.Name, "", a.Slot)
		}
	}
	slices.SortStableFunc(list, func(a, b *group) int { return b.Last.Compare(a.Last) })
	return list
}

func (p *Page) byID() map[string]*run {
	byID := make(map[string]*run, len(p.runs))
	for i := range p.runs {
		byID[p.runs[i].id] = &p.runs[i]
	}
	return byID
}

// problems writes what went wrong. Problems that look the same are one entry.
func (p *Page) problems(o *out) {
	list := p.groups()
	o.add("<section id=problems>\n<h2>Problems</h2>\n")
	if len(list) == 0 {
		o.add("<p class=none>None.</p>\n")
	}
	for i, g := range list {
		if i == mostProblems {
			o.add("<p class=cut>{}; the list of runs has them.</p>\n", plaintext.Count(len(list)-i, "older problem"))
			break
		}
		class, _ := look(g.outcome)
		times := g.Last.Format(shortTime)
		if g.Count > 1 {
			times = fmt.Sprintf("%s times, %s to %s", thousands(g.Count), g.First.Format(shortTime), times)
		}
		o.add("<p class=problem><i class={}>{}</i> {}<br><span class=note>", class, g.outcome, g.note)
		if g.run != "" {
			o.add(`<a href="#r{}">{}</a>`, g.run, times)
		} else {
			o.add("{}", times)
		}
		o.add(": {}</span></p>\n", g.names())
	}
	o.add("</section>\n")
}

// names returns the jobs of the problems, with how many each has.
func (g *group) names() string {
	if len(g.jobs) > 1 {
		return plaintext.Short(plaintext.Tally(g.jobs), 2*noteText)
	}
	for name := range g.jobs {
		return name
	}
	return ""
}

// messages writes what the owner was told, and why.
func (p *Page) messages(o *out) {
	o.add("<section id=told>\n<h2>What you were told</h2>\n")
	if len(p.told) == 0 {
		o.add("<p class=none>Nothing.</p>\n")
	}
	byID, first, all := p.byID(), min(firstTold, len(p.told)), min(mostTold, len(p.told))
	for _, t := range p.told[:first] {
		o.message(t, byID[t.run])
	}
	if all > first {
		o.add("<details><summary class=more>{}</summary>\n", plaintext.Count(all-first, "older message"))
		for _, t := range p.told[first:all] {
			o.message(t, byID[t.run])
		}
		if left := len(p.told) - all; left > 0 {
			o.add("<p class=cut>{} left out.</p>\n", plaintext.Count(left, "still older message"))
		}
		o.add("</details>\n")
	}
	o.add("</section>\n")
}

// message writes what the owner was told. by is the run that sent the message; nil: the page has none.
func (o *out) message(t told, by *run) {
	o.add("<article><p><time>{}</time> <i class=kind>{}</i> ", t.at.Format(shortTime), t.kind)
	if by != nil {
		o.add(`by <a href="#r{}">{}</a> `, by.id, by.name)
	}
	o.add("<span class=note>{}</span></p>\n", t.why)
	o.text(t.text, toldText, t.run)
	o.add("</article>\n")
}

// list writes the runs by day, the newest first. Runs of which the page knows what they did unfold.
func (p *Page) list(o *out) {
	o.add("<section id=runs>\n<h2>Runs</h2>\n")
	if len(p.runs) == 0 {
		o.add("<p class=none>No run began in this time.</p>\n</section>\n")
		return
	}
	o.add("<p><label><input type=checkbox id=only> Show only problems</label></p>\n")
	begin, day := o.size, ""
	space := allLines
	for i, r := range p.runs {
		if o.size-begin > space {
			o.add("<p class=cut>{} left out: <code>ollim run list -n 0</code>.</p>\n", plaintext.Count(len(p.runs)-i, "older run"))
			break
		}
		if d := r.started.Format("Monday, 2 January 2006"); d != day {
			day = d
			o.add("<h3>{}</h3>\n", d)
		}
		space += len(r.story)
		o.run(r)
	}
	o.add("</section>\n")
}

func (o *out) run(r run) {
	class := markup("")
	if r.problem {
		class = " p"
	}
	if r.story == "" {
		o.add(`<p class="r{}" id="r{}">`, class, r.id)
		o.row(r, r.id)
		o.add("</p>\n")
		return
	}
	o.add("<details class=\"r{}\"><summary>", class)
	o.row(r, r.note)
	o.add("</summary><div class=story id=\"r{}\">\n<p class=id><code>{}</code></p>\n", r.id, r.id)
	if note := r.note; note != "" {
		o.text(note, messageText, r.id)
	}
	o.add("{}</div></details>\n", markup(r.story)) // which out has written
}

// row writes the columns of a run.
func (o *out) row(r run, note string) {
	class, _ := look(r.outcome)
	took := ""
	switch {
	case r.took >= time.Minute:
		took = r.took.Round(time.Second).String()
	case r.took >= time.Second:
		took = fmt.Sprintf("%.1fs", r.took.Seconds())
	case r.took > 0:
		took = r.took.Round(time.Millisecond).String()
	}
	cost := ""
	if r.cost > 0 {
		cost = usd(r.cost)
	}
	o.add("<time>{}</time><b>{}</b><i class={}>{}</i><span>{}</span><span>{}</span><u>{}</u>", r.started.Format("15:04:05"), r.name, class,
		r.outcome, took, cost, plaintext.Short(plaintext.Line(note), noteText))
}
