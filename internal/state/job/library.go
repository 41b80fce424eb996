package job

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ollim/ollim/internal/platform/cron"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/platform/yamldoc"
)

// maxFile is the largest job file that is read, in bytes. A prompt is text that somebody wrote.
const maxFile = 1 << 20

// Library is the job files of one data directory.
type Library struct {
	Home paths.Dir
	Zone *time.Location // the configured one, in which times without an offset are read

	// Approved reports whether the owner approved a job as it is; nil: none is approved. It decides who keeps an id that is used twice.
	Approved func(Job) bool
}

// Set is the jobs as they were read at one moment.
type Set struct {
	Jobs   []Job          // good ones, by path
	Faults yamldoc.Faults // what is wrong with the others, by path

	from  Library
	twins []twin
}

func (l Library) folder(kind Kind) string {
	switch kind {
	case Reminder:
		return l.Home.Reminders()
	case Webhook:
		return l.Home.Webhooks()
	}
	return l.Home.Routines()
}

// Load reads every job file, also the reminders whose run has begun. A bad file is among the faults and affects no other; only
// a directory that cannot be listed is an error.
func (l Library) Load() (Set, error) { return l.load(nil) }

// load is Load, or with an index Outline.
func (l Library) load(x *index) (Set, error) {
	s := Set{from: l}
	err := errors.Join(
		s.load(x, Reminder, l.folder(Reminder)), s.load(x, Routine, l.folder(Routine)), s.load(x, Webhook, l.folder(Webhook)),
		s.load(x, Reminder, l.Home.Firing()))
	if x != nil {
		x.save()
	}
	if shared := s.shared(); len(shared) > 0 {
		if x != nil {
			s.readShared(shared)
		}
		s.refuseTwins()
	}
	slices.SortStableFunc(s.Faults, func(a, b *yamldoc.Fault) int { return cmp.Compare(a.File, b.File) })
	return s, err
}

// Late reads the reminders that were reported as overdue and not run.
func (l Library) Late() (Set, error) {
	s := Set{from: l}
	return s, s.load(nil, Reminder, l.Home.Late())
}

func (s *Set) load(x *index, kind Kind, folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		return filepath.Ext(e.Name()) != ".md" || strings.HasPrefix(e.Name(), ".")
	})
	if len(entries) <= few {
		x = nil
	}
	s.Jobs = slices.Grow(s.Jobs, len(entries))
	for i, r := range s.from.readAll(x, kind, folder, entries) {
		var faults yamldoc.Faults
		switch {
		case !errors.As(r.err, &faults):
			s.Jobs = append(s.Jobs, r.job)
			x.note(r)
		case !gone(filepath.Join(folder, entries[i].Name())):
			s.Faults = append(s.Faults, faults...)
		}
	}
	return nil
}

// readAll reads files in their order, on all processors where there are many.
func (l Library) readAll(x *index, kind Kind, folder string, entries []fs.DirEntry) []reading {
	const share = 16 // of one processor; fewer are not worth starting anything for
	results := make([]reading, len(entries))
	if len(entries) == 0 {
		return results // the table of fields takes longer than an empty folder
	}
	x.load()
	workers := min(runtime.GOMAXPROCS(0), 1+len(entries)/share)
	read := func(first int) {
		r := reader{
			Library: l, kind: kind, folder: folder, below: l.relative(folder), table: fields(kind), index: x, schedules: map[string]cron.Schedule{},
		}
		for i := first; i < len(entries); i += workers {
			results[i] = r.file(entries[i])
		}
	}
	var others sync.WaitGroup
	for w := 1; w < workers; w++ {
		others.Go(func() { read(w) })
	}
	read(0)
	others.Wait()
	return results
}

// gone says that a file has been moved or deleted since its directory was listed, as reminders are at any time.
func gone(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// Only is the set with the jobs of one kind; what is wrong with other files is omitted as well.
func (s Set) Only(kind Kind) Set {
	s.Jobs = slices.DeleteFunc(slices.Clone(s.Jobs), func(j Job) bool { return j.Kind != kind })
	s.Faults = slices.DeleteFunc(slices.Clone(s.Faults), func(f *yamldoc.Fault) bool { return KindOf(f.File) != kind })
	return s
}

// KindOf is the kind of the job in a file of the data directory.
func KindOf(path string) Kind {
	switch filepath.Base(filepath.Dir(path)) {
	case "reminders", "firing":
		return Reminder
	case "webhooks":
		return Webhook
	}
	return Routine
}

// read parses one file; the error is always a yamldoc.Faults.
func (l Library) read(kind Kind, path string, table []field) (Job, error) {
	name := l.relative(path)
	data, err := store.ReadText(path, maxFile, false)
	if err != nil {
		return Job{}, yamldoc.Faults{{File: name, Reason: "cannot be read: " + store.Cause(err)}}
	}
	j, err := parse(kind, name, data, table)
	j.Path = path
	if l.Zone != nil {
		j = j.In(l.Zone)
	}
	return j, err
}

func (l Library) relative(path string) string {
	if rel, err := filepath.Rel(string(l.Home), path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// ByID is the job with an id.
func (s Set) ByID(id string) (Job, bool) {
	if i := slices.IndexFunc(s.Jobs, func(j Job) bool { return j.ID == id }); i >= 0 {
		return s.Jobs[i], true
	}
	return Job{}, false
}

// Find finds the one job that name means: its id, its file's name with or without .md, the slug of its description, or a
// path to its file. Errors: *plaintext.Unknown, *plaintext.Ambiguous, or the yamldoc.Faults of the file that was meant.
func (s Set) Find(name string) (Job, error) {
	if faults := s.faultsOf(name); len(faults) > 0 {
		return Job{}, faults
	}
	found := s.all(func(j Job) bool { return s.means(j, name) })
	if len(found) == 0 && name != "" { // a description comes last: it must not make somebody's id or file name ambiguous
		found = s.all(func(j Job) bool { return Slug(j.Description) == name })
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return Job{}, &plaintext.Unknown{What: "job", Name: name, Near: plaintext.Similar(name, s.names()), Bad: s.badFiles()}
	}
	var paths []string
	for _, j := range found {
		paths = append(paths, s.from.relative(j.Path))
	}
	return Job{}, &plaintext.Ambiguous{Name: name, Any: strings.Join(paths, ", ")}
}

func (s Set) all(fits func(Job) bool) (found []Job) {
	for _, j := range s.Jobs {
		if fits(j) {
			found = append(found, j)
		}
	}
	return found
}

func (s Set) means(j Job, name string) bool {
	return j.ID == name || j.Name() == name || j.Name()+".md" == name ||
		strings.ContainsRune(name, filepath.Separator) && baseName(name) == baseName(j.Path) && samePath(s.from.Home, name, j.Path)
}

// samePath compares a path somebody typed, relative to where they are or to the data directory, with a job's.
func samePath(dir paths.Dir, typed, path string) bool {
	want, err := os.Stat(path)
	if err != nil {
		return false
	}
	for _, candidate := range []string{typed, dir.Path(typed)} {
		if got, err := os.Stat(candidate); err == nil && os.SameFile(got, want) {
			return true
		}
	}
	return false
}

// faultsOf are those of the file that name means by its name or path, or of the files whose shared id it is. A file that would take an
// id from the job that keeps it does not take it as its name either.
func (s Set) faultsOf(name string) (faults yamldoc.Faults) {
	for _, f := range s.Faults {
		isPath := strings.ContainsRune(name, filepath.Separator)
		if slices.ContainsFunc(s.twins, func(t twin) bool { return t.fault == f && t.taken && strings.EqualFold(t.id, name) }) {
			continue
		}
		if baseName(f.File) == baseName(name) && (!isPath || samePath(s.from.Home, name, s.from.Home.Path(f.File))) {
			faults = append(faults, f)
		}
	}
	if len(faults) > 0 {
		return faults
	}
	for _, t := range s.twins {
		if t.id == name && !t.taken {
			faults = append(faults, t.fault)
		}
	}
	return faults
}

func (s Set) names() (names []string) {
	for _, j := range s.Jobs {
		names = append(names, j.Name())
		if j.ID != j.Name() {
			names = append(names, j.ID)
		}
	}
	return names
}

func (s Set) badFiles() int {
	files := map[string]bool{}
	for _, f := range s.Faults {
		files[f.File] = true
	}
	return len(files)
}

func baseName(path string) string { return strings.TrimSuffix(filepath.Base(path), ".md") }

// NewID is 8 random lower-case hex digits from random.
func NewID(random io.Reader) (string, error) {
	b := make([]byte, 4)
	if _, err := io.ReadFull(random, b); err != nil {
		return "", err
	}
	return hex.EncodeToString(b), nil
}

// Create writes j as a new file and returns it with its path. name is the file's name without .md, without a dot in front,
// and must be free (fs.ErrExist); "" makes one from the description, the body or the id, numbered if it is taken, also by a job
// of another kind: a new reminder must not make the name of a routine, which stands in a crontab, ambiguous. Without an id the job has
// the given name as its id, and the file has none.
func (l Library) Create(j Job, name string) (Job, error) {
	data, err := Format(j)
	if err != nil {
		return j, err
	}
	if name != "" {
		if name != filepath.Base(name) || name[0] == '.' {
			return j, fmt.Errorf("%q cannot name a job file", name)
		}
		j.ID, j.Path = cmp.Or(j.ID, name), filepath.Join(l.folder(j.Kind), name+".md")
		return j, store.Create(j.Path, data)
	}
	stem := cmp.Or(fileName(j.Description), fileName(j.Body), j.ID)
	for n := 1; ; n++ {
		name := stem
		if n > 1 {
			name += "-" + strconv.Itoa(n)
		}
		if l.taken(name) {
			continue
		}
		j.Path = filepath.Join(l.folder(j.Kind), name+".md")
		if err := store.Create(j.Path, data); !errors.Is(err, fs.ErrExist) {
			return j, err
		}
	}
}

func (l Library) taken(name string) bool {
	return slices.ContainsFunc([]Kind{Routine, Reminder, Webhook}, func(kind Kind) bool {
		_, err := os.Lstat(filepath.Join(l.folder(kind), name+".md"))
		return err == nil
	})
}
