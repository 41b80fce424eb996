package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/ollim/ollim/internal/platform/plaintext"
)

// mostBars is how many jobs have a bar of their own.
const mostBars = 12

// sum is the cost of several runs.
type sum struct {
	name string
	cost float64 // USD
	runs int
}

// costs writes the cost by day and by job as pictures.
func (o *out) costs(p *Page) {
	o.add("<section id=cost>\n<h2>Cost</h2>\n")
	days, jobs := p.byDay(), p.byJob()
	if len(jobs) == 0 {
		o.add("<p class=none>No run cost anything.</p>\n</section>\n")
		return
	}
	o.add("<div class=costs>\n<div>\n<h3>By day</h3>\n")
	o.days(days, p.money.perDay)
	o.add("</div>\n<div>\n<h3>By job</h3>\n<div class=bars>\n")
	most, all := 0.0, 0.0
	for _, s := range jobs {
		most, all = max(most, s.cost), all+s.cost
	}
	for _, s := range jobs {
		o.add("<span class=name>{}</span><svg class=bar aria-hidden=true><rect class=money height=\"100%\" width=\"{}\"/></svg><span class=count>{}, {} %, {}</span>\n",
			s.name, percent(100*s.cost/most), usd(s.cost), int(math.Round(100*s.cost/all)), plaintext.Count(s.runs, "run"))
	}
	o.add("</div>\n</div>\n</div>\n</section>\n")
}

// byDay returns the days of the page, the oldest first.
func (p *Page) byDay() (days []sum) {
	sums := map[string]sum{}
	for _, r := range p.runs {
		day := r.started.Format(time.DateOnly)
		s := sums[day]
		sums[day] = sum{day, s.cost + r.cost, s.runs + 1}
	}
	year, month, day := p.from.Date()
	for i := 0; ; i++ {
		noon := time.Date(year, month, day+i, 12, 0, 0, 0, p.from.Location()) // which no clock change skips
		if date := noon.Format(time.DateOnly); date <= p.to.Format(time.DateOnly) {
			s := sums[date]
			s.name = noon.Format("Mon 2 Jan")
			days = append(days, s)
			continue
		}
		return days
	}
}

// byJob returns the jobs that cost something, the costliest first, and the others as one.
func (p *Page) byJob() []sum {
	sums := map[string]*sum{}
	for _, r := range p.runs {
		if r.cost <= 0 {
			continue
		}
		if sums[r.job] == nil {
			sums[r.job] = &sum{name: r.name} // of the newest run
		}
		sums[r.job].cost += r.cost
		sums[r.job].runs++
	}
	list := make([]sum, 0, len(sums))
	for _, id := range slices.Sorted(maps.Keys(sums)) {
		list = append(list, *sums[id])
	}
	slices.SortStableFunc(list, func(a, b sum) int { return cmp.Or(cmp.Compare(b.cost, a.cost), cmp.Compare(a.name, b.name)) })
	if len(list) > mostBars {
		rest := sum{name: plaintext.Count(len(list)-mostBars+1, "other")}
		for _, s := range list[mostBars-1:] {
			rest.cost, rest.runs = rest.cost+s.cost, rest.runs+s.runs
		}
		list = append(list[:mostBars-1], rest)
	}
	return list
}

// days draws a bar for each day, and the limit of a day where it is near.
func (o *out) days(days []sum, limit float64) {
	top, all := 0.0, 0.0
	for _, d := range days {
		top, all = max(top, d.cost), all+d.cost
	}
	line := limit <= 2*top
	if line {
		top = max(top, limit)
	}
	n := float64(len(days))
	o.add("<svg class=days role=img aria-label=\"Cost by day, {} in all\">", usd(all))
	for i, d := range days {
		height := percent(88 * d.cost / top)
		x, width := percent(100*float64(i)/n), percent(100/n)
		title := fmt.Sprintf("%s: %s, %s", d.name, usd(d.cost), plaintext.Count(d.runs, "run"))
		o.add("<rect class=money x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"><title>{}</title></rect>", x+width*0.1, 100-height, width*0.8, height, title)
		if d.cost > 0 && n <= 10 {
			o.add("<text x=\"{}\" y=\"{}\" dy=\"-4\" text-anchor=middle>{}</text>", x+width/2, 100-height, usd(d.cost))
		}
	}
	if line {
		y := 100 - percent(88*limit/top)
		o.add("<rect class=limit x=\"0\" y=\"{}\" width=\"100%\" height=\"1\"/><text x=\"100%\" y=\"{}\" dy=\"-4\" text-anchor=end>limit {}</text>", y, y, usd(limit))
	}
	o.add("</svg>\n<svg class=axis aria-hidden=true>")
	every := int(math.Ceil(n / 7))
	for i := 0; i < len(days); i += every {
		x, class := percent(100*float64(i)/n), markup("")
		if i/every%2 == 1 {
			class = " class=wide"
		}
		if x < 88 {
			o.add("<text x=\"{}\" y=\"12\"{}>{}</text>", x, class, days[i].name)
		}
	}
	o.add("</svg>\n")
}
