// Command distil measures what gates are worth that ollim distil lets a model write: five routines with recorded runs, of which a scripted
// model knows the rule. Run it from the repository:
//
//	go run ./bench/distil               # 80 runs of each routine; prints the table of bench/README.md
//
// It fails if a gate skips less than 70 % of the quiet runs that the model did not see, or loses a message; if a gate is accepted that
// would lose one; or if a change of what the routine reads, which its gate overlooks, is noticed only after more than ten fires.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/ollim/ollim/bench/program"
	"github.com/ollim/ollim/internal/testkit"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
	"github.com/ollim/ollim/internal/testkit/screen"
)

func main() {
	ollim := flag.String("ollim", "", "a binary to measure instead of this tree")
	runs := flag.Int("runs", 80, "recorded runs of each routine")
	flag.Parse()
	if err := measure(*ollim, *runs); err != nil {
		fmt.Fprintln(os.Stderr, "distil:", err)
		os.Exit(1)
	}
}

// bench is a data directory, the service that its runs ask, and the page that one of them gets.
type bench struct {
	ollim, home, pages string
	script             *testkit.Script
	list               []history

	mu  sync.Mutex
	now struct {
		name, text string
		loud       bool
	} // what the next fire finds
	careless string // the part that the model writes for each gate; "": the right one
}

func measure(ollim string, runs int) (err error) {
	dir, err := os.MkdirTemp("", "ollim-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	b := &bench{home: filepath.Join(dir, "data"), list: histories()}
	if b.ollim, err = program.Path(ollim, dir); err != nil {
		return err
	}
	pages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		b.mu.Lock()
		defer b.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(b.now.text))
	}))
	defer pages.Close()
	b.pages = pages.URL
	b.script = &testkit.Script{}
	defer b.script.End()
	api := anthropicapi.New(b.script)
	api.Handle(func(q anthropicapi.Request) anthropicapi.Reply {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.answer(q)
	})
	if err := b.prepare(api.URL()); err != nil {
		return err
	}
	fmt.Printf("| routine | quiet runs skipped | messages lost | cost of the gate | a careless gate | drift noticed after |\n| --- | --- | --- | --- | --- | --- |\n")
	var broken error
	for _, h := range b.list {
		row, err := b.row(h, runs)
		if fmt.Println(row); err != nil {
			broken = errors.Join(broken, fmt.Errorf("%s: %w", h.name, err))
		}
	}
	return broken
}

func (b *bench) cmd(args ...string) *exec.Cmd {
	cmd := exec.Command(b.ollim, args...)
	cmd.Env = append(os.Environ(), "OLLIM_DATA_DIR="+b.home, "HOME="+b.home, "TZ=UTC")
	return cmd
}

func (b *bench) do(args ...string) error {
	out, err := b.cmd(args...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("ollim %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return err
}

func (b *bench) prepare(url string) error {
	for _, args := range [][]string{
		{"init", "--engine", "native"}, {"config", "set", "env", "ANTHROPIC_API_KEY=k"}, {"config", "set", "native.base-url", url}, {"config", "set", "native.model", "steady"},
		{"config", "set", "models", "steady in=3 out=15 cache-read=0.30 cache-write=3.75 window=200000"}, {"config", "set", "delivery.command", "true"}, {"config", "set", "quiet", "none"},
		{"config", "set", "spend.per-day", "none"}, {"config", "set", "spend.per-month", "none"}, {"config", "set", "spend.runs-per-day", "none"},
	} {
		if err := b.do(args...); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Join(b.home, "data"), 0o700); err != nil {
		return err
	}
	for _, h := range b.list {
		if err := b.do("routine", "add", h.name, "--id", h.name, "--cron", "@hourly", "--background", "--isolated", "--update-main-session", "freely",
			"--allowed-tools", "Read(./**)", "--allowed-tools", "Bash(cat data/*)", "--allowed-tools", "Bash(curl -fsS "+b.pages+"/*)", h.body); err != nil {
			return err
		}
	}
	return nil
}

// fire sets what a routine finds, and fires it.
func (b *bench) fire(h history, text string, loud bool) (record struct {
	Outcome, Error string
	Audit          bool `json:"gate_audit"`
	Off            bool `json:"gate_off"`
}, err error) {
	b.mu.Lock()
	b.now.name, b.now.text, b.now.loud = h.name, text, loud
	b.mu.Unlock()
	if err := errors.Join(os.WriteFile(filepath.Join(b.home, "data", h.name+".txt"), []byte(text+"\n"), 0o600), os.RemoveAll(filepath.Join(b.home, "state/ping_budget.json"))); err != nil {
		return record, err
	}
	out, runErr := b.cmd("fire", h.name, "--json").Output()
	if err := json.Unmarshal(out, &record); err != nil {
		return record, fmt.Errorf("fire %s: %w: %.300s", h.name, errors.Join(err, runErr), out)
	}
	return record, nil
}

// at is the world at the n-th fire of a routine.
func (h history) at(n int) (s state) {
	s = state{n: n, value: (n*37 + len(h.name)*11) % 100}
	s.text = h.seen(s)
	return s
}

// row measures one routine.
func (b *bench) row(h history, runs int) (row string, err error) {
	for n := range runs {
		s := h.at(n)
		r, err := b.fire(h, s.text, h.loud(s))
		if err == nil && r.Outcome != "ok" {
			err = fmt.Errorf("fire: %s: %s", r.Outcome, r.Error)
		}
		if err != nil {
			return "", err
		}
	}
	careless, err := b.distil(h, "exit 1")
	if err != nil {
		return "", err
	}
	v, err := b.distil(h, "")
	if err != nil {
		return "", err
	}
	refused := "refused"
	if careless.Accepted {
		refused, err = "accepted", errors.New("a gate is accepted that loses messages")
	}
	if v.Lost > 0 || !v.Accepted || v.Skipped*10 < v.Quiet*7 {
		err = errors.Join(err, fmt.Errorf("%d of %d quiet runs skipped, %d of %d lost: %q", v.Skipped, v.Quiet, v.Lost, v.Loud, v.Why))
	}
	after, driftErr := b.drift(h, v, runs)
	return fmt.Sprintf("| %s | %d of %d (%d %%) | %d of %d | $%.3f | %s | %s |", h.name, v.Skipped, v.Quiet, 100*v.Skipped/max(1, v.Quiet), v.Lost, v.Loud, v.Cost, refused, after),
		errors.Join(err, driftErr)
}

// distil lets the model write a gate, the given part or the right one.
func (b *bench) distil(h history, part string) (verdict, error) {
	b.mu.Lock()
	b.careless = part
	b.mu.Unlock()
	out, runErr := b.cmd("distil", h.name, "--json").Output()
	v, err := parse(out)
	if err != nil {
		return v, fmt.Errorf("distil: %w: %s", errors.Join(err, runErr), out)
	}
	return v, nil
}

// drift puts the gate in place with gate-audit, fires the routine some times as before, and then lets what it reads change its form. Each
// fire from then on has something to tell. It returns after how many of these fires the gate was off.
func (b *bench) drift(h history, v verdict, runs int) (string, error) {
	if err := b.do("distil", "put", v.ID); err != nil {
		return "", err
	}
	path := filepath.Join(b.home, "routines", h.name+".md")
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), "gate: "+h.name+"\n", "gate: "+h.name+"\ngate-audit: 10\n", 1)), 0o600); err != nil {
		return "", err
	}
	if err := b.approve(h.name); err != nil {
		return "", err
	}
	for n := runs; n < runs+15; n++ {
		s := h.at(n)
		r, err := b.fire(h, s.text, h.loud(s))
		if err != nil {
			return "", err
		}
		if h.loud(s) != (r.Outcome == "ok" && !r.Audit) || r.Off {
			return "", fmt.Errorf("fire %d: %+v, loud %v", n, r, h.loud(s))
		}
	}
	const most = 10
	for n := 1; n <= most+1; n++ {
		s := state{n: 9000 + n, value: 95}
		r, err := b.fire(h, h.drift(s), true)
		if err != nil {
			return "", err
		}
		if r.Audit {
			return fmt.Sprint(n, " fires"), b.isOff(h)
		}
		if r.Outcome != "gated" {
			return "", fmt.Errorf("the gate notices the drift itself: %+v", r)
		}
	}
	return "more", fmt.Errorf("drift was not noticed within %d fires", most)
}

// approve approves a routine as its owner does, on a terminal.
func (b *bench) approve(name string) error {
	cmd := b.cmd("approve", name)
	cmd.Env = append(cmd.Env, "TERM=xterm")
	t := screen.Start(b.script, screen.Size{Columns: 200, Rows: 50}, cmd)
	t.WaitFor(`\[y/N\]`)
	t.Type("y\r")
	if status := t.Leave(); status != 0 {
		return fmt.Errorf("approve %s: exit status %d: %s", name, status, t.Text())
	}
	return nil
}

// isOff returns an error unless the gate of a routine is off.
func (b *bench) isOff(h history) error {
	out, err := b.cmd("status", "--json").Output()
	var s struct {
		Off []struct{ Job string } `json:"gates_off"`
	}
	if jsonErr := json.Unmarshal(out, &s); err != nil || jsonErr != nil {
		return errors.Join(err, jsonErr)
	}
	for _, g := range s.Off {
		if g.Job == h.name {
			return nil
		}
	}
	return errors.New("the gate is on after an audit that told something")
}
