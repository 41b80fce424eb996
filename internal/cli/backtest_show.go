package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/ollim/ollim/internal/agent/backtest"
	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/runlog"
)

// planOf returns the plan of a backtest that the user names.
func planOf(h app.Home, id string) (backtest.Plan, error) {
	p, err := h.Backtests().Load(id)
	if as[*plaintext.Unknown](err) {
		return p, hint(err, "ollim backtest list")
	}
	return p, err
}

func runBacktestShow(d *deps, h app.Home, args []string) error {
	p, err := planOf(h, args[0])
	if err != nil {
		return err
	}
	list, err := h.Backtests().Verdicts(p)
	if err != nil {
		return err
	}
	if len(args) > 1 {
		return d.sideBySide(list, args[1])
	}
	if d.json {
		for _, v := range list {
			if err := d.emit(v); err != nil {
				return err
			}
		}
		return nil
	}
	return d.verdicts(p, list)
}

// verdicts prints the list of verdicts and, on a terminal, its summary.
func (d *deps) verdicts(p backtest.Plan, list []backtest.Verdict) error {
	err := records(d, "RUN ASKED VERDICT THEN NOW COST WHY", list, func(v backtest.Verdict) []any {
		asked := "changed"
		if v.Baseline {
			asked = "same"
		}
		now := decisions(v.Now)
		if v.Result == backtest.Undecided {
			now = ""
		}
		return []any{printable(v.Run), asked, v.Result, brief(decisions(v.Before)), brief(now), fmt.Sprintf("$%.4f", v.Is.Cost), prose(v.Why + v.Facts)}
	})
	if err != nil || !isTerminal(d.Stdout) {
		return err
	}
	return d.answer("\n"+d.flow(strings.Join(summaryLines(p, list), "\n"), 0), nil)
}

func decisions(list []backtest.Decision) string {
	if len(list) == 0 {
		return backtest.Silent
	}
	return strings.Join(backtest.Kinds(list), ", ")
}

// summaryLines says what the verdicts show.
func summaryLines(p backtest.Plan, list []backtest.Verdict) (lines []string) {
	base := backtest.Summarize(list, true)
	if p.Changes() {
		s := backtest.Summarize(list, false)
		lines = append(lines, s.String()+".", fmt.Sprintf("Then $%.4f, %d tokens, %.0f s; now $%.4f, %d tokens, %.0f s.",
			s.Was.Cost, tokens(s.Was.Usage), s.Was.Seconds, s.Is.Cost, tokens(s.Is.Usage), s.Is.Seconds))
	}
	if p.Baseline {
		lines = append(lines, "Asked again without a change: "+base.String()+".")
	}
	if wrong := base.Missed + base.Extra; p.Baseline && p.Changes() && wrong > 0 {
		lines = append(lines, fmt.Sprintf("Without a change, %d of %d runs decide otherwise. Only differences beyond that are due to the change.", wrong, base.Decided()))
	}
	return lines
}

func tokens(u runlog.Usage) int { return u.In + u.CacheRead + u.CacheWrite + u.Out }

// sideBySide prints what a run decided then and now.
func (d *deps) sideBySide(list []backtest.Verdict, name string) error {
	found := false
	for _, v := range list {
		if !strings.HasPrefix(v.Run, name) {
			continue
		}
		found = true
		if d.json {
			if err := d.emit(v); err != nil {
				return err
			}
			continue
		}
		text := "run " + plaintext.Line(v.Run) + ": " + v.Result
		if v.Baseline {
			text = "run " + plaintext.Line(v.Run) + ", asked without a change: " + v.Result
		}
		if v.Why != "" {
			text += ": " + plaintext.Lines(v.Why)
		}
		for _, side := range []struct {
			when string
			list []backtest.Decision
		}{{"then", v.Before}, {"now", v.Now}} {
			if len(side.list) == 0 {
				text += "\n" + block(side.when, backtest.Silent)
			}
			for _, x := range side.list {
				text += "\n" + block(strings.TrimSpace(side.when+" "+x.Kind+" "+plaintext.Line(x.What)), x.Text)
			}
		}
		if err := d.answer(d.flow(text, blockIndent), nil); err != nil {
			return err
		}
	}
	if !found {
		return &plaintext.Unknown{What: "run of the backtest", Name: name}
	}
	return nil
}

// backtestRow is a backtest in the list.
type backtestRow struct {
	backtest.Plan
	backtest.Summary
}

func (r backtestRow) cells() []any {
	s := r.Summary
	open := len(r.Plan.Runs) - s.Same - s.Different - s.Missed - s.Extra
	return []any{
		r.ID, brief(r.Name), brief(r.Change()), strconv.Itoa(s.Same + s.Different), strconv.Itoa(s.Missed), strconv.Itoa(s.Extra),
		strconv.Itoa(open), fmt.Sprintf("$%.4f", s.Is.Cost),
	}
}

func (d *deps) backtests(context.Context) (rows []backtestRow, err error) {
	h, err := d.Home()
	if err != nil {
		return nil, err
	}
	plans, bad, err := h.Backtests().List()
	d.warnBad(bad)
	for _, p := range plans {
		list, err := h.Backtests().Verdicts(p)
		if err != nil {
			return nil, err
		}
		p.Begun = p.Begun.In(h.Config.Zone)
		rows = append(rows, backtestRow{p, backtest.Summarize(list, !p.Changes())})
	}
	return rows, err
}
