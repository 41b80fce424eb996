package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// recipient is what the owner's delivery has got.
type recipient struct {
	*world
	seen int // bytes
}

func (w *world) phone() *recipient {
	w.t.Helper()
	w.must("config", "set", "delivery.command", "sh", "-c", `{ cat; echo ---; } >> "$HOME/phone"`)
	return &recipient{world: w}
}

// gets compares the messages since the last call with patterns.
func (p *recipient) gets(want ...string) {
	p.t.Helper()
	data, err := os.ReadFile(filepath.Join(p.home, "phone"))
	if err != nil && !os.IsNotExist(err) {
		p.t.Fatal(err)
	}
	fresh := strings.Split(string(data[p.seen:]), "---\n")
	p.seen = len(data)
	fresh = fresh[:len(fresh)-1]
	for i, text := range fresh {
		if i >= len(want) {
			p.t.Errorf("%s: one more message: %s", p.clock().Format("Mon 15:04"), text)
		} else if !regexp.MustCompile("(?s)" + want[i]).MatchString(text) {
			p.t.Errorf("%s: message %q, want %q", p.clock().Format("Mon 15:04"), text, want[i])
		}
	}
	if len(fresh) < len(want) {
		p.t.Errorf("%s: %d messages, want %q", p.clock().Format("Mon 15:04"), len(fresh), want)
	}
}

// hours lets time pass with a tick every ten minutes, and does something each hour.
func (p *recipient) hours(n int, hourly func()) {
	p.t.Helper()
	for range n {
		if hourly != nil {
			hourly()
		}
		begun := p.clock()
		for range 6 {
			p.must("tick")
			p.pass(10*time.Minute - time.Second)
		}
		p.pass(begun.Add(time.Hour).Sub(p.clock()))
	}
}

func (p *recipient) jobs(n int) (names []string) {
	p.t.Helper()
	for i := range n {
		name := fmt.Sprintf("job%02d", i)
		p.must("routine", "add", name, "--cron", "0 0 1 1 *", "--background", "--description", "Job "+name, "Look.")
		names = append(names, name)
	}
	return names
}

// doctorSays returns the result of a check.
func (p *recipient) doctorSays(what string) string {
	p.t.Helper()
	list, _ := p.findings()
	for _, f := range list {
		if f.What == what {
			return f.Result + " " + f.Text
		}
	}
	return ""
}

// A key that is revoked for a day is one opening message for all jobs, one reminder and one closing message, and doctor is red and
// then green. It passes quiet hours.
func TestKeyRevokedForADay(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	p := w.phone()
	names := p.jobs(6)
	p.pass(12 * time.Hour) // 22:00
	refused := true
	fire := func() {
		for _, name := range names {
			if refused {
				api.Reply(anthropicapi.Reply{Status: 401, Message: "invalid x-api-key"})
			} else {
				api.Reply(anthropicapi.Reply{Text: "ok"})
			}
			p.run("fire", name)
		}
	}
	fire()
	p.gets("^The engine native has no key or login that works: .*invalid x-api-key.*\nTo do: `ollim secret set engine.*`ollim doctor --ask`")
	if got := p.doctorSays("uses"); !strings.HasPrefix(got, "FAIL the engine native has failed since 2026-03-02T22:") {
		t.Error(got)
	}
	times := 0
	p.hours(23, func() {
		if times++; times%6 == 0 {
			fire()
		}
	})
	p.gets()
	p.hours(12, nil)
	p.gets("^Since Mon 2 Mar 22:00: .*So far 24 fires did not do their work: Job job00 4, Job job01 4") // after quiet hours
	refused = false
	fire()
	p.gets("^The key of the engine native works again; 24 fires did not do their work")
	if got := p.doctorSays("uses"); !strings.HasPrefix(got, "PASS") {
		t.Error(got)
	}
	p.hours(26, nil)
	p.gets()
}

// A key that is missing is no outage of the service, which would pass by itself.
func TestKeyMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "--engine", "native")
	p := w.phone()
	names := p.jobs(1)
	p.run("fire", names[0])
	if last := p.last(); last["fault"] != "key" {
		t.Errorf("%v %v", last["fault"], last["error"])
	}
	p.gets("^The engine native has no key or login that works: .*no key for .*To do: `ollim secret set engine")
}

// An overload that lasts as long as the run may is an overload and no timeout, in the record, in the message and for doctor.
func TestOverloadForHours(t *testing.T) {
	t.Parallel()
	limit := time.Second
	for !overloadedFor(t, limit) {
		if limit *= 2; limit > time.Minute {
			t.Fatal("no fire was told within a minute that the service is overloaded")
		}
	}
}

// overloadedFor fires two jobs with a time limit while the service is overloaded. It reports whether each was told so before its time was
// up, without which the test shows nothing.
func overloadedFor(t *testing.T, limit time.Duration) bool {
	t.Helper()
	w, api := newNativeWorld(t)
	p := w.phone()
	p.jobs(2)
	api.On(func(anthropicapi.Request) bool { return true }, func(anthropicapi.Request) anthropicapi.Reply {
		return anthropicapi.Reply{Status: 529, Message: "Overloaded"}
	})
	for _, name := range []string{"job00", "job01"} {
		p.write("routines/"+name+".md", strings.Replace(p.read("routines/"+name+".md"), "---\n", "---\ntimeout: "+limit.String()+"\n", 1))
	}
	for _, name := range []string{"job00", "job01"} {
		r := p.run("fire", name)
		last := p.last()
		if last["outcome"] == "timeout" && limit < time.Minute {
			return false
		}
		if last["outcome"] != "failed" || last["fault"] != "service" || !strings.Contains(fmt.Sprint(last["error"]), "verloaded") {
			t.Errorf("%v %v %v, status %d %s", last["outcome"], last["fault"], last["error"], r.status, r.errOut)
		}
	}
	p.gets("^The model service of the engine native is overloaded or cannot be reached: .*verloaded.*To do: wait.*`ollim doctor --ask`")
	if got := p.doctorSays("uses"); !strings.HasPrefix(got, "FAIL") {
		t.Error(got)
	}
	return true
}

// The limit of the day reaches the owner, once, and its end too.
func TestLimitOfTheDayIsSaid(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	p := w.phone()
	names := p.jobs(3)
	api.Reply(anthropicapi.Reply{Text: "ok", Usage: anthropicapi.Usage{In: 50_000}}) // 0.10 USD
	p.must("fire", names[0])
	p.must("config", "set", "spend.per-day", "0.10")
	for _, name := range names {
		if r := p.run("fire", name); r.status != 77 {
			t.Errorf("%+v", r)
		}
	}
	p.gets("^No automatic run starts: limit per-day: 0.10 spent of 0.10 USD.*To do: `ollim cost`.*`ollim config set spend.per-day 1`")
	p.hours(13, nil)
	p.gets()
	p.hours(9, nil) // the day begins in quiet hours
	p.gets("^The day's spending limit no longer stops runs; 3 fires did not do their work: Job job00 1, ")
}

// A run that began before the limit was reached does not show that it is over.
func TestLimitReachedDuringARun(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	p := w.phone()
	names := p.jobs(3)
	api.Reply(anthropicapi.Reply{Text: "ok", Usage: anthropicapi.Usage{In: 50_000}}) // 0.10 USD
	p.must("fire", names[0])
	api.Handle(func(anthropicapi.Request) anthropicapi.Reply {
		w.pass(time.Minute)
		w.must("config", "set", "spend.per-day", "0.10")
		if r := w.run("fire", names[1]); r.status != 77 {
			t.Errorf("%+v", r)
		}
		return anthropicapi.Reply{Text: "ok"}
	})
	p.must("fire", names[2])
	p.gets("^No automatic run starts: limit per-day: ")
	p.must("config", "set", "spend.per-day", "5")
	api.Handle(func(anthropicapi.Request) anthropicapi.Reply { return anthropicapi.Reply{Text: "ok"} })
	p.must("fire", names[1])
	p.gets("^The day's spending limit no longer stops runs")
}

// The trouble with an engine ends when the owner takes another one.
func TestOtherEngineInstead(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	p := w.phone()
	names := p.jobs(2)
	api.Handle(func(anthropicapi.Request) anthropicapi.Reply {
		return anthropicapi.Reply{Status: 401, Message: "invalid x-api-key"}
	})
	p.run("fire", names[0])
	p.gets("no key or login that works")
	p.hours(1, nil)
	p.gets()
	w.script("turns: [[{text: ok}]]\n")
	p.must("config", "set", "engine", "script:script.yaml")
	p.hours(1, nil)
	p.gets("^The key of the engine native is not used any more; 1 fire did not do its work")
	p.must("fire", names[0])
	p.hours(1, nil)
	p.gets()
}

// A file that is invalid overnight is said in the morning with what it cost, and slots that were missed by it are not those of a
// machine that was off.
func TestInvalidFileOvernight(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.phone()
	p.must("routine", "add", "watch", "--cron", "0 1-5 * * *", "--background", "Look.")
	p.must("tick")
	p.pass(13 * time.Hour) // 23:00
	p.must("tick")
	file := filepath.Join(w.dir, "routines/watch.md")
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	w.write("routines/watch.md", strings.Replace(string(good), "cron:", "corn:", 1))
	p.hours(9, nil)
	p.gets("^A job file is invalid and cannot run until it is corrected \\(see `ollim check`\\): routines/watch.md:.*")
	w.write("routines/watch.md", string(good))
	p.must("tick")
	p.must("tick")
	p.gets("^routines/watch.md can be used again; 5 slots were missed")
	if got := p.doctorSays("slots"); !strings.Contains(got, "5 slots missed in the last day: its file was invalid: routines/watch.md:") {
		t.Error(got)
	}
}

// A machine that was off is one message, which counts.
func TestMachineWasOff(t *testing.T) {
	t.Parallel()
	p := newWorld(t).phone()
	p.must("routine", "add", "watch", "--cron", "30 * * * *", "--background", "Look.")
	p.must("tick")
	p.pass(49 * time.Hour)
	for range 4 {
		p.must("tick")
		p.pass(time.Minute)
	}
	p.gets("^49 slots were missed from Mon 2 Mar 10:30 to Wed 4 Mar 10:30: the machine was off, or ollim tick did not run \\(watch 49\\)\nTo do: `ollim schedule audit --since 3d`")
}

// A ping of a background run waits for the end of quiet hours, one that is critical does not.
func TestPingsInQuietHours(t *testing.T) {
	t.Parallel()
	for name, by := range map[string]func(*recipient){"command": func(*recipient) {}, "door": (*recipient).behindDoor} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			p := w.phone()
			by(p)
			pingsInQuietHours(t, w, p)
		})
	}
}

// behindDoor makes a door the owner's delivery.
func (p *recipient) behindDoor() {
	p.must("config", "set", "doors.radio.command", "sh", "-c", `
echo '{"type":"hello","version":1,"able":{"text":2000},"direct":"D"}'
while read -r line; do
	ref=$(echo "$line" | sed -n 's/.*"ref":\([0-9]*\).*/\1/p')
	case $line in *'"type":"send"'*)
		echo "$line" | sed 's/.*"text":"\([^"]*\)".*/\1\n---/' >> "$HOME/phone"
		echo "{\"type\":\"done\",\"ref\":$ref,\"id\":\"M$$\"}";;
	esac
done`)
	p.must("config", "set", "delivery.to", "radio")
}

func pingsInQuietHours(t *testing.T, w *world, p *recipient) {
	t.Helper()
	w.script("turns:\n  - - tool: ping_user\n      input: {message: Oil broke 75}\n    - tool: report_updates\n      input: {message: r}\n    - text: done\n")
	p.jobs(2)
	p.pass(13 * time.Hour) // 23:00
	p.must("fire", "job00")
	if log := p.must("run", "log", "job00"); !strings.Contains(log, "The owner has quiet hours: it is sent at 7:00 AM.") {
		t.Error(log)
	}
	p.gets()
	if got := p.doctorSays("outbox"); !strings.HasPrefix(got, "PASS") {
		t.Error(got)
	}
	p.hours(9, nil)
	p.gets("^Oil broke 75")
	p.pass(14 * time.Hour) // 22:00
	w.script("turns:\n  - - tool: ping_user\n      input: {message: Fire, critical: true}\n    - tool: report_updates\n      input: {message: r}\n    - text: done\n")
	p.must("fire", "job01")
	p.gets("^Fire")
	p.must("config", "set", "quiet", "none")
	w.script("turns:\n  - - tool: ping_user\n      input: {message: At night}\n    - tool: report_updates\n      input: {message: r}\n    - text: done\n")
	p.must("fire", "job00")
	p.gets("^At night")
}

// Plain reminders pass a pause; with --hold-reminders resume says what was held, and they are sent late, saying so.
func TestPauseAndLateReminders(t *testing.T) {
	t.Parallel()
	p := newWorld(t).phone()
	p.must("pause")
	p.must("remind", "30m", "take the pizza out")
	p.pass(31 * time.Minute)
	p.must("fire", "take-the-pizza-out")
	p.gets("^take the pizza out")
	p.must("resume")
	p.must("pause", "--hold-reminders")
	p.must("remind", "2h", "renew the passport")
	p.pass(49 * time.Hour)
	p.must("tick")
	if r := p.run("fire", "renew-the-passport"); r.status != 75 {
		t.Errorf("%+v", r)
	}
	p.gets()
	if r := p.run("resume"); !strings.Contains(r.errOut, "the pause held 1 reminder (renew-the-passport)") {
		t.Errorf("%+v", r)
	}
	p.must("tick")
	p.gets("^These reminders are late .*- 2026-03-02 Mon 12:3\\d PM \\(1 day ago\\): renew the passport")

	p.must("remind", "1h", "call Ann")
	p.pass(3 * time.Hour)
	p.must("fire", "call-ann")
	p.gets("^call Ann\n\\(late: it was due Wed 4 Mar 12:3\\d PM, 2 hours ago\\)")
}

// A delivery that is broken cannot say so: the conversation does, and the delivery says when it works again.
func TestDeliveryBrokenAndRepaired(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.phone()
	p.must("config", "set", "delivery.command", "sh", "-c", "echo no route to host >&2; exit 1")
	w.script("turns:\n  - - error: the line went dead\n")
	p.jobs(1)
	p.run("fire", "job00")
	p.hours(2, nil)
	if got := p.doctorSays("delivery"); !strings.HasPrefix(got, "FAIL 1 message could not be delivered since ") || !strings.Contains(got, "no route to host") {
		t.Error(got)
	}
	if list := p.must("updates", "list"); strings.Count(list, "Messages have not reached you since Mon 2 Mar 10:00: ") != 1 {
		t.Error(list)
	}
	p.must("config", "set", "delivery.command", "sh", "-c", `{ cat; echo ---; } >> "$HOME/phone"`)
	p.hours(2, nil)
	p.gets("^Job job00 failed: the line went dead\nTo do: `ollim run log ", "^The delivery of messages works again")
	if got := p.doctorSays("delivery"); !strings.HasPrefix(got, "PASS") {
		t.Error(got)
	}
}

// doctor --ask asks each engine a question, which counts, and never inside a run.
func TestDoctorAsks(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	p := w.phone()
	api.Reply(anthropicapi.Reply{Text: "OK", Usage: anthropicapi.Usage{In: 100, Out: 5}})
	if r := w.run("doctor", "--ask"); !strings.Contains(r.out, "native answered, for 0.0") {
		t.Error(r.out, r.errOut)
	}
	if out := w.must("cost"); !strings.Contains(out, "ask") {
		t.Error(out)
	}
	api.Reply(anthropicapi.Reply{Status: 401, Message: "invalid x-api-key"})
	if r := w.run("doctor", "--ask"); r.status != 1 || !regexp.MustCompile(`FAIL\tquestion\tnative: .*invalid x-api-key`).MatchString(r.out) || !strings.Contains(r.out, "FAIL\tuses\t") {
		t.Error(r.out, r.errOut)
	}
	p.gets()
	n := len(api.Requests())
	leave := w.inRun()
	defer leave()
	if r := w.run("doctor", "--ask"); r.status == 0 || len(api.Requests()) != n {
		t.Errorf("%+v", r)
	}
}
