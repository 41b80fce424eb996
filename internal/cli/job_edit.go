package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/platform/yamldoc"
	"github.com/ollim/ollim/internal/state/job"
)

type jobEdit struct {
	name   string
	fields jobFlags
	some   []string // NAME[=POINTER], of a webhook
	given  func() bool
}

func (o *jobEdit) flags(f *pflag.FlagSet, kind job.Kind) {
	o.fields.flags(f, kind)
	if kind == job.Webhook {
		fieldFlag(f, &o.some)
	}
	o.given = func() bool {
		return len(o.some) > 0 || slices.ContainsFunc(job.Fields(kind), func(field job.Field) bool { return f.Changed(field.Key) })
	}
}

func newJobEdit(d *deps, kind job.Kind) *cobra.Command {
	var o jobEdit
	cmd := command(agentNever(programs), "edit JOB", "Change the keys of a "+string(kind)+" file, or edit it in $VISUAL or $EDITOR; only a valid result is saved",
		inHome(d, func(ctx context.Context, h app.Home, args []string) error {
			o.name = args[0]
			return runJobEdit(ctx, d, h, o)
		}))
	o.flags(cmd.Flags(), kind)
	return cmd
}

func runJobEdit(ctx context.Context, d *deps, h app.Home, o jobEdit) error {
	s, err := h.Jobs.Load() // no warnings: the file to be mended may be among the bad ones
	if err != nil {
		return err
	}
	path, err := jobPath(s, h, o.fields.kind, o.name)
	if err != nil {
		return err
	}
	before, err := store.ReadText(path, maxShown, false)
	if err != nil {
		return &withStatus{fmt.Errorf("%s: %s", path, store.Cause(err)), statusData}
	}
	if o.given() {
		err = o.change(s, path, before)
	} else {
		err = d.editText(ctx, s, o.fields.kind, path, before)
	}
	if err != nil {
		return err
	}
	if s, err = h.Jobs.Load(); err != nil {
		return err
	}
	if i := slices.IndexFunc(s.Jobs, func(j job.Job) bool { return j.Path == path }); i >= 0 {
		return d.approveOwn(ctx, h, s.Jobs[i])
	}
	return nil // the file was invalid before and still is
}

// change sets the keys whose flags were given. Comments and the order of the file are kept.
func (o *jobEdit) change(s job.Set, path string, before []byte) error {
	page, err := yamldoc.ParsePage(path, before)
	if err != nil {
		return err
	}
	doc := page.Doc
	for _, f := range job.Fields(o.fields.kind) {
		if err == nil && o.fields.set(f.Key) {
			doc, err = o.set(doc, f)
		}
	}
	for _, text := range o.some {
		if err == nil {
			doc, err = o.setProperty(doc, text)
		}
	}
	if err != nil {
		return err
	}
	err = replaceJob(s, o.fields.kind, path, before, page.With(doc))
	if faults, ok := errors.AsType[yamldoc.Faults](err); ok {
		if key, _, _ := strings.Cut(faults[0].Key, "."); o.fields.set(key) {
			return asFlags(err)
		}
	}
	return err
}

// set sets the key of a flag. An empty value removes it, so that its default applies.
func (o *jobEdit) set(doc *yamldoc.Doc, f job.Field) (*yamldoc.Doc, error) {
	value, err := o.fields.value(f.Key, f.Kind)
	if err != nil {
		return nil, err
	}
	path := []string{f.Key}
	switch v := value.(type) {
	case string:
		if v == "" {
			doc, err = doc.Delete(path)
			break
		}
		doc, err = doc.Set(path, v)
	case []string:
		if len(v) == 1 && v[0] == "" {
			doc, err = doc.Delete(path)
			break
		}
		doc, err = doc.SetList(path, v)
	default:
		doc, err = doc.Set(path, v)
	}
	return doc, o.unedited(err)
}

// setProperty sets where the value of a webhook comes from, and adds the value if there is none of that name. The rest of its schema
// stays.
func (o *jobEdit) setProperty(doc *yamldoc.Doc, text string) (*yamldoc.Doc, error) {
	name, pointer, has, err := splitField(text)
	if err != nil {
		return nil, err
	}
	path := []string{"fields", "properties", name}
	value, exists := doc.Root(), true
	for _, key := range path {
		if exists {
			value, exists = value.Get(key)
		}
	}
	var entries []yamldoc.Entry // of its schema
	if exists {
		entries, _ = value.Entries() // true has none
	}
	from := append(slices.Clone(path), "from")
	switch {
	case has && len(entries) > 0:
		doc, err = doc.Set(from, pointer)
	case has:
		doc, err = doc.Set(path, []yamldoc.Pair{{Key: "from", Value: pointer}})
	case len(entries) > 1:
		doc, err = doc.Delete(from)
	case !exists || len(entries) == 1 && entries[0].Key == "from":
		doc, err = doc.Set(path, true)
	}
	return doc, o.unedited(err)
}

// unedited is the error of a key that cannot be set without affecting other lines.
func (o *jobEdit) unedited(err error) error {
	if err == nil {
		return nil
	}
	return hint(&withStatus{err, statusData}, "ollim %s edit %s", o.fields.kind, o.name)
}

// editText opens an editor on a draft of a job file.
func (d *deps) editText(ctx context.Context, s job.Set, kind job.Kind, path string, before []byte) error {
	draft := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.edit-%d.md", filepath.Base(path), os.Getpid()))
	if err := store.Create(draft, before); err != nil {
		return err
	}
	keep, err := d.editDraft(ctx, s, kind, path, draft, before)
	if !keep {
		err = errors.Join(err, store.Remove(draft))
	}
	return err
}

// editDraft reports whether the draft holds work that would otherwise be lost.
func (d *deps) editDraft(ctx context.Context, s job.Set, kind job.Kind, path, draft string, before []byte) (keep bool, err error) {
	if err := d.openEditor(ctx, draft); err != nil {
		return differs(draft, before), err
	}
	after, err := os.ReadFile(draft)
	if err != nil {
		return true, err
	}
	if bytes.Equal(before, after) {
		return false, nil
	}
	kept := func(err error) error { return hint(err, "the file was not changed; your text is in %s", draft) }
	if err := replaceJob(s, kind, path, before, after); err != nil {
		return true, kept(err)
	}
	return false, nil
}

// replaceJob replaces the text of a job file, if the new one is valid and the file still has the old one.
func replaceJob(s job.Set, kind job.Kind, path string, before, after []byte) error {
	j, err := job.Parse(kind, path, after)
	if err != nil {
		return err
	}
	for _, other := range s.Jobs {
		if other.ID == j.ID && other.Path != path {
			return &withStatus{fmt.Errorf("id: %q is the id of %s", j.ID, other.Path), statusData}
		}
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, before) {
		return &withStatus{fmt.Errorf("%s was changed meanwhile", path), statusTempFail}
	}
	return store.Replace(path, after)
}

func differs(path string, before []byte) bool {
	now, err := os.ReadFile(path)
	return err == nil && !bytes.Equal(now, before)
}

// openEditor runs the editor through a shell, as git and crontab do, because $EDITOR may hold arguments.
func (d *deps) openEditor(ctx context.Context, path string) error {
	visual, _ := d.Lookup("VISUAL")
	editor, _ := d.Lookup("EDITOR")
	editor = cmp.Or(visual, editor, "vi")
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", editor+` "$1"`, "ollim", path)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = d.In, d.Stdout, d.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("the editor %q: %w", editor, err)
	}
	return nil
}
