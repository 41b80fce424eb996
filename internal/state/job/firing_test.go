package job

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
)

// remind is a reminder file.
func remind(id string, more ...string) string {
	return page(append([]string{"id: " + id, "run-at: 2026-03-07T09:00"}, more...)...)
}

// fixtureOf makes a data directory of files by their paths in it.
func fixtureOf(t *testing.T, files map[string]string) paths.Dir {
	t.Helper()
	dir := paths.Dir(t.TempDir())
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(dir.Path(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir.Path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sameAge(t, dir)
	return dir
}

// found is the one job of an id.
func found(t *testing.T, dir paths.Dir, id string) Job {
	t.Helper()
	j, err := load(t, dir).Find(id)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func TestLoadReminders(t *testing.T) {
	dir := fixtureOf(t, map[string]string{
		"reminders/b.md": remind("two"), "reminders/a.md": remind("one"), "reminders/bad.md": remind("x", "cron: y"), "reminders/.c.md.tmp-1": remind("draft"),
		"routines/a.md": good("three"), "routines/bad.md": good("y", "run-at: z"), "state/firing/four.md": remind("four"),
		"state/firing/five.retry.md": remind("five"), "state/firing/bad.md": remind("z", "plane: x"),
	})
	s, err := Library{Home: dir, Zone: zoneOf(t, "Europe/Paris")}.Load()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, j := range s.Jobs {
		got = append(got, fmt.Sprintf("%s %s %s %d", j.Kind, j.ID, j.Name(), j.Attempt()))
		if j.Kind == Reminder && j.RunAt.Format(time.RFC3339) != "2026-03-07T09:00:00+01:00" {
			t.Errorf("%s: %s", j.ID, j.RunAt)
		}
	}
	want := []string{
		"reminder one a 0", "reminder two b 0", "routine three a 0", fmt.Sprintf("reminder five five %d", Second), fmt.Sprintf("reminder four four %d", First),
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	const reminders = "reminders/bad.md:4: cron: unknown key\nstate/firing/bad.md:4: plane: unknown key (did you mean plain?)"
	const routines = "routines/bad.md:4: run-at: unknown key"
	if got := faults(s.Faults); got != strings.Replace(reminders, "\n", "\n"+routines+"\n", 1) {
		t.Errorf("faults\n%s", got)
	}
	only := s.Only(Reminder)
	if got := ids(only.Jobs); !slices.Equal(got, []string{"one", "two", "five", "four"}) || faults(only.Faults) != reminders {
		t.Errorf("reminders %q\n%s", got, faults(only.Faults))
	}
	only = s.Only(Routine)
	if got := ids(only.Jobs); !slices.Equal(got, []string{"three"}) || faults(only.Faults) != routines {
		t.Errorf("routines %q\n%s", got, faults(only.Faults))
	}
	if len(s.Jobs) != 5 || len(s.Faults) != 3 {
		t.Error("Only changed the files it was made of")
	}
}

func TestKindOf(t *testing.T) {
	for path, want := range map[string]Kind{
		"/d/reminders/x.md": Reminder, "reminders/x.md": Reminder, "/d/state/firing/x.md": Reminder, "/d/state/firing/x.retry.md": Reminder,
		"/d/routines/x.md": Routine, "x.md": Routine, "/reminders/routines/x.md": Routine, "reminders.md": Routine,
	} {
		if got := KindOf(path); got != want {
			t.Errorf("%s: %s", path, got)
		}
	}
}

// A reminder and a routine may have one name: then it takes more than the name to tell which is meant.
func TestOneNameTwoKinds(t *testing.T) {
	dir := fixtureOf(t, map[string]string{
		"reminders/daily.md": remind("r1", "description: Daily news"), "routines/daily.md": good("r2", "description: Daily news"), "routines/news.retry.md": good("r3"),
		"routines/news.md": good("r4"), "reminders/twice.retry.md": remind("r5"),
	})
	s := load(t, dir)
	for _, name := range []string{"daily", "daily.md", "daily-news"} {
		var ambiguous *plaintext.Ambiguous
		if _, err := s.Find(name); !errors.As(err, &ambiguous) || ambiguous.Any != "reminders/daily.md, routines/daily.md" {
			t.Errorf("%s: %v", name, err)
		}
		for kind, want := range map[Kind]string{Reminder: "r1", Routine: "r2"} {
			if j, err := s.Only(kind).Find(name); err != nil || j.ID != want {
				t.Errorf("%s among %ss: %q, %v", name, kind, j.ID, err)
			}
		}
	}
	// what marks a second attempt in state/firing is part of a name elsewhere
	for name, want := range map[string]string{
		"r1": "r1", "r2": "r2", "reminders/daily.md": "r1", dir.Path("routines", "daily.md"): "r2", "news": "r4", "news.retry": "r3", "news.retry.md": "r3", "twice.retry": "r5",
	} {
		if j, err := s.Find(name); err != nil || j.ID != want {
			t.Errorf("%s: %q, %v", name, j.ID, err)
		}
	}
	if _, err := s.Find("twice"); !strings.HasPrefix(fmt.Sprint(err), `no job "twice"`) {
		t.Errorf("twice: %v", err)
	}
}

func TestTwinsOfTwoKinds(t *testing.T) {
	dir := fixtureOf(t, map[string]string{
		"reminders/a.md": remind("same"), "routines/b.md": good("SAME"), "reminders/c.md": remind("gone"), "state/firing/gone.md": remind("gone"), "routines/d.md": good("d"),
		"state/firing/e.md": remind("e"), "state/firing/e.retry.md": remind("e"),
	})
	s := load(t, dir)
	want := `reminders/a.md:2: id: "same" differs from "SAME" in routines/b.md only in case
reminders/c.md:2: id: "gone" is used twice, also in state/firing/gone.md
routines/b.md:2: id: "SAME" differs from "same" in reminders/a.md only in case
state/firing/e.md:2: id: "e" is used twice, also in state/firing/e.retry.md
state/firing/e.retry.md:2: id: "e" is used twice, also in state/firing/e.md
state/firing/gone.md:2: id: "gone" is used twice, also in reminders/c.md`
	if got := faults(s.Faults); got != want || !slices.Equal(ids(s.Jobs), []string{"d"}) {
		t.Errorf("%q\n%s\nwant\n%s", ids(s.Jobs), got, want)
	}
	if _, err := s.Only(Reminder).Find("same"); !strings.Contains(fmt.Sprint(err), "only in case") {
		t.Errorf("Find: %v", err)
	}
}

func TestClaim(t *testing.T) {
	dir := fixtureOf(t, map[string]string{"reminders/take-pizza.md": remind("p1", "description: Pizza")})
	l := Library{Home: dir}
	waiting := found(t, dir, "take-pizza")
	first, err := l.Claim(waiting)
	if err != nil || first.Path != dir.Path("state", "firing", "p1.md") || first.Attempt() != First || first.Name() != "p1" {
		t.Fatalf("%s, %v", first.Path, err)
	}
	if err := l.Cancel(first); !errors.Is(err, ErrFiring) || !exists(first.Path) {
		t.Errorf("a run that has begun was cancelled: %v", err)
	}
	// whoever read the file before cannot take or delete it any more
	if _, err := l.Claim(waiting); !errors.Is(err, ErrGone) {
		t.Errorf("claimed twice: %v", err)
	}
	if err := l.Cancel(waiting); !errors.Is(err, ErrGone) {
		t.Errorf("cancelled after it was claimed: %v", err)
	}
	again := found(t, dir, "p1")
	same(t, again, first)
	second, err := l.Claim(again)
	if err != nil || second.Path != dir.Path("state", "firing", "p1.retry.md") || second.Attempt() != Second || second.Name() != "p1" {
		t.Fatalf("%s, %v", second.Path, err)
	}
	if _, err := l.Claim(first); !errors.Is(err, ErrGone) {
		t.Errorf("a first attempt was taken up twice: %v", err)
	}
	if err := l.Cancel(second); !errors.Is(err, ErrFiring) {
		t.Errorf("%v", err)
	}
	for _, name := range []string{"p1", "p1.md", "pizza", "state/firing/p1.retry.md", second.Path} {
		same(t, found(t, dir, name), second)
	}
	if info, err := os.Stat(dir.Firing()); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func TestClaimNotWritten(t *testing.T) {
	dir := fixtureOf(t, map[string]string{"reminders/x.md": remind("x"), "state/firing": "no folder"})
	j, err := Parse(Reminder, dir.Path("reminders", "x.md"), []byte(remind("x")))
	if err != nil {
		t.Fatal(err)
	}
	var failed *store.NotWritten
	if claimed, err := (Library{Home: dir}).Claim(j); !errors.As(err, &failed) || claimed.Path != j.Path || !exists(j.Path) {
		t.Errorf("%v", err)
	}
}

func TestCancel(t *testing.T) {
	dir := fixtureOf(t, map[string]string{"reminders/x.md": remind("x"), "reminders/y.md": remind("y")})
	l := Library{Home: dir}
	j := found(t, dir, "x")
	if err := l.Cancel(j); err != nil {
		t.Fatal(err)
	}
	if err := l.Cancel(j); !errors.Is(err, ErrGone) {
		t.Errorf("cancelled twice: %v", err)
	}
	entries, err := os.ReadDir(dir.Reminders())
	if err != nil || len(entries) != 1 || entries[0].Name() != "y.md" {
		t.Errorf("left: %v, %v", entries, err)
	}
}

// Of all who claim and cancel a reminder at once, one succeeds.
func TestClaimRace(t *testing.T) {
	const rounds, each = 20, 4
	for range rounds {
		dir := fixtureOf(t, map[string]string{"reminders/x.md": remind("x")})
		l, j := Library{Home: dir}, found(t, dir, "x")
		results := make([]error, 2*each)
		var all sync.WaitGroup
		for i := range results {
			all.Go(func() {
				if i%2 == 0 {
					_, results[i] = l.Claim(j)
				} else {
					results[i] = l.Cancel(j)
				}
			})
		}
		all.Wait()
		claimed, won := false, 0
		for i, err := range results {
			if err == nil {
				won++
				claimed = i%2 == 0
			} else if !errors.Is(err, ErrGone) {
				t.Error(err)
			}
		}
		if won != 1 || exists(dir.Path("state", "firing", "x.md")) != claimed {
			t.Fatalf("%d succeeded: %v", won, results)
		}
	}
}

// Reminders that are claimed, followed up and deleted while others read are never a fault of anybody's, and none that stays
// is missed.
func TestLoadDuringClaims(t *testing.T) {
	dir := fixtureOf(t, map[string]string{"routines/r.md": good("r"), "reminders/stays.md": remind("stays")})
	l := Library{Home: dir}
	end := time.Now().Add(200 * time.Millisecond)
	var all sync.WaitGroup
	for w := range 2 {
		all.Go(func() {
			for n := 0; time.Now().Before(end); n++ {
				j := New(Reminder)
				j.ID, j.RunAt, j.Body = fmt.Sprintf("w%d-%d", w, n), end, fmt.Sprintf("Do it %d %d.", w, n)
				made, err := l.Create(j, "")
				for err == nil && made.Attempt() != Second {
					made, err = l.Claim(made)
				}
				if err = errors.Join(err, os.Remove(made.Path)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	defer all.Wait()
	for loads := 0; !t.Failed() && (time.Now().Before(end) || loads < 3); loads++ {
		s := load(t, dir)
		if got := ids(s.Jobs); len(s.Faults) > 0 || !slices.Contains(got, "r") || !slices.Contains(got, "stays") {
			t.Errorf("%q\n%s", got, faults(s.Faults))
		}
	}
}

func TestCreateReminder(t *testing.T) {
	dir := fixtureOf(t, map[string]string{"routines/daily-news.md": good("r"), "routines/mine.md": good("m")})
	l := Library{Home: dir}
	j := New(Reminder)
	j.ID, j.RunAt, j.Description, j.Body = "a", time.Date(2026, 3, 7, 9, 0, 0, 0, time.UTC), "Daily news", "Do it."
	made, err := l.Create(j, "")
	// a name that a crontab may have of the routine stays the routine's
	if err != nil || made.Path != dir.Path("reminders", "daily-news-2.md") {
		t.Fatalf("%s, %v", made.Path, err)
	}
	if r := found(t, dir, "daily-news.md"); r.ID != "r" {
		t.Errorf("found %s", r.ID)
	}
	got := found(t, dir, "a")
	same(t, got, made)
	j.ID = "b"
	made, err = l.Create(j, "mine") // by a name of its own, if somebody wants that
	if err != nil || made.Path != dir.Path("reminders", "mine.md") {
		t.Errorf("%s, %v", made.Path, err)
	}
	if _, err := l.Create(j, "mine"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("%v", err)
	}
	j.Plain, j.Description, j.ID = true, "", "c"
	if made, err = l.Create(j, ""); err != nil || made.Name() != "do-it" {
		t.Errorf("%s, %v", made.Path, err)
	}
}

// A directory that cannot be looked into is an error, not an endless search for a free name.
func TestCreateWithoutFolder(t *testing.T) {
	dir := fixtureOf(t, map[string]string{"reminders": "no folder", "routines": "no folder"})
	j := New(Reminder)
	j.ID, j.Body = "a", "Do it."
	var failed *store.NotWritten
	if _, err := (Library{Home: dir}).Create(j, ""); !errors.As(err, &failed) {
		t.Errorf("%v", err)
	}
}
