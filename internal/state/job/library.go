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

// maxFile is the size limit of a job file, in bytes. A prompt is far shorter.
const maxFile = 1 << 20

// Library is the job files of one data directory.
type Library struct {
	Home paths.Dir
	Zone *time.Location // configured zone, in which times without an offset are read

	// Approved reports whether the owner approved a job in its present form; nil: none is approved. Of two jobs with one id, the approved
	// one keeps it.
	Approved func(Job) bool
}

// Set is the jobs as they were read at one moment.
type Set struct {
	Jobs   []Job          // valid jobs, sorted by path
	Faults yamldoc.Faults // faults of the other files, sorted by path

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

// Load reads every job file, including those of reminders whose run has begun. An invalid file is added to the faults and does not affect
// others. Load fails only if a directory cannot be listed.
func (l Library) Load() (Set, error) { return l.load(nil) }

// load is Load. With an index it is Outline.
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

// Late reads the reminders that were reported as overdue and were not run.
func (l Library) Late() (Set, error) {
	s := Set{from: l}
	return s, s.load(nil, Reminder, l.Home.Late())
}

func (s *Set) load(x *index, kind Kind, folder string) error {
	entries, err := store.List(folder)
	if err != nil {
		return err
	}
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		return filepath.Ext(e.Name()) != ".md" || strings.HasPrefix(e.Name(), ".")
	})
	if len(entries) <= few {
		x = nil
	}
	valid := len(s.Jobs)
	s.Jobs = slices.Grow(s.Jobs, len(entries))[:valid+len(entries)] // a job is large: each is written in its place
	jobs := s.Jobs[valid:]
	for i, r := range s.from.readAll(x, kind, folder, entries, jobs) {
		var faults yamldoc.Faults
		switch {
		case !errors.As(r.err, &faults):
			if &jobs[i] != &s.Jobs[valid] {
				s.Jobs[valid] = jobs[i]
			}
			valid++
			x.note(r)
		case !gone(filepath.Join(folder, entries[i].Name())):
			s.Faults = append(s.Faults, faults...)
		}
	}
	clear(s.Jobs[valid:])
	s.Jobs = s.Jobs[:valid]
	return nil
}

// readAll reads files into jobs and keeps their order. It uses all processors if there are many files.
func (l Library) readAll(x *index, kind Kind, folder string, entries []fs.DirEntry, jobs []Job) []reading {
	const share = 16 // files for each goroutine; starting one for fewer takes longer than reading them
	results := make([]reading, len(entries))
	if len(entries) == 0 {
		return results // return before the table of fields is made, which takes longer than listing an empty directory
	}
	x.load()
	var open store.Folder
	if x != nil {
		var err error
		if open, err = store.OpenFolder(folder); err != nil {
			x = nil
		}
		defer open.Close()
	}
	workers := min(runtime.GOMAXPROCS(0), 1+len(entries)/share)
	read := func(first int) {
		r := reader{
			Library: l, kind: kind, folder: folder, below: l.Home.Relative(folder), table: fields(kind), index: x, open: open,
			schedules: map[string]cron.Schedule{},
		}
		for i := first; i < len(entries); i += workers {
			results[i] = r.file(&jobs[i], entries[i])
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

// gone reports whether a file was moved or deleted after its directory was listed, as happens to reminders at any time.
func gone(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// Only returns the jobs of one kind and the faults of their files.
func (s Set) Only(kind Kind) Set {
	s.Jobs = slices.DeleteFunc(slices.Clone(s.Jobs), func(j Job) bool { return j.Kind != kind })
	s.Faults = slices.DeleteFunc(slices.Clone(s.Faults), func(f *yamldoc.Fault) bool { return KindOf(f.File) != kind })
	return s
}

// KindOf returns the kind of the job that a file of the data directory holds.
func KindOf(path string) Kind {
	switch filepath.Base(filepath.Dir(path)) {
	case "reminders", "firing":
		return Reminder
	case "webhooks":
		return Webhook
	}
	return Routine
}

// read parses one file. The error is always a yamldoc.Faults.
func (l Library) read(kind Kind, path string, table []field) (Job, error) {
	name := l.Home.Relative(path)
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

// ByID returns the job with an id.
func (s Set) ByID(id string) (Job, bool) {
	if i := slices.IndexFunc(s.Jobs, func(j Job) bool { return j.ID == id }); i >= 0 {
		return s.Jobs[i], true
	}
	return Job{}, false
}

// Find returns the one job that name means: its id, the name of its file with or without .md, the slug of its description, or a path to
// its file. The error is a *plaintext.Unknown, a *plaintext.Ambiguous, or the yamldoc.Faults of the file that name means.
func (s Set) Find(name string) (Job, error) {
	if faults := s.faultsOf(name); len(faults) > 0 {
		return Job{}, faults
	}
	found := s.all(func(j Job) bool { return s.means(j, name) })
	if len(found) == 0 && name != "" { // descriptions are compared last, so that they cannot make an id or a file name ambiguous
		found = s.all(func(j Job) bool { return Slug(j.Description) == name })
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return Job{}, &plaintext.Unknown{What: "job", Name: name, Near: plaintext.Similar(name, s.names()), Bad: s.BadFiles()}
	}
	var paths []string
	for _, j := range found {
		paths = append(paths, s.from.Home.Relative(j.Path))
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

// samePath reports whether a path that a person typed, relative to the working directory or to the data directory, is that of a job.
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

// faultsOf returns the faults of the file that name means by its name or path, and of the files that share the id name. If a file was
// refused because another job keeps the id, the name of the file does not mean it either.
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

// BadFiles counts the files that cannot be read.
func (s Set) BadFiles() int {
	files := map[string]bool{}
	for _, f := range s.Faults {
		files[f.File] = true
	}
	return len(files)
}

func baseName(path string) string { return strings.TrimSuffix(filepath.Base(path), ".md") }

// NewID returns 8 random lower-case hex digits.
func NewID(random io.Reader) (string, error) {
	b := make([]byte, 4)
	if _, err := io.ReadFull(random, b); err != nil {
		return "", err
	}
	return hex.EncodeToString(b), nil
}

// Create writes j as a new file and returns it with its path. name is the name of the file without .md. It must not begin with a dot, and
// must be free (else fs.ErrExist). If name is "", it is made from the description, the body or the id, with a number if a job of any kind
// has that name: the name of a routine in a crontab must stay unambiguous. A job without an id has the name of its file as its id, and
// the file states none.
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
		if l.taken(name) || Meaning(name) != "" {
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
