// Command backtest measures how often ollim backtest is right, what it touches, and how long it takes: five routines with recorded runs are
// asked again at models with seeded regressions, and at one that has only noise of its own. Run it from the repository:
//
//	go run ./bench/backtest               # 40 runs of each routine; prints the tables of bench/README.md
//	go run ./bench/backtest -runs 200     # and how long 1,000 records take
//
// It fails if a backtest misses one of twenty misses, raises one false alarm in twenty, touches what it should not, or asks for an answer
// that it had.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/ollim/ollim/bench/program"
	"github.com/ollim/ollim/internal/testkit"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

func main() {
	ollim := flag.String("ollim", "", "a binary to measure instead of this tree")
	runs := flag.Int("runs", 40, "recorded runs of each routine")
	kills := flag.Int("kills", 50, "how often a backtest is killed")
	flag.Parse()
	if err := measure(*ollim, *runs, *kills); err != nil {
		fmt.Fprintln(os.Stderr, "backtest:", err)
		os.Exit(1)
	}
}

// bench is a data directory, and the service that its runs ask.
type bench struct {
	ollim, home string

	mu     sync.Mutex
	delay  time.Duration
	asked  []string        // the requests; their answers use as many tokens as they are old
	stored map[string]bool // requests whose answers were stored when their backtest was killed
	again  int             // of these, how many were asked again

	number map[string]int // by run, what its file said
	text   map[string]string
}

func measure(ollim string, runs, kills int) error {
	dir, err := os.MkdirTemp("", "ollim-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	b := &bench{home: filepath.Join(dir, "data"), number: map[string]int{}, text: map[string]string{}}
	if b.ollim, err = program.Path(ollim, dir); err != nil {
		return err
	}
	s := &testkit.Script{}
	defer s.End()
	api := anthropicapi.New(s)
	api.Handle(b.serve)
	if err := b.prepare(api.URL()); err != nil {
		return err
	}
	if err := b.record(runs); err != nil {
		return err
	}
	broken := b.rates(min(runs, 40))
	return errors.Join(broken, b.touches(api.URL()), b.speed(runs), b.killed(min(runs, 40), kills))
}

func (b *bench) serve(q anthropicapi.Request) anthropicapi.Reply {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := key(q)
	if b.stored[k] {
		b.again++
	}
	b.asked = append(b.asked, k)
	r := answer(q)
	r.Delay, r.Usage = b.delay, anthropicapi.Usage{In: len(b.asked), Out: 10}
	return r
}

// forget begins to count requests anew.
func (b *bench) forget(delay time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.delay, b.asked, b.stored = delay, nil, nil
}

// note notes which requests of a backtest have a stored answer.
func (b *bench) note(id string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	file, err := os.Open(filepath.Join(b.home, "state", "backtests", filepath.Base(id), "answers.jsonl"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	b.stored = map[string]bool{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var line struct {
			Answer struct{ Usage struct{ In int } }
		}
		if json.Unmarshal(lines.Bytes(), &line) == nil { // the kill may have torn the last line
			b.stored[b.asked[line.Answer.Usage.In-1]] = true
		}
	}
	return nil
}

func (b *bench) cmd(args ...string) *exec.Cmd {
	cmd := exec.Command(b.ollim, args...)
	cmd.Env = append(os.Environ(), "OLLIM_DATA_DIR="+b.home, "HOME="+b.home, "TZ=UTC")
	return cmd
}

func (b *bench) do(args ...string) (string, error) {
	out, err := b.cmd(args...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("ollim %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), err
}

func (b *bench) prepare(url string) error {
	for _, args := range [][]string{
		{"init", "--engine", "native"}, {"config", "set", "env", "ANTHROPIC_API_KEY=k"}, {"config", "set", "native.base-url", url}, {"config", "set", "native.model", "steady"},
		append([]string{"config", "set", "models"}, prices()...), {"config", "set", "delivery.command", "true"}, {"config", "set", "quiet", "none"},
		{"config", "set", "spend.per-day", "none"}, {"config", "set", "spend.per-month", "none"}, {"config", "set", "spend.runs-per-day", "none"},
	} {
		if _, err := b.do(args...); err != nil {
			return err
		}
	}
	for _, r := range routines() {
		if _, err := b.do("routine", "add", r.name, "--id", r.name, "--cron", "0 9 * * *", "--background", "--isolated", "--update-main-session", "freely", "--description", "A check",
			"--allowed-tools", "Read(./**)", "--allowed-tools", "Grep(./**)", "--allowed-tools", "Write(./tasks/**)", r.body); err != nil {
			return err
		}
	}
	return os.MkdirAll(filepath.Join(b.home, "data"), 0o700)
}

// record fires each routine so many times, with another number in its file each time.
func (b *bench) record(runs int) error {
	for i := range runs {
		for n, r := range routines() {
			number := (i*37 + n*11) % 100
			text := fmt.Sprintf("sample %d: number %d", i, number)
			if i%4 == 0 {
				text += " (weekend)"
			}
			if err := os.WriteFile(filepath.Join(b.home, "data", r.name+".txt"), []byte(text+"\n"), 0o600); err != nil {
				return err
			}
			cmd := b.cmd("fire", r.name, "--json", "-")
			cmd.Stdin = strings.NewReader(fmt.Sprintf("This is fire %d.", i)) // so no two runs have the same first request
			out, err := cmd.Output()
			var record struct{ ID, Outcome string }
			if jsonErr := json.Unmarshal(out, &record); err != nil || jsonErr != nil || record.Outcome != "ok" {
				return fmt.Errorf("fire %s: %w: %.300s", r.name, errors.Join(err, jsonErr), out)
			}
			b.number[record.ID], b.text[record.ID] = number, text
		}
	}
	return nil
}

// verdict is a line of a backtest.
type verdict struct{ Run, Verdict, Why string }

func (b *bench) backtest(r routine, model string, runs int) (list []verdict, err error) {
	out, runErr := b.cmd("backtest", r.name, "--model", model, "--last", fmt.Sprint(runs), "--max-cost", "1000", "--json").Output()
	for line := range strings.Lines(string(out)) {
		var v verdict
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	if len(list) != runs {
		return nil, fmt.Errorf("backtest %s at %s: %d verdicts: %w", r.name, model, len(list), runErr)
	}
	return list, nil
}

// rates compares the verdicts with what the models really decide.
func (b *bench) rates(runs int) error {
	fmt.Printf("| model | runs | decides otherwise | found | false alarms | other texts | undecided |\n| --- | --- | --- | --- | --- | --- | --- |\n")
	var broken error
	for _, model := range models() {
		var wrong, found, alarms, texts, undecided, all int
		for _, r := range routines() {
			list, err := b.backtest(r, model, runs)
			if err != nil {
				return err
			}
			for _, v := range list {
				number, text := b.number[v.Run], b.text[v.Run]
				differs := model != "noisy" && acts(model, r, number, text) != acts("steady", r, number, text)
				told := v.Verdict == "missed" || v.Verdict == "extra"
				all++
				switch {
				case v.Verdict == "undecided":
					undecided++
				case differs:
					wrong++
					if told {
						found++
					}
				case told:
					alarms++
				case v.Verdict == "different text":
					texts++
				}
			}
		}
		fmt.Printf("| %s | %d | %d | %d | %d | %d | %d |\n", model, all, wrong, found, alarms, texts, undecided)
		if found*20 < wrong*19 || alarms*20 > all {
			broken = errors.Join(broken, fmt.Errorf("%s: %d of %d found, %d false alarms", model, found, wrong, alarms))
		}
		if model == "tool" && undecided != all {
			broken = errors.Join(broken, fmt.Errorf("a tool that is not in the record was decided in %d of %d runs", all-undecided, all))
		}
	}
	return broken
}

// speed prints how long a backtest takes beside the time of the service alone.
func (b *bench) speed(runs int) error {
	const delay, jobs = 100 * time.Millisecond, 4
	r := routines()[0]
	b.forget(delay)
	begun := time.Now()
	if _, err := b.backtest(r, "steady", min(runs, 200)); err != nil {
		return err
	}
	took, requests := time.Since(begun), len(b.asked)
	alone := time.Duration(requests) * delay / jobs
	begun = time.Now()
	out, err := b.do("run", "list", "-n", "1000")
	if err != nil {
		return err
	}
	fmt.Printf("\n%d runs, %d requests of %v, four at a time: %.2f s, the service alone %.2f s, %.2f times\n", min(runs, 200), requests, delay, took.Seconds(), alone.Seconds(), took.Seconds()/alone.Seconds())
	fmt.Printf("%d runs listed in %.2f s\n", strings.Count(out, "\n"), time.Since(begun).Seconds())
	b.forget(0)
	return nil
}

// latest returns the id of the newest backtest.
func (b *bench) latest() (string, error) {
	list, err := b.do("backtest", "list")
	id, _, _ := strings.Cut(list, "\t")
	return id, err
}

// killed kills a backtest at random moments, and continues it.
func (b *bench) killed(runs, kills int) error {
	const delay = 20 * time.Millisecond
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the moments of kills
	r := routines()[0]
	b.forget(delay)
	defer b.forget(0)
	args := []string{"backtest", r.name, "--model", "noisy", "--last", fmt.Sprint(runs), "--max-cost", "1000"}
	dead, finished := 0, 0
	before, err := b.latest()
	if err != nil {
		return err
	}
	for dead < kills {
		cmd := b.cmd(args...)
		if err := cmd.Start(); err != nil {
			return err
		}
		ended := make(chan struct{})
		go func() {
			_ = cmd.Wait() // it is killed, or says what the list of backtests shows
			close(ended)
		}()
		select {
		case <-ended:
			finished++
			last, err := b.latest()
			if err != nil {
				return err
			}
			before = last
			b.forget(delay)
			args = []string{"backtest", r.name, "--model", "noisy", "--last", fmt.Sprint(runs), "--max-cost", "1000"}
			continue
		case <-time.After(time.Duration(30+random.IntN(150)) * time.Millisecond):
			_ = cmd.Process.Kill()
			<-ended
			dead++
		}
		id, err := b.latest()
		if err != nil {
			return err
		}
		if id == before {
			continue // the kill came before the plan was stored
		}
		args = []string{"backtest", "continue", id}
		if err := b.note(id); err != nil {
			return err
		}
	}
	fmt.Printf("%d kills, %d backtests finished between them: %d answers that were stored were asked for again\n", dead, finished, b.again)
	if b.again > 0 {
		return errors.New("answers were paid for twice")
	}
	return nil
}
