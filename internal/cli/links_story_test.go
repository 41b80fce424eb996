package cli

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const systemFile = "root:x:0:0::/root:/bin/sh\n"

// linked puts a link at a file of the data directory. It leads to a file that is none of ours, which is returned.
func (w *world) linked(name string) string {
	w.t.Helper()
	target := filepath.Join(w.home, "passwd")
	if err := os.WriteFile(target, []byte(systemFile), 0o600); err != nil {
		w.t.Fatal(err)
	}
	path := filepath.Join(w.dir, name)
	if err := os.RemoveAll(path); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		w.t.Fatal(err)
	}
	return target
}

// busyWorld is a world in which a persistent routine has fired once, so that most files of the state are there.
func busyWorld(t *testing.T) *world {
	w := newWorld(t)
	w.script("turns:\n  - - text: done\n    - tool: report_updates\n      input: {message: seen}\n")
	w.write("routines/daily.md", "---\nid: daily\ncron: \"0 9 * * *\"\nbackground: true\nsession: persistent\n---\nLook around.\n")
	w.must("fire", "daily")
	return w
}

// exercise runs the commands that write most of the state. Their exit status is another test's subject.
func (w *world) exercise() {
	for _, line := range []string{"fire daily", "update add news", "update pop", "tick", "chat hi", "task add milk", "ping hello", "routine list", "session list", "run list", "budget"} {
		w.run(strings.Fields(line)...)
	}
}

func TestNoStateFileIsOpenedThroughALink(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"state/schedules.jsonl", "state/session_history.jsonl", "state/sessions.json", "state/pending_updates.json", "state/checkpoint.json",
		"state/ping_budget.json", "state/fork_messages.json", "state/approvals.json",
		"state/routine_sessions/daily", "state/locks/job-daily.lock", "state/locks/session-routine-daily.lock", "state/locks/ledger.lock", "tasks/todo.txt",
	} {
		t.Run(name, func(t *testing.T) {
			w := busyWorld(t)
			target := w.linked(name)
			w.exercise()
			if data, err := os.ReadFile(target); err != nil || string(data) != systemFile {
				t.Errorf("the file behind the link has %q, %v", data, err)
			}
		})
	}
}

func TestNoSessionIsOpenedThroughALink(t *testing.T) {
	t.Parallel()
	w := busyWorld(t)
	sessions, err := filepath.Glob(filepath.Join(w.dir, "sessions/script/*.jsonl"))
	if err != nil || len(sessions) != 1 {
		t.Fatalf("sessions: %q, %v", sessions, err)
	}
	name, err := filepath.Rel(w.dir, sessions[0])
	if err != nil {
		t.Fatal(err)
	}
	target := w.linked(name)
	r := w.run("fire", "daily")
	if r.status == 0 || !strings.Contains(r.errOut, "symbolic link") {
		t.Errorf("exit status %d: %s", r.status, r.errOut)
	}
	if data, err := os.ReadFile(target); err != nil || string(data) != systemFile {
		t.Errorf("the file behind the link has %q, %v", data, err)
	}
}

func TestNoFolderOfTheStateIsALink(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"state/routine_sessions", "state/slots", "sessions/script", "state/runs"} {
		t.Run(name, func(t *testing.T) {
			w := busyWorld(t)
			elsewhere := filepath.Join(w.home, "elsewhere")
			if err := os.Rename(filepath.Join(w.dir, name), elsewhere); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			if err := os.MkdirAll(elsewhere, 0o700); err != nil {
				t.Fatal(err)
			}
			before := files(t, elsewhere)
			if err := os.Symlink(elsewhere, filepath.Join(w.dir, name)); err != nil {
				t.Fatal(err)
			}
			w.exercise()
			if after := files(t, elsewhere); after != before {
				t.Errorf("the folder behind the link was\n%sand is\n%s", before, after)
			}
		})
	}
}

// files is the files below a directory with their contents.
func files(t *testing.T, dir string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		out.WriteString(path + ": " + string(data) + "\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestAPipeInTheStateStopsNobody(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"state/schedules.jsonl", "state/session_history.jsonl", "state/sessions.json", "state/pending_updates.json", "state/checkpoint.json",
		"state/ping_budget.json", "state/fork_messages.json", "state/approvals.json",
		"state/routine_sessions/daily", "state/pause.json", "state/locks/job-daily.lock", "state/locks/session-main.lock", "tasks/todo.txt",
		"state/runs",
	} {
		t.Run(name, func(t *testing.T) {
			w := busyWorld(t)
			path := filepath.Join(w.dir, name)
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Mkfifo(path, 0o600); err != nil {
				t.Fatal(err)
			}
			w.exercise() // it hangs where the pipe is opened
		})
	}
}

func TestTaskListMayBeALinkToAText(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	list := filepath.Join(w.home, "my.txt")
	if err := os.WriteFile(list, []byte("milk\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(list, filepath.Join(w.dir, "tasks/todo.txt")); err != nil {
		t.Fatal(err)
	}
	w.must("task", "add", "bread")
	if data, err := os.ReadFile(list); err != nil || !strings.Contains(string(data), "bread") {
		t.Errorf("the list has %q, %v", data, err)
	}
}

// A list of tasks may be kept elsewhere, but a link to nothing must not make a file where it leads.
func TestTaskListIsNotMadeThroughALink(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	target := filepath.Join(w.home, "authorized_keys")
	if err := os.Symlink(target, filepath.Join(w.dir, "tasks/todo.txt")); err != nil {
		t.Fatal(err)
	}
	r := w.run("task", "add", "milk")
	if r.status != 65 || !strings.Contains(r.errOut, "a link to "+target+", which is not there") {
		t.Errorf("exit status %d: %s", r.status, r.errOut)
	}
	if _, err := os.Lstat(target); !os.IsNotExist(err) {
		t.Errorf("the file behind the link: %v", err)
	}
}
