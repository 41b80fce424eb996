package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/store"
)

const (
	// tailSize is how many bytes of facts after a checkpoint each process reads before a new checkpoint is written, or the size of the
	// checkpoint if that is larger: so writing a large state costs no more than writing its facts.
	tailSize = 64 << 10
	// most is how many bytes of facts a process keeps unfolded.
	most = 4 << 20
)

// position is a place between two changes.
type position struct {
	Day    string `json:"day"` // of the file; "" before the first fact
	Offset int64  `json:"offset"`
	Hash   string `json:"hash"` // of the line before it
}

// newest returns a position after all others.
func newest() position { return position{Day: "9"} }

// view is what a process has read: the state at a mark, as text or folded, and the facts since.
type view struct {
	l      *Ledger
	base   position // the end of the days that Trim has removed
	mark   position
	parts  map[string]json.RawMessage // of the mark, by book
	size   int64                      // of the checkpoint, in bytes
	states map[string]*state          // by book
	tail   []Line
	weight int      // of the tail, in bytes
	at     position // after the tail
	torn   bool     // an incomplete change follows
}

// state is the state of a book after the mark and so many lines of the tail.
type state struct {
	value   any
	applied int
}

func (v *view) add(l Line) {
	v.tail = append(v.tail, l)
	v.weight += len(l.JSON)
}

// state returns the state of a book at the end of the view.
func (v *view) state(b Reducer) (any, error) {
	s := v.states[b.key()]
	if s == nil {
		value, err := v.atMark(b)
		if err != nil {
			return nil, err
		}
		s = &state{value: value}
		v.states[b.key()] = s
	}
	for ; s.applied < len(v.tail); s.applied++ {
		b.apply(s.value, v.tail[s.applied])
	}
	return s.value, nil
}

// atMark returns the state of a book at the mark: the stored state, or one computed again from the first fact.
func (v *view) atMark(b Reducer) (any, error) {
	if part, ok := v.parts[b.key()]; ok {
		if value, err := b.decode(part); err == nil {
			return value, nil
		}
	}
	if v.mark.Day == "" {
		return b.fresh(), nil
	}
	base, err := v.l.loadBase()
	if err != nil {
		return nil, err
	}
	value := b.fresh()
	if part, ok := base.Books[b.key()]; ok {
		if value, err = b.decode(part); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", v.l.basePath(), b.key(), err)
		}
	}
	again := &view{l: v.l, base: base.At, at: base.At}
	return value, again.readOn(v.mark, func(l Line) { b.apply(value, l) })
}

// fold makes the end of the view its mark, with the states of all books of the ledger.
func (v *view) fold() error {
	for _, b := range v.l.books {
		if _, err := v.state(b); err != nil {
			return err
		}
	}
	known := map[string]*state{}
	for _, b := range v.l.books {
		s := v.states[b.key()]
		s.applied = 0
		known[b.key()] = s
	}
	v.mark, v.parts, v.states, v.tail, v.weight = v.at, nil, known, nil, 0
	return nil
}

// refresh updates the view to the present ledger.
func (l *Ledger) refresh() error {
	v, err := l.view, errOther
	if v != nil {
		err = v.readOn(newest(), v.add)
	}
	if errors.Is(err, errOther) { // restored, or a write that failed was undone
		v, err = l.fresh()
	}
	if err == nil && v.weight > most {
		err = v.fold()
	}
	if l.view = v; err != nil {
		l.view = nil
	}
	return err
}

// fresh returns a view that is made of what is on disk: of the checkpoint if it belongs to the files, else of the base.
func (l *Ledger) fresh() (*view, error) {
	if c, _, _ := store.PeekJSON[checkpoint](l.checkpointPath()); c.At.Offset > 0 { // zero if it cannot be read
		v := l.from(c)
		if err := v.readOn(newest(), v.add); !errors.Is(err, errOther) {
			return v, err
		}
	}
	v, err := l.atBase()
	if err != nil {
		return nil, err
	}
	return v, v.readOn(newest(), v.add)
}

// errOther is the error of files that do not have the line at which a view ends.
var errOther = errors.New("the files of the ledger are of another history")

// holds reports whether a line with the hash of a position ends there.
func (l *Ledger) holds(at position) (bool, error) {
	if at.Offset == 0 {
		return true, nil
	}
	f, err := store.Open(l.path(at.Day), os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }()
	return at.in(f)
}

// in reports whether a line with the hash of the position ends there in the open file of its day.
func (at position) in(f io.ReaderAt) (bool, error) {
	want := at.Hash + "\"}\n"
	begin := at.Offset - int64(len(want))
	if begin < 0 {
		return false, nil
	}
	text := make([]byte, len(want))
	if _, err := f.ReadAt(text, begin); err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	return string(text) == want, nil
}

// readOn reads the whole changes from v.at to a position, and passes their lines.
func (v *view) readOn(until position, pass func(Line)) error {
	days, err := v.l.days()
	if err != nil {
		return err
	}
	if v.at.Offset > 0 && v.at != v.base && !slices.Contains(days, v.at.Day) {
		return errOther
	}
	for _, day := range days {
		if day < v.at.Day || day > until.Day {
			continue
		}
		if day > v.at.Day {
			v.at.Day, v.at.Offset = day, 0
		}
		end := int64(-1)
		if day == until.Day {
			end = until.Offset
		}
		if err := v.readDay(end, pass); err != nil {
			return err
		}
	}
	return nil
}

// chunkSize is how much of a file is read at once, in bytes, unless a line is longer.
const chunkSize = 1 << 20

// readDay reads the file of v.at from there to an offset, -1 for its end.
func (v *view) readDay(end int64, pass func(Line)) error {
	f, err := store.Open(v.l.path(v.at.Day), os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if v.at.Offset > 0 && v.at != v.base {
		if here, err := v.at.in(f); err != nil {
			return err
		} else if !here {
			return errOther
		}
	}
	if end < 0 {
		if end, err = f.Seek(0, io.SeekEnd); err != nil {
			return err
		}
	}
	var g group
	for from, size := v.at.Offset, int64(chunkSize); from < end; {
		text := make([]byte, min(size, end-from))
		if n, err := f.ReadAt(text, from); err != nil && !errors.Is(err, io.EOF) {
			return err
		} else if text = text[:n]; n == 0 {
			break // the file has become shorter
		}
		last := bytes.LastIndexByte(text, '\n')
		if last < 0 {
			if from+int64(len(text)) >= end || size > store.MaxLine {
				break
			}
			size *= 2
			continue
		}
		v.take(&g, text[:last+1], from, pass)
		from += int64(last + 1)
	}
	v.torn = v.at.Offset < end
	return nil
}

// group holds the lines of a change that is being read.
type group struct{ lines []Line }

// take passes the lines of text, which begins at an offset of the file, with the last of their change.
func (v *view) take(g *group, text []byte, from int64, pass func(Line)) {
	for line := range bytes.Lines(text) {
		from += int64(len(line))
		l, err := parse(bytes.TrimSuffix(line, []byte{'\n'}))
		if err != nil {
			if len(g.lines) == 0 {
				v.at.Offset = from
			}
			continue
		}
		if g.lines = append(g.lines, l); l.more > 0 {
			continue
		}
		for _, l := range g.lines {
			pass(l)
		}
		g.lines, v.at.Offset, v.at.Hash = nil, from, l.hash
	}
}

const ext = ".jsonl"

func (l *Ledger) folder() string { return l.home.Ledger() }

func (l *Ledger) path(day string) string { return filepath.Join(l.folder(), day+ext) }

// days lists the days of the files, oldest first, as List does.
func (l *Ledger) days() ([]string, error) {
	files, err := store.List(l.folder())
	if err != nil {
		return nil, err
	}
	var days []string
	for _, f := range files {
		day, ok := strings.CutSuffix(f.Name(), ext)
		if _, err := time.Parse(time.DateOnly, day); ok && err == nil {
			days = append(days, day)
		}
	}
	return days, nil
}
