package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/yamldoc"
	"github.com/ollim/ollim/internal/state/job"
)

// jobAdd is the arguments of a command that writes a job file.
type jobAdd struct {
	name, body string
	fields     jobFlags
}

// words takes [NAME] BODY|-.
func (o *jobAdd) words(args []string) {
	o.body = args[len(args)-1]
	if len(args) == 2 {
		o.name = args[0]
	}
}

// read returns the job that the arguments describe. more are the fields without a flag.
func (o *jobAdd) read(d *Deps, more ...yamldoc.Pair) (app.Home, job.Job, error) {
	s, h, err := d.jobSet()
	if err != nil {
		return h, job.Job{}, err
	}
	if o.name == "" && o.body != "-" && !strings.ContainsAny(o.body, " \n") {
		return h, job.Job{}, usage("%q is one word: give a NAME and a BODY", o.body)
	}
	body, err := wordsOrInput(d, []string{o.body})
	if err != nil {
		return h, job.Job{}, err
	}
	if o.name != "" && job.Slug(o.name) != o.name {
		return h, job.Job{}, usage("name %q: lower-case letters, digits and hyphens, such as %s", o.name, cmp.Or(job.Slug(o.name), "daily-market"))
	}
	j, err := o.fields.job(d, s, body, more...)
	return h, j, err
}

// create writes the file and approves it.
func (o *jobAdd) create(ctx context.Context, d *Deps, h app.Home, j job.Job) (job.Job, error) {
	j, err := h.Jobs().Create(j, o.name)
	if errors.Is(err, fs.ErrExist) {
		return j, hint(&withStatus{fmt.Errorf("%s: already exists", j.Path), statusData}, "ollim %s edit %s", j.Kind, o.name)
	}
	if err != nil {
		return j, err
	}
	return j, d.approveOwn(ctx, h, j)
}
