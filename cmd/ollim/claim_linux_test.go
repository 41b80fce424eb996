package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit"
)

// database is a PostgreSQL server of a test, without a port.
type database struct {
	t    *testing.T
	dir  string // of the socket, the data and .pg_service.conf
	bin  string
	user *syscall.Credential // that the server runs as; nil: this process's
}

// newDatabase starts PostgreSQL in a temporary directory, and makes the table that the claim command wants.
func newDatabase(t *testing.T) *database {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		testkit.Missing(t, "no PostgreSQL: apt-get install postgresql")
	}
	dir, err := os.MkdirTemp("/tmp", "ollim-pg-") // the path of a socket has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	d := &database{t: t, dir: dir, bin: filepath.Dir(found[len(found)-1])}
	if os.Getuid() == 0 { // as whom it does not run
		other, err := user.Lookup("nobody")
		if err != nil {
			t.Fatal(err)
		}
		uid, _ := strconv.Atoi(other.Uid)
		gid, _ := strconv.Atoi(other.Gid)
		d.user = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)} //nolint:gosec // ids have 32 bits
		if err := os.Chown(dir, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	d.must("initdb", "-D", d.data(), "-U", "ollim", "-A", "trust", "-N", "-E", "UTF8", "--locale=C")
	d.server("start")
	t.Cleanup(func() { d.server("stop") })
	service := "[ollim]\nhost=" + dir + "\nuser=ollim\ndbname=postgres\n"
	if err := os.WriteFile(filepath.Join(dir, ".pg_service.conf"), []byte(service), 0o644); err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile("../../contrib/claim/postgresql")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(script), "\n")
	table, _, _ = strings.Cut(table, "\nowner=")
	d.query(strings.ReplaceAll(table, "# ", ""))
	return d
}

// env is for the claim command. Debian's psql is a program in Perl that takes several times as long to start as the one that it executes.
func (d *database) env() []string {
	return []string{"PATH=" + d.bin + ":/usr/bin:/bin", "HOME=" + d.dir}
}

func (d *database) data() string { return filepath.Join(d.dir, "data") }

func (d *database) must(program string, args ...string) {
	d.t.Helper()
	cmd := exec.Command(filepath.Join(d.bin, program), args...)
	cmd.Dir, cmd.Env = d.dir, []string{"PATH=/usr/bin:/bin", "HOME=" + d.dir, "LC_ALL=C"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: d.user}
	log, err := os.Create(filepath.Join(d.t.TempDir(), "log")) // a pipe would stay open in the server
	if err != nil {
		d.t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	err = cmd.Run()
	if said, _ := os.ReadFile(log.Name()); err != nil {
		d.t.Fatalf("%s: %v: %s", program, err, said)
	}
}

// server starts the server, or stops it without a clean shutdown.
func (d *database) server(do string) {
	d.t.Helper()
	args := []string{do, "-w", "-D", d.data(), "-m", "immediate"}
	if do == "start" {
		args = []string{do, "-w", "-t", strconv.Itoa(int(patience.Seconds())), "-D", d.data(), "-l", filepath.Join(d.dir, "log"), "-o", "-k " + d.dir + " -c listen_addresses= -c max_connections=60"}
	}
	d.must("pg_ctl", args...)
}

func (d *database) query(text string) string {
	d.t.Helper()
	cmd := exec.Command(filepath.Join(d.bin, "psql"), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "service=ollim", "-c", text)
	cmd.Env = d.env()
	out, err := cmd.CombinedOutput()
	if err != nil {
		d.t.Fatalf("%s: %v: %s", text, err, out)
	}
	return strings.TrimSpace(string(out))
}

// claimOnce starts a claim command for a machine, kills it after a while unless that is 0, and returns its exit status; -1 if it was killed.
func claimOnce(store string, env []string, slot, machine string, kill time.Duration) (status int, said string) {
	cmd := exec.Command("../../contrib/claim/"+store, "job", slot, machine)
	cmd.Env = append([]string{"PATH=/usr/bin:/bin"}, env...) // of two values the last counts
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var out bytes.Buffer
	cmd.Stderr = &out
	if err := cmd.Start(); err != nil {
		return -2, err.Error()
	}
	if kill > 0 {
		defer time.AfterFunc(kill, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }).Stop()
	}
	_ = cmd.Wait()
	return cmd.ProcessState.ExitCode(), out.String()
}

// contest is machines that claim slots by a claim command of ollim-schedules(7). Some calls are killed, and asked again as the next tick
// does, and so are calls that fail while the server crashes and starts again.
type contest struct {
	store           string // the command in contrib/claim
	env             []string
	slots, machines int
	outages         int          // for one slot in so many the server is stopped
	server          func(string) // does start or stop
	owner           func(slot string) string

	killed, failed atomic.Int64
}

// machine returns whether a machine gets a slot. A call may fail only while down, and calls failed then.
func (c *contest) machine(t *testing.T, at, name string, down bool, failed func()) bool {
	for try := 0; ; try++ {
		kill := time.Duration(0)
		if try == 0 && rand.IntN(4) == 0 {
			most := 60 * time.Millisecond
			if c.killed.Load() == 0 { // else a fast machine may have answered each
				most = time.Millisecond
			}
			kill = time.Duration(1 + rand.Int64N(int64(most)))
		}
		switch status, said := claimOnce(c.store, c.env, at, name, kill); status {
		case 0:
			return true
		case 75:
			return false
		case -1:
			c.killed.Add(1)
		case 1:
			failed()
			c.failed.Add(1)
			if !down {
				t.Errorf("%s: %s: no answer: %s", at, name, said)
			}
			if t.Failed() || t.Context().Err() != nil {
				return false
			}
		default:
			t.Errorf("%s: %s: status %d: %s", at, name, status, said)
			return false
		}
	}
}

// run wants each slot to go to one machine, the one that the store names.
func (c *contest) run(t *testing.T) {
	t.Helper()
	first := time.Date(2026, 3, 7, 9, 0, 0, 0, time.UTC)
	for i := range c.slots {
		at := first.Add(time.Duration(i) * time.Minute).Format(time.RFC3339)
		var all sync.WaitGroup
		won := make([]bool, c.machines)
		down, refused, once := i%c.outages == c.outages/2, make(chan struct{}), sync.Once{}
		if down {
			c.server("stop")
		}
		for m := range c.machines {
			all.Go(func() {
				won[m] = c.machine(t, at, fmt.Sprintf("machine-%d", m), down, func() { once.Do(func() { close(refused) }) })
			})
		}
		if down { // until a call has failed
			<-refused
			c.server("start")
		}
		all.Wait()
		var names []string
		for m, own := range won {
			if own {
				names = append(names, fmt.Sprintf("machine-%d", m))
			}
		}
		if owner := c.owner(at); len(names) != 1 || names[0] != owner {
			t.Errorf("%s: won by %q, and the store says %q", at, names, owner)
		}
	}
	if c.killed.Load() == 0 || c.failed.Load() == 0 {
		t.Errorf("%d calls were killed, %d failed: this test shows nothing", c.killed.Load(), c.failed.Load())
	}
	t.Logf("%d slots, %d machines: %d calls killed, %d failed", c.slots, c.machines, c.killed.Load(), c.failed.Load())
}

// TestClaimPostgreSQL: each slot has one owner. To start psql takes most of the time; bench/claim has 100 processes that stay connected.
func TestClaimPostgreSQL(t *testing.T) {
	t.Parallel()
	testkit.OnlyInCI(t, "contested slots of a PostgreSQL server that fails")
	d := newDatabase(t)
	c := contest{store: "postgresql", env: d.env(), slots: 24, machines: 6, outages: 8, server: d.server}
	c.owner = func(slot string) string { return d.query("select machine from claim where slot = '" + slot + "'") }
	c.run(t)
}

// TestMachinesShareSlots: two machines with separate directories fire the same slots at the same moments, and a call of the claim command
// that fails leaves its slot to the next fire.
func TestMachinesShareSlots(t *testing.T) {
	t.Parallel()
	testkit.OnlyInCI(t, "two machines that share slots by a PostgreSQL server")
	d := newDatabase(t)
	script, err := filepath.Abs("../../contrib/claim/postgresql")
	if err != nil {
		t.Fatal(err)
	}
	var machines []*command
	for _, name := range []string{"laptop", "server"} {
		c := newCommand(t)
		c.write("play.yaml", "turns:\n  - - text: well\n")
		c.write("routines/each.md", "---\nid: each\ncron: \"* * * * *\"\nbackground: true\nengine: script:play.yaml\n---\nGo.\n")
		own := filepath.Join(t.TempDir(), "claim") // both are one machine to the kernel
		text := fmt.Sprintf("#!/bin/sh\n[ ! -e broken ] || { echo no network >&2; exit 3; }\n%s exec %s \"$1\" \"$2\" %s\n", strings.Join(d.env(), " "), script, name)
		if err := os.WriteFile(own, []byte(text), 0o700); err != nil { //nolint:gosec // it is a program
			t.Fatal(err)
		}
		c.ok("config", "set", "claim", own)
		machines = append(machines, c)
	}
	slots := 24
	first := time.Now().UTC().Truncate(time.Minute).Add(time.Duration(-slots) * time.Minute)
	runs := map[string]int{}
	for i := range slots {
		at := first.Add(time.Duration(i) * time.Minute).Format(time.RFC3339)
		if i == 0 { // the first call of one machine fails
			machines[0].write("broken", "")
			out, err := machines[0].cmd("fire", "--scheduled", "--slot", at, "each").CombinedOutput()
			if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 75 {
				t.Fatalf("a claim command that fails: %v: %s", err, out)
			}
			if err := os.Remove(filepath.Join(machines[0].data, "broken")); err != nil {
				t.Fatal(err)
			}
		}
		var both sync.WaitGroup
		for _, c := range machines {
			both.Go(func() {
				if out, err := c.cmd("fire", "--scheduled", "--slot", at, "each").CombinedOutput(); err != nil {
					t.Errorf("%s: %v: %s", at, err, out)
				}
			})
		}
		both.Wait()
	}
	elsewhere := 0
	for _, c := range machines {
		for line := range strings.Lines(c.ok("run", "list", "-n", "0", "--json")) {
			_, at, _ := strings.Cut(line, `"scheduled_for":"`)
			at, _, _ = strings.Cut(at, `"`)
			runs[at]++
		}
		elsewhere += strings.Count(c.ok("schedule", "audit", "--since", "1d", "--json"), `"outcome":"elsewhere"`)
	}
	for at, n := range runs {
		if n != 1 {
			t.Errorf("%s: %d runs", at, n)
		}
	}
	if len(runs) != slots {
		t.Errorf("%d of %d slots have a run: %v", len(runs), slots, runs)
	}
	t.Logf("%d slots, of which an audit shows %d as elsewhere", slots, elsewhere)
}

// TestClaimExamplesInTheManual: ollim-schedules(7) shows the claim commands of contrib.
func TestClaimExamplesInTheManual(t *testing.T) {
	page, err := os.ReadFile("../../man/ollim-schedules.7")
	if err != nil {
		t.Fatal(err)
	}
	shown := strings.NewReplacer(`\-`, "-", `\(aq`, "'", `\(dq`, `"`, `\e`, `\`, "\n\\&", "\n").Replace(string(page))
	for _, name := range []string{"postgresql", "s3"} {
		script, err := os.ReadFile("../../contrib/claim/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(shown, ".nf\n"+string(script)+".fi\n") {
			t.Errorf("the manual does not show contrib/claim/%s as it is", name)
		}
	}
}
