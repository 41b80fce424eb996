package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ollim/ollim/internal/platform/seal"
	"github.com/ollim/ollim/internal/testkit"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// TestEscapes: a routine that may run ./anything.sh tries to read the secrets and ollim's state, to change what is outside its folders,
// and to connect elsewhere. What it tries succeeds where nothing is sealed, and nothing of it where its commands are.
func TestEscapes(t *testing.T) {
	t.Parallel()
	testEscapes(t)
}

// TestEscapesOfUser is the same as a user without privileges.
func TestEscapesOfUser(t *testing.T) {
	t.Parallel()
	testkit.OnlyInCI(t, "TestEscapes once more, as a user without privileges")
	env := []string{"OLLIM_TEST_PROGRAM=" + program}
	if os.Getuid() == 0 {
		dir := forUser(t)
		env = append(env, "OLLIM_TEST_PROBE="+dir, "OLLIM_TEST_CLAUDE="+filepath.Join(dir, "claude"))
	}
	if testkit.Unprivileged(t, env...) {
		testEscapes(t)
	}
}

func testEscapes(t *testing.T) {
	if _, err := seal.Check(); err != nil {
		testkit.Missing(t, "%v: run the test on Linux 6.12 or later", err)
	}
	probe := os.Getenv("OLLIM_TEST_PROBE")
	if probe == "" {
		probe = compileProbe(t)
	}
	t.Run("without a seal", func(t *testing.T) {
		t.Parallel()
		testkit.OnlyInCI(t, "that each attempt succeeds without a seal")
		p := newPrison(t, "native", probe, false)
		p.run()
		old := runs32Bit(t, probe)
		for _, a := range p.trials {
			if a.escaped() == "" && (old || !strings.Contains(a.name, "32-bit")) {
				t.Errorf("%s: fails without a seal: %s", a.name, a.said())
			}
		}
	})
	for _, engine := range []string{"native", "native with a network", "claude"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			if engine != "native" {
				testkit.OnlyInCI(t, "the same attempts by rules that are much the same")
			}
			p := newPrison(t, engine, probe, true)
			before := p.contents()
			p.run()
			for _, a := range p.trials {
				how := a.escaped()
				if a.stops == nothing && how == "" {
					t.Errorf("%s: it does not escape any more, which the manual says: %s", a.name, a.said())
				}
				if a.stops != nothing && how != "" {
					t.Errorf("%s: %s; %s ought to stop it: %s", a.name, how, a.stops, a.said())
				}
			}
			same(t, "what no attempt may change", p.contents(), before)
		})
	}
}

// runs32Bit reports whether the kernel carries out the system calls of 32-bit programs: some are built without them, and end a program
// that makes one.
func runs32Bit(t *testing.T, probe string) bool {
	t.Helper()
	out, err := exec.Command(filepath.Join(probe, "probe"), "old-read", "/etc/passwd").CombinedOutput()
	if err != nil {
		t.Logf("a call of 32-bit programs, without ollim: %v: %s", err, out)
	}
	return err == nil
}

// prison is a data directory with a routine that makes attempts.
type prison struct {
	*command
	api     *anthropicapi.Server
	base    string
	probe   string // directory of the compiled programs
	sealed  bool
	network string // any or none
	trials  []*trial
}

// trial is an escape as it was made.
type trial struct {
	escape
	*prison
	row     string // of its scripts and files
	out     string // a directory in the state
	arrived atomic.Int32
	victim  *os.Process
	was     string // what there is to see of the victim
}

func newPrison(t *testing.T, engine, probe string, sealed bool) *prison {
	t.Helper()
	base, err := os.MkdirTemp("/tmp", "escapes") // the path of a socket has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	p := &prison{base: base, probe: probe, sealed: sealed, network: "none", api: anthropicapi.New(t)}
	engine, network := strings.CutSuffix(engine, " with a network")
	if network {
		p.network = "any"
	}
	p.command = &command{t: t, path: program, data: filepath.Join(base, "data")}
	p.env = []string{"HOME=" + filepath.Join(base, "home"), "TMPDIR=" + filepath.Join(base, "tmp"), "OWNER=sesame"}
	for path, text := range map[string]string{
		"home/.config/ollim/secrets.env": "# sesame\n", "home/.ssh/id_ed25519": "sesame\n", "home/.bashrc": "true\n",
		"tmp/ollim-other/secret": "sesame\n", "data/state/diary": "sesame\n", "data/sessions/diary": "sesame\n",
		"data/gates/check": "#!/bin/sh\n: sesame\n", "data/tool-policy.yaml": "# sesame\n",
		"data/anything.sh": anything,
	} {
		p.put(path, text)
	}
	p.ok("init", "--timezone", "America/New_York")
	if err := errors.Join(os.Chmod(filepath.Join(p.data, "anything.sh"), 0o700), appendTo(filepath.Join(p.data, "config.yaml"), "# sesame\n")); err != nil {
		t.Fatal(err)
	}
	p.engine(engine)
	p.ok("routine", "add", "other", "--id", "other", "--cron", "@yearly", "--background", "--isolated", "Work.")
	job := []string{
		"routine", "add", "daily", "--id", "daily", "--cron", "@yearly", "--background", "--isolated", "--dirs", probe,
		"--allowed-tools", "Bash(./anything.sh *)", "--allowed-tools", "Write(work/**)", "Work.",
	}
	if sealed {
		job = append(job, "--network", p.network, "--seal", "on")
	} else {
		p.ok("config", "set", "seal", "off")
	}
	p.ok(job...)
	p.prepare()
	return p
}

// anything makes four attempts at once.
const anything = `#!/bin/sh
cd work/rows && ls | xargs -P 4 -n 1 sh -c 'timeout -k 1 60 sh "./$1" >"../results/$1" 2>&1 </dev/null; true' sh
echo all attempts were made
`

func (p *prison) engine(name string) {
	if name == "native" {
		p.ok("config", "set", "env", "ANTHROPIC_API_KEY=k")
		p.ok("config", "set", "native.base-url", p.api.URL())
		p.ok("config", "set", "engine", "native")
		return
	}
	p.ok(append([]string{"config", "set", "env"}, anthropicapi.ClaudeEnv(p.t, p.api)...)...)
	p.ok("config", "set", "claude-code.command", anthropicapi.Claude(p.t))
	p.ok("config", "set", "engine", "claude-code")
}

// put makes a file below the base, and its directories.
func (p *prison) put(path, text string) {
	p.t.Helper()
	path = filepath.Join(p.base, path)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), testkit.WriteFile(path, []byte(text), 0o600)); err != nil {
		p.t.Fatal(err)
	}
}

// prepare writes a script for each attempt and makes what it aims at.
func (p *prison) prepare() {
	p.t.Helper()
	for _, dir := range []string{"work/rows", "work/results"} {
		if err := os.MkdirAll(filepath.Join(p.data, dir), 0o700); err != nil {
			p.t.Fatal(err)
		}
	}
	for i, e := range p.escapes() {
		tool, _, _ := strings.Cut(e.name, ":")
		switch {
		case !p.sealed && e.free == otherwise, e.free == asRoot && (!p.sealed || e.stops == nothing) && os.Getuid() != 0:
			continue
		case tool == "ollim":
		case !installed(tool):
			p.t.Logf("%s: %s is missing", e.name, tool)
			if testkit.CI() {
				p.t.Fail()
			}
			continue
		}
		a := &trial{escape: e, prison: p, row: fmt.Sprintf("%03d", i)}
		a.out = filepath.Join(p.data, "state/escapes", a.row)
		a.prepare()
		p.trials = append(p.trials, a)
	}
}

// escapes returns all, or those to sockets that a network does not open.
func (p *prison) escapes() []escape {
	if p.network == "none" {
		return slices.Concat(fileEscapes(), processEscapes(), connectionEscapes(), commandEscapes(), openEscapes())
	}
	return slices.DeleteFunc(connectionEscapes(), func(e escape) bool { return uses(e.try, "(TCP6?|OTHER)") })
}

// installed reports whether the commands of a routine find a program.
func installed(name string) bool {
	return slices.ContainsFunc([]string{"/usr/bin", "/bin", "/usr/sbin"}, func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	})
}

func (a *trial) prepare() {
	a.t.Helper()
	dir := filepath.Join("data/state/escapes", a.row)
	for name, text := range map[string]string{"secret": "sesame\n", "victim": "intact\n", "data.json": `"sesame"`} {
		a.put(filepath.Join(dir, name), text)
	}
	script := "export PATH=/usr/bin:/bin:/usr/sbin:" + filepath.Dir(a.path) + "\nexport ROW=" + a.row + " SURVIVE=" + a.survive() + " OTHERS=" + a.base + "/tmp" +
		" PROBE=" + a.probe + "/probe LIB=" + a.probe + "/probe.so SETUID=" + a.probe + "/setuid DATA=" + a.data + " HOME=" + a.base + "/home" +
		" OUT=" + a.out + " SECRET=" + a.out + "/secret VICTIM=" + a.out + "/victim\n"
	for name, make := range map[string]func() string{
		"TCP": func() string { return a.listen("tcp4", "127.0.0.1:0") }, "TCP6": func() string { return a.listen("tcp6", "[::1]:0") },
		"OTHER": a.listenOther, "UDP": a.listenUDP,
		"UNIX": func() string { return a.listen("unix", filepath.Join(a.out, "sock")) }, "FDS": func() string { return a.listen("unix", filepath.Join(a.out, "fds")) },
		"ABSTRACT": func() string { return a.listen("unix", "@escape-"+filepath.Base(a.base)+a.row)[1:] },
		"PID":      a.startVictim, "KEY": a.addKey, "SHM": a.shareMemory, "MSG": a.queueMessage,
	} {
		if uses(a.try, name) {
			script += "export " + name + "=" + make() + "\n"
		}
	}
	if uses(a.try, "ENVIRON") {
		script += "export ENVIRON=" + environOf(a.t, a.victim.Pid) + "\n"
	}
	if uses(a.try, "OLLIM") {
		script += "OLLIM=$$; until [ $(cat /proc/$OLLIM/comm) = ollim ]; do OLLIM=$(sed -n 's/^PPid:.//p' /proc/$OLLIM/status); done\n"
	}
	script += "mkdir ../$ROW && cd ../$ROW\n"
	a.put(filepath.Join("data/work/rows", a.row), script+a.try+"\n")
	a.was = a.seen()
}

// uses reports whether a script uses a variable.
func uses(script, name string) bool {
	return regexp.MustCompile(`(\$\{?|ENV\{|environ\["|env\.)` + name + `\b`).MatchString(script)
}

// run fires the routine, which makes the attempts.
func (p *prison) run() {
	p.t.Helper()
	p.api.Handle(func(q anthropicapi.Request) anthropicapi.Reply {
		if len(q.ToolResults()) == 0 {
			return anthropicapi.Use("Bash", map[string]any{"command": "./anything.sh goes", "timeout": 600_000})
		}
		return anthropicapi.Reply{Text: "done"}
	})
	p.ok("fire", "daily")
	requests := p.api.Requests()
	if results := requests[len(requests)-1].ToolResults(); len(results) != 1 || !strings.Contains(results[0].ResultText, "all attempts were made") {
		p.t.Errorf("the attempts were not made: %+v", results)
	}
	if got := strings.Contains(p.ok("run", "show", "daily"), `"abi"`); got != p.sealed {
		p.t.Errorf("the record says %v, sealed %v", got, p.sealed)
	}
}

// contents returns what no attempt may change.
func (p *prison) contents() string {
	p.t.Helper()
	var all strings.Builder
	for _, dir := range []string{"home", "tmp", "data/gates", "data/routines", "data/config.yaml", "data/tool-policy.yaml", "data/anything.sh", "data/state/diary", "data/sessions/diary"} {
		err := filepath.WalkDir(filepath.Join(p.base, dir), func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() || strings.Contains(path, "/.cache/ollim/") { // that is the job's own
				return err
			}
			text, err := os.ReadFile(path)
			fmt.Fprintf(&all, "%s: %s\n", path, text)
			return err
		})
		if err != nil {
			p.t.Error(err)
		}
	}
	return all.String()
}

// escaped returns what the attempt has achieved; "" is nothing.
func (a *trial) escaped() string {
	said := a.said()
	switch {
	case strings.Contains(said, "sesame"):
		return "it has read the secret"
	case strings.Contains(said, "ESCAPED"):
		return "it has done it"
	case a.wrote("sesame"):
		return "the secret is in its directory"
	case a.arrived.Load() > 0:
		return "it has connected"
	case a.seen() != a.was:
		return fmt.Sprintf("%q was %q", a.seen(), a.was)
	case strings.Contains(a.try, "$SURVIVE") && a.survivor() != 0:
		_ = unix.Kill(a.survivor(), unix.SIGKILL)
		return "a process is left"
	}
	return ""
}

func (a *trial) said() string {
	text, err := os.ReadFile(filepath.Join(a.data, "work/results", a.row))
	if err != nil {
		a.t.Errorf("%s: %v", a.name, err)
	}
	return string(text)
}

// wrote reports whether a word is in a file of the attempt's own.
func (a *trial) wrote(word string) (found bool) {
	_ = filepath.WalkDir(filepath.Join(a.data, "work", a.row), func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			text, _ := os.ReadFile(path)
			found = found || strings.Contains(string(text), word)
		}
		return nil
	})
	return found
}

// seen describes what the attempt may not change.
func (a *trial) seen() string {
	victim, _ := os.ReadFile(filepath.Join(a.out, "victim"))
	entries, _ := os.ReadDir(a.out)
	state := fmt.Sprintf("%s %v ", victim, entries)
	if a.victim == nil {
		return state
	}
	proc := fmt.Sprintf("/proc/%d/", a.victim.Pid)
	stat, _ := os.ReadFile(proc + "stat")
	_, rest, _ := strings.Cut(string(stat), ") ")
	if fields := strings.Fields(rest); len(fields) > 16 {
		state += fmt.Sprint(strings.ContainsAny(fields[0], "ZXTt"), " ", fields[16], " ")
	}
	for _, name := range []string{"limits", "oom_score_adj", "status"} {
		text, _ := os.ReadFile(proc + name)
		for line := range strings.Lines(string(text)) {
			if name == "oom_score_adj" || strings.HasPrefix(line, "Max open") || strings.HasPrefix(line, "Cpus_allowed:") {
				state += strings.Join(strings.Fields(line), " ") + " "
			}
		}
	}
	return state
}

// survive returns seconds that no other sleep takes.
func (a *trial) survive() string {
	return strings.ReplaceAll(filepath.Base(a.base)+a.row, "escapes", "7654321.")
}

// survivor returns a process that the attempt has left; 0 is none.
func (a *trial) survivor() int {
	lists, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lists {
		if text, _ := os.ReadFile(path); strings.Contains(string(text), "sleep\x00"+a.survive()) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			return pid
		}
	}
	return 0
}
