package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// TestCronFires lets Debian's cron and busybox's crond, started here, fire routines in the environments that they give. It
// takes up to two minutes, because both look once a minute; all that is asked of them is asked in the same minute.
func TestCronFires(t *testing.T) {
	debian, busybox := daemons(t)
	t.Parallel()
	bare, api := withClaude(t)
	dirs := map[string]*cronFixture{"Debian": newCronFixture(t, "games"), "busybox": newCronFixture(t, "backup"), "both": newCronFixture(t, "man"), "by hand": newCronFixture(t, "news")}
	at := time.Now().Add(40 * time.Second).Truncate(time.Minute).Add(time.Minute).In(dirs["both"].zone)
	bareLine(t, bare, at)
	api.Reply(anthropicapi.Reply{Text: "done"})
	tables := t.TempDir()
	for name, h := range dirs {
		h.write(t, filepath.Join(h.data, "routines", "once.md"), fmt.Sprintf("---\nid: once\ncron: \"%d %d * * *\"\n---\nOnce.\n", at.Minute(), at.Hour()))
		if name == "by hand" {
			h.byHand(t, at)
			continue
		}
		lines := h.run("schedule", "print", "crontab")
		if name != "Debian" {
			h.write(t, filepath.Join(tables, h.user.Username), lines)
		}
		if name != "busybox" {
			h.install(t, lines)
		}
	}
	daemon(t, debian, "-f")
	daemon(t, busybox, "crond", "-f", "-c", tables, "-L", filepath.Join(t.TempDir(), "log"))

	t.Run("bare line", func(t *testing.T) {
		t.Parallel()
		list := settled(t, at, func() string { return bare.ok("run", "list", "daily-market") })
		if strings.Count(list, "\tok\t") != 1 {
			t.Errorf("runs:\n%s", list)
		}
		if got := len(api.Requests()); got != 1 {
			t.Errorf("%d requests, want 1", got)
		}
	})
	for name, h := range dirs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h.firedOnce(t, at)
		})
	}
}

// daemons are the two, where they may be started: by root, with no other cron running.
func daemons(t *testing.T) (debian, busybox string) {
	t.Helper()
	if !testkit.CI() && os.Getenv("OLLIM_TEST_CRON") == "" {
		t.Skip("takes a minute: apt-get install cron busybox-static, and set OLLIM_TEST_CRON=1")
	}
	debian, err := exec.LookPath("cron")
	if err != nil {
		testkit.Missing(t, "no cron: apt-get install cron")
	}
	busybox, err = exec.LookPath("busybox")
	if err != nil || exec.Command(busybox, "crond", "--help").Run() != nil {
		testkit.Missing(t, "no crond of busybox: apt-get install busybox-static")
	}
	if os.Getuid() != 0 {
		testkit.Missing(t, "cron can be started by root only")
	}
	if out, _ := exec.Command("pgrep", "-x", "cron").Output(); len(out) > 0 {
		testkit.Missing(t, "a cron is running already")
	}
	return debian, busybox
}

func daemon(t *testing.T, path string, args ...string) {
	t.Helper()
	cmd := exec.Command(path, args...)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"} // no TZ: the machine's zone is what a crontab is written for
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
}

// settled is a list of runs when one has ended, and a second one would have begun.
func settled(t *testing.T, at time.Time, list func() string) string {
	t.Helper()
	time.Sleep(time.Until(at.Add(8 * time.Second))) // that a run is not begun has no event
	ended := regexp.MustCompile(`\t(ok|failed|interrupted)\t`)
	eventually(t, "a run has ended", func() bool { return ended.MatchString(list()) })
	return list()
}

// bareLine has a line, as somebody would write it by hand, fire a routine with the claude command.
func bareLine(t *testing.T, c *command, at time.Time) {
	t.Helper()
	c.write("routines/daily-market.md", daily)
	line := fmt.Sprintf("%d %d * * * root %s --data-dir %s fire daily-market\n", at.Minute(), at.Hour(), c.path, c.data)
	table := "/etc/cron.d/ollim-test"
	if err := os.WriteFile(table, []byte(line), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(table) })
}

// cronUser is a data directory of a user of the machine who has no crontab.
type cronFixture struct {
	t    *testing.T
	user *user.User
	id   syscall.Credential
	path string // of the binary
	data string
	zone *time.Location
}

func newCronFixture(t *testing.T, name string) *cronFixture {
	t.Helper()
	u, err := user.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	if table, err := exec.Command("crontab", "-u", name, "-l").Output(); err == nil {
		if !strings.Contains(string(table), "/ollim-cron-") {
			t.Fatalf("%s has a crontab", name)
		}
		if out, err := exec.Command("crontab", "-u", name, "-r").CombinedOutput(); err != nil { // a test's that was killed
			t.Fatalf("%v: %s", err, out)
		}
	}
	dir, err := os.MkdirTemp("", "ollim-cron-") // unlike t.TempDir, one that others can enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	h := &cronFixture{t: t, user: u, id: syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, path: filepath.Join(dir, "ollim"), data: filepath.Join(dir, "data")}
	if out, err := exec.Command("cp", program, h.path).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, err := range []error{os.Chmod(dir, 0o755), os.Mkdir(h.data, 0o700), os.Chown(h.data, uid, gid)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	h.run("init", "--engine", "script:play.yaml")
	h.write(t, filepath.Join(h.data, "play.yaml"), "turns:\n  - - text: done\n    - delay: 2s\n")
	if h.zone, err = time.LoadLocation(strings.TrimSpace(h.run("config", "get", "timezone"))); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *cronFixture) write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// run is a command of the user's that must go well.
func (h *cronFixture) run(args ...string) string {
	h.t.Helper()
	cmd := exec.Command(h.path, append([]string{"--data-dir", h.data}, args...)...)
	cmd.Dir, cmd.Env = "/", []string{"HOME=" + h.data, "PATH=/usr/bin:/bin", "TMPDIR=" + h.data} // the program stays where it is during the test
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &h.id}
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		h.t.Fatalf("%q: %v: %s", args, err, said.String())
	}
	return string(out)
}

// install puts the lines into the user's crontab, and takes them back in the end.
func (h *cronFixture) install(t *testing.T, lines string) {
	t.Helper()
	t.Cleanup(func() { _ = exec.Command("crontab", "-u", h.user.Username, "-r").Run() })
	h.run("schedule", "install", "crontab")
	out, err := exec.Command("crontab", "-u", h.user.Username, "-l").Output()
	if err != nil || string(out) != lines || strings.Count(lines, "\n") != 4 {
		t.Fatalf("%v: installed\n%s\nwant\n%s", err, out, lines)
	}
}

// byHand gives the user a crontab with a bare line for the routine before and after that of the tick.
func (h *cronFixture) byHand(t *testing.T, at time.Time) {
	t.Helper()
	t.Cleanup(func() { _ = exec.Command("crontab", "-u", h.user.Username, "-r").Run() })
	ollim := h.path + " --data-dir " + h.data
	bare := fmt.Sprintf("%d %d * * * %s fire once\n", at.Minute(), at.Hour(), ollim)
	crontab := exec.Command("crontab", "-u", h.user.Username, "-")
	crontab.Stdin = strings.NewReader(bare + "* * * * * " + ollim + " tick\n" + bare)
	if out, err := crontab.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// firedOnce requires one run, of the minute that it was for, and nothing left unaccounted for.
func (h *cronFixture) firedOnce(t *testing.T, at time.Time) {
	t.Helper()
	h.t = t
	list := settled(t, at, func() string { return h.run("run", "list") })
	if strings.Count(list, "\n") != 1 || !strings.Contains(list, "\tonce\tok\t") {
		t.Fatalf("runs:\n%s", list)
	}
	begun, err := time.Parse("20060102T150405.000Z", list[:len("20060102T150405.000Z")])
	if err != nil || begun.Before(at) {
		t.Errorf("begun %s, want not before %s: %v", begun, at, err)
	}
	claims, err := os.ReadDir(filepath.Join(h.data, "state", "slots", "once"))
	if slot := at.UTC().Format("20060102T150405Z"); err != nil || len(claims) != 1 || claims[0].Name() != slot {
		t.Errorf("claimed %v, want %s: %v", claims, slot, err)
	}
	h.run("schedule", "audit", "once", "--since", "10m")
}
