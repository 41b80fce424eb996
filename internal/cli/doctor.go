package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app/doctor"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/schedule/installer"
	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/state/runlog"
)

func newDoctor(d *deps) *cobra.Command {
	var asCron, send, ask bool
	cmd := command(agentNever(nested), "doctor", "Check the installation, and say what to do about each fault",
		func(cmd *cobra.Command, args []string) error {
			if asCron {
				return d.asCron(cmd, args)
			}
			return runDoctor(cmd.Context(), d, send, ask)
		})
	cmd.Flags().BoolVar(&asCron, "as-cron", false, "make all checks with cron's environment, from /")
	cmd.Flags().BoolVar(&send, "send", false, "also send you a test message")
	cmd.Flags().BoolVar(&ask, "ask", false, "also ask each engine one question, for about a cent")
	return withJSON(d, cmd, jsonLines)
}

func (d *deps) doctor() doctor.Doctor {
	return doctor.Doctor{App: d.App, Entries: d.installedEntries, Clusters: d.clusterNames}
}

func runDoctor(ctx context.Context, d *deps, send, ask bool) error {
	doc := d.doctor()
	var answers []doctor.Finding
	if ask { // first, because the checks look at the last uses of engines
		answers = doc.Ask(ctx)
	}
	found := append(doc.Examine(ctx), answers...)
	if send {
		found = append(found, d.sendTest(ctx))
	}
	failed := findings(d, "RESULT CHECK FINDING REMEDY", found, func(error) status { return statusFailed })
	return cmp.Or(failed, ctx.Err())
}

// findings prints what checks found. On a terminal the faults come last, nearest to the prompt, then a line that counts them, without a
// pager. The error has the status of the first failed check.
func findings(d *deps, columns string, found []doctor.Finding, statusOf func(error) status) error {
	d.pager = nil
	terminal := isTerminal(d.Stdout) && !d.json
	if terminal {
		rank := []string{doctor.Pass, doctor.Warn, doctor.Fail}
		slices.SortStableFunc(found, func(a, b doctor.Finding) int {
			return cmp.Compare(slices.Index(rank, a.Result), slices.Index(rank, b.Result))
		})
	}
	if err := records(d, columns, found, func(f doctor.Finding) []any {
		return []any{state(f.Result), f.What, prose(f.Text), remedy(f.Remedy)}[:len(strings.Fields(columns))]
	}); err != nil {
		return err
	}
	if terminal {
		_, _ = fmt.Fprintln(d.Out, countFindings(found)) // a failed write shows when the output is flushed
	}
	if i := slices.IndexFunc(found, func(f doctor.Finding) bool { return f.Result == doctor.Fail }); i >= 0 {
		return &reported{statusOf(found[i].Err)}
	}
	return nil
}

// countFindings counts what checks found, by result.
func countFindings(found []doctor.Finding) string {
	counts := map[string]int{}
	for _, f := range found {
		counts[f.Result]++
	}
	if counts[doctor.Pass] == len(found) {
		return plaintext.Count(len(found), "check") + ": nothing is wrong"
	}
	return fmt.Sprintf("%s: %d PASS, %d WARN, %d FAIL", plaintext.Count(len(found), "finding"), counts[doctor.Pass], counts[doctor.Warn], counts[doctor.Fail])
}

func (d *deps) sendTest(ctx context.Context) doctor.Finding {
	f := doctor.Finding{Result: doctor.Fail, What: "test message"}
	h, err := d.Home()
	var id string
	if err == nil {
		id, err = runlog.NewID(d.Now(), d.Random)
	}
	var receipt outbox.Receipt
	if err == nil {
		receipt, err = h.Post().Send(ctx, outbox.Message{ID: "doctor-" + id, Kind: outbox.Ping, Label: "ollim doctor", Text: "This is a test message of ollim doctor.", Created: d.Now()})
	}
	switch err = cmp.Or(err, receipt.Reason); {
	case err != nil:
		f.Text, f.Remedy = err.Error(), "see ollim-messages(7)"
	case receipt.Fate != outbox.Sent:
		f.Text, f.Remedy = "not sent: no delivery is configured", "ollim config set delivery.command COMMAND"
	default:
		f.Result, f.Text = doctor.Pass, "sent: check that it arrives"
	}
	return f
}

// installedEntries compares the installed entries with those of `ollim schedule diff`, with and without routines. Both forms are current.
func (d *deps) installedEntries(ctx context.Context, scheduler string) (found doctor.Entries, err error) {
	target, flag, _ := strings.Cut(scheduler, " ")
	if target == forKubernetes {
		return d.clusterEntries(ctx, scheduler)
	}
	o := unitOptions{target: target, system: flag != ""}
	found, err = d.foundEntries(ctx, o)
	if other := (*otherDataDir)(nil); errors.As(err, &other) {
		found = doctor.Entries{Other: other.dir}
	}
	if err != nil || !found.Installed || found.Changes == 0 {
		if err == nil || errors.Is(err, process.ErrNotFound) || as[*otherDataDir](err) {
			return found, nil
		}
		return found, fmt.Errorf("%s: %w", o.target, o.fault(err))
	}
	o.tickOnly = true
	if bare, bareErr := d.foundEntries(ctx, o); bareErr == nil && bare.Changes == 0 {
		return bare, nil
	}
	return found, nil
}

func (d *deps) foundEntries(ctx context.Context, o unitOptions) (found doctor.Entries, err error) {
	defer func(quiet bool) { d.quiet = quiet }(d.quiet)
	d.quiet = true // the messages of install are not findings
	if o.target == forSystemd {
		units, err := d.units(o)
		if err == nil {
			found.Programs, _, err = units.Calls()
		}
		if err != nil || len(found.Programs) == 0 {
			return found, err
		}
	}
	found.Installed = true
	e, err := d.entries(o)
	if err != nil {
		return found, err
	}
	if o.target == forSystemd {
		changes, err := d.unitChanges(ctx, o, e)
		found.Changes = len(changes)
		return found, err
	}
	changes, block, _, err := d.crontabChanges(ctx, e)
	found.Changes, found.Installed = len(changes), block != ""
	if found.Installed {
		program, _ := installer.CallOf(block)
		found.Programs = []string{program}
	}
	return found, err
}
