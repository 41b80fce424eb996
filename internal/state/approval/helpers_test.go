package approval

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/job"
)

// desk is a book with a clock that stands still, and its warnings.
type desk struct {
	Book
	t      reporter
	warned []string
}

// reporter is what *testing.T and *rapid.T have in common.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	return deskAt(t, t.TempDir())
}

func deskAt(t reporter, dir string) *desk {
	d := &desk{t: t}
	d.Book = Book{Home: paths.Dir(dir), Zone: time.FixedZone("", 3600), Disk: store.Disk{
		Now:  func() time.Time { return time.Date(2026, 2, 24, 13, 30, 0, 5, time.UTC) },
		Warn: func(m string) { d.warned = append(d.warned, m) },
	}}
	return d
}

func (d *desk) write(name, text string) {
	d.t.Helper()
	path := d.Home.Path(name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) read(path string) string {
	d.t.Helper()
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		d.t.Fatal(err)
	}
	return string(data)
}

func (d *desk) of(j job.Job) Subject {
	d.t.Helper()
	s, widened, err := d.Of(j)
	if err != nil || !widened {
		d.t.Errorf("Of: %v, widened %v", err, widened)
	}
	return s
}

func (d *desk) approve(s Subject) {
	d.t.Helper()
	if err := d.Approve(context.Background(), s, Owner); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) approved(s Subject, want bool) {
	d.t.Helper()
	if got, err := d.Approved(s); got != want || err != nil {
		d.t.Errorf("%s: approved %v, %v, want %v", s.Key, got, err, want)
	}
}

func (d *desk) difference(s Subject) []string {
	d.t.Helper()
	lines, err := d.Difference(s)
	if err != nil {
		d.t.Fatal(err)
	}
	return lines
}

// widened is a job with everything, for which furnish has the files.
func widened() job.Job {
	j := job.New(job.Routine)
	j.ID, j.Body, j.Path, j.Cron = "w1", "Watch.\nThen tell.", "routines/watch.md", "0 9 * * *"
	j.AllowedTools, j.Dirs, j.Skills = []string{"WebFetch", "Bash(curl *)"}, []string{"~/src", "rw:~/notes"}, []string{"maps", "news"}
	j.Gate, j.After, j.Subagent = "check", "clean", "scout"
	return j
}

func (d *desk) furnish() {
	for _, name := range []string{
		"gates/check", "gates/clean", "agents/scout.md", "skills/maps/SKILL.md", "skills/maps/lib/.hidden", "skills/news/SKILL.md",
	} {
		d.write(name, "text of "+name)
	}
}
