package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/transcript"
)

func newSessionSearch(d *deps) *cobra.Command {
	var in []string
	var number int
	cmd := command(agentNever(refused), "search WORDS...", "Search transcripts and runs, newest first: time, session or run, role, excerpt",
		func(cmd *cobra.Command, args []string) error {
			return runSessionSearch(cmd.Context(), d, args, in, number)
		})
	f := cmd.Flags()
	f.StringArrayVar(&in, "in", nil, "search this file, or the .jsonl files below this directory, instead (repeatable)")
	f.IntVarP(&number, "number", "n", 20, "maximum number of results; 0 means all")
	return withJSON(d, cmd, jsonLines)
}

type hit struct {
	At      time.Time `json:"at,omitzero"`
	Session string    `json:"session,omitempty"` // id; or
	Run     string    `json:"run,omitempty"`
	Who     string    `json:"who"`               // user or assistant; of a run, the type of an event
	Message int       `json:"message,omitempty"` // its number in the transcript, from 1
	Path    string    `json:"path,omitempty"`
	Excerpt string    `json:"excerpt"`

	index func() int // of the message, see transcript.Search; nil for a run
}

func (h hit) cells() []any {
	at := past(h.At)
	at.text = cmp.Or(at.text, "-")
	return []any{at, h.Session + h.Run, h.Who, prose(h.Excerpt)}
}

func runSessionSearch(ctx context.Context, d *deps, words, in []string, number int) error {
	if number < 0 {
		return usage("-n %d: want 0 or more", number)
	}
	for _, w := range words {
		if strings.TrimSpace(w) == "" {
			return usage("empty word")
		}
	}
	h, err := d.AnyHome()
	if err != nil {
		return err
	}
	found := latest{most: number}
	if found.alone, err = h.Sessions.Alone(); err != nil {
		return err
	}
	if len(in) > 0 {
		files, err := d.filesIn(h, in)
		if err == nil {
			err = searchSessions(ctx, h, files, words, &found)
		}
		if err != nil {
			return err
		}
	} else if err := searchAll(ctx, h, words, &found); err != nil {
		return err
	}
	hits := found.sorted()
	if len(hits) == 0 {
		return &reported{statusFailed}
	}
	for i, h := range hits {
		if d.json && h.index != nil {
			hits[i].Message = h.index() + 1
		}
	}
	return records(d, "TIME SESSION WHO EXCERPT", hits, hit.cells)
}

func searchAll(ctx context.Context, h app.Home, words []string, found *latest) error {
	known := map[string]bool{}
	files, err := h.Transcripts().Files()
	if err != nil {
		return err
	}
	theirs, err := claudeFiles(h, known)
	if err != nil {
		return err
	}
	if err := searchSessions(ctx, h, append(files, theirs...), words, found); err != nil {
		return err
	}
	return searchRuns(ctx, h, words, known, found)
}

func searchSessions(ctx context.Context, h app.Home, files []transcript.File, words []string, found *latest) error {
	for m, err := range transcript.Search(ctx, files, words, prompt.Said(), h.Read) {
		if err != nil {
			return err
		}
		if found.done(m.Modified) {
			break
		}
		at := m.At
		if at.IsZero() {
			at = m.Transcript.Timestamp
		}
		found.add(hit{At: inZone(at, h), Session: m.Transcript.ID, Who: m.Role, Path: m.Transcript.Path, Excerpt: m.Excerpt, index: m.Index})
	}
	return nil
}

// claudeFiles returns the sessions of main, routines and runs that the claude command keeps, and notes them in known.
func claudeFiles(h app.Home, known map[string]bool) (files []transcript.File, err error) {
	ids, err := h.Conversations()
	if err != nil {
		return nil, err
	}
	archive := h.ClaudeArchive()
	for id := range ids {
		path, err := archive.Path(id)
		if err != nil {
			continue // another engine's, or gone
		}
		info, err := os.Stat(path)
		if err != nil {
			continue
		}
		if _, err := h.Transcripts().Find(id); err == nil {
			continue // searched already
		}
		known[id] = true
		files = append(files, transcript.File{Path: path, Modified: info.ModTime()})
	}
	return files, nil
}

// filesIn returns the session files at or below paths. It refuses other files, and warns of missing paths unless all are.
func (d *deps) filesIn(h app.Home, paths []string) (files []transcript.File, err error) {
	var missing []error
	for _, given := range paths {
		path, err := filepath.EvalSymlinks(given)
		if errors.Is(err, fs.ErrNotExist) {
			missing = append(missing, fmt.Errorf("%s: %s", given, store.Cause(err)))
			continue
		}
		if err != nil {
			return nil, &withStatus{err, statusNoJob}
		}
		info, err := os.Stat(path)
		if err == nil && !info.IsDir() {
			_, err = h.OpenFile(path)
		}
		if errors.Is(err, transcript.ErrForeign) {
			err = &withStatus{fmt.Errorf("%s: not a session file of ollim or Claude Code", path), statusData}
		}
		if err != nil {
			return nil, err
		}
		err = filepath.WalkDir(path, func(name string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() || name != path && filepath.Ext(name) != ".jsonl" {
				return err
			}
			info, err := e.Info()
			if err == nil {
				files = append(files, transcript.File{Path: name, Modified: info.ModTime()})
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	if len(missing) == len(paths) {
		return nil, &withStatus{errors.Join(missing...), statusNoJob}
	}
	for _, err := range missing {
		d.warn(err.Error())
	}
	return files, nil
}

// searchRuns omits what transcripts contain too, because a conversation continues from its transcript.
func searchRuns(ctx context.Context, h app.Home, words []string, known map[string]bool, found *latest) error {
	id, twice := "", false
	for f, err := range h.Runs.Search(ctx, words, prompt.Said()) {
		if err != nil {
			return err
		}
		if found.done(f.Changed) {
			break
		}
		if f.Run != id {
			id, twice = f.Run, inTranscript(h, f.Run, known)
		}
		if !twice || f.Type == runlog.ErrorEvent {
			found.add(hit{At: inZone(f.At, h), Run: f.Run, Who: string(f.Type), Excerpt: f.Excerpt})
		}
	}
	return nil
}

// inTranscript reports whether a transcript contains what was said in a run. known caches the answers by session.
func inTranscript(h app.Home, run string, known map[string]bool) bool {
	id := ""
	if r, err := h.Runs.Load(run); err == nil {
		id = r.SessionAfter
	}
	if id == "" { // the run is in progress, or was killed
		standing, err := h.Runs.Standing(run)
		if err != nil || standing.Session == "" {
			return false
		}
		id = standing.Session
	}
	if _, asked := known[id]; !asked {
		_, err := h.Transcripts().Find(id)
		known[id] = err == nil
	}
	return known[id]
}

type latest struct {
	most  int // 0: all
	hits  []hit
	least time.Time       // older hits were dropped
	alone map[string]bool // sessions of runs and of forks, which are removed when they are a week old
}

// done reports whether something that ended at an instant comes too late; zero is not known.
func (l *latest) done(at time.Time) bool { return at.Before(l.least) }

func (l *latest) add(h hit) {
	if h.At.Before(l.least) {
		return
	}
	l.hits = append(l.hits, h)
	if l.most > 0 && len(l.hits) >= 4*l.most {
		l.sorted()
	}
}

// sorted returns the hits, newest first. Of those that are copies of one message it keeps the one in a session that stays, such as main, if
// there is one.
func (l *latest) sorted() []hit {
	slices.SortStableFunc(l.hits, func(a, b hit) int {
		return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Excerpt, b.Excerpt), cmp.Compare(a.Who, b.Who), cmp.Compare(l.rank(a), l.rank(b)))
	})
	l.hits = slices.CompactFunc(l.hits, func(a, b hit) bool {
		return a.At.Equal(b.At) && a.Excerpt == b.Excerpt && a.Who == b.Who && a.Session != b.Session
	})
	if l.most > 0 && len(l.hits) >= l.most {
		l.hits = l.hits[:l.most]
		l.least = l.hits[l.most-1].At
	}
	return l.hits
}

// rank orders the copies of one message, the one to keep first.
func (l *latest) rank(h hit) int {
	if l.alone[h.Session] {
		return 1
	}
	return 0
}
