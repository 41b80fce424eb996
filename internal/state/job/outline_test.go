package job

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/testkit"
)

// many is a data directory with more files than are read each time. Some are invalid, some share an id.
type many struct {
	t      *testing.T
	random *rand.Rand
	Library
}

func newMany(t *testing.T, seed uint64) *many {
	t.Helper()
	m := &many{t, rand.New(rand.NewPCG(seed, 1)), Library{Home: paths.Dir(testkit.MemoryDir(t)), Zone: time.UTC}}
	for _, dir := range []string{m.Home.Routines(), m.Home.Reminders()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 * few {
		m.write(i)
	}
	return m
}

// path is a routine's, or every third time a reminder's.
func (m *many) path(i int) string {
	if i%3 == 0 {
		return filepath.Join(m.Home.Reminders(), fmt.Sprintf("r%d.md", i))
	}
	return filepath.Join(m.Home.Routines(), fmt.Sprintf("r%d.md", i))
}

// write writes a file of some age. One in twelve lacks its time, and one in twelve has the id of another.
func (m *many) write(i int) {
	m.t.Helper()
	head := fmt.Sprintf("description: %q\n", []string{"", "tab\there", "two\nlines", `"quoted" \ 日本`, "plain"}[m.random.IntN(5)])
	switch when := m.random.IntN(12); {
	case when == 0:
	case i%3 == 0:
		head += fmt.Sprintf("run-at: 2026-12-%02dT09:00\nmax-chain: %d\n", 1+m.random.IntN(28), m.random.IntN(3))
	default:
		head += fmt.Sprintf("cron: \"%d * * * *\"\ntimezone: Europe/Paris\nbackground: true\nallow-ping: %v\n", m.random.IntN(60), m.random.IntN(2) == 0)
	}
	if m.random.IntN(12) == 0 {
		head += fmt.Sprintf("id: r%d\n", m.random.IntN(3*few))
	}
	if m.random.IntN(4) == 0 {
		head += "enabled: false\n"
	}
	body := strings.Repeat("Say what has changed.\n", m.random.IntN(30)+1)
	if err := os.WriteFile(m.path(i), []byte("---\n"+head+"---\n"+body), 0o600); err != nil {
		m.t.Fatal(err)
	}
	at := time.Now().Add(-time.Hour - time.Duration(m.random.IntN(3600))*time.Second)
	if err := os.Chtimes(m.path(i), at, at); err != nil {
		m.t.Fatal(err)
	}
}

// short is what an outline has of a job, and what it must have of one that shares its id.
func short(j Job) string {
	body, _ := plaintext.First(plaintext.Line(j.Body), bodyStart)
	zone := j.Zone(time.UTC).String()
	return fmt.Sprintln(j.Kind, j.Path, j.ID, j.Cron, j.Schedule, zone, j.RunAt.UTC(), j.Background, j.Plain, j.Enabled, j.AllowPing, j.MaxChain,
		j.ChainDepth, strings.TrimSpace(j.Description), "|", body)
}

func (m *many) same(when string) {
	m.t.Helper()
	want, err := m.Load()
	got, outlineErr := m.Outline()
	if err != nil || outlineErr != nil {
		m.t.Fatal(err, outlineErr)
	}
	compare := func(what string, got, want []string) {
		if !slices.Equal(got, want) {
			m.t.Fatalf("%s: %s:\n%s\nwant:\n%s", when, what, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	list := func(s Set) (jobs, faults []string) {
		for _, j := range s.Jobs {
			jobs = append(jobs, short(j))
		}
		for _, f := range s.Faults {
			faults = append(faults, f.Error())
		}
		return jobs, faults
	}
	gotJobs, gotFaults := list(got)
	wantJobs, wantFaults := list(want)
	compare("jobs", gotJobs, wantJobs)
	compare("faults", gotFaults, wantFaults)
}

// TestOutlineIsThatOfTheFiles changes files at random, also while several processes take an outline.
func TestOutlineIsThatOfTheFiles(t *testing.T) {
	t.Parallel()
	for seed := range uint64(testkit.Full(2, 1)) {
		m := newMany(t, seed)
		m.same("nothing is known")
		m.same("everything is known")
		for round := range 6 {
			for range m.random.IntN(few) {
				i := m.random.IntN(4 * few)
				if m.random.IntN(4) == 0 {
					_ = os.Remove(m.path(i))
				} else {
					m.write(i)
				}
			}
			if round%3 == 0 {
				var others sync.WaitGroup
				for range 4 {
					others.Go(func() { _, _ = m.Outline() })
				}
				others.Wait()
			}
			m.same(fmt.Sprintf("seed %d, round %d", seed, round))
		}
		m.Zone = time.FixedZone("Elsewhere", 3600)
		m.same("in another zone")
		index, err := os.ReadFile(m.Home.JobIndex())
		if err != nil || len(index) == 0 {
			t.Fatal("there is no index:", err)
		}
		for range 6 {
			if err := os.WriteFile(m.Home.JobIndex(), index[:m.random.IntN(len(index))], 0o600); err != nil {
				t.Fatal(err)
			}
			m.same("torn index")
		}
	}
}

// TestOutlineReadsNoFileThatItKnows changes a file behind the back of its time and size. Only the run of its job sees the change.
func TestOutlineReadsNoFileThatItKnows(t *testing.T) {
	t.Parallel()
	dir := paths.Dir(t.TempDir())
	l := Library{Home: dir, Zone: time.UTC}
	if err := os.MkdirAll(dir.Routines(), 0o700); err != nil {
		t.Fatal(err)
	}
	const text = "---\ncron: \"7 * * * *\"\ndescription: Disk\n---\nLook.\n"
	for i := range few + 1 {
		if err := os.WriteFile(filepath.Join(dir.Routines(), fmt.Sprintf("r%d.md", i)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sameAge(t, dir)
	change := func(old, with string) {
		t.Helper()
		path := filepath.Join(dir.Routines(), "r5.md")
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
		if err == nil {
			_, err = f.WriteString(strings.Replace(text, old, with, 1))
		}
		if err != nil || f.Close() != nil {
			t.Fatal(err)
		}
		age(t, path, 0)
	}
	outline := func() (Set, Job) {
		t.Helper()
		s, err := l.Outline()
		j, known := s.ByID("r5")
		if err != nil || !known || j.Schedule.String() == "" {
			t.Fatal(err, known)
		}
		return s, j
	}
	outline()
	change("Disk", "Tape")
	s, j := outline()
	if j.Description != "Disk" {
		t.Errorf("the outline has %q: the file was read", j.Description)
	}
	if whole, err := s.Open("r5", true); err != nil || whole.Description != "Tape" || whole.Body != "Look." {
		t.Errorf("%+v, %v", whole, err)
	}
	change("cron", "corn")
	s, _ = outline()
	if _, err := s.Open("r5", true); err == nil || !strings.Contains(err.Error(), "cron: is missing") {
		t.Errorf("the file is invalid: %v", err)
	}
	change("cron", "id: x\ncron")
	if j, err := s.Open("r5", true); !errors.As(err, new(*plaintext.Unknown)) {
		t.Errorf("the file of r5 has another id: %+v, %v", j, err)
	}
	moved, path := filepath.Join(string(dir), "r5.md"), filepath.Join(dir.Routines(), "r5.md")
	if err := os.Rename(path, moved); err != nil {
		t.Fatal(err)
	}
	if j, err := s.Open("r5", true); !errors.As(err, new(*plaintext.Unknown)) {
		t.Errorf("the file of r5 was moved: %+v, %v", j, err)
	}
	if err := os.Rename(moved, path); err != nil {
		t.Fatal(err)
	}
	change("cron", "corn")
	now := time.Now()
	if err := os.Chtimes(filepath.Join(dir.Routines(), "r5.md"), now, now); err != nil {
		t.Fatal(err)
	}
	if s, err := l.Outline(); err != nil || len(s.Faults) == 0 {
		t.Errorf("a file with another time was not read: %v, %v", s.Faults, err)
	}
}
