package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// powerScript reports, pings and costs money.
const powerScript = `turns:
  - - text: one
    - tool: report_updates
      input: {message: "reported"}
    - tool: ping_user
      input: {message: "slot ran"}
    - cost: 0.01
    - text: done
`

// powerQuestion asks, and reads the answer.
const powerQuestion = `turns:
  - - tool: ask_owner
      input: {question: "Which?", choices: [red, blue]}
    - text: asked
  - - text: answered
    - tool: report_updates
      input: {message: "painted"}
`

// deliver is a delivery command that keeps a message outside of the data directory, which loses nothing, before it exits 0.
// (cat copies in the kernel, which the model does not know.)
const deliver = `tee "../outside/$OLLIM_MESSAGE_ID.$$.new" > /dev/null && mv "../outside/$OLLIM_MESSAGE_ID.$$.new" "../outside/$OLLIM_MESSAGE_ID.$$"`

// deed is a command that is acknowledged by its exit status 0, and what must hold after a power failure that comes later.
type deed struct {
	args  string // separated by |
	input string
	holds func(p *power)
}

// power is a data directory before, or after, a power failure.
type power struct {
	*command
	api     *anthropicapi.Server
	calls   []call
	until   []int // for each deed, the number of calls up to its end
	known   map[string]string
	updates map[string]update  // by message, after the failure
	ran     map[string]runFact // by job
	boot    string             // a file with the boot id
	warned  *strings.Builder   // standard error of the commands after the failure
	asked   int                // the number of requests before the failure
}

// runFact is what the test looks at in a record.
type runFact struct {
	ID, Job, Outcome string
	Cost             float64
}

func newPower(t *testing.T) *power {
	if err := exec.Command("unshare", "-m", "true").Run(); err != nil {
		testkit.Missing(t, "no other boot id can be shown to a program: run the tests as root: %v", err)
	}
	root := t.TempDir()
	c := &command{t: t, path: program, data: filepath.Join(root, "tree", "data")}
	if err := os.MkdirAll(filepath.Join(root, "tree", "outside"), 0o700); err != nil {
		t.Fatal(err)
	}
	p := &power{command: c, api: anthropicapi.New(t), known: map[string]string{}, boot: filepath.Join(root, "boot_id")}
	echo(p.api)
	c.ok("init", "--timezone", "UTC")
	c.ok("config", "set", "delivery.command", "/bin/sh", "-c", deliver)
	c.ok("config", "set", "env", "ANTHROPIC_API_KEY=k")
	c.ok("config", "set", "native.base-url", p.api.URL())
	c.ok("config", "set", "engine", "native")
	for name, text := range map[string]string{"slot": powerScript, "paint": powerQuestion} {
		cron := "0 0 1 1 *"
		if name == "slot" {
			cron = time.Now().UTC().Format("4 15 * * *")
		}
		c.write(name+".yaml", text)
		c.write("routines/"+name+".md", fmt.Sprintf("---\nid: %s\ncron: %q\nbackground: true\nsession: persistent\nupdate-main-session: freely\n"+
			"engine: script:%s.yaml\n---\nGo.\n", name, cron, name))
	}
	return p
}

func (p *power) deeds() []deed {
	return []deed{
		{args: "updates|add|first", holds: func(p *power) { p.update("first") }},
		{args: "ping|hello", holds: func(p *power) { p.delivered("hello", 1, 1) }},
		{args: "fire|--scheduled|slot", holds: func(p *power) {
			p.delivered("slot ran", 1, 1)
			p.update("reported")
			p.same("state/routine_sessions/slot")
			if run := p.ran["slot"]; run.Outcome != "ok" || run.Cost != 0.01 {
				p.t.Errorf("the run of the slot: %+v", run)
			}
		}},
		{args: "chat|turn one", holds: func(p *power) {
			p.same("state/sessions.json")
			if p.updates["first"].Became != "popped" || p.updates["reported"].Became != "popped" {
				p.t.Errorf("updates of an acknowledged turn: %+v", p.updates)
			}
			p.prompted("re: turn one", true)
			p.shown("first", false)
			p.answered("turn one")
		}},
		{args: "changed|key", input: "value\n", holds: func(p *power) { p.fails1("value\n", "changed", "key") }},
		{args: "remind|2d|pizza", holds: func(p *power) { p.lists("pizza", "reminder", "list") }},
		{args: "fire|paint", holds: func(p *power) {
			p.delivered("Which?", 1, 2)                                                                                 // a turn that was cut off is not in a script's session, which asks again
			if run := p.ran["paint"]; run.Outcome != "waiting" && run.Outcome != "ok" && run.Outcome != "interrupted" { // while it went on
				p.t.Errorf("the run that asked: %+v", run)
			}
		}},
		{args: "answer|-w|paint|blue", holds: func(p *power) {
			p.update("painted")
			if run := p.ran["paint"]; run.Outcome != "ok" {
				p.t.Errorf("the run that asked and was answered: %+v", run)
			}
		}},
		{args: "updates|add|second", holds: func(p *power) { p.update("second") }},
		{args: "updates|pop", holds: func(p *power) {
			if p.updates["second"].Became != "popped" {
				p.t.Errorf("popped, and now %+v", p.updates["second"])
			}
		}},
		{args: "task|add|milk", holds: func(p *power) { p.lists("milk", "task", "list") }},
		{args: "pause|2d"},
		{args: "resume"},
		{args: "config|set|summary|weekly", holds: func(p *power) { p.lists("weekly", "config", "get", "summary") }},
		{args: "chat|turn two", holds: func(p *power) {
			p.prompted("re: turn two", true)
			p.answered("turn two")
		}},
		{args: "tick|--wait"},
	}
}

// play records the deeds, and returns the model at their beginning.
func (p *power) play(deeds []deed) *disk {
	root := filepath.Dir(p.data)
	model, err := newDisk(root, filepath.Join(root, "outside"))
	if err != nil {
		p.t.Fatal(err)
	}
	oracle, err := newDisk(root, model.safe)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, deed := range deeds {
		cmd := p.cmd(strings.Split(deed.args, "|")...)
		cmd.Stdin = strings.NewReader(deed.input)
		out, code, calls := record(p.t, cmd)
		if code != 0 {
			p.t.Fatalf("%s: exit status %d: %s", deed.args, code, out)
		}
		for _, c := range calls {
			if _, err := oracle.apply(c); err != nil {
				p.t.Fatalf("%s: %v", deed.args, err)
			}
		}
		if err := oracle.top.differs(root); err != nil {
			p.t.Fatalf("%s: %v", deed.args, err)
		}
		p.calls = append(p.calls, calls...)
		p.until = append(p.until, len(p.calls))
		p.remember("state/sessions.json", "state/routine_sessions/slot")
	}
	return model
}

func (p *power) remember(names ...string) {
	for _, name := range names {
		if text, err := os.ReadFile(filepath.Join(p.data, name)); err == nil {
			p.known[name] = string(text)
		}
	}
}

// TestPowerFailure records the system calls of commands and lets the power fail after some of them: of what was not synced, random parts
// are left. What was acknowledged before is still there, nothing happens twice, and every command works.
func TestPowerFailure(t *testing.T) {
	t.Parallel()
	testkit.OnlyInCI(t, "power failures at random calls")
	p := newPower(t)
	deeds := p.deeds()
	model := p.play(deeds)
	n := rounds(t, 8)
	moments := make([]int, n)
	random := rand.New(rand.NewSource(time.Now().UnixNano()))
	for i := range moments {
		if moments[i] = 1 + random.Intn(len(p.calls)); i%3 == 0 { // what was just acknowledged is lost most easily
			moments[i] = p.until[random.Intn(len(p.until))]
		}
	}
	slices.Sort(moments)
	for _, moment := range moments {
		for model.now < moment {
			if _, err := model.apply(p.calls[model.now]); err != nil {
				t.Fatal(err)
			}
		}
		seed := random.Int63()
		name := fmt.Sprintf("call %d seed %d", moment, seed)
		t.Run(name, func(t *testing.T) { p.fail(t, model, deeds, seed) })
	}
}

// fail lets the power fail, goes on, and checks.
func (p *power) fail(t *testing.T, model *disk, deeds []deed, seed int64) {
	c := *p.command
	c.t = t
	after := *p
	after.command, after.warned = &c, new(strings.Builder)
	random := rand.New(rand.NewSource(seed))
	o := &choice{random: random, keep: []int{0, 0, 30, 60, 90}[random.Intn(5)], torn: random.Intn(2) == 0}
	if err := os.RemoveAll(model.root); err != nil {
		t.Fatal(err)
	}
	if err := model.write(o, model.root); err != nil {
		t.Fatal(err)
	}
	id := fmt.Sprintf("00000000-0000-4000-8000-%012x\n", seed&0xffffffffffff)
	if err := os.WriteFile(p.boot, []byte(id), 0o600); err != nil {
		t.Fatal(err)
	}
	done := 0
	for done < len(deeds) && p.until[done] <= model.now {
		done++
	}
	if done < len(deeds) {
		t.Logf("%d commands ended, %q had begun, keep %d, torn %v, then %s", done, deeds[done].args, o.keep, o.torn, p.calls[model.now].name)
	}
	after.goOn()
	for _, deed := range deeds[:done] {
		if deed.holds != nil {
			deed.holds(&after)
		}
	}
}

// rebooted is a command after a boot of the machine.
func (p *power) rebooted(args ...string) *exec.Cmd {
	cmd := p.cmd(args...)
	cmd.Args = slices.Concat([]string{"unshare", "-m", "sh", "-c", `mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"`, p.boot, cmd.Path}, args)
	path, err := exec.LookPath("unshare")
	if err != nil {
		p.t.Fatal(err)
	}
	cmd.Path = path
	return cmd
}

// does runs a command after the boot, which must exit 0, and returns its standard output.
func (p *power) does(args ...string) string {
	p.t.Helper()
	var errOut strings.Builder
	cmd := p.rebooted(args...)
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		p.t.Errorf("ollim %s: %v: %s", strings.Join(args, " "), err, errOut.String())
	}
	if text := errOut.String(); text != "" {
		p.warned.WriteString(text)
	}
	return string(out)
}

// goOn makes what a machine and its owner do after a boot, and reads what is left.
func (p *power) goOn() {
	p.t.Helper()
	p.asked = len(p.api.Requests())
	p.does("resume")
	p.does("tick", "--wait")
	_ = p.rebooted("fire", "--scheduled", "slot").Run() // may be over
	p.does("chat", "after")
	p.does("tick", "--wait")
	p.does("status")
	p.does("schedule", "audit", "--verify")
	p.updates, p.ran = map[string]update{}, map[string]runFact{}
	for _, u := range decodeLines(p.t, p.does("updates", "list", "--all", "--json")) {
		if _, twice := p.updates[u.Message]; twice && (u.Message == "first" || u.Message == "reported") {
			p.t.Errorf("%q is there twice", u.Message)
		}
		p.updates[u.Message] = u
	}
	for line := range strings.Lines(p.does("run", "list", "-n", "0", "--json")) {
		var r runFact
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			p.t.Error(err)
		}
		p.ran[r.Job] = r // the first one
	}
	p.delivered("slot ran", 0, 1) // a slot has one run
	p.parses()
}

// parses reads every document of the state. Caches are made again when they are needed; another one that is not whole was set aside or reported.
func (p *power) parses() {
	p.t.Helper()
	caches := []string{"checkpoint.json", "head.json"}
	err := filepath.WalkDir(filepath.Join(p.data, "state"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".json" || e.Name()[0] == '.' || e.Name() == "sessions.json" || slices.Contains(caches, e.Name()) {
			return err
		}
		text, err := os.ReadFile(path)
		if !json.Valid(text) && !strings.Contains(p.warned.String(), path) {
			p.t.Errorf("%s: %q does not parse", path, text)
		}
		return err
	})
	if err != nil {
		p.t.Error(err)
	}
}

func (p *power) update(message string) {
	p.t.Helper()
	if p.updates[message].Message == "" {
		p.t.Errorf("the update %q is lost: %+v", message, p.updates)
	}
}

// delivered wants that many deliveries of a text.
func (p *power) delivered(text string, least, most int) {
	p.t.Helper()
	files, err := filepath.Glob(filepath.Join(filepath.Dir(p.data), "outside", "*"))
	if err != nil {
		p.t.Fatal(err)
	}
	ids := map[string]bool{}
	var bodies []string
	n := 0
	for _, path := range files {
		if body, err := os.ReadFile(path); err == nil && strings.Contains(string(body), text) && filepath.Ext(path) != ".new" {
			n++
			bodies = append(bodies, string(body))
			ids[strings.TrimSuffix(path, filepath.Ext(path))] = true
		}
	}
	if least == 0 {
		n = len(ids) // the same one again is not acknowledged
	}
	if n < least || n > most {
		p.t.Errorf("%q was delivered %d times with ids %v, want %d to %d: %q", text, n, ids, least, most, bodies)
	}
}

func (p *power) same(name string) {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.data, name))
	if err != nil || string(text) != p.known[name] {
		p.t.Errorf("%s: %q, %v, want %q", name, text, err, p.known[name])
	}
}

// prompted looks into what the model was given in the latest request.
func (p *power) prompted(text string, want bool) {
	p.t.Helper()
	list := p.api.Requests()
	if got := strings.Contains(string(list[len(list)-1].Raw), text); got != want {
		p.t.Errorf("the latest request has %q: %v", text, got)
	}
}

// answered wants that no turn after the failure has a message, which was answered before.
func (p *power) answered(message string) {
	p.t.Helper()
	for _, r := range p.api.Requests()[p.asked:] {
		if text := r.LastUserText(); strings.Contains(text, message) {
			p.t.Errorf("%q is in another turn: %q", message, text)
		}
	}
}

func (p *power) shown(message string, want bool) {
	p.t.Helper()
	list := p.api.Requests()
	if got := strings.Contains(list[len(list)-1].LastUserText(), message); got != want {
		p.t.Errorf("the latest message shows %q: %v", message, got)
	}
}

func (p *power) fails1(input string, args ...string) {
	p.t.Helper()
	cmd := p.rebooted(args...)
	cmd.Stdin = strings.NewReader(input)
	if out, err := cmd.CombinedOutput(); status(err) != 1 {
		p.t.Errorf("ollim %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

func (p *power) lists(text string, args ...string) {
	p.t.Helper()
	if out := p.does(args...); !strings.Contains(out, text) {
		p.t.Errorf("ollim %s: %q has no %q", strings.Join(args, " "), out, text)
	}
}
