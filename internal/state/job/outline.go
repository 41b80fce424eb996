package job

import (
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/cron"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
)

// few is the number of files in a directory up to which reading all of them takes no longer than looking for the changed ones.
const few = 64

// settled is how much older than the index a file must be for its line to be used. A file that is changed twice within one tick of the
// file system's clock may have the same time and size after both changes.
const settled = 3 * time.Second

// Outline is Load without the fields that only a run of the job needs. Its jobs have an id, a description, a schedule, the first words of
// their body, and the fields Background, Plain, Enabled, AllowPing, MaxChain and ChainDepth. Open and Whole read the file of one job.
// Outline reads only files that changed since an earlier process read them; a cache holds the outlines of the others.
func (l Library) Outline() (Set, error) {
	return l.load(&index{from: l})
}

// Open finds a job in the set of an outline, as Find does, and reads its file. With byID, an id takes precedence over all other names.
// The error is also a *plaintext.Unknown if the file was moved, or got another id, since the outline.
func (s Set) Open(name string, byID bool) (Job, error) {
	j, known := s.ByID(name)
	if !known || !byID {
		var err error
		if j, err = s.Find(name); err != nil {
			return j, err
		}
	}
	whole, err := s.Whole(j)
	if err == nil && whole.ID != j.ID || err != nil && gone(j.Path) {
		return Job{}, &plaintext.Unknown{What: "job", Name: name}
	}
	return whole, err
}

// Whole returns a job with all its fields. It reads the file if the set has only the outline. The error is always a yamldoc.Faults.
func (s Set) Whole(j Job) (Job, error) {
	if j.page != nil {
		return j, nil
	}
	return s.from.read(j.Kind, j.Path, fields(j.Kind))
}

// index is the cache of outlines. Its file has a line for each job file, with the columns below; the first line names the format and the
// configured zone, in which times without an offset were read. The rules of an older program may have accepted a file of the index: a job
// is read again before it runs.
type index struct {
	from  Library
	lines map[string]string // by the path of the job file below the data directory; nil if the index was not read yet
	limit time.Time         // the lines of files that were changed later than this are not used
	found []string          // lines of the files that still exist
	added int               // how many of them the index lacked
}

func (x *index) head() string {
	zone := ""
	if x.from.Zone != nil {
		zone = x.from.Zone.String()
	}
	return "ollim jobs 1\t" + zone
}

// load reads the index once. A missing index, or one of another format, counts as empty.
func (x *index) load() {
	if x == nil || x.lines != nil {
		return
	}
	x.lines = map[string]string{}
	// take the time before reading: an index that replaces this one meanwhile has a later time
	info, err := os.Lstat(x.from.Home.JobIndex())
	if err != nil {
		return
	}
	data, err := store.Read(x.from.Home.JobIndex())
	head, rest, _ := strings.Cut(string(data), "\n")
	if err != nil || head != x.head() {
		return
	}
	x.limit, x.lines = info.ModTime().Add(-settled), make(map[string]string, strings.Count(rest, "\n"))
	for line := range strings.Lines(rest) {
		if path, _, ok := strings.Cut(line, "\t"); ok {
			x.lines[path] = strings.TrimSuffix(line, "\n")
		}
	}
}

// note adds the line of a valid file.
func (x *index) note(r reading) {
	if x == nil || r.line == "" {
		return
	}
	x.found = append(x.found, r.line)
	if r.added {
		x.added++
	}
}

// save writes the index again if many lines were added or are no longer needed. It ignores errors, because the index is a cache.
func (x *index) save() {
	gone := len(x.lines) - (len(x.found) - x.added)
	if x.added+gone <= few/4+len(x.found)/100 {
		return
	}
	_ = store.Write(x.from.Home.JobIndex(), []byte(x.head()+"\n"+strings.Join(x.found, "\n")+"\n"), store.Buffered)
}

// Columns of a line.
const (
	columnPath = iota // path below the data directory
	columnMark        // size, time and inode of the file, which change with its content
	columnID
	columnFlags // one letter for each field that is true
	columnCron
	columnZone
	columnRunAt
	columnMaxChain
	columnDepth
	columnDescription
	columnBody // first words of the body
	columnCount
)

// letters are those of the fields that switches returns.
const letters = "bpea"

// switches returns the boolean fields of an outline.
func (j *Job) switches() [len(letters)]*bool {
	return [...]*bool{&j.Background, &j.Plain, &j.Enabled, &j.AllowPing}
}

// line returns the line of a job in the index, from the path and the mark of its file.
func line(path, mark string, j Job) string {
	flags := ""
	for i, on := range j.switches() {
		if *on {
			flags += letters[i : i+1]
		}
	}
	body, _ := plaintext.First(plaintext.Line(j.Body), bodyStart)
	column := [columnCount]string{
		columnPath: path, columnMark: mark, columnID: j.ID, columnFlags: flags, columnCron: j.Cron, columnZone: j.Timezone,
		columnMaxChain: strconv.Itoa(j.MaxChain), columnDepth: strconv.Itoa(j.ChainDepth),
		columnDescription: strconv.Quote(j.Description), columnBody: strconv.Quote(body),
	}
	if !j.RunAt.IsZero() {
		column[columnRunAt] = j.RunAt.Format(time.RFC3339)
	}
	return strings.Join(column[:], "\t")
}

// bodyStart is the length of the part of a body that an outline has, in characters.
const bodyStart = 200

// reader reads the files of one folder in one goroutine. It parses equal schedules once.
type reader struct {
	Library

	kind      Kind
	folder    string
	below     string // path of the folder below the data directory
	table     []field
	index     *index       // nil: every file is read
	open      store.Folder // not open if index is nil
	schedules map[string]cron.Schedule
	mark      []byte // of the latest file
}

// reading is the result of reading a file, beside the job.
type reading struct {
	err   error
	line  string // line for the index; "" if there is none
	added bool   // the index lacked the line
}

// file sets a job from the file of an entry.
func (r *reader) file(j *Job, e fs.DirEntry) (got reading) {
	path := r.folder + "/" + e.Name()
	var mark store.Mark
	marked := false
	if r.index != nil && e.Type().IsRegular() { // take the mark before reading: a later change gives the file another mark
		mark, marked = r.open.Mark(e.Name())
	}
	if !marked {
		*j, got.err = r.read(r.kind, path, r.table)
		return got
	}
	name := path[len(r.folder)-len(r.below):]
	r.mark, got.line = mark.Append(r.mark[:0]), r.index.lines[name]
	if mark.Before(r.index.limit) && r.outline(j, path, got.line) {
		return got
	}
	if *j, got.err = r.read(r.kind, path, r.table); got.err == nil {
		got.line, got.added = line(name, string(r.mark), *j), true
	}
	return got
}

// outline sets a job from its line. It reports whether the line is valid and has the latest mark.
func (r *reader) outline(j *Job, path, line string) bool {
	var column [columnCount]string
	for i := range column {
		var more bool
		if column[i], line, more = strings.Cut(line, "\t"); more != (i < columnCount-1) {
			return false
		}
	}
	if column[columnMark] != string(r.mark) {
		return false
	}
	*j = Job{Kind: r.kind, Path: path, ID: column[columnID], Cron: column[columnCron], Timezone: column[columnZone]}
	for i, on := range j.switches() {
		*on = strings.IndexByte(column[columnFlags], letters[i]) >= 0
	}
	var err [6]error
	j.MaxChain, err[0] = strconv.Atoi(column[columnMaxChain])
	j.ChainDepth, err[1] = strconv.Atoi(column[columnDepth])
	j.Description, err[2] = strconv.Unquote(column[columnDescription])
	j.Body, err[3] = strconv.Unquote(column[columnBody])
	if column[columnRunAt] != "" {
		j.RunAt, err[4] = time.Parse(time.RFC3339, column[columnRunAt])
	}
	if j.Cron != "" {
		j.Schedule, err[5] = r.schedule(j.Cron)
	}
	return err == [6]error{}
}

func (r *reader) schedule(expr string) (schedule cron.Schedule, err error) {
	schedule, known := r.schedules[expr]
	if !known {
		schedule, err = cron.Parse(expr)
		r.schedules[expr] = schedule
	}
	return schedule, err
}
