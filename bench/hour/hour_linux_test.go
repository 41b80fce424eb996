// Package hour is the first hour of a user, typed at a terminal and looked at on its screen: a trial, a real engine, its key, messages, a
// routine that Debian's cron fires, and a conversation. It needs a home without ollim and a cron that runs: .ci/first-hour has both.
package hour

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
	"github.com/ollim/ollim/internal/testkit/screen"
)

// answer is what the agent says in the conversation, and shown what the person sees of it.
const (
	answer = "# Trees\n\nAn **oak** is old.\n\n- one\n- two\n"
	shown  = `(?m)^> ab日本語テ\ncatching up on background activity…\n  Trees\n\n  An oak is old\.\n\n  [-•] one\n  [-•] two\n(.* tokens.*\n)?>$`
)

// TestFirstHour: the way from the README to an agent that works, with each engine.
func TestFirstHour(t *testing.T) {
	if os.Getenv("OLLIM_TEST_HOUR") != "1" {
		t.Skip("it needs a bare home and a cron that runs: .ci/first-hour")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range left(home) {
		if _, err := os.Lstat(path); err == nil {
			t.Fatalf("%s exists already: run .ci/first-hour, which has a home of its own", path)
		}
	}
	install(t)
	for _, engine := range []story{script{}, native{}, claude{}} {
		t.Run(engine.name(), func(t *testing.T) {
			began := time.Now()
			p := sit(t, home, agent(t))
			t.Cleanup(func() { clean(t, home) })
			p.trial(engine)
			p.setUp(engine)
			p.cronFires(engine)
			p.talks(engine)
			p.narrow()
			t.Logf("the first hour with %s took %s", engine.name(), time.Since(began).Round(time.Second))
		})
	}
}

// install is the command of the README, once for all stories.
func install(t *testing.T) {
	t.Helper()
	cmd := exec.Command("go", "install", "-tags", "nethttpomithttp2", "./cmd/ollim")
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
}

// left are the files and directories that a story leaves.
func left(home string) (paths []string) {
	for _, name := range []string{".ollim-bot", ".config/ollim", ".claude", ".claude.json", "inbox.txt"} {
		paths = append(paths, filepath.Join(home, name))
	}
	return paths
}

func clean(t *testing.T, home string) {
	t.Helper()
	if out, err := exec.Command("crontab", "-r").CombinedOutput(); err != nil {
		t.Errorf("crontab -r: %s, %v", out, err)
	}
	for _, path := range left(home) {
		if err := os.RemoveAll(path); err != nil {
			t.Error(err)
		}
	}
}

// agent is a model that pings when a routine asks it to, knows who it talks to if it was told, and writes Markdown otherwise.
func agent(t *testing.T) *anthropicapi.Server {
	t.Helper()
	api := anthropicapi.New(t)
	api.Handle(func(q anthropicapi.Request) anthropicapi.Reply {
		said := q.LastUserText()
		use := func(tool, message string) anthropicapi.Reply {
			all := q.ToolNames()
			name := slices.IndexFunc(all, func(name string) bool { return strings.HasSuffix(name, tool) })
			return anthropicapi.Use(all[max(0, name)], map[string]string{"message": message})
		}
		switch {
		case len(q.ToolResults()) > 0 && !q.Has("The pump was tried."):
			return use("report_updates", "The pump was tried.")
		case len(q.ToolResults()) > 0:
			return anthropicapi.Reply{Text: "Done."}
		case strings.Contains(said, "Ping me with the word pump"):
			return use("ping_user", "The pump works.")
		case strings.Contains(said, "Who am I?") && q.Has("I am Ada"):
			return anthropicapi.Reply{Text: "You are Ada."}
		case strings.Contains(said, "ab日本語テ"):
			return anthropicapi.Reply{Text: answer}
		}
		return anthropicapi.Reply{Text: "It works."}
	})
	return api
}

// trial is what the README says: a throw-away directory, a script in place of the model; and then a real engine in it.
func (p *person) trial(s story) {
	p.t.Helper()
	p.run(`export PATH="$PATH:$(go env GOPATH)/bin"`)
	p.run("export OLLIM_DATA_DIR=$(mktemp -d)")
	p.run(`printf 'turns:\n  - - text: hello\n' >"$OLLIM_DATA_DIR/hello.yaml"`)
	p.sees("ollim init --engine script:hello.yaml --routine disk --yes", "^created config", "^hello$", "^engine +script:hello.yaml$")
	p.sees("ollim fire disk", "disk: ok, ")
	p.sees(`ollim chat "I am Ada"`, "^hello$")
	p.sees("ollim status", `^spent +\$0\.00 of`, "^week +.*1 ok")
	s.change(p)
	p.run(`rm -r "$OLLIM_DATA_DIR"`)
	p.run("unset OLLIM_DATA_DIR")
	p.sees("ollim status", "ollim: hint: ollim init$")
}

// setUp is ollim init, answered at the terminal.
func (p *person) setUp(s story) {
	p.t.Helper()
	s.before(p)
	p.types("ollim init")
	p.answers([2]string{`Timezone \[.*\]:`, "Europe/Paris"})
	s.engine(p)
	p.answers(
		[2]string{`test question.* \[yes\]:`, ""},
		[2]string{`Send messages by \[none\]:`, "cat >> ~/inbox.txt"},
		[2]string{`Did it arrive \[yes\]:`, "y"},
		[2]string{`Routine \[disk\]:`, "disk"},
		[2]string{`Scheduler: .*\[crontab\]:`, "crontab"},
		[2]string{`Fire disk now, .*\[yes\]:`, ""},
	)
	all := p.has("ollim init", p.shown(), "^ollim: init: test question: ok, ", `^A test message .*cat >> ~/inbox\.txt`, "disk: ok, ")
	last := all[strings.LastIndex(all, "\n\n")+2:]
	p.has("the end of ollim init", last, `^fires +disk, .* 09:00 CES?T$`, "^engine +"+s.name(), "^costs +"+s.costs(),
		`^messages +cat >> ~/inbox\.txt$`, "^schedule +in crontab$", "^next +ollim chat")
	if rows := strings.Count(last, "\n"); rows > p.size.Rows-2 {
		p.t.Errorf("the end of ollim init has %d lines", rows)
	}
	if s.name() != "script" {
		p.keyIsHidden()
	}
	p.has("the inbox", p.inbox(), "test message of ollim init")
	p.sees("ollim init", "nothing is missing$")
}

func (p *person) inbox() string {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.home, "inbox.txt"))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text)
}

// cronFires adds a routine and waits until Debian's cron has fired it.
func (p *person) cronFires(s story) {
	p.t.Helper()
	s.pinging(p)
	p.sees("ollim config set quiet none; echo set $?", "^set 0$") // a ping is not held at night
	p.sees(`ollim routine add pump --cron "* * * * *" --background "Ping me with the word pump."`, `pump\.md fires next .* CES?T$`, "^pump$")
	const fired = "until ollim run list --json pump | grep -q outcome.:.ok || [ $SECONDS -gt $late ]; do sleep 1; done"
	for range 15 { // a minute each: what is typed must end before a screen's patience does
		p.run("late=$((SECONDS+60)); " + fired)
		if strings.Contains(p.run("ollim run list pump"), " ok ") {
			break
		}
	}
	p.sees("ollim run list pump", `^\S+ +\S.* pump +ok `)
	p.has("the inbox", p.inbox(), `^The pump works\.$`)
	p.sees("ollim schedule audit; echo status $?", "^nothing was due in the last 7d; what is due is listed 15 minutes after its time$", "^status 0$")
	p.run("ollim routine disable pump")
	p.sees("ollim doctor; echo status $?", "^status 0$")
}

// talks is a conversation: what happened meanwhile greets, wide characters are edited, and Markdown is shown as what it means.
func (p *person) talks(s story) {
	p.t.Helper()
	s.answering(p)
	p.types("ollim chat")
	p.WaitFor(`(?m)^pending updates, which the agent gets with your next message:\n- \(.*\) The pump was tried\.(?s:.*)^>$`)
	p.Type("日本語テスト\x7f\x7f\x01ab")
	p.Wait("the prompt has ab日本語テ and the cursor after ab", func() bool {
		lines := p.Lines()
		column, row := p.Cursor()
		return lines[len(lines)-1] == "> ab日本語テ" && column == 4 && row == len(lines)-1
	})
	p.types("")
	p.WaitFor(shown)
	for _, style := range []string{`\x1b\[[\d;]*1[\d;]*m *oak`, `\x1b\[[\d;]*m *Trees`} {
		if !regexp.MustCompile(style).MatchString(p.Styled()) {
			p.t.Errorf("no %s: %q", style, p.Styled())
		}
	}
	p.Type("\x04")
	p.shown()
	p.sees("ollim update list", `^$|no updates|nothing`)
}

// narrow looks at the lists on a terminal of 60 columns.
func (p *person) narrow() {
	p.t.Helper()
	p.size = screen.Size{Columns: 60, Rows: 24}
	p.Resize(p.size)
	p.sees("ollim status", "^tick +", "^next +.*Disk space", "^spent +")
	p.sees("ollim run list", "^ID +STARTED", " pump +ok$|  pump +ok ", " disk +ok$|  disk +ok ")
	p.sees("ollim routine list", "^ID +NAME", "^disk +", "^pump +")
	p.sees("ollim doctor; echo status $?", "^PASS +", "^status 0$")
	if line := fmt.Sprintf("[%d]$", p.n); !slices.Contains(p.Lines(), line) {
		p.t.Errorf("the prompt %s is not on the screen:\n%s", line, p.Picture())
	}
}
