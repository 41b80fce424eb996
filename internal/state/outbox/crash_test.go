package outbox

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/testkit"
)

// alive reports whether a process runs. A zombie that its new parent has not collected does not.
func alive(pid string) bool {
	n, err := strconv.Atoi(pid)
	stat, _ := os.ReadFile("/proc/" + pid + "/stat")
	return err == nil && syscall.Kill(n, 0) == nil && !strings.Contains(string(stat), ") Z ")
}

// dies waits for the end of a process that was killed.
func dies(t *testing.T, pid string) {
	t.Helper()
	if pid == "" {
		t.Fatal("there was no process")
	}
	eventually(t, "process "+pid+" has ended", func() bool { return !alive(pid) })
}

// eventually waits for what another process does.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	const patience = 5 * time.Minute
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in %s: %s", patience, what)
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func kill(t *testing.T, pid string) {
	t.Helper()
	n, err := strconv.Atoi(pid)
	if err != nil || n < 2 {
		t.Fatalf("not a process: %q", pid)
	}
	_ = syscall.Kill(n, syscall.SIGKILL)
}

// The sender dies during an attempt and its command continues: the message is sent again, with the same id.
func TestSenderIsKilled(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.script(t, `echo "$OLLIM_MESSAGE_ID" >> "$data/sent"
[ -e "$data/again" ] && exit 0
echo $$ > "$data/leader"; exec sleep 100000`)
	cmd := o.child(t, "send")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the command runs", func() bool { return o.read(t, "leader") != "" })
	o.flush(t, Report{}) // it is being sent: left alone
	if e := o.pending(t); len(e) != 1 || e[0].ID != "r.1" {
		t.Errorf("while it is being sent: %+v", e)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	defer kill(t, strings.TrimSpace(o.read(t, "leader")))

	if e := o.pending(t); len(e) != 1 || e[0].Attempts != 0 || e[0].Text != "text of r.1" {
		t.Errorf("after the kill: %+v", e)
	}
	o.file(t, "../../again", "")
	o.flush(t, Report{Sent: 1})
	if got := o.read(t, "sent"); got != "r.1\nr.1\n" || o.files(t) != "" {
		t.Errorf("sent %q, left %q", got, o.files(t))
	}
}

// The command reads the whole text, although ollim is killed before the command has read anything.
func TestTextIsWholeAfterAKill(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.script(t, `echo $$ > "$data/leader"; while [ ! -e "$data/go" ]; do sleep 0.01; done; wc -c > "$data/counting"; mv "$data/counting" "$data/count"`)
	cmd := o.child(t, "send much")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the command runs", func() bool { return o.read(t, "leader") != "" })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	o.file(t, "../../go", "")
	eventually(t, "the command has read all", func() bool { return o.read(t, "count") != "" })
	if got, want := strings.TrimSpace(o.read(t, "count")), strconv.Itoa(len(muchText)+1); got != want {
		t.Errorf("the command read %s bytes, want %s", got, want)
	}
}

// A process that queues messages as fast as it can is killed at some moment: whatever Send has taken is there.
func TestNothingTakenIsLost(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	taken := map[string]bool{}
	for round := range 12 {
		cmd := o.child(t, "queue")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for i := 0; lines.Scan(); i++ {
			if id := lines.Text(); strings.HasPrefix(id, "p") {
				taken[id] = true
			}
			if i == round%5 {
				time.Sleep(time.Duration(round*137) * time.Microsecond)
				_ = cmd.Process.Kill()
			}
		}
		_ = cmd.Wait()
	}
	if err := o.finishDrafts(); err != nil {
		t.Fatal(err)
	}
	for _, e := range o.pending(t) {
		delete(taken, e.ID)
	}
	if len(taken) != 0 {
		t.Errorf("lost: %v", taken)
	}
	if left, _ := filepath.Glob(filepath.Join(o.Home.Outbox(), ".*")); len(left) != 0 {
		t.Errorf("drafts left: %q", left)
	}
}

// lockout drops root, for whom no permission counts, and runs the role of that name in a data directory of its own.
func lockout(t *testing.T, o *office) string {
	t.Helper()
	cmd := o.child(t, "lockout")
	if os.Getuid() == 0 {
		const nobody = 65534
		exe := o.Home.Path("exe") // the test binary lies in a folder of root's
		data, err := os.ReadFile(cmd.Path)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(testkit.WriteFile(exe, data, 0o700), os.Chmod(filepath.Dir(o.Home.Path()), 0o755)); err != nil {
			t.Fatal(err)
		}
		err = filepath.WalkDir(o.Home.Path(), func(path string, _ fs.DirEntry, err error) error {
			return errors.Join(err, os.Chown(path, nobody, nobody))
		})
		if err != nil {
			t.Fatal(err)
		}
		cmd.Path = exe
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	out, err := cmd.Output()
	if err != nil {
		if _, ok := errors.AsType[*exec.ExitError](err); !ok {
			t.Fatal(err)
		}
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// A message that was sent and cannot be taken out must not reach the owner again every minute.
func TestOutboxCannotBeChanged(t *testing.T) {
	o := newOffice(t)
	o.script(t, `echo "$OLLIM_MESSAGE_ID" >> "$data/sent"; chmod 500 "$data/state/outbox"`)
	out := strings.Split(lockout(t, o), "\n")
	for i, want := range []string{"sent ", "{0 0 0} ", " "} {
		if !strings.HasPrefix(out[i], want) || !strings.Contains(out[i], ": not written: permission denied") {
			t.Errorf("line %d: %q, want %q and an error", i, out[i], want)
		}
	}
	if got := o.read(t, "sent"); got != "r.1\n" {
		t.Errorf("sent %q", got)
	}
	if files, e := o.files(t), o.pending(t); files != "r.1.jsonl" || len(e) != 0 {
		t.Errorf("in the outbox %q, pending %+v", files, e)
	}
	if err := os.Chmod(o.Home.Outbox(), 0o700); err != nil {
		t.Fatal(err)
	}
	o.flush(t, Report{})
	if got := o.read(t, "sent") + o.files(t); got != "r.1\n" {
		t.Errorf("sent, and left: %q", got)
	}
}

func TestOutboxIsNoFolder(t *testing.T) {
	for _, path := range []string{"state", "state/outbox"} {
		o := newOffice(t)
		o.script(t, `touch "$data/sent"`)
		if err := os.MkdirAll(filepath.Dir(o.Home.Path(path)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(o.Home.Path(path), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		fate, err := o.try(t.Context(), message("r.1"))
		if _, ok := errors.AsType[*store.NotWritten](err); !ok || fate != "" {
			t.Errorf("%s: %q, %v", path, fate, err)
		}
		if exists(o.Home.Path("sent")) {
			t.Errorf("%s: an attempt was made for a message that was not on disk", path)
		}
		if r, err := o.Flush(t.Context()); err == nil || r != (Report{}) {
			t.Errorf("%s: Flush: %+v, %v", path, r, err)
		}
		if _, err := o.Pending(); err == nil {
			t.Errorf("%s: Pending: no error", path)
		}
	}
}
