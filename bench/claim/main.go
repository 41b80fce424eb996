// Command claim lets processes contest slots by the statements of contrib/claim/postgresql, and kills some of them. It fails if a slot is
// given to two of them, or to none. Run it from the repository, where PostgreSQL is installed (apt-get install postgresql):
//
//	go run ./bench/claim                            # 100 processes, 10,000 slots, 40 kills
//	go run ./bench/claim -processes 10 -slots 500
//
// Each process is a psql that stays connected, because to start one takes most of the time of the command itself, which the tests of
// cmd/ollim start for each claim. All ask for a slot at the same moment.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

func main() {
	c := contest{}
	flag.IntVar(&c.processes, "processes", 100, "how many contest each slot")
	flag.IntVar(&c.slots, "slots", 10_000, "how many slots")
	flag.IntVar(&c.kills, "kills", 40, "how many processes are killed with -9")
	flag.Parse()
	if err := c.run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "claim:", err)
		os.Exit(1)
	}
}

type contest struct {
	processes, slots, kills int

	bin, dir   string
	user       *syscall.Credential // that the server runs as; nil: this process's
	statements string

	mu      sync.Mutex
	winners map[string][]string // machines by slot
	killed  int                 // that had asked and had no answer
}

func (c *contest) run(out io.Writer) (err error) {
	if c.statements, err = statements("contrib/claim/postgresql"); err != nil {
		return err
	}
	if err := c.start(); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, c.server("pg_ctl", "stop", "-w", "-D", c.data(), "-m", "immediate"), os.RemoveAll(c.dir))
	}()
	if err := c.create("contrib/claim/postgresql"); err != nil {
		return err
	}
	begin := time.Now()
	if err := c.contest(); err != nil {
		return err
	}
	took := time.Since(begin)
	doubles, none, wrong, err := c.judge()
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "%d processes, %d slots, %d kills (%d between question and answer): %d doubles, %d without an owner, %d other than the table says; %.0f s\n",
		c.processes, c.slots, c.kills, c.killed, doubles, none, wrong, took.Seconds())
	if doubles+none+wrong > 0 {
		return errors.New("a slot does not have one owner")
	}
	return nil
}

// statements returns what the claim command gives to psql, in one line.
func statements(path string) (string, error) {
	script, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return "", err
	}
	_, text, _ := strings.Cut(string(script), "<<'END'\n")
	text, _, found := strings.Cut(text, "\nEND\n")
	if !found {
		return "", fmt.Errorf("%s: no statements", path)
	}
	return strings.ReplaceAll(text, "\n", " ") + "\n", nil
}

// start makes a PostgreSQL server in a temporary directory, without a port.
func (c *contest) start() (err error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	if len(found) == 0 {
		return errors.New("no PostgreSQL: apt-get install postgresql")
	}
	c.bin = found[len(found)-1]
	if c.dir, err = os.MkdirTemp("/tmp", "ollim-claim-"); err != nil { // the path of a socket has at most 107 bytes
		return err
	}
	if os.Getuid() == 0 { // as whom it does not run
		other, err := user.Lookup("nobody")
		if err != nil {
			return err
		}
		uid, _ := strconv.ParseUint(other.Uid, 10, 32)
		gid, _ := strconv.ParseUint(other.Gid, 10, 32)
		c.user = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		if err := os.Chown(c.dir, int(uid), int(gid)); err != nil { //nolint:gosec // ids have 32 bits
			return err
		}
	}
	return errors.Join(c.server("initdb", "-D", c.data(), "-U", "ollim", "-A", "trust", "-N", "-E", "UTF8", "--locale=C"),
		c.server("pg_ctl", "start", "-w", "-D", c.data(), "-l", filepath.Join(c.dir, "log"),
			"-o", fmt.Sprintf("-k %s -c listen_addresses= -c max_connections=%d", c.dir, c.processes+10)))
}

func (c *contest) data() string { return filepath.Join(c.dir, "data") }

func (c *contest) server(program string, args ...string) error {
	cmd := exec.Command(filepath.Join(c.bin, program), args...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = c.dir, []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}, &syscall.SysProcAttr{Credential: c.user}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", program, err)
	}
	return nil
}

func (c *contest) psql(args ...string) *exec.Cmd {
	args = append([]string{"-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", c.dir, "-U", "ollim", "-d", "postgres"}, args...)
	cmd := exec.Command("psql", args...)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + c.dir}
	return cmd
}

// create makes the table as the claim command's comment says.
func (c *contest) create(path string) error {
	script, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return err
	}
	_, table, _ := strings.Cut(string(script), "\n")
	table, _, _ = strings.Cut(table, "\nowner=")
	said, err := c.psql("-c", strings.ReplaceAll(table, "# ", "")).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, said)
	}
	return nil
}

// contest has all processes ask for each slot at once.
func (c *contest) contest() error {
	c.winners = map[string][]string{}
	machines := make([]*machine, c.processes)
	for i := range machines {
		machines[i] = &machine{c: c, name: fmt.Sprintf("machine-%d", i)}
		if err := machines[i].connect(); err != nil {
			return err
		}
		defer machines[i].end()
	}
	victims := map[int]*machine{} // by slot
	for len(victims) < min(c.kills, c.slots) {
		victims[rand.IntN(c.slots)] = machines[rand.IntN(len(machines))] //nolint:gosec // not a secret
	}
	first, failures := time.Date(2026, 3, 7, 9, 0, 0, 0, time.UTC), make([]error, c.processes)
	for i := range c.slots {
		at := first.Add(time.Duration(i) * time.Minute).Format(time.RFC3339)
		var all sync.WaitGroup
		for n, m := range machines {
			all.Go(func() { failures[n] = m.claim(at, victims[i] == m) })
		}
		all.Wait()
		if err := errors.Join(failures...); err != nil {
			return err
		}
	}
	return nil
}

// judge compares who thinks to have each slot with the table.
func (c *contest) judge() (doubles, none, wrong int, err error) {
	text, err := c.psql("-F", " ", "-c", `set timezone = 'UTC'; select to_char(slot, 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), machine from claim`).Output()
	if err != nil {
		return 0, 0, 0, err
	}
	table := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if slot, owner, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			table[slot] = owner
		}
	}
	none = c.slots - len(c.winners)
	for slot, names := range c.winners {
		if len(names) > 1 {
			doubles++
		} else if !slices.Contains(names, table[slot]) {
			wrong++
		}
	}
	return doubles, none, wrong, nil
}

// machine is one process that claims slots.
type machine struct {
	c    *contest
	name string
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
}

func (m *machine) connect() error {
	m.cmd = m.c.psql("-v", "job=job", "-v", "machine="+m.name)
	in, inErr := m.cmd.StdinPipe()
	out, outErr := m.cmd.StdoutPipe()
	m.in, m.out = in, bufio.NewReader(out)
	return errors.Join(inErr, outErr, m.cmd.Start())
}

// claim asks for a slot. A process that is killed before its answer is started again and asks again, as the next tick does.
func (m *machine) claim(slot string, kill bool) error {
	for range 10 {
		if _, err := io.WriteString(m.in, "\\set slot "+slot+"\n"+m.c.statements); err != nil {
			return err
		}
		if kill {
			time.Sleep(time.Duration(rand.Int64N(int64(20 * time.Millisecond)))) //nolint:gosec // not a secret
			_ = m.cmd.Process.Kill()
		}
		owner, err := m.out.ReadString('\n')
		switch {
		case err != nil && !kill:
			return fmt.Errorf("%s: %s: %w", m.name, slot, err)
		case err == nil && strings.TrimSpace(owner) == m.name:
			m.c.mu.Lock()
			m.c.winners[slot] = append(m.c.winners[slot], m.name)
			m.c.mu.Unlock()
		case err != nil:
			m.c.mu.Lock()
			m.c.killed++
			m.c.mu.Unlock()
		}
		if !kill {
			return nil
		}
		kill = false
		m.end()
		if again := m.connect(); again != nil || err == nil { // it had its answer
			return again
		}
	}
	return fmt.Errorf("%s: %s: no answer", m.name, slot)
}

func (m *machine) end() {
	_ = m.in.Close()
	_ = m.cmd.Wait()
}
