package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ollim/ollim/internal/testkit"
)

// TestScript plays testdata/script/*.txtar, each in a directory of its own. UPDATE=1 rewrites what `cmp` compares with;
// CONTINUE=1 goes on behind a failure, to see all that is wrong at once.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       os.Getenv("UPDATE") != "",
		ContinueOnError:     os.Getenv("CONTINUE") != "",
		Setup:               scriptSetup,
		Condition:           scriptCondition,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":     cmdExits,
			"complains": cmdComplains,
			"ended":     cmdEnded,
			"signal":    cmdSignal,
			"shows":     cmdShows,
			"waitfile":  cmdWaitfile,
			"claude":    cmdClaude,
			"tmpfs":     cmdTmpfs,
			"freeport":  cmdFreeport,
			"listens":   cmdListens,
			"answers":   cmdAnswers,
		},
	})
}

// scriptSetup gives a script a home and a data directory that do not exist yet, and nothing of the caller's. $ollim is the
// path of the binary, for what runs without a PATH, and $pages the directory of the manual pages.
func scriptSetup(env *testscript.Env) error {
	home := filepath.Join(env.WorkDir, "home")
	env.Setenv("HOME", home)
	env.Setenv("OLLIM_DATA_DIR", filepath.Join(env.WorkDir, "data"))
	env.Setenv("TZ", "UTC")
	env.Setenv("OLLIM_QUIET", "none") // at any hour of the day
	env.Setenv("ollim", program)
	pages, err := filepath.Abs(filepath.Join("..", "..", "man"))
	if err != nil {
		return err
	}
	env.Setenv("pages", pages)
	env.Values[sideJobsKey{}] = map[string]*sideJob{}
	return os.Mkdir(home, 0o700)
}

// scriptCondition knows [tmpfs]: a file system may be mounted here, [pidns]: a PID namespace may be made, and [have:PROGRAM]. What
// is missing where CI=true is an error, but not the permission to make a namespace.
func scriptCondition(cond string) (bool, error) {
	there := false
	switch program, named := strings.CutPrefix(cond, "have:"); {
	case cond == "tmpfs":
		there = canMount()
	case cond == "pidns":
		unshare, err := exec.LookPath("unshare")
		there = err == nil
		permitted := there && exec.Command(unshare, "--pid", "--fork", "--mount-proc", "true").Run() == nil
		if there && !permitted {
			return false, nil
		}
	case named:
		_, err := exec.LookPath(program)
		there = err == nil
	default:
		return false, fmt.Errorf("unknown condition %q", cond)
	}
	if !there && testkit.CI() {
		return false, fmt.Errorf("%s is missing", cond)
	}
	return there, nil
}

// sideJobsKey is the key under which a script keeps its background jobs.
type sideJobsKey struct{}

// sideJob is a command that `exits N COMMAND... &NAME&` started.
type sideJob struct {
	cmd  *exec.Cmd
	want int
	out  string        // the name of the file that takes standard output; standard error is beside it
	done chan struct{} // closed when the command has been waited for
}

func sideJobs(ts *testscript.TestScript) map[string]*sideJob {
	return ts.Value(sideJobsKey{}).(map[string]*sideJob)
}

// cmdExits is
//
//	exits STATUS COMMAND [ARG...] [&NAME&]
//
// It runs a command and requires exactly that exit status. With &NAME& the command goes on beside the script (without
// standard input), and `ended NAME` requires the status.
func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS COMMAND [ARG...] [&NAME&]")
	}
	want := atoi(ts, args[0])
	if name := strings.Trim(args[len(args)-1], "&"); args[len(args)-1] == "&"+name+"&" {
		beginSideJob(ts, name, want, args[1:len(args)-1])
		return
	}
	if got := execStatus(ts, args[1:]); got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// execStatus is exec with the exit status for a result.
func execStatus(ts *testscript.TestScript, args []string) int {
	err := ts.Exec(args[0], args[1:]...)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		ts.Fatalf("%s: %v", args[0], err)
	}
	if exit == nil {
		return 0
	}
	return exit.ExitCode()
}

func beginSideJob(ts *testscript.TestScript, name string, want int, args []string) {
	if sideJobs(ts)[name] != nil {
		ts.Fatalf("there is a job %q already", name)
	}
	ts.Check(ts.Exec("env", "-0")) // the only way to the script's environment
	vars := strings.Split(strings.TrimSuffix(ts.ReadFile("stdout"), "\x00"), "\x00")
	j := &sideJob{want: want, out: filepath.Join(ts.Getenv("WORK"), ".side-"+name), done: make(chan struct{})}
	j.cmd = exec.Command(lookPath(ts, args[0]), args[1:]...)
	j.cmd.Dir, j.cmd.Env = ts.MkAbs("."), vars
	j.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	j.start(ts)
	go func() {
		_ = j.cmd.Wait()
		close(j.done)
	}()
	sideJobs(ts)[name] = j
	ts.Defer(func() {
		_ = syscall.Kill(-j.cmd.Process.Pid, syscall.SIGKILL)
		<-j.done
	})
}

// start gives the command files instead of pipes: what it leaves behind may hold them, and nobody waits for that.
func (j *sideJob) start(ts *testscript.TestScript) {
	stdout, err := os.Create(j.out)
	ts.Check(err)
	defer stdout.Close()
	stderr, err := os.Create(j.out + ".err")
	ts.Check(err)
	defer stderr.Close()
	j.cmd.Stdout, j.cmd.Stderr = stdout, stderr
	ts.Check(j.cmd.Start())
}

// lookPath finds a command in the script's PATH, which need not be ours.
func lookPath(ts *testscript.TestScript, name string) string {
	if filepath.Base(name) != name {
		return name
	}
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file
		}
	}
	ts.Fatalf("%s: not in PATH=%s", name, ts.Getenv("PATH"))
	return ""
}

// cmdEnded waits for background jobs, requires their exit statuses and makes the output of the last one that of the script.
func cmdEnded(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: ended NAME...")
	}
	for i, name := range args {
		j := sideJobOf(ts, name)
		select {
		case <-j.done:
		case <-time.After(patience):
			ts.Fatalf("%s: still running after %s", name, patience)
		}
		delete(sideJobs(ts), name)
		got := j.cmd.ProcessState.ExitCode()
		if i == len(args)-1 || got != j.want {
			_, _ = io.WriteString(ts.Stdout(), ts.ReadFile(j.out))
			_, _ = io.WriteString(ts.Stderr(), ts.ReadFile(j.out+".err"))
		}
		if got != j.want {
			ts.Fatalf("%s: %v, want exit status %d", name, j.cmd.ProcessState, j.want)
		}
	}
}

func sideJobOf(ts *testscript.TestScript, name string) *sideJob {
	j := sideJobs(ts)[name]
	if j == nil {
		ts.Fatalf("there is no background job %q", name)
	}
	return j
}

// cmdSignal sends TERM, INT, HUP or KILL to a background job.
func cmdSignal(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]os.Signal{"TERM": syscall.SIGTERM, "INT": os.Interrupt, "KILL": os.Kill, "HUP": syscall.SIGHUP}
	if neg || len(args) != 2 || signals[args[0]] == nil {
		ts.Fatalf("usage: signal TERM|INT|HUP|KILL NAME")
	}
	ts.Check(sideJobOf(ts, args[1]).cmd.Process.Signal(signals[args[0]]))
}

// cmdShows waits until the standard output of a background job matches.
func cmdShows(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: shows NAME REGEXP")
	}
	j := sideJobOf(ts, args[0])
	said, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	waitFor(ts, fmt.Sprintf("a match for %#q in the output of %s", said, args[0]), func() bool { return said.MatchString(ts.ReadFile(j.out)) })
}

// cmdClaude makes a program of the script the claude command of its data directory, and spares it the trial that a new one is given.
func cmdClaude(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: claude FILE")
	}
	path := ts.MkAbs(args[0])
	ts.Check(os.Chmod(path, 0o755))
	ts.Check(ts.Exec("ollim", "config", "set", "claude-code.command", path))
	ts.Check(knowClaude(ts.Getenv("OLLIM_DATA_DIR"), path, standIn()))
}

// cmdWaitfile waits until every file is there.
func cmdWaitfile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: waitfile FILE...")
	}
	for _, arg := range args {
		waitFor(ts, arg, func() bool {
			_, err := os.Lstat(ts.MkAbs(arg))
			return err == nil
		})
	}
}

// waitFor is eventually in a script.
func waitFor(ts *testscript.TestScript, what string, ok func() bool) {
	if !await(ok) {
		ts.Fatalf("not in %s: %s", patience, what)
	}
}

// cmdComplains is
//
//	complains STATUS REGEXP COMMAND [ARG...]
//
// It runs a command that must fail as every command does: with that status, nothing on standard output, and on standard error one
// line `ollim: …` that the expression matches, with at most a line `ollim: hint: …` behind it. Warnings, which are about
// other files, may stand before it.
func cmdComplains(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: complains STATUS REGEXP COMMAND [ARG...]")
	}
	want := atoi(ts, args[0])
	said, err := regexp.Compile(args[1])
	ts.Check(err)
	if got := execStatus(ts, args[2:]); got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
	if out := ts.ReadFile("stdout"); out != "" {
		ts.Fatalf("it wrote %q to standard output", out)
	}
	lines := strings.Split(strings.TrimSuffix(ts.ReadFile("stderr"), "\n"), "\n")
	for len(lines) > 1 && strings.HasPrefix(lines[0], "ollim: warning: ") {
		lines = lines[1:]
	}
	if len(lines) > 2 || len(lines) == 2 && !strings.HasPrefix(lines[1], "ollim: hint: ") {
		ts.Fatalf("want one line, and at most a hint")
	}
	if fault := faultOfLine(lines[0]); fault != "" {
		ts.Fatalf("%s: %q", fault, lines[0])
	}
	if !said.MatchString(lines[0]) {
		ts.Fatalf("no match for %#q in %q", said, lines[0])
	}
}

// faultOfLine is what is wrong with the form of a line on standard error.
func faultOfLine(line string) string {
	rest, ours := strings.CutPrefix(line, "ollim: ")
	parts := strings.Split(rest, ": ")
	switch {
	case !ours:
		return "the line does not begin with `ollim: `"
	case strings.HasPrefix(rest, "hint: "), strings.HasPrefix(rest, "warning: "):
		return "the line is no failure"
	case strings.HasSuffix(line, "."), strings.HasSuffix(line, ":"), strings.HasSuffix(line, " "):
		return "the line does not end in a word"
	case strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }):
		return "the line holds a control character"
	}
	for i := 1; i < len(parts); i++ {
		if parts[i] == parts[i-1] {
			return "the line says the same twice"
		}
	}
	return ""
}

func atoi(ts *testscript.TestScript, text string) int {
	n, err := strconv.Atoi(text)
	ts.Check(err)
	return n
}

// canMount reports whether we may mount a file system: as root, and not everywhere.
var canMount = sync.OnceValue(func() bool {
	dir, err := os.MkdirTemp("", "ollim-mount-")
	if err != nil {
		return false
	}
	defer func() { _ = os.Remove(dir) }()
	return mountTmpfs(dir, "64k") == nil && exec.Command("umount", dir).Run() == nil
})

func mountTmpfs(dir, size string) error {
	return exec.Command("mount", "-t", "tmpfs", "-o", "mode=700,size="+size, "tmpfs", dir).Run()
}

// cmdTmpfs mounts an empty file system of a size such as 64k at a new directory, for as long as the script runs.
func cmdTmpfs(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: tmpfs DIR SIZE")
	}
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o700))
	ts.Check(mountTmpfs(dir, args[1]))
	ts.Defer(func() {
		if out, err := exec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
			ts.Logf("umount %s: %v: %s", dir, err, out)
		}
	})
}
