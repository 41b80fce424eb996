package report

import (
	"context"
	"strings"

	"github.com/ollim/ollim/internal/agent/backtest"
	"github.com/ollim/ollim/internal/app"
)

// Limits of the backtests on a page.
const (
	mostBacktests = 20
	mostVerdicts  = 100 // of one backtest
	decidedText   = 300
)

// judged is a backtest with its verdicts.
type judged struct {
	backtest.Plan

	verdicts []backtest.Verdict
}

// readBacktests reads the backtests that began in the time of the page, the newest first.
func (p *Page) readBacktests(_ context.Context, h app.Home) error {
	plans, _, err := h.Backtests().List()
	for _, plan := range plans {
		if plan.Begun.Before(p.from) || len(p.backtests) == mostBacktests {
			break
		}
		list, err := h.Backtests().Verdicts(plan)
		if err != nil {
			return err
		}
		p.backtests = append(p.backtests, judged{plan, list})
	}
	return err
}

// judgements writes the backtests, if there are any.
func (p *Page) judgements(o *out) {
	if len(p.backtests) == 0 {
		return
	}
	o.add("<section id=backtests>\n<h2>Backtests</h2>\n")
	for _, b := range p.backtests {
		o.add("<h3>{} <small>{}</small></h3>\n", b.Name+": "+b.Change(), b.Begun.In(p.to.Location()).Format(shortTime))
		if b.Changes() {
			o.add("<p>{}.</p>\n", backtest.Summarize(b.verdicts, false).String())
		}
		if b.Baseline {
			o.add("<p>Asked again without a change: {}.</p>\n", backtest.Summarize(b.verdicts, true).String())
		}
		o.add("<details><summary>What each run decided</summary>\n<table>\n<tr><th>Run</th><th>Verdict</th><th>Then</th><th>Now</th></tr>\n")
		for i, v := range b.verdicts {
			if i == mostVerdicts {
				break
			}
			result := v.Result
			if v.Baseline {
				result += ", without a change"
			}
			o.add("<tr><td><code>{}</code></td><td>{}</td><td>", v.Run, result)
			decided(o, v.Before)
			o.add("</td><td>")
			decided(o, v.Now)
			if v.Why != "" {
				o.add("<p>{}</p>", v.Why)
			}
			o.add("</td></tr>\n")
		}
		o.add("</table>\n<p><code>ollim backtest show {}</code> prints all.</p></details>\n", b.ID)
	}
	o.add("</section>\n")
}

// decided writes decisions with the beginnings of their texts.
func decided(o *out, list []backtest.Decision) {
	if len(list) == 0 {
		o.add("{}", backtest.Silent)
	}
	for _, d := range list {
		o.add("<p><b>{}</b></p>", strings.TrimSpace(d.Kind+" "+d.What))
		o.text(d.Text, decidedText, "")
	}
}
