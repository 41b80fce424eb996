package doortest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/testkit"
)

// Ollim is a data directory with a door, and the real program. Its engine plays a script.
type Ollim struct {
	t    testing.TB
	name string
	dir  string

	serving *exec.Cmd
	log     safe
}

// safe is a buffer that a process writes and the test reads.
type safe struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *safe) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *safe) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// What the model says, by the turns of a session: in a conversation, in a run that pings and is continued by a reply, and in one that asks.
const (
	talks = "turns:\n  - - text: Hello, Ann.\n  - - text: I am well.\n"
	pings = "turns:\n  - - tool: ping_user\n      input: {message: The backup failed.}\n    - tool: report_updates\n      input: {message: pinged}\n  - - text: I will repeat it.\n"
	asks  = "turns:\n  - - tool: ask_owner\n      input: {question: \"Which photos?\", choices: [all, only new ones]}\n  - - text: copied\n"
)

// build returns the path of a copy of the program. The go command links it again only if it has changed: it is kept in .bin, under a lock,
// because the tests of the doors run at once.
func build(t testing.TB) string {
	t.Helper()
	kept, err := filepath.Abs("../../../.bin/test/door/ollim")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(kept), 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	held, err := new(lock.Table).Wait(t.Context(), kept+".lock")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release()
	out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", kept, "github.com/ollim/ollim/cmd/ollim").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	path := filepath.Join(t.TempDir(), "ollim")
	data, err := os.ReadFile(kept)
	if err == nil {
		err = testkit.WriteFile(path, data, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// New returns a data directory whose door is a program with arguments, an environment, and secrets, all as KEY=value.
func New(t testing.TB, name string, argv, env, secrets []string) *Ollim {
	t.Helper()
	o := &Ollim{t: t, name: name, dir: t.TempDir()}
	program := build(t)
	if err := os.Symlink(program, filepath.Join(o.dir, "ollim")); err != nil {
		t.Fatal(err)
	}
	o.OK("init", "--timezone", "UTC")
	lines := ""
	for _, s := range secrets {
		lines += "door." + name + "." + s + "\n"
	}
	o.write("play.yaml", talks)
	o.write(".config/ollim/secrets.env", lines)
	o.OK("config", "set", "engine", "script:play.yaml")
	o.OK(append([]string{"config", "set", "--", "doors." + name + ".command"}, argv...)...)
	if len(env) > 0 {
		o.OK(append([]string{"config", "set", "--", "doors." + name + ".env"}, env...)...)
	}
	for _, job := range []string{"backup", "photos"} {
		o.OK("routine", "add", job, "--id", job, "--cron", "0 3 * * *", "--background", "--isolated", "Do it.")
	}
	t.Cleanup(func() {
		o.Kill()
		if t.Failed() {
			out, _ := o.command("run", "log", "backup").CombinedOutput()
			t.Logf("the log is %s\n%s", o.log.String(), out)
		}
	})
	return o
}

func (o *Ollim) write(name, text string) {
	o.t.Helper()
	path := filepath.Join(o.dir, name)
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	if err != nil {
		o.t.Fatal(err)
	}
}

func (o *Ollim) command(args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(o.dir, "ollim"), args...)
	cmd.Env = []string{"OLLIM_DATA_DIR=" + o.dir, "HOME=" + o.dir, "PATH=" + os.Getenv("PATH"), "OLLIM_QUIET=none"}
	return cmd
}

// OK runs a command that must succeed, and returns what it prints.
func (o *Ollim) OK(args ...string) string {
	o.t.Helper()
	cmd := o.command(args...)
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		o.t.Fatalf("ollim %s: %v: %s%s", strings.Join(args, " "), err, out, errOut.String())
	}
	return string(out)
}

// Serve starts `ollim door serve`.
func (o *Ollim) Serve() {
	o.t.Helper()
	o.serving = o.command("door", "serve", o.name)
	o.serving.Stderr = &o.log
	if err := o.serving.Start(); err != nil {
		o.t.Fatal(err)
	}
}

// Kill kills `ollim door serve`, and with it the door.
func (o *Ollim) Kill() {
	if o.serving != nil {
		_ = o.serving.Process.Kill()
		_ = o.serving.Wait()
		o.serving = nil
	}
}

// Owner is how the owner uses a messenger in a story.
type Owner struct {
	Say    func(text, replyTo string)    // writes; replyTo is an id from Sees, or ""
	Sees   func(text string) (id string) // waits for a message of the bot that has a text
	Choose func(id string)               // presses the second button of a message, or replies with its number
	Left   func()                        // waits until the messenger knows that the bot is not connected; nil: it makes no difference
}

func (o *Ollim) restart(owner Owner) {
	o.t.Helper()
	o.Kill()
	if owner.Left != nil {
		owner.Left()
	}
	o.Serve()
}

// Story is a conversation; a ping whose reply continues the run; and a question that is answered. Before each reply all is killed and
// started again.
func (o *Ollim) Story(owner Owner) {
	o.t.Helper()
	o.Serve()
	owner.Say("Good morning", "")
	owner.Sees("Hello, Ann.")
	owner.Say("How are you?", "")
	owner.Sees("I am well.")
	o.write("play.yaml", pings)
	o.OK("fire", "backup")
	ping := owner.Sees("The backup failed.")
	o.restart(owner)
	owner.Say("Repeat it, please", ping)
	owner.Sees("I will repeat it.")
	if runs, _, _ := strings.Cut(o.OK("run", "list"), "\n"); !strings.Contains(runs, "\tfork\t") {
		o.t.Errorf("the reply did not continue the run: %s", runs)
	}
	o.write("play.yaml", asks)
	o.OK("fire", "photos")
	question := owner.Sees("Which photos?")
	o.restart(owner)
	owner.Choose(question)
	for late := time.Now().Add(Patience); !strings.Contains(o.OK("run", "show", "photos"), "copied"); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(late) {
			o.t.Fatalf("the run did not continue: %s", o.OK("run", "show", "photos"))
		}
	}
	if log := o.OK("run", "log", "photos"); !strings.Contains(log, "only new ones") {
		o.t.Errorf("the answer is not in the run: %s", log)
	}
}
