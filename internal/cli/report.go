package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app/report"
	"github.com/ollim/ollim/internal/platform/store"
)

func newReport(d *deps) *cobra.Command {
	var since, file string
	cmd := command(agentNever(refused), "report", "Write a page of HTML: slots, runs, cost, messages, and what each run did",
		func(cmd *cobra.Command, _ []string) error { return runReport(cmd.Context(), d, since, file) })
	cmd.Flags().StringVar(&since, "since", "7d", "how far to look back")
	cmd.Flags().StringVarP(&file, "output", "o", "", "write the page to `FILE`, which is replaced; - is standard output (default -, and "+reportFile+" on a terminal)")
	return cmd
}

// reportFile is the file in the working directory that gets the page if standard output is a terminal.
const reportFile = "ollim-report.html"

func runReport(ctx context.Context, d *deps, since, file string) error {
	from, err := d.past(since)
	if err != nil {
		return err
	}
	switch onTerminal := isTerminal(d.Stdout); {
	case file == "-" && onTerminal:
		return hint(usage("the page is not for a terminal"), "ollim report -o "+reportFile)
	case file == "" && onTerminal:
		file = reportFile
	case file == "":
		file = "-"
	}
	h, err := d.AnyHome()
	if err != nil {
		return err
	}
	page, err := report.Collect(ctx, h, from)
	if err != nil {
		return err
	}
	for _, fault := range page.Faults {
		d.warn(fault)
	}
	if file == "-" {
		return page.Write(d.Out)
	}
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
		return usage("-o %s: not a regular file", file)
	}
	var text bytes.Buffer
	if err := errors.Join(page.Write(&text), store.Replace(file, text.Bytes())); err != nil {
		return err
	}
	if whole, err := filepath.Abs(file); err == nil {
		file = whole
	}
	d.note("written; open %s in a browser", file)
	return nil
}
