package task

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/testkit"
)

func TestAdd(t *testing.T) {
	for _, tc := range []struct {
		draft Draft
		want  string
	}{
		{Draft{Text: "Buy milk"}, "2026-03-04 Buy milk"},
		{Draft{Text: " (A)  Buy  milk "}, "(A) 2026-03-04 Buy  milk"},
		{Draft{Text: "Buy milk", Priority: "B"}, "(B) 2026-03-04 Buy milk"},
		{Draft{Text: "Buy milk", Priority: None}, "2026-03-04 Buy milk"},
		{Draft{Text: "(C) 2025-12-24 Wrap"}, "(C) 2025-12-24 Wrap"},
		{Draft{Text: "x marks the spot"}, "2026-03-04 x marks the spot"},
		{Draft{Text: "# of eggs: 6"}, "2026-03-04 # of eggs: 6"},
		{Draft{Text: "a +p @c due:2026-12-31 t:2026-02-30 é 日本"}, "2026-03-04 a +p @c due:2026-12-31 t:2026-02-30 é 日本"},
	} {
		d := newDesk(t, "")
		if number := d.add(tc.draft); number != 1 {
			t.Errorf("number %d", number)
		}
		d.holds(tc.want + "\n")
	}
}

func TestAddMakesThePrivateFile(t *testing.T) {
	d := newDesk(t, "")
	d.add(Draft{Text: "a"})
	for path, want := range map[string]fs.FileMode{d.Home.Tasks(): 0o600, filepath.Dir(d.Home.Tasks()): 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}

func TestRefusedTexts(t *testing.T) {
	for text, reason := range map[string]string{
		"":                                  "a task needs a text",
		" ":                                 "a task needs a text",
		"(A) 2026-01-01":                    "a task needs a text",
		"a\nb":                              "a task is one line",
		"a\r":                               "a task is one line",
		"a\u2028b":                          "a task is one line",
		"a\tb":                              "control characters in the text",
		"a\x1b[2J":                          "control characters in the text",
		"a\u0085b":                          "control characters in the text",
		"a\u202eb":                          "control characters in the text",
		"a\xff":                             "control characters in the text",
		"a due:2026-02-30":                  "due:2026-02-30 is not a date: want due:YYYY-MM-DD",
		"a due:tomorrow":                    "due:tomorrow is not a date: want due:YYYY-MM-DD",
		"a due: 2026-01-01":                 "due: is not a date: want due:YYYY-MM-DD",
		"a due:2026-01-01 due:2026-01-02":   "due: is given twice",
		strings.Repeat("é", maxChars+1):     "longer than 4000 characters",
		strings.Repeat("é", maxChars) + "1": "longer than 4000 characters",
	} {
		const content = "2026-01-01 a\n"
		d := newDesk(t, content)
		_, addErr := d.Add(context.Background(), Draft{Text: text})
		_, editErr := d.Edit(context.Background(), "1", Draft{Text: text})
		for _, err := range []error{addErr, editErr} {
			var wrong *Unfit
			if !errors.As(err, &wrong) || wrong.Reason != reason {
				t.Errorf("%.20q: %v, want %s", text, err, reason)
			}
		}
		d.holds(content)
	}
	d := newDesk(t, "")
	if _, err := d.Add(context.Background(), Draft{Text: "(A) a", Priority: "B"}); err == nil || err.Error() != "the priority is given twice" {
		t.Error(err)
	}
	if _, err := d.Add(context.Background(), Draft{Text: "a", Priority: "high"}); !errors.As(err, new(*Unfit)) {
		t.Error(err)
	}
	d.holds("")
	d.add(Draft{Text: strings.Repeat("é", maxChars)})
}

func TestDone(t *testing.T) {
	for before, want := range map[string]string{
		"Buy milk":                       "x 2026-03-04 Buy milk",
		"2026-01-02 Buy milk":            "x 2026-03-04 2026-01-02 Buy milk",
		"(A) 2026-01-02 Buy  milk k:v":   "x 2026-03-04 2026-01-02 Buy  milk k:v pri:A",
		"(A) Buy milk pri:C":             "x 2026-03-04 Buy milk pri:C",
		"2026-01-02 x marks":             "x 2026-03-04 2026-01-02 x marks",
		"x 2026-01-03 2026-01-02 before": "x 2026-01-03 2026-01-02 before",
		"x  odd":                         "x  odd",
	} {
		d := newDesk(t, "first  \r\n"+before+"\r\n# last")
		if got, err := d.Done(context.Background(), "2"); err != nil || !got.Done || got.Number != 2 {
			t.Errorf("%q: %+v, %v", before, got, err)
		}
		d.holds("first  \r\n" + want + "\r\n# last")
	}
}

func TestRemove(t *testing.T) {
	d := newDesk(t, "a\nx b\nc")
	for _, name := range []string{"2", "a", "3"} {
		if _, err := d.Remove(context.Background(), name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	d.holds("\n\n\n")
	if _, err := d.Remove(context.Background(), "2"); !errors.As(err, new(*plaintext.Unknown)) {
		t.Error(err)
	}
	if number := d.add(Draft{Text: "d"}); number != 4 {
		t.Errorf("number %d is given again", number)
	}
}

func TestEdit(t *testing.T) {
	for _, tc := range []struct {
		before string
		draft  Draft
		want   string
	}{
		{"a k:v", Draft{Text: "b"}, "b"},
		{"2026-01-02 a", Draft{Text: "b"}, "2026-01-02 b"},
		{"(A) 2026-01-02 a", Draft{Text: "b"}, "(A) 2026-01-02 b"},
		{"(A) 2026-01-02 a", Draft{Text: "(B) b"}, "(B) 2026-01-02 b"},
		{"(A) 2026-01-02 a", Draft{Text: "b", Priority: "C"}, "(C) 2026-01-02 b"},
		{"(A) 2026-01-02 a", Draft{Text: "b", Priority: None}, "2026-01-02 b"},
		{"2026-01-02 a", Draft{Text: "(D) 2025-01-02 b"}, "(D) 2025-01-02 b"},
		{"2026-01-02 a", Draft{Text: "x b"}, "2026-01-02 x b"},
		{"x 2026-01-03 2026-01-02 a", Draft{Text: "b"}, "x 2026-01-03 2026-01-02 b"},
		{"x a", Draft{Text: "b"}, "x b"},
	} {
		d := newDesk(t, tc.before+"\nother")
		if _, err := d.Edit(context.Background(), "1", tc.draft); err != nil {
			t.Errorf("%q: %v", tc.before, err)
		}
		d.holds(tc.want + "\nother")
	}
}

// A text that the file would give another meaning is refused.
func TestEditThatWouldBeReadOtherwise(t *testing.T) {
	for before, text := range map[string]string{
		"a": "x b", "b": "# b", "x a": "2026-01-02 b", "x b": "(A) 2026-01-02 b",
	} {
		d := newDesk(t, before)
		if _, err := d.Edit(context.Background(), "1", Draft{Text: text}); !errors.As(err, new(*Unfit)) {
			t.Errorf("%q to %q: %v", before, text, err)
		}
		d.holds(before)
	}
}

func TestFind(t *testing.T) {
	f := parseFile([]byte("Buy milk\nMilk\n\n(A) Sell ÉCLAIRS\nx Buy bread\nx buy eclairs\n# Buy\n2026\n"))
	for name, want := range map[string]string{
		"1": "1", "01": "1", "4": "4", "5": "5", "milk": "2", "MILK ": "2", "buy": "1", "buy m": "1", "Écl": "4", "bread": "5", "buy e": "6",
		"0": `no task "0"`, "3": `no task "3"`, "7": `no task "7"`, "99": `no task "99"`, "99999999999999999999": `no task "99999999999999999999"`,
		"-1": `no task "-1"`, "": `no task ""`, " ": `no task ""`, "2026": `no task "2026"`, "nothing": `no task "nothing"`, "(A)": `no task "(A)"`,
		"il": `"il" could be any of: 1 Buy milk; 2 Milk`,
	} {
		task, err := find(f.tasks(), name)
		got := fmt.Sprint(task.Number)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
	many := parseFile(bytes.Repeat([]byte("a\n"), 12))
	if _, err := find(many.tasks(), "a"); err == nil || !strings.HasSuffix(err.Error(), "; 10 a; 2 more") {
		t.Error(err)
	}
}

func TestAll(t *testing.T) {
	if list, err := newDesk(t, "").All(); len(list) != 0 || err != nil {
		t.Errorf("%v, %v", list, err)
	}
	if list, err := newDesk(t, "x a\nb").All(); len(list) != 2 || err != nil {
		t.Errorf("%v, %v", list, err)
	}
}

func TestUnfit(t *testing.T) {
	d := newDesk(t, strings.Repeat("x", 16<<20+1))
	refused := func(reason string) {
		t.Helper()
		var unfit *Unfit
		if list, err := d.All(); !errors.As(err, &unfit) || err.Error() != d.Home.Tasks()+": "+reason || len(list) != 0 {
			t.Errorf("%d tasks, %v", len(list), err)
		}
		if _, err := d.Add(t.Context(), Draft{Text: "a"}); !errors.As(err, &unfit) {
			t.Error(err)
		}
	}
	refused("larger than 16777216 bytes")
	if err := errors.Join(os.Remove(d.Home.Tasks()), syscall.Mkfifo(d.Home.Tasks(), 0o600)); err != nil {
		t.Fatal(err)
	}
	refused("not a file")
}

// A file that is there but cannot be read is never replaced.
func TestUnreadable(t *testing.T) {
	d := newDesk(t, "")
	if err := store.MkdirAll(d.Home.Tasks()); err != nil {
		t.Fatal(err)
	}
	var wrong *fs.PathError
	if _, err := d.All(); !errors.As(err, &wrong) {
		t.Error(err)
	}
	if _, err := d.Add(context.Background(), Draft{Text: "a"}); !errors.As(err, &wrong) {
		t.Error(err)
	}
}

// The owner may keep the file elsewhere.
func TestLink(t *testing.T) {
	d := newDesk(t, "a\n")
	if err := os.Mkdir(string(d.Home)+"/elsewhere", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(d.Home.Tasks(), d.Home.Path("elsewhere", "list.txt")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../elsewhere/list.txt", d.Home.Tasks()); err != nil {
		t.Fatal(err)
	}
	d.add(Draft{Text: "b"})
	d.holds("a\n2026-03-04 b\n")
	if _, err := os.Readlink(d.Home.Tasks()); err != nil {
		t.Errorf("the link of the person is gone: %v", err)
	}
}

// A task that is done already costs no write: the file may be the person's at that moment.
func TestNothingToDoWritesNothing(t *testing.T) {
	d := newDesk(t, "x a")
	before, err := os.Stat(d.Home.Tasks())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Done(context.Background(), "1"); err != nil {
		t.Fatal(err)
	}
	if after, err := os.Stat(d.Home.Tasks()); err != nil || !os.SameFile(before, after) {
		t.Errorf("replaced, %v", err)
	}
}

// Eight processes at once: nothing is lost, and a number is of one task for ever.
func TestManyProcesses(t *testing.T) {
	d := newDesk(t, "mine  +odd \tk:v")
	var all sync.WaitGroup
	said := make([][]byte, 8)
	for i := range said {
		all.Go(func() {
			out, err := testkit.Child(t, "add", string(d.Home), fmt.Sprint("p", i)).Output()
			if err != nil {
				t.Error(err)
			}
			said[i] = out
		})
	}
	all.Wait()
	data, err := os.ReadFile(d.Home.Tasks())
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	if lines[0] != "mine  +odd \tk:v" || len(lines) != 1+8*addsPerChild {
		t.Fatalf("%d lines, the first %q", len(lines), lines[0])
	}
	for _, record := range strings.Split(strings.TrimSpace(string(bytes.Join(said, nil))), "\n") {
		var number, process, i int
		if _, err := fmt.Sscanf(record, "%d p%d-%02d", &number, &process, &i); err != nil {
			t.Fatal(record, err)
		}
		line := lines[number-1]
		text := fmt.Sprintf("p%d-%02d", process, i)
		if want := i%4 != 1; strings.HasSuffix(line, " "+text) != want || strings.HasPrefix(line, "x ") != (i%4 == 0) {
			t.Errorf("line %d is %q, of %s", number, line, text)
		}
	}
}
