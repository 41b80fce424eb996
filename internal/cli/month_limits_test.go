package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// monthRun is what the month reads of a run's record.
type monthRun struct {
	Job, Kind, Mode, Outcome, Error string
	Scheduled                       *time.Time `json:"scheduled_for"`
	Started                         time.Time
	Engine                          string
	Cost                            float64
	Compactions, Context            int
}

// monthSlot is what became of a slot, as `ollim schedule audit --json` says.
type monthSlot struct {
	Slot         time.Time
	Job, Outcome string
	Run          string
}

func (m *month) records() (list []monthRun) {
	if m.lived != nil {
		return m.lived
	}
	files, err := filepath.Glob(filepath.Join(m.dir, "state/runs/*/*/*/*/run.json"))
	if err != nil {
		m.t.Fatal(err)
	}
	slices.Sort(files)
	for _, file := range files {
		data, err := os.ReadFile(file)
		var r monthRun
		if err == nil {
			err = json.Unmarshal(data, &r)
		}
		if err != nil {
			m.t.Fatal(err)
		}
		list = append(list, r)
	}
	m.lived = list
	return list
}

func (m *month) audit() map[string]monthSlot {
	out := m.run("schedule", "audit", "--json", "--since", "90d")
	found := map[string]monthSlot{}
	for line := range strings.Lines(out.out) {
		var s monthSlot
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			m.t.Fatal(err, line)
		}
		key := s.Job + " " + s.Slot.UTC().Format(time.RFC3339)
		if _, twice := found[key]; twice {
			m.t.Errorf("the audit lists the slot %s twice", key)
		}
		found[key] = s
	}
	return found
}

// accountForSlots compares the audit and the records with the oracle: every slot has one outcome, which fits what happened, and no slot
// has two runs.
func (m *month) accountForSlots() {
	found := m.audit()
	last := m.to.Add(-20 * time.Minute) // what is not yet missed has no outcome
	for at := m.from; at.Before(last); at = at.Add(time.Minute) {
		for _, j := range m.jobs {
			if !j.schedule.fires(at) {
				continue
			}
			key := j.id + " " + at.UTC().Format(time.RFC3339)
			s, known := found[key]
			delete(found, key)
			if !known || s.Outcome == "unaccounted" || s.Outcome == "running" || s.Outcome == "" {
				m.t.Errorf("slot %s is unaccounted for: %q", key, s.Outcome)
			} else if off := m.off(j.id, at); off != "" && s.Outcome != off && j.id != "lately" {
				m.t.Errorf("slot %s: %s, want %s", key, s.Outcome, off)
			}
		}
	}
	for key, s := range found {
		if !s.Slot.Before(m.from) && s.Slot.Before(last) {
			m.t.Errorf("slot %s, %s, is no instant of the schedule", key, s.Outcome)
		}
	}
	runs := map[string]int{}
	for _, r := range m.records() {
		if r.Scheduled != nil && r.Kind == "routine" && r.Engine != "" { // a reminder that failed is tried again
			key := r.Job + " " + r.Scheduled.UTC().Format(time.RFC3339)
			if runs[key]++; runs[key] == 2 {
				m.t.Errorf("slot %s ran twice", key)
			}
		}
	}
}

// off is the outcome that a slot must have because nothing could run; "": any.
func (m *month) off(job string, at time.Time) string {
	for _, x := range m.troubles {
		inside := !at.Before(x.from) && at.Add(16*time.Minute).Before(x.to)
		switch {
		case !inside:
		case x.cause == "power", x.cause == "invalid" && job == "monitor":
			return "missed"
		case x.cause == "pause":
			return "paused"
		case x.cause == "approval" && job == "fetch":
			return "refused"
		}
	}
	return ""
}

// accountForMoney compares what the service charged with what the records say, by day. A request that was cut off may be counted higher.
func (m *month) accountForMoney() {
	ours, theirs := m.costs()
	for _, day := range slices.Sorted(maps.Keys(theirs)) {
		if math.Abs(ours[day]-theirs[day]) > 0.005+theirs[day]/1000 {
			m.t.Errorf("%s: the records have %.4f USD, the service charged %.4f", day, ours[day], theirs[day])
		}
	}
}

// costs are USD by day, by the records and by the service.
func (m *month) costs() (ours, theirs map[string]float64) {
	ours, theirs = map[string]float64{}, map[string]float64{}
	for _, r := range m.records() {
		ours[r.Started.In(m.zone).Format(time.DateOnly)] += r.Cost
	}
	for key, usd := range m.service.spent {
		_, day, _ := strings.Cut(key, " ")
		theirs[day] += usd
	}
	return ours, theirs
}

// kind says why a message was sent: agent, reminder, or the cause of a notice.
func (m *month) kind(x message) string {
	text := strings.ToLower(x.text)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
	}
	switch {
	case strings.Contains(x.text, "REMINDER "), has("(agent unavailable)"):
		return "reminder"
	case strings.Contains(x.text, "PING "), has(": checked "):
		return "agent"
	case !has("to do:", "in a row") && has("again", " is over", " is approved", " no longer"):
		return "closing"
	case has("the key was refused", "api key", "401", "authentication"):
		return "key"
	case has("corn", "invalid", "cannot be read", "not valid"):
		return "invalid"
	case has("approv"):
		return "approval"
	case has("key"):
		return "key"
	case has("refused the connection", "connection refused", "cannot be reached", "unreachable"):
		return "refused"
	case has("overload", "529"):
		return "overload"
	case has("limit", "usd", "the bill"):
		return "limit"
	case has("missed"):
		return "missed"
	case has("did not finish", "timed out", "stopped after"):
		return "timeout"
	}
	return "other"
}

func isNotice(kind string) bool { return kind != "agent" && kind != "reminder" }

// atNight reports whether an instant is in the quiet hours, 22:00 to 07:00.
func (m *month) atNight(at time.Time) bool {
	h := at.In(m.zone).Hour()
	return h >= 22 || h < 7
}

// limits returns what is not as it should be, one line each.
func (m *month) limits() (broken []string) {
	return slices.Concat(m.limitMessages(), m.limitMoney(), m.limitJobs(), m.limitFiles(), m.limitDoctor(), m.limitRemedies())
}

// limitMessages: a trouble has one opening message, a reminder a day, and one closing message; a notice comes by day, unless it says that
// it is critical.
func (m *month) limitMessages() (broken []string) {
	for _, t := range m.troubles {
		if t.quiet {
			continue
		}
		during, closing := 0, 0
		var texts []string
		for _, x := range m.messages {
			if k := m.kind(x); isNotice(k) && !x.at.Before(t.from) && x.at.Before(t.to.Add(14*time.Hour)) {
				if k == "closing" && !x.at.Before(t.to) {
					closing++
				} else if x.at.Before(t.to) && k != "limit" && k != "missed" && k != "closing" {
					during++
				}
				texts = append(texts, x.at.Format("Jan _2 15:04 ")+plainLine(x.text))
			}
		}
		most := 1 + int(t.to.Sub(t.from)/(24*time.Hour))
		if during == 0 || during > most || closing != 1 {
			broken = append(broken, fmt.Sprintf("messages: %s from %s: %d while it lasted (want 1 to %d) and %d closing ones (want 1): %s",
				t.cause, t.from.Format("Jan _2 15:04"), during, most, closing, strings.Join(texts, " | ")))
		}
	}
	for _, x := range m.messages {
		if k := m.kind(x); isNotice(k) && m.atNight(x.at) && !strings.Contains(strings.ToLower(x.text), "critical") && k != "key" && k != "disk" && k != "limit" {
			broken = append(broken, "quiet hours: "+x.at.Format("Jan _2 15:04 ")+plainLine(x.text))
		}
	}
	for _, word := range []string{"REMINDER dentist", "REMINDER passport"} {
		wanted := slices.ContainsFunc(m.troubles, func(t incident) bool {
			return t.cause == map[string]string{"REMINDER dentist": "power", "REMINDER passport": "pause"}[word]
		})
		if sent := slices.ContainsFunc(m.messages, func(x message) bool { return strings.Contains(x.text, word) }); wanted && !sent {
			broken = append(broken, fmt.Sprintf("messages: the plain reminder %q was never sent", word))
		}
	}
	return broken
}

func plainLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return text[:min(len(text), 160)]
}

// limitMoney: a job whose work is the same each time costs the same at the end of the month as at its beginning, within a tenth. A session
// grows until it is compacted, so that whole cycles are compared where there are some.
func (m *month) limitMoney() (broken []string) {
	for _, j := range m.jobs {
		if first, last, ok := m.steady(j); j.steady && ok && math.Abs(last/first-1) > 0.10 {
			broken = append(broken, fmt.Sprintf("money: a fire of %s cost %.4f USD at first and %.4f at the end (%+.0f %%), for the same work", j.id, first, last, 100*(last/first-1)))
		}
	}
	return broken
}

// steady returns the mean cost of a job's fires in an early and in a late time.
func (m *month) steady(j monthJob) (first, last float64, ok bool) {
	var costs []float64
	var ends []int // of cycles
	for _, r := range m.records() {
		if r.Job != j.id || r.Outcome != "ok" {
			continue
		}
		if costs = append(costs, r.Cost); r.Compactions > 0 {
			ends = append(ends, len(costs))
		}
	}
	n, cycles := len(costs), len(ends)-1
	switch {
	case j.persistent && m.to.Sub(m.from) < 30*24*time.Hour, n < 12: // in a week a session has had few cycles, and incidents in some
		return 0, 0, false
	case cycles >= 3:
		return mean(costs[ends[0]:ends[cycles/3]]), mean(costs[ends[cycles-cycles/3]:ends[cycles]]), true
	}
	return mean(costs[:n/3]), mean(costs[n-n/3:]), true
}

func mean(list []float64) (sum float64) {
	for _, x := range list {
		sum += x
	}
	return sum / float64(len(list))
}

// limitJobs: on the last day, on which nothing is wrong, every job that was due has run.
func (m *month) limitJobs() (broken []string) {
	good, due, why := map[string]int{}, map[string]int{}, map[string]string{}
	for _, r := range m.records() {
		if r.Started.After(m.to.Add(-14 * time.Hour)) {
			if due[r.Job]++; r.Outcome == "ok" || r.Outcome == "gated" {
				good[r.Job]++
			} else {
				why[r.Job] = r.Outcome + ": " + plainLine(r.Error)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(due)) {
		if good[id] == 0 {
			broken = append(broken, fmt.Sprintf("jobs: %s does not run any more: %s", id, why[id]))
		}
	}
	for _, c := range m.chats {
		if !m.inTrouble(c) {
			broken = append(broken, "jobs: the owner's turn failed: "+plainLine(c))
		}
	}
	return broken
}

// inTrouble reports whether a failed turn, which begins with its time, was in an incident.
func (m *month) inTrouble(line string) bool {
	at, err := time.ParseInLocation(time.DateTime, line[:min(len(line), len(time.DateTime))], m.zone)
	return err == nil && slices.ContainsFunc(m.troubles, func(t incident) bool { return !at.Before(t.from) && at.Before(t.to) })
}

// Limits of what a day may leave on disk: what the owner and tick write in any case, a run that began, a fire that did nothing, and at the
// beginning the claims of two days.
const (
	mostFiles, mostFilesOfRun, mostFilesOfIdle = 60, 10, 1
	mostBytes, mostBytesOfRun                  = 1_000_000, 60_000
	mostSlots                                  = 160 // of a day
)

// limitFiles: what a day adds is bounded by what ran.
func (m *month) limitFiles() (broken []string) {
	ran, idle := map[string]int64{}, map[string]int64{}
	nothing := []string{"gated", "paused", "skipped", "refused"}
	for _, r := range m.records() {
		if !slices.Contains(nothing, r.Outcome) {
			ran[r.Started.In(m.zone).Format(time.DateOnly)]++
		}
	}
	for _, s := range m.audit() { // the records of those are gone after keep.idle
		if slices.Contains(nothing, s.Outcome) {
			idle[s.Slot.In(m.zone).Format(time.DateOnly)]++
		}
	}
	for i := 1; i < len(m.days); i++ {
		d, before := m.days[i], m.days[i-1]
		files, bytes := d.files-before.files, d.bytes-before.bytes
		most := mostFiles + mostFilesOfRun*ran[d.day] + mostFilesOfIdle*idle[d.day]
		if i <= 3 { // nothing is folded yet
			most += mostSlots
		}
		if files > most {
			broken = append(broken, fmt.Sprintf("disk: %d files more on %s, want at most %d", files, d.day, most))
		}
		if most := mostBytes + mostBytesOfRun*ran[d.day]; bytes > most {
			broken = append(broken, fmt.Sprintf("disk: %d bytes more on %s, want at most %d", bytes, d.day, most))
		}
	}
	return broken
}

// limitDoctor: doctor fails in every trouble, and finds nothing before and after.
func (m *month) limitDoctor() (broken []string) {
	usual := map[string]bool{}
	for i, d := range m.doctor {
		if i == 0 {
			for _, f := range d.faults {
				usual[f] = true
			}
		}
		news := slices.DeleteFunc(slices.Clone(d.faults), func(f string) bool { return usual[f] })
		switch {
		case d.cause != "" && len(news) == 0:
			broken = append(broken, fmt.Sprintf("doctor: nothing failed at %s, while this lasted: %s", d.at.Format("Jan _2 15:04"), d.cause))
		case d.cause == "" && len(news) > 0:
			broken = append(broken, fmt.Sprintf("doctor: at %s, when all was well: %s", d.at.Format("Jan _2 15:04"), strings.Join(news, " | ")))
		}
	}
	return broken
}

// limitRemedies: a notice that opens something names a command, and the command is one that works when it is typed as it stands.
func (m *month) limitRemedies() (broken []string) {
	command := regexp.MustCompile(`ollim [a-z][^\n;,()` + "`" + `"]*`)
	seen := map[string]bool{}
	for _, x := range m.messages {
		k := m.kind(x)
		if !isNotice(k) || k == "closing" || seen[plainLine(x.text)] {
			continue
		}
		seen[plainLine(x.text)] = true
		commands := command.FindAllString(x.text, -1)
		if len(commands) == 0 {
			broken = append(broken, "remedy: none in: "+plainLine(x.text))
		}
		for _, c := range commands {
			if why := m.typed(strings.TrimRight(c, ". ")); why != "" {
				broken = append(broken, fmt.Sprintf("remedy: %q: %s", c, why))
			}
		}
	}
	return broken
}

// typed types a remedy. One that changes something is only asked for its help, with the words as they stand.
func (m *month) typed(line string) string {
	words := strings.Fields(line)[1:]
	reads := []string{"run log", "run show", "status", "cost", "check", "updates list", "update list", "schedule list", "session list", "model list"}
	isRead := slices.ContainsFunc(reads, func(r string) bool { return strings.HasPrefix(strings.Join(words, " ")+" ", r+" ") })
	if !isRead {
		verbs := slices.IndexFunc(words, func(w string) bool { return !regexp.MustCompile(`^[a-z-]+$`).MatchString(w) })
		if verbs < 0 {
			verbs = len(words)
		}
		words = append(slices.Clone(words[:min(verbs, 2)]), "--help")
	}
	if r := m.run(words...); r.status != 0 {
		return fmt.Sprintf("exit status %d: %s", r.status, plainLine(cmp.Or(r.errOut, r.out)))
	}
	return ""
}
