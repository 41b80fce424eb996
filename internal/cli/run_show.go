package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/request"
	"github.com/ollim/ollim/internal/state/runlog"
)

// runShow are the options of run show. The numbers begin at 1; 0 stands for an option that is not given.
type runShow struct {
	request, answer int
	requests, job   bool
}

func newRunShow(d *deps) *cobra.Command {
	var o runShow
	cmd := command(agentOwn(""), "show RUN...", "Print run records as JSON; RUN is an id, last, JOB or JOB~N", nil)
	flags := cmd.Flags()
	flags.BoolVar(&o.requests, "requests", false, "list the run's requests to models: number, time, status, model, tokens, cost")
	flags.IntVar(&o.request, "request", 0, "print the body of the run's `N`-th request, from 1")
	flags.IntVar(&o.answer, "answer", 0, "print the body of the answer to the run's `N`-th request, from 1")
	flags.BoolVar(&o.job, "job-file", false, "print the job's file as it was when the run began")
	cmd.MarkFlagsMutuallyExclusive("requests", "request", "answer", "job-file")
	cmd.RunE = inAnyHome(d, func(_ context.Context, h app.Home, args []string) error {
		switch {
		case o.requests:
			return runRequests(d, h, args)
		case flags.Changed("request"):
			return runBody(d, h, args, "request", o.request, h.Requests.Read)
		case flags.Changed("answer"):
			return runBody(d, h, args, "answer", o.answer, h.Requests.ReadAnswer)
		case o.job:
			return runBody(d, h, args, "job-file", 1, func(run string, _ int) ([]byte, bool, error) { return h.Requests.ReadJob(run) })
		}
		return runRunShow(d, h, args)
	})
	return withJSON(d, cmd, "with --requests: "+jsonLines)
}

func runRunShow(d *deps, h app.Home, runs []string) error {
	d.pager.Page()
	e := json.NewEncoder(d.Out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return d.each("run show", runs, func(name string) error {
		r, err := d.findRun(h, name)
		if err == nil {
			err = e.Encode(h.Runs.CutOff(r))
		}
		return err
	})
}

// runBody prints what read returns for the n-th request of each run.
func runBody(d *deps, h app.Home, runs []string, option string, n int, read func(run string, n int) ([]byte, bool, error)) error {
	if n < 1 {
		return usage("--%s %d: want 1 or more", option, n)
	}
	return d.each("run show", runs, func(name string) error {
		r, err := d.findRun(h, name)
		if err != nil {
			return err
		}
		body, hidden, err := read(r.ID, n)
		switch {
		case errors.Is(err, request.ErrNone) && option == "request":
			all, _ := h.Requests.Exchanges(r.ID)
			return noRequest(r, len(all), fmt.Errorf("request %d: %w", n, err))
		case err != nil:
			return fmt.Errorf("%s: %w", option, err)
		case hidden:
			d.warn(fmt.Sprintf("run %s: --%s: values of secrets are replaced by [secret]", r.ID, option))
		}
		_, err = d.Out.Write(body)
		return err
	})
}

// noRequest says why a run has no such request; all is the number of those that it has.
func noRequest(r runlog.Record, all int, err error) error {
	switch {
	case r.Engine == engine.ClaudeCode && all == 0:
		return &withStatus{errors.New("no request is kept; those of claude are kept if claude-code.gateway is on"), statusNoJob}
	case r.Engine == engine.Native, r.Engine == engine.ClaudeCode:
		return err
	}
	return &withStatus{fmt.Errorf("its engine, %s, asks no model", cmp.Or(r.Engine, "none")), statusNoJob}
}

// requestLine is a request in the list with --json.
type requestLine struct {
	Run    string    `json:"run"`
	Number int       `json:"request"`
	At     time.Time `json:"at"`
	*request.Answer
}

func runRequests(d *deps, h app.Home, runs []string) error {
	var list []requestLine
	err := d.each("run show", runs, func(name string) error {
		r, err := d.findRun(h, name)
		if err != nil {
			return err
		}
		all, err := h.Requests.Exchanges(r.ID)
		if len(all) == 0 && err == nil {
			d.warn("run " + r.ID + ": " + noRequest(r, 0, errors.New("it asked no model")).Error())
		}
		for _, x := range all {
			list = append(list, requestLine{r.ID, x.Number, x.At.In(h.Config.Zone), x.Answer})
		}
		return err
	})
	const columns = "N AT STATUS MODEL IN READ WRITE OUT COST TIME CUT"
	return cmp.Or(records(d, columns, list, func(l requestLine) []any {
		cells := []any{strconv.Itoa(l.Number), l.At.Format(time.TimeOnly)}
		a := l.Answer
		if a == nil {
			return append(cells, "", "", "", "", "", "", "", "", "no answer is kept")
		}
		u := cmp.Or(a.Usage, &runlog.Usage{})
		return append(cells, strconv.Itoa(a.Status), a.Model, strconv.Itoa(u.In), strconv.Itoa(u.CacheRead), strconv.Itoa(u.CacheWrite),
			strconv.Itoa(u.Out), fmt.Sprintf("$%.4f", a.Cost), strconv.FormatInt(a.Millis, 10)+"ms", prose(a.Cut))
	}), err)
}
