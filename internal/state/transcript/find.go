package transcript

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
)

// file is a file named like a transcript; its content has not been read.
type file struct {
	path, id string
	alias    string    // the id in the file name, if other software wrote the file and its header has another id
	modified time.Time // set only by newest
	size     int64
}

// files lists the files of a directory that are named like transcripts, the last name first. A missing directory is
// empty.
func files(dir string) ([]file, error) {
	found, err := store.List(dir)
	var list []file
	for _, e := range slices.Backward(found) {
		if id, ok := idOf(e.Name()); ok && e.Type().IsRegular() {
			list = append(list, file{path: filepath.Join(dir, e.Name()), id: id})
		}
	}
	return list, err
}

// idOf parses a name such as 2026-02-24T14-30-00_n-a1b2c3d4e5f6.jsonl.
func idOf(name string) (string, bool) {
	id, ends := strings.CutSuffix(name, suffix)
	if !ends || len(id) < len(nameTime)+2 || id[len(nameTime)] != '_' {
		return "", false
	}
	_, err := time.Parse(nameTime, id[:len(nameTime)])
	id = id[len(nameTime)+1:]
	return id, err == nil && plaintext.IsName(id)
}

// Names lists the headers of the transcripts, the newest first, with only the id and the time, which are in the file names.
func (d Dir) Names() ([]Header, error) {
	all, err := d.everywhere()
	names := make([]Header, 0, len(all))
	for _, f := range all {
		begun, _ := time.Parse(nameTime, filepath.Base(f.path)[:len(nameTime)]) // the file name begins with a valid time
		names = append(names, Header{ID: f.id, Timestamp: begun})
	}
	slices.SortStableFunc(names, func(a, b Header) int { return b.Timestamp.Compare(a.Timestamp) })
	return names, err
}

// everywhere lists the files of all directories. Directories of other programs, such as those of the script engine, have names of another
// form.
func (d Dir) everywhere() ([]file, error) {
	folders, err := store.List(string(d))
	if err != nil {
		return nil, err
	}
	var all []file
	for _, folder := range folders {
		if name := folder.Name(); len(name) < 4 || !strings.HasPrefix(name, "--") || !strings.HasSuffix(name, "--") {
			continue
		}
		list, err := files(filepath.Join(string(d), folder.Name()))
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}

// identified is everywhere with the ids of the headers, which may differ from those in the names if other software
// wrote the file.
func (d Dir) identified() ([]file, error) {
	all, err := d.everywhere()
	for i, f := range all {
		if isOurs(f.id) {
			continue
		}
		if t, err := Open(f.path); err == nil && t.ID != f.id {
			all[i].id, all[i].alias = t.ID, f.id
		}
	}
	return all, err
}

// isOurs reports whether an id has the form of ids that ollim's engines assign. Such an id is the same in the file name and the header.
func isOurs(id string) bool {
	return strings.HasPrefix(id, "n-") || strings.HasPrefix(id, "s-") || len(id) == len("xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx")
}

// newest lists files, the last modified first: those that may be about the directory cwd, or all if cwd is "".
func (d Dir) newest(cwd string) ([]file, error) {
	var all []file
	var err error
	if cwd == "" {
		all, err = d.everywhere()
	} else {
		all, err = files(d.folder(cwd))
	}
	if err != nil {
		return nil, err
	}
	known := all[:0]
	for _, f := range all {
		info, err := os.Lstat(f.path)
		if err != nil {
			continue // the file was just removed
		}
		f.modified, f.size = info.ModTime(), info.Size()
		known = append(known, f)
	}
	slices.SortStableFunc(known, func(a, b file) int {
		return cmp.Or(b.modified.Compare(a.modified), strings.Compare(filepath.Base(b.path), filepath.Base(a.path)))
	})
	return known, nil
}

// Find returns the transcript of a session, for any directory. The error wraps ErrUnknown.
func (d Dir) Find(id string) (Transcript, error) {
	all, err := d.identified()
	if err != nil {
		return Transcript{}, err
	}
	t, ok := pick(all, id)
	if !ok {
		return t, unknown(id)
	}
	return t, nil
}

func unknown(id string) error { return fmt.Errorf("%w: %.100q", ErrUnknown, id) }

// pick opens the last file of an id that is a transcript.
func pick(all []file, id string) (found Transcript, ok bool) {
	for _, f := range all {
		if f.id != id || ok && filepath.Base(f.path) < filepath.Base(found.Path) {
			continue
		}
		if t, err := Open(f.path); err == nil && t.ID == id {
			found, ok = t, true
		}
	}
	return found, ok
}

// Successor returns the transcript that continues t, which was compacted, the latest if it was compacted more than once. The
// error wraps ErrUnknown if it was not compacted.
func (t Transcript) Successor() (Transcript, error) {
	all, err := files(filepath.Dir(t.Path))
	if err != nil {
		return Transcript{}, err
	}
	for _, f := range all {
		if filepath.Base(f.path)[:len(nameTime)] < t.Timestamp.UTC().Format(nameTime) {
			break // other files are older
		}
		if next, err := Open(f.path); err == nil && next.Compacted && next.ParentID == t.ID {
			return next, nil
		}
	}
	return Transcript{}, unknown(t.ID)
}

// FindPrefix is Find for a prefix that a person typed. The error wraps ErrUnknown, or ErrAmbiguous with the list of ids.
func (d Dir) FindPrefix(prefix string) (Transcript, error) {
	all, err := d.identified()
	if err != nil {
		return Transcript{}, err
	}
	if t, ok := pick(all, prefix); ok {
		return t, nil
	}
	var ids []string
	for _, f := range all {
		if prefix != "" && (strings.HasPrefix(f.id, prefix) || strings.HasPrefix(f.alias, prefix)) {
			ids = append(ids, f.id)
		}
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	if len(ids) == 1 {
		if t, ok := pick(all, ids[0]); ok {
			return t, nil
		}
	}
	if len(ids) < 2 {
		return Transcript{}, unknown(prefix)
	}
	const most = 10
	more := ""
	if n := len(ids) - most; n > 0 {
		ids, more = ids[:most], fmt.Sprintf(" and %d more", n)
	}
	return Transcript{}, fmt.Errorf("%w begins with %q: %s%s", ErrAmbiguous, prefix, strings.Join(ids, ", "), more)
}

// Latest returns the last modified transcript about the directory cwd, or of all if cwd is "". The error wraps ErrUnknown.
func (d Dir) Latest(cwd string) (Transcript, error) {
	all, err := d.newest(cwd)
	if err != nil {
		return Transcript{}, err
	}
	for _, f := range all {
		if t, err := Open(f.path); err == nil && t.about(cwd) {
			return t, nil
		}
	}
	if cwd == "" {
		return Transcript{}, ErrUnknown
	}
	return Transcript{}, fmt.Errorf("%w about %s", ErrUnknown, cwd)
}

func (t Transcript) about(cwd string) bool { return cwd == "" || clean(t.Cwd) == clean(cwd) }

// Lineage returns t, its parent, and so on back to the first, as far as they still exist.
func (d Dir) Lineage(t Transcript) ([]Transcript, error) {
	all, err := d.identified()
	if err != nil {
		return nil, err
	}
	line, seen := []Transcript{t}, map[string]bool{t.ID: true}
	for found := true; found && !seen[t.ParentID]; {
		if t, found = pick(all, t.ParentID); found {
			line, seen[t.ID] = append(line, t), true
		}
	}
	return line, nil
}
