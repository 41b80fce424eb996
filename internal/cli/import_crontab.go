package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/schedule/crontabimport"
	"github.com/ollim/ollim/internal/schedule/installer"
	"github.com/ollim/ollim/internal/state/job"
)

const maxCrontab = 1 << 20

func newImport(d *deps) *cobra.Command {
	var write bool
	cmd := command(agentNever(refused), "crontab [FILE|-]", "Convert crontab lines that run claude -p into routines",
		func(cmd *cobra.Command, args []string) error {
			return runImportCrontab(cmd.Context(), d, strings.Join(args, ""), write) // one at most
		})
	cmd.Flags().BoolVar(&write, "write", false, "create the files")
	return group("import", "Convert other schedules into routines", cmd)
}

func runImportCrontab(ctx context.Context, d *deps, file string, write bool) error {
	h, err := d.Home()
	if !write && errors.Is(err, app.ErrNoConfig) { // it need not exist for a look at what would be written
		h, err = d.NewHome()
	}
	if err != nil {
		return err
	}
	text, err := d.crontab(ctx, h, file)
	if err != nil {
		return err
	}
	s, err := h.Jobs.Load()
	if err != nil {
		return err
	}
	i := importer{d: d, h: h, write: write, source: "crontab", zone: app.MachineZone(), known: s.Jobs, names: map[string]bool{}}
	if file != "" && file != "-" {
		i.source = file
	}
	found := crontabimport.Find(text)
	if len(found) == 0 && !d.quiet {
		d.line("info", i.source+": no line runs claude -p")
	}
	for _, f := range found {
		if f.Err != nil {
			i.refused = true
			i.warn(f, "no routine: "+f.Err.Error())
		} else if err := i.line(f); err != nil {
			return err
		}
	}
	if len(i.lines) > 0 { // nothing here changes a crontab
		from, format := "crontab -e", "the crontab was not changed: remove line %s with %s, or both will run"
		if file != "" {
			from = "an editor"
		}
		if !write {
			format = "to create these files: ollim import crontab --write; then remove line %s with %s"
		}
		d.note(format, strings.Join(i.lines, ", "), from)
	}
	if i.refused {
		return &reported{statusData}
	}
	return nil
}

func (d *deps) crontab(ctx context.Context, h app.Home, file string) (string, error) {
	var data []byte
	var err error
	switch file {
	case "":
		data, err = crontabOf(h, d).Read(ctx)
		if errors.Is(err, process.ErrNotFound) {
			return "", hint(&withStatus{err, statusUnavailable}, "ollim import crontab FILE")
		}
		err = unitOptions{target: forCrontab}.fault(err)
	case "-":
		data, err = io.ReadAll(io.LimitReader(d.In, maxCrontab+1))
	default:
		data, err = d.readGiven(ctx, file, maxCrontab)
		if err != nil && ctx.Err() == nil {
			err = &withStatus{fmt.Errorf("%s: %s", file, store.Cause(err)), statusData}
		}
	}
	if err == nil && len(data) > maxCrontab {
		err = &withStatus{fmt.Errorf("%s: %w: more than %d KiB", cmp.Or(file, "crontab"), errTooLong, maxCrontab>>10), statusData}
	}
	return strings.ToValidUTF8(string(data), "\ufffd"), err
}

type importer struct {
	d       *deps
	h       app.Home
	write   bool
	source  string
	zone    string    // of the crontab
	known   []job.Job // that are there already
	names   map[string]bool
	refused bool
	lines   []string // the numbers of those that have a routine
}

func (i *importer) warn(f crontabimport.Found, text string) {
	i.d.warn(fmt.Sprintf("%s line %d: %s", i.source, f.Line, text))
}

func (i *importer) line(f crontabimport.Found) error {
	i.lines = append(i.lines, strconv.Itoa(f.Line))
	j, own := f.Job, i.h.Config.Zone.String()
	if j.Timezone == "" && !installer.SameZone(own, i.zone) {
		j.Timezone = i.zone // the crontab's, where the line says nothing else
	}
	for _, k := range i.known {
		if k.Kind == job.Routine && k.Cron == j.Cron && k.Timezone == j.Timezone && k.Body == j.Body {
			i.warn(f, "omitted: "+k.Path+" already does it")
			return nil
		}
	}
	for _, lost := range f.Lost {
		i.warn(f, lost)
	}
	var err error
	if j.ID, err = job.NewID(i.d.Random); err != nil {
		return err
	}
	return i.put(j, i.name(j))
}

func (i *importer) put(j job.Job, name string) error {
	if i.write {
		j, err := i.h.Jobs.Create(j, name)
		if err == nil {
			_, err = fmt.Fprintln(i.d.Out, j.ID)
		}
		if _, widened, _ := i.h.Approvals.Of(j); err == nil && widened {
			i.d.warn(fmt.Sprintf("%s waits for your approval: ollim approve %s", j.Name(), j.Name()))
		}
		return err
	}
	text, err := job.Format(j)
	if err != nil {
		return err
	}
	header := "==> routines/" + name + ".md <==\n"
	if len(i.names) > 1 {
		header = "\n" + header
	}
	_, err = io.WriteString(i.d.Out, header+string(text))
	return err
}

func (i *importer) name(j job.Job) string {
	stem := cmp.Or(job.Slug(j.Description), job.Slug(j.Body), j.ID)
	for n := 1; ; n++ {
		name := stem
		if n > 1 {
			name += "-" + strconv.Itoa(n)
		}
		file := name + ".md"
		if !i.names[name] && !exists(filepath.Join(i.h.Dir.Routines(), file)) && !exists(filepath.Join(i.h.Dir.Reminders(), file)) {
			i.names[name] = true
			return name
		}
	}
}
