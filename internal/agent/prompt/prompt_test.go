package prompt_test

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/schedule/forecast"
	"github.com/ollim/ollim/internal/state/budget"
	"github.com/ollim/ollim/internal/state/job"
)

var rewrite = flag.Bool("update", false, "write the golden files anew")

// now is the instant of every prompt in these tests: Tuesday afternoon on the west coast.
var now = time.Date(2026, 2, 24, 14, 30, 0, 0, time.FixedZone("PST", -8*3600))

// combination is all that the text of a prompt depends on, except for what a job asks for besides.
type combination struct {
	mode   job.Mode
	kind   job.Kind
	chain  string // position in a chain of four: none, middle, final
	pings  bool
	update job.UpdateMode
	busy   bool
}

func combinations() (all []combination) {
	for _, mode := range []job.Mode{job.Foreground, job.Forked, job.Isolated, job.Persistent} {
		for _, chain := range []string{"none", "middle", "final"} {
			for _, pings := range []bool{true, false} {
				for _, update := range []job.UpdateMode{job.OnPing, job.Always, job.Freely, job.Blocked} {
					for _, busy := range []bool{false, true} {
						kind := job.Reminder
						if chain == "none" {
							kind = job.Routine
						}
						all = append(all, combination{mode, kind, chain, pings, update, busy})
					}
				}
			}
		}
	}
	return append(all, combination{job.Foreground, job.Reminder, "none", true, job.OnPing, false})
}

func (c combination) background() bool { return c.mode != job.Foreground }

// name is the combination's golden file. A foreground run has no preamble, so all of one kind and position share one. The
// kind follows from the position otherwise.
func (c combination) name() string {
	if !c.background() {
		return strings.Join([]string{string(c.mode), string(c.kind), c.chain}, "-")
	}
	words := []string{string(c.mode), "pings", string(c.update), "idle", c.chain}
	if !c.pings {
		words[1] = "silent"
	}
	if c.busy {
		words[3] = "busy"
	}
	return strings.Join(words, "-")
}

func (c combination) brief() prompt.Input {
	j := job.New(c.kind)
	j.ID, j.Body = "daily-market", "Look at the oil price.\n\nCompare it with yesterday's."
	if c.kind == job.Reminder {
		j.ID = "3f9a01bc"
	}
	j.Background = c.background()
	j.Isolated = c.mode == job.Isolated
	if c.mode == job.Persistent {
		j.Session = "persistent"
	}
	j.AllowPing, j.Update = c.pings, c.update
	if c.chain != "none" {
		j.MaxChain, j.ChainParent = 3, "11aa22bb"
		j.ChainDepth = map[string]int{"middle": 1, "final": 3}[c.chain]
	}
	return prompt.Input{
		Task: prompt.TaskOf(j), Now: now, Busy: c.busy,
		Budget:  budget.Status{Capacity: 5, Available: 3.6, RefillEvery: 90 * time.Minute, NextRefill: 42 * time.Minute},
		Forward: forward(),
	}
}

func forward() forecast.Forward {
	at := func(hour, minute int) time.Time { return time.Date(2026, 2, 24, hour, minute, 0, 0, now.Location()) }
	return forecast.Forward{
		Entries: []forecast.Entry{
			{At: at(14, 20), Label: "Inbox", Description: "Sort the inbox", Path: "routines/inbox.md", Tag: "just fired"},
			{At: at(14, 30), Label: "Daily market", Description: "Look at the oil price.", Path: "routines/market.md", Tag: "this task"},
			{At: at(15, 0), Label: "Chain reminder (2/4)", Description: "Has the parcel come?", Path: "reminders/parcel.md"},
			{At: at(17, 45), Label: "Routine", Description: "Water the plants", Path: "routines/plants.md", Silent: true},
		},
		Hours: 3, Refills: 2,
	}
}

// agentTools are the tools that a prompt may speak of, as it spells them.
var agentTools = []string{
	"ping_user", "send_file", "ask_owner", "report_updates", "follow_up_chain", "compact_session", "`skill`", "`Task`",
}

// offers reports whether a run of this combination may use a tool (behaviour 2.4, 3.5, 6 and 9.2), and has use for it.
func (c combination) offers(tool string) bool {
	switch tool {
	case "report_updates":
		return c.background() && c.update != job.Blocked
	case "ping_user", "send_file", "ask_owner":
		return c.background() && c.pings
	case "follow_up_chain":
		return c.chain == "middle"
	case "compact_session":
		return c.mode == job.Persistent
	}
	return false
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (-update writes it anew)\n got %s\nwant %s", path, got, want)
	}
}

// whole is all that the agent is told: the message and, where the job has one of its own, the system prompt.
func whole(b prompt.Input) string {
	if !b.Task.Background || b.Task.Branch {
		return prompt.Build(b).Text()
	}
	return prompt.Alone(b.Task, b.Tools) + "\n\n--- the message:\n\n" + prompt.Build(b).Text()
}

// known is every golden file's name and text.
func known() map[string]string {
	all := map[string]string{"system-main": prompt.SystemMain("PROFILE"), "system-alone": prompt.SystemAlone}
	for _, c := range combinations() {
		all[c.name()] = whole(c.brief())
	}
	for name, b := range extras() {
		all[name] = whole(b)
	}
	maps.Copy(all, forks())
	return all
}

func TestGolden(t *testing.T) {
	for name, text := range known() {
		golden(t, name, text)
	}
}

// What shares a golden file must be one text.
func TestForegroundIsTagAndBody(t *testing.T) {
	texts := map[string]string{}
	for _, c := range combinations() {
		text := prompt.Build(c.brief()).Text()
		if before, ok := texts[c.name()]; ok && before != text {
			t.Errorf("%s: two texts\n%s\n%s", c.name(), before, text)
		}
		texts[c.name()] = text
	}
	if want := 3*2*4*2*3 + 4; len(texts) != want {
		t.Errorf("%d golden files of combinations, want %d", len(texts), want)
	}
	want := "[reminder:3f9a01bc] [2026-02-24 Tue 02:30 PM PST]\n\nLook at the oil price.\n\nCompare it with yesterday's.\n"
	if got := texts["foreground-reminder-none"]; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A golden file of a combination that is gone would be read as the truth.
func TestNoStaleGoldenFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	want := known()
	for _, file := range files {
		if _, ok := want[strings.TrimSuffix(filepath.Base(file), ".txt")]; !ok {
			t.Errorf("%s belongs to no test", file)
		}
	}
	if len(files) != len(want) {
		t.Errorf("%d golden files, want %d", len(files), len(want))
	}
}

// The text is made for the run that reads it: it names no tool which that run does not have, and all that it has.
func TestToolsAreThoseOffered(t *testing.T) {
	names := regexp.MustCompile("[a-z]+(?:_[a-z]+)+|`[A-Za-z]+`")
	for _, c := range combinations() {
		for _, asks := range []string{"", "`skill`", "`Task`"} {
			b := c.brief()
			switch asks {
			case "`skill`":
				b.Task.Skills = []string{"prose"}
			case "`Task`":
				b.Task.Subagent = "analyst"
			}
			mentioned := names.FindAllString(whole(b), -1)
			for _, name := range mentioned {
				helper := name == "minutes_from_now" && c.offers("follow_up_chain") || name == "`name`" && asks == "`skill`"
				if name = bare(name); !c.offers(name) && name != asks && !helper {
					t.Errorf("%s, asks for %q: mentions %s", c.name(), asks, name)
				}
			}
			for _, name := range agentTools {
				if (c.offers(name) || name == asks) && !slices.ContainsFunc(mentioned, func(m string) bool { return bare(m) == name }) {
					t.Errorf("%s, asks for %q: does not mention %s", c.name(), asks, name)
				}
			}
		}
	}
}

// bare is a tool's name without backquotes if it is one of several words.
func bare(name string) string {
	if strings.Contains(name, "_") {
		return strings.Trim(name, "`")
	}
	return name
}

// The facts of behaviour 3.2 and 3.5, whatever the wording.
func TestFacts(t *testing.T) {
	for _, c := range combinations() {
		text := whole(c.brief())
		background, chain, final := c.background(), c.chain != "none", c.chain == "final"
		reports, pings := background && c.update != job.Blocked, background && c.pings
		for fact, want := range map[string]bool{
			"[routine-bg:daily-market] [2026-02-24 Tue 02:30 PM PST]\n\n":    background && !chain,
			"[reminder-bg:3f9a01bc] [2026-02-24 Tue 02:30 PM PST]\n\n":       background && chain,
			"[routine:daily-market] [2026-02-24 Tue 02:30 PM PST]\n\n":       !background && c.kind == job.Routine,
			"[reminder:3f9a01bc] [2026-02-24 Tue 02:30 PM PST]\n\n":          !background && c.kind == job.Reminder,
			"\n\nSESSION: Persistent — your context carries across fires.\n": c.mode == job.Persistent,

			"\n\nOUTPUT: ":                   background,
			"your text output is discarded":  background && c.mode != job.Persistent,
			"nobody but you reads your text": c.mode == job.Persistent,
			"Pings, embeds and files are di": background && !c.pings,

			"\n\nUPDATES: ":                                         background,
			"`report_updates` is mandatory: ":                       background && c.update == job.Always,
			"Once you have sent the owner anything, `report_update": pings && c.update == job.OnPing,
			"`report_updates` is optional":                          background && c.update == job.Freely,
			"use it if you sent the owner something":                pings && c.update == job.Freely,
			"The main session will not hear of this run":            pings && c.update == job.Blocked,
			"You can still reach the owner directly":                pings && c.update == job.Blocked,
			"This run is silent":                                    background && !reports && !c.pings,

			"\n\nBUSY: ": pings && c.busy,
			"so is a ping, embed or file unless it is critical (`critical=True`)": pings && c.busy,
			"; use `report_updates` instead.":                                     pings && c.busy && reports,

			"\n\nPINGS: budget: 3/5 (next refill in 42 min)\n":                                  pings,
			"\nUpcoming bg tasks (next 3h):\n":                                                  pings,
			"\n- 2:30 PM: Daily market — \"Look at the oil price.\" (routines/market.md) [this": pings,
			"\n- 5:45 PM: Routine (silent) — \"Water the plants\" (routines/plants.md)\n":       pings,
			"\n~2 refills before last task.\n":                                                  pings,
			"at most one ping, embed, file or question":                                         pings,
			"regret test":                pings,
			"\n`critical=True` bypasses": pings,
			"(the regret test); otherwise `report_updates` is enough.": pings && reports,
			"(the regret test); otherwise send nothing.":               pings && !reports,

			"TOOL RESTRICTIONS": false, "REQUIRED SKILLS": false, "SUBAGENT": false,

			"\n\nCHAIN: This is check 2 of 4.\n":               c.chain == "middle",
			"\n\nCHAIN: This is check 4 of 4, the final one; ": final,
			"`follow_up_chain(minutes_from_now=N)`":            c.chain == "middle",
			"if you do not, the chain ends here":               c.chain == "middle",
			"no further follow-up is possible":                 final,
			"\"checking in again\"":                            chain && (pings || !background),
			"\nIf you ping, say that":                          chain && pings,
			"Ping only if it is still unresolved and the owner would regret missing it; otherwise use `report_updates`.": final && pings && reports && c.update != job.Always,
			"would regret missing it. With or without a ping, call `report_updates`.":                                    final && pings && c.update == job.Always,
			"Ping only if it is still unresolved and the owner would regret missing it; otherwise end without.":          final && pings && !reports,
			"If it is still unresolved, say so with `report_updates`.":                                                   final && !pings && reports,
			"Finish the task and end.":                   final && background && !pings && !reports,
			"If it is still unresolved, say so plainly.": final && !background,

			"\n\nLook at the oil price.\n\nCompare it with yesterday's.\n": true,

			"session is discarded": false, "INPUT": false, "GATE": false, "WEBHOOK": false, "TASK": false, "[late: was": false,
			"RECENT BACKGROUND UPDATES": false, "NOTE: ": false, "\n\n\n": false,
		} {
			if got := strings.Contains(text, fact); got != want {
				t.Errorf("%s: contains %q: %v, want %v", c.name(), fact, got, want)
			}
		}
		if !pings && regexp.MustCompile(`(?i)\bping|\bembed|\bcritical|budget|regret`).MatchString(strings.Replace(text, "Pings, embeds and", "", 1)) {
			t.Errorf("%s: speaks of pings that it forbids\n%s", c.name(), text)
		}
	}
}

// The sections come in the order of behaviour 3.2, each after a blank line: in the system prompt those that never change, in the message
// those that may.
func TestOrder(t *testing.T) {
	got := regexp.MustCompile(`(?m)^[A-Z][A-Z ]+[A-Z]\b`).FindAllString(whole(extras()["persistent-everything"]), -1)
	want := []string{
		"SESSION", "CONTEXT", "OUTPUT", "UPDATES", "PINGS", "TOOL RESTRICTIONS", "REQUIRED SKILLS", "SUBAGENT", "BUSY", "PINGS", "CHAIN", "NOTE",
		"RECENT BACKGROUND UPDATES", "GATE OUTPUT", "INPUT",
	}
	if !slices.Equal(got, want) {
		t.Errorf("sections %q, want %q", got, want)
	}
}
