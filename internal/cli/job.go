package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/platform/yamldoc"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/job"
)

type jobAdd struct {
	name, body string
	fields     jobFlags
}

// words takes [NAME] BODY|-.
func (o *jobAdd) words(args []string) {
	o.name, o.body = strings.Join(args[:len(args)-1], ""), args[len(args)-1] // one NAME at most
}

// read returns the job that the arguments describe. more are the fields without a flag.
func (o *jobAdd) read(d *deps, more ...yamldoc.Pair) (app.Home, job.Job, error) {
	s, h, err := d.jobSet()
	if err != nil {
		return h, job.Job{}, err
	}
	if o.name == "" && o.body != "-" && isWord(o.body) {
		return h, job.Job{}, usage("%q is one word: give a NAME and a BODY", o.body)
	}
	body, err := wordsOrInput(d, []string{o.body})
	if err != nil {
		return h, job.Job{}, err
	}
	if o.name != "" && job.Slug(o.name) != o.name {
		return h, job.Job{}, usage("name %q: lower-case letters, digits and hyphens, such as %s", o.name, cmp.Or(job.Slug(o.name), "daily-market"))
	}
	j, err := o.fields.job(d, s, o.name, body, more...)
	if err != nil {
		return h, j, err
	}
	for _, word := range []string{o.name, j.ID} {
		if meaning := job.Meaning(word); meaning != "" {
			return h, j, usage("%q means %s: choose another name", word, meaning)
		}
	}
	return h, j, nil
}

// isWord reports whether a text is a single word, which is more likely a name than a prompt. A text in a script without spaces is never
// one.
func isWord(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.Tibetan)
	})
}

func (o *jobAdd) create(ctx context.Context, d *deps, h app.Home, j job.Job) (job.Job, error) {
	if given, _ := o.fields.values["id"]().(string); given == "" && o.name != "" {
		j.ID = ""
	}
	j, err := h.Jobs.Create(j, o.name)
	if errors.Is(err, fs.ErrExist) {
		return j, hint(&withStatus{fmt.Errorf("%s: already exists", j.Path), statusData}, "ollim %s edit %s", j.Kind, o.name)
	}
	if err != nil {
		return j, err
	}
	return j, d.approveOwn(ctx, h, j)
}

// created returns the error of printing what is known of a job that was created. It says that the job exists, so that nobody adds it again.
func (d *deps) created(h app.Home, j job.Job, err error) error {
	if err == nil {
		err = d.flush()
	}
	if err != nil {
		return fmt.Errorf("%s was created, but %w", h.Dir.Relative(j.Path), err)
	}
	return nil
}

// jobFlags is a flag for every field of a kind of job file.
type jobFlags struct {
	kind   job.Kind
	values map[string]func() any
	set    func(string) bool // whether a flag was given
}

// flags leaves out the fields that the command sets itself.
func (o *jobFlags) flags(f *pflag.FlagSet, kind job.Kind, without ...string) {
	o.kind, o.set, o.values = kind, f.Changed, map[string]func() any{}
	for _, field := range job.Fields(kind) {
		switch {
		case slices.Contains(without, field.Key):
		case field.Kind == job.Bool:
			on := f.Bool(field.Key, field.Default == "true", field.Help)
			o.values[field.Key] = func() any { return *on }
		case field.Kind == job.List:
			list := f.StringArray(field.Key, nil, field.Help+" (repeatable)")
			o.values[field.Key] = func() any {
				if field.Key != "allowed-tools" {
					return *list
				}
				return patternsOf(*list)
			}
		default:
			text := f.String(field.Key, "", field.Help)
			o.values[field.Key] = func() any { return plainScalar(field.Key, *text) }
		}
	}
}

// patternsOf splits lists of patterns, which a flag takes as the claude command does.
func patternsOf(lists []string) (patterns []string) {
	for _, list := range lists {
		split := policy.List(list)
		if len(split) == 0 { // empty, which the file's check refuses
			split = []string{list}
		}
		patterns = append(patterns, split...)
	}
	return patterns
}

// job returns the job that the flags describe. Its id is the given one, else the name of the file, else a new one; the id must be free.
// more are the fields without a flag.
func (o *jobFlags) job(d *deps, s job.Set, name, body string, more ...yamldoc.Pair) (job.Job, error) {
	given, _ := o.values["id"]().(string)
	id, source := cmp.Or(given, name), "--id"
	if given == "" {
		source = "name"
	}
	if id == "" {
		var err error
		if id, err = job.NewID(d.Random); err != nil {
			return job.Job{}, err
		}
	}
	j, err := o.parse(id, body, more)
	if err != nil {
		return j, err
	}
	for _, other := range s.Jobs {
		if strings.EqualFold(other.ID, j.ID) && (given != "" || other.Kind != o.kind || other.Name() != name) { // else it is the same file
			return j, &withStatus{fmt.Errorf("%s: %q is the id of %s", source, j.ID, other.Path), statusData}
		}
	}
	_, err = s.Find(j.ID)
	if faults, ok := errors.AsType[yamldoc.Faults](err); ok && (given != "" || stem(faults[0].File) != name) {
		return j, &withStatus{fmt.Errorf("%s: %q is in use: %w", source, j.ID, err), statusData}
	}
	return j, nil
}

// parse parses the flags as a job file, so that a flag means exactly what the same line in a file means.
func (o *jobFlags) parse(id, body string, more []yamldoc.Pair) (job.Job, error) {
	pairs := append([]yamldoc.Pair{{Key: "id", Value: id}}, more...)
	for _, f := range job.Fields(o.kind) {
		if f.Key == "id" || !o.set(f.Key) {
			continue
		}
		value, err := o.value(f.Key, f.Kind)
		if err != nil {
			return job.Job{}, err
		}
		pairs = append(pairs, yamldoc.Pair{Key: f.Key, Value: value})
	}
	text, err := yamldoc.NewPage(pairs, strings.Trim(body, "\n"))
	if err != nil {
		return job.Job{}, &withStatus{err, statusData}
	}
	j, err := job.Parse(o.kind, "flags", text)
	return j, asFlags(err)
}

// value returns what a file has in place of a flag.
func (o *jobFlags) value(key string, kind job.FieldKind) (any, error) {
	value := o.values[key]()
	text, _ := value.(string)
	if kind != job.Section && (kind != job.TextOrSection || !strings.HasPrefix(text, "{")) {
		return value, nil
	}
	doc, err := yamldoc.Parse("--"+key, []byte(text), 1)
	if err != nil {
		return nil, &withStatus{err, statusData}
	}
	return doc.Root(), nil
}

// plainScalar returns the text as a number or a bool, if a file would have one in that field.
func plainScalar(key, text string) any {
	if !slices.Contains([]string{"max-cost", "thinking", "max-chain", "retry", "gate-audit"}, key) {
		return text
	}
	if n, err := strconv.Atoi(text); err == nil {
		return n
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		return n
	}
	if text == "true" || text == "false" {
		return text == "true"
	}
	return text
}

// asFlags replaces the keys in the faults of a file by flags.
func asFlags(err error) error {
	faults, ok := errors.AsType[yamldoc.Faults](err)
	if !ok {
		return err
	}
	reason := faults[0].Reason
	if key := faults[0].Key; key != "" {
		reason = "--" + plaintext.Short(key, 200) + ": " + reason
	}
	return &withStatus{errors.New(reason), statusData}
}

func newJobRm(d *deps, kind job.Kind, short string) *cobra.Command {
	return command(agentNever(refused), "rm JOB...", short, inHome(d, func(ctx context.Context, h app.Home, args []string) error {
		s, err := h.Jobs.Load() // no warnings: the file to be deleted may be among the bad ones
		if err != nil {
			return err
		}
		return d.each(string(kind)+" rm", args, func(name string) error { return removeJob(ctx, d, h, s, kind, name) })
	}))
}

// removeJob deletes a job's file and session. It keeps the session if the file cannot be read, because the id is then not certain.
func removeJob(ctx context.Context, d *deps, h app.Home, s job.Set, kind job.Kind, name string) error {
	path, err := jobPath(s, h, kind, name)
	if err != nil {
		return err
	}
	j, findErr := s.Only(kind).Find(name)
	if findErr == nil {
		guard, err := lock.TryGuard(h.Dir.JobLock(j.ID))
		switch {
		case errors.Is(err, lock.ErrBusy) && kind == job.Reminder:
			return hint(&withStatus{errors.New("is running"), statusTempFail}, "ollim stop %s", j.ID)
		case errors.Is(err, lock.ErrBusy):
			return hint(errors.Join(errors.New("is running"), err), "try again when its run has ended: ollim run list")
		case err != nil:
			return err
		}
		defer guard.Release()
		if !exists(path) {
			return &plaintext.Unknown{What: "job", Name: name} // the run of a reminder has just ended
		}
	}
	if err := store.Remove(path); err != nil || findErr != nil {
		return err
	}
	if _, n, err := h.Inbox.First(j.ID); err == nil {
		d.warn(fmt.Sprintf("%s: the inbox still has %s, to be run if a file with this id is added", j.ID, plaintext.Count(n, "accepted event")))
	}
	if err := h.Runner(false).Notify().Forget(ctx, j.ID); err != nil { // a new job of this id has no causes
		return err
	}
	return h.Sessions.RemoveRoutine(j.ID)
}
