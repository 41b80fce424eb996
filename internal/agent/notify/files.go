package notify

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/notice"
	"github.com/ollim/ollim/internal/state/outbox"
)

// BadFile returns the cause of an invalid job file. name is the file's, relative to the data directory if it is in it.
func BadFile(name, fault string) Cause {
	return Cause{
		Kind: File, Subject: name, Name: name,
		Text: "A job file is invalid and cannot run until it is corrected (see `ollim check`): " + fault,
	}
}

// OpenFiles reports invalid files that were found at one time, several as one message, so that they do not fill the pending updates. It
// returns the keys of those about which the owner is notified.
func (b Book) OpenFiles(ctx context.Context, found []Cause) (told []string, err error) {
	if len(found) == 0 {
		return nil, nil
	}
	return b.open(ctx, File, found, func(all []notice.Entry) notice.Entry {
		e := inOne(all)
		e.Text = e.Name + " are invalid and cannot run until they are corrected (see `ollim check`): " + list(namesOfFiles(all))
		return e
	})
}

// CloseFiles ends the causes of files, except those that are still invalid. Several are one message. There is none about a file of the data
// directory home that was removed.
func (b Book) CloseFiles(ctx context.Context, still func(key string) bool, home paths.Dir) error {
	ended := func(key string, e notice.Entry) bool { return e.Open() && e.Kind == string(File) && !still(key) }
	p, err := b.Notices.Read()
	if err != nil || !slices.ContainsFunc(slices.Collect(maps.Keys(p.Causes)), func(key string) bool { return ended(key, p.Causes[key]) }) {
		return err
	}
	var made []notice.Message
	err = b.Notices.Edit(ctx, func(p *notice.Page) (changed bool) {
		var said []notice.Entry
		for _, key := range slices.Sorted(maps.Keys(p.Causes)) {
			e := p.Causes[key]
			switch {
			case !ended(key, e):
				continue
			case removed(home, e.Subject):
				delete(p.Causes, key)
			case b.end(p, key, e):
				said = append(said, e)
			}
			changed = true
		}
		if len(said) > 0 {
			made = append(made, b.usable(said))
			p.Unsent = append(p.Unsent, made...)
		}
		return changed
	})
	return errors.Join(err, b.say(ctx, made, File))
}

// usable returns the message that files can be used again.
func (b Book) usable(all []notice.Entry) notice.Message {
	e, how := all[0], "can be used again"
	if len(all) > 1 {
		e, how = inOne(all), how+": "+list(namesOfFiles(all))
	}
	return b.message(notice.Key(e.Kind, e.Subject), e, closing(e, how), outbox.Notice, "")
}

// removed reports whether there is no file of a name. A file that cannot be looked at counts as there.
func removed(home paths.Dir, name string) bool {
	if !filepath.IsAbs(name) {
		name = home.Path(name)
	}
	_, err := os.Lstat(name)
	return errors.Is(err, fs.ErrNotExist)
}

// inOne returns an entry that stands for several files. Its key is that of the first.
func inOne(all []notice.Entry) notice.Entry {
	e := all[0]
	e.Name = plaintext.Count(len(all), "job file")
	for _, other := range all[1:] {
		for id, c := range other.Jobs {
			count(&e, []Affected{{ID: id, Name: c.Name, Count: c}})
		}
	}
	return e
}

func namesOfFiles(all []notice.Entry) (names []string) {
	for _, e := range all {
		names = append(names, e.Name)
	}
	return names
}
