package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"
)

// scenario is something that befalls the machines or the server.
type scenario struct {
	name, title string
	play        func(b *bench, s scenario) error
}

func scenarios() []scenario {
	return []scenario{
		{"contest", "both machines fire each slot at once", (*bench).contest},
		{"stop", "`ollim stop` on the other machine", (*bench).stop},
		{"restart", "the server is killed during a run, and started after 3 s", (*bench).restart},
		{"recontest", "the server is killed and started while slots are contested", (*bench).recontest},
		{"stopped", "A's machine is stopped for longer than the lease (SIGSTOP of QEMU)", func(b *bench, s scenario) error {
			return b.lost(s, func() error { return b.a.signal(syscall.SIGSTOP) }, func() error { return b.a.signal(syscall.SIGCONT) })
		}},
		{"paused", "A's machine is paused for longer than the lease, so that its clock stands still", func(b *bench, s scenario) error {
			return b.lost(s, func() error { return b.a.monitor("stop") }, func() error { return b.a.monitor("cont") })
		}},
		{"partition", "A has no network for longer than the lease", func(b *bench, s scenario) error {
			return b.lost(s, func() error { return b.a.monitor("set_link net0 off") }, func() error { return b.a.monitor("set_link net0 on") })
		}},
		{"blink", "A has no network for 10 s", (*bench).blink},
		{"killed", "A is killed during a run", (*bench).killed},
		{"contender", "B is killed while slots are contested", (*bench).contender},
	}
}

func names() (list []string) {
	for _, s := range scenarios() {
		list = append(list, s.name)
	}
	return list
}

// home makes a data directory for a scenario. Its routine long works for a time, and then sends and reports a word.
func (b *bench) home(m *machine, s scenario, seconds int) error {
	command := fmt.Sprintf("mkdir -p /data/%[1]s/routines && cd /data/%[1]s && ", s.name)
	for name, text := range map[string]string{
		"config.yaml":      "timezone: UTC\nengine: script:play.yaml\ndelivery:\n  command: [sh, -c, \"cat >>/data/" + s.name + "/received; echo >>/data/" + s.name + "/received\"]\n",
		"well.yaml":        "turns:\n  - - text: well\n",
		"routines/each.md": "---\nid: each\ncron: \"* * * * *\"\nbackground: true\nisolated: true\nengine: script:well.yaml\n---\nGo.\n",
		"routines/long.md": "---\nid: long\ncron: \"0 0 1 1 *\"\nbackground: true\nisolated: true\nupdate-main-session: freely\n---\nGo.\n",
		"play.yaml":        play(seconds, "A"),
	} {
		command += fmt.Sprintf("cat >%s <<'END'\n%sEND\n", name, text)
	}
	if r, _ := m.run("%s", command+"true"); r.Status != 0 {
		return fmt.Errorf("%s: %s", m.name, r.Out)
	}
	return nil
}

func play(seconds int, word string) string {
	return fmt.Sprintf("turns:\n  - - delay: %ds\n    - tool: ping_user\n      input: {message: from %[2]s}\n    - tool: report_updates\n      input: {message: from %[2]s}\n    - text: done\n",
		seconds, word)
}

// in is a command of ollim in the data directory of a scenario.
func (s scenario) in(args string) string { return "ollim --data-dir /data/" + s.name + " " + args }

// fire starts the routine long on A, waits until its run is in progress, and returns the run's id.
func (b *bench) fire(s scenario, seconds int) (p *pending, id string, err error) {
	if err := b.home(b.a, s, seconds); err != nil {
		return nil, "", err
	}
	p = b.a.begin("%s", s.in("fire long"))
	if ok := b.a.until(time.Minute, "%s | grep -q running", s.in("run list")); !ok {
		r, _ := p.wait(time.Second)
		return nil, "", fmt.Errorf("the run does not begin: %+v", r)
	}
	record, err := b.show(b.a, s, "long")
	return p, record.ID, err
}

// record is what `ollim run show` prints of a run.
type record struct {
	ID, Outcome, Error string
	Scheduled          string `json:"scheduled_for"`
}

func (b *bench) show(m *machine, s scenario, run string) (r record, err error) {
	said, _ := m.run("%s", s.in("run show "+run))
	if err := json.Unmarshal([]byte(said.Out), &r); err != nil {
		return r, fmt.Errorf("run show: %w: %s", err, said.Out)
	}
	return r, nil
}

// told returns how often the word of a machine was sent to the owner, and how often it was reported.
func (b *bench) told(m *machine, s scenario, word string) (sent, reported string) {
	r, _ := m.run("touch /data/%[1]s/received; grep -c 'from %[2]s' /data/%[1]s/received; %[3]s | grep -c 'from %[2]s'", s.name, word, s.in("update list"))
	sent, reported, _ = strings.Cut(r.Out, "\n")
	return sent, reported
}

// files returns a sum of the files of a run.
func (b *bench) files(m *machine, s scenario, id string) string {
	r, _ := m.run("cd $(find /data/%s/state/runs -type d -name %s) && cat run.json events.jsonl running | sha256sum", s.name, id)
	return r.Out
}

// lost lets A lose its locks during a run of 50 s, and find that out.
func (b *bench) lost(s scenario, lose, back func() error) error {
	a, id, err := b.fire(s, 50)
	if err != nil {
		return err
	}
	if err := lose(); err != nil {
		return err
	}
	since := time.Now()
	r, _ := b.b.run("%s", s.in("fire long"))
	b.row(s, "within the lease B does not fire the job", r.Status == 75, "exit %d after %.0f s", r.Status, time.Since(since).Seconds())
	ok := b.b.until(2*time.Minute, "%s; %s | grep -q interrupted", s.in("tick"), s.in("run show "+id))
	b.row(s, "after it B calls the run interrupted", ok, "%.0f s after the beginning", time.Since(since).Seconds())
	if !ok {
		return errors.Join(errors.New("the run is not closed"), back())
	}
	r, _ = b.b.run("cat >/data/%s/play.yaml <<'END'\n%sEND\n%s", s.name, play(1, "B"), s.in("fire long"))
	sent, reported := b.told(b.b, s, "B")
	b.row(s, "B runs the job", r.Status == 0 && sent+reported == "11", "exit %d, %s ping, %s report", r.Status, sent, reported)
	before := b.files(b.b, s, id)
	early, _ := a.wait(0)
	if err := back(); err != nil {
		return err
	}
	b.a.run("ls /data") // returns when A's file system answers: a connection that was cut off for long is made again after some seconds
	went := time.Now()
	r, _ = a.wait(patience)
	took := time.Since(went)
	if early.Status != late {
		r = early
		b.row(s, "A's run ends", r.Status == 75, "exit %d before A was back: %s", r.Status, r.Out)
	} else {
		b.row(s, "back, A's run ends within two seconds", r.Status == 75 && took < 2*time.Second, "exit %d after %.1f s: %s", r.Status, took.Seconds(), r.Out)
	}
	time.Sleep(15 * time.Second)
	after := b.files(b.b, s, id)
	b.row(s, "its closed record stays byte for byte", after == before && before != "", "%.12s, then %.12s", before, after)
	sent, reported = b.told(b.b, s, "A")
	b.row(s, "it sends and reports nothing", sent+reported == "00", "%s pings, %s reports", sent, reported)
	r, _ = b.a.run("%s", s.in("fire long"))
	b.row(s, "A fires the job again", r.Status == 0, "exit %d %s", r.Status, r.Out)
	return nil
}

// blink cuts A off for a time shorter than the lease.
func (b *bench) blink(s scenario) error {
	a, id, err := b.fire(s, 20)
	if err != nil {
		return err
	}
	if err := b.a.monitor("set_link net0 off"); err != nil {
		return err
	}
	time.Sleep(10 * time.Second)
	if err := b.a.monitor("set_link net0 on"); err != nil {
		return err
	}
	return b.goesOn(s, a, id)
}

// goesOn tells whether a run ends as if nothing had happened, and B waits for it.
func (b *bench) goesOn(s scenario, a *pending, id string) error {
	r, _ := b.b.run("%s", s.in("fire long"))
	b.row(s, "B does not fire the job while it runs", r.Status == 75, "exit %d", r.Status)
	r, took := a.wait(patience)
	now, err := b.show(b.b, s, id)
	if err != nil {
		return err
	}
	sent, reported := b.told(b.b, s, "A")
	b.row(s, "the run of 20 s goes on and ends well", r.Status == 0 && now.Outcome == "ok" && sent+reported == "11",
		"exit %d after %.0f s, %s, %s ping, %s report %s", r.Status, took.Seconds(), now.Outcome, sent, reported, r.Out)
	return nil
}

// restart kills the server in mid-run.
func (b *bench) restart(s scenario) error {
	a, id, err := b.fire(s, 20)
	if err != nil {
		return err
	}
	if err := b.server.kill(); err != nil {
		return err
	}
	time.Sleep(3 * time.Second)
	if err := b.server.start(); err != nil {
		return err
	}
	return b.goesOn(s, a, id)
}

// stop stops a run of A from B, three times.
func (b *bench) stop(s scenario) error {
	_, start := b.b.run("ollim version")
	for range 3 {
		a, id, err := b.fire(s, 50)
		if err != nil {
			return err
		}
		begin := time.Now()
		stop := b.b.begin("%s", s.in("stop long"))
		r, _ := a.wait(patience)
		ended := time.Since(begin)
		said, took := stop.wait(patience)
		now, err := b.show(b.b, s, id)
		if err != nil {
			return err
		}
		b.row(s, "the run ends within two seconds, and its record says why", said.Status == 0 && r.Status == 130 && ended < 2*time.Second && now.Error == "stopped by ollim stop",
			"ended after %.1f s, stop exits %d after %.1f s (`version` takes %.1f s); %s: %s %s", ended.Seconds(), said.Status, took.Seconds(), start.Seconds(),
			now.Outcome, now.Error, said.Out)
	}
	sent, reported := b.told(b.b, s, "A")
	b.row(s, "a stopped run sends and reports nothing", sent+reported == "00", "%s pings, %s reports", sent, reported)
	return nil
}

// contend lets both machines fire slots at once. befall, which may be nil, is called in each slot after the fires have begun.
func (b *bench) contend(s scenario, slots int, befall func(slot int) error) (statuses map[int]int, err error) {
	if err := b.home(b.a, s, 1); err != nil {
		return nil, err
	}
	first := time.Now().UTC().Truncate(time.Minute).Add(-time.Duration(slots) * time.Minute)
	statuses = map[int]int{}
	for i := range slots {
		command := s.in("fire --scheduled --slot " + first.Add(time.Duration(i)*time.Minute).Format(time.RFC3339) + " each")
		both := [2]*pending{b.a.begin("%s", command), b.b.begin("%s", command)}
		if befall != nil {
			if err := befall(i); err != nil {
				return nil, err
			}
		}
		for _, p := range both {
			r, _ := p.wait(patience)
			statuses[r.Status]++
			if r.Status != 0 && r.Status != gone {
				return nil, fmt.Errorf("slot %d: exit %d: %s\n%s\n%s", i, r.Status, r.Out, b.a.state(), b.b.state())
			}
		}
	}
	return statuses, nil
}

// counted tells what became of the contested slots. Their fires may have been killed by the death of a machine lost times.
func (b *bench) counted(s scenario, slots, lost int) error {
	said, _ := b.b.run("%s", s.in("run list --json -n 0 each"))
	runs, outcomes := map[string]int{}, map[string]int{}
	for line := range strings.Lines(said.Out) {
		var r record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			return fmt.Errorf("%w: %s", err, line)
		}
		runs[r.Scheduled]++
		outcomes[r.Outcome]++
	}
	doubled := 0
	for _, n := range runs {
		if n > 1 {
			doubled++
		}
	}
	b.row(s, fmt.Sprintf("each of %d slots has one run, and none is skipped", slots), len(runs) >= slots-lost && doubled == 0 && outcomes["ok"] >= slots-lost,
		"%d slots with a run, %d with two; %s", len(runs), doubled, fmt.Sprint(outcomes))
	return nil
}

func (b *bench) contest(s scenario) error {
	begin := time.Now()
	statuses, err := b.contend(s, b.slots, nil)
	if err != nil {
		return err
	}
	b.row(s, "each fire exits 0", statuses[0] == 2*b.slots, "%v in %.0f s", statuses, time.Since(begin).Seconds())
	return b.counted(s, b.slots, 0)
}

// recontest restarts the server between the fires of two slots.
func (b *bench) recontest(s scenario) error {
	const slots = 12
	statuses, err := b.contend(s, slots, func(slot int) error {
		if slot%4 != 2 {
			return nil
		}
		time.Sleep(time.Duration(slot) * 50 * time.Millisecond) // so that it is another moment of the fire
		if err := b.server.kill(); err != nil {
			return err
		}
		return b.server.start()
	})
	if err != nil {
		return err
	}
	b.row(s, "each fire waits and exits 0", statuses[0] == 2*slots, "%v", statuses)
	return b.counted(s, slots, 0)
}

// killed kills A in mid-run.
func (b *bench) killed(s scenario) error {
	_, id, err := b.fire(s, 50)
	if err != nil {
		return err
	}
	if err := b.a.kill(); err != nil {
		return err
	}
	since := time.Now()
	r, _ := b.b.run("%s", s.in("fire long"))
	b.row(s, "within the lease B does not fire the job", r.Status == 75, "exit %d", r.Status)
	ok := b.b.until(2*time.Minute, "%s; %s | grep -q interrupted", s.in("tick"), s.in("run show "+id))
	b.row(s, "after it B calls the run interrupted", ok, "%.0f s after the beginning", time.Since(since).Seconds())
	r, _ = b.b.run("cat >/data/%s/play.yaml <<'END'\n%sEND\n%s", s.name, play(1, "B"), s.in("fire long"))
	sent, reported := b.told(b.b, s, "B")
	b.row(s, "B runs the job", r.Status == 0 && sent+reported == "11", "exit %d, %s ping, %s report", r.Status, sent, reported)
	if b.a, err = b.boot("a"); err != nil {
		return err
	}
	r, _ = b.a.run("%s", s.in("fire long"))
	b.row(s, "A, started again, runs it as well", r.Status == 0, "exit %d %s", r.Status, r.Out)
	return nil
}

// contender kills B in the moment of a slot, and starts it again.
func (b *bench) contender(s scenario) error {
	const slots, at = 10, 4
	statuses, err := b.contend(s, slots, func(slot int) (err error) {
		if slot != at {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
		if err := b.b.kill(); err != nil {
			return err
		}
		b.b, err = b.boot("b")
		return err
	})
	if err != nil {
		return err
	}
	b.row(s, "the fires of A exit 0", statuses[0] >= 2*slots-1, "%v", statuses)
	if ok := b.a.until(2*time.Minute, "%s; ! %s | grep -q running", s.in("tick"), s.in("run list")); !ok {
		return errors.New("a run of the killed machine is in progress for ever")
	}
	return b.counted(s, slots, 1)
}
