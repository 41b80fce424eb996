package job

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/cron"
	"github.com/ollim/ollim/internal/platform/yamldoc"
)

// page is a routine file with these lines as its frontmatter.
func page(lines ...string) string { return "---\n" + strings.Join(lines, "\n") + "\n---\nDo it.\n" }

// faults are all that is wrong, a line each.
func faults(err error) string {
	var all yamldoc.Faults
	if err == nil {
		return ""
	}
	if !errors.As(err, &all) {
		return fmt.Sprint(err)
	}
	var lines []string
	for _, f := range all {
		lines = append(lines, f.Error())
	}
	return strings.Join(lines, "\n")
}

func TestEveryField(t *testing.T) {
	j, err := Parse(Routine, "routines/x.md", []byte(`---
id: 00123456
cron: "0 9 * * 1-5"
timezone: Europe/Paris
description: "Daily: market"
background: true
isolated: true
model: opus
thinking: 2000
update-main-session: freely
allow-ping: false
allowed-tools: ["Bash(date)", Read]
skills: [one, two.3]
subagent: helper
engine: script:a.yaml
timeout: 1h30m
catch-up: 2d
max-cost: 1.25
gate: is-open
after: note
dirs: [~/src, "rw:~/x"]
seal: on
network: none
enabled: false
---

Body, with
  its own form.

---
`))
	if err != nil {
		t.Fatal(err)
	}
	want := Job{
		Kind: Routine, Path: "routines/x.md", Body: "Body, with\n  its own form.\n\n---",
		ID: "00123456", Cron: "0 9 * * 1-5", Timezone: "Europe/Paris", Description: "Daily: market", Background: true, Isolated: true,
		Model: "opus", Thinking: "2000", Update: Freely, AllowPing: false, AllowedTools: []string{"Bash(date)", "Read"},
		Skills: []string{"one", "two.3"}, Subagent: "helper", Engine: "script:a.yaml", Timeout: 90 * time.Minute, CatchUp: 48 * time.Hour,
		MaxCost: 1.25, Gate: "is-open", After: "note", Dirs: []string{"~/src", "rw:~/x"}, Seal: SealOn, Network: NetworkNone, Enabled: false,
	}
	same(t, j, want)
	if next, ok := j.Schedule.Next(time.Date(2026, 2, 21, 0, 0, 0, 0, time.UTC), time.UTC); !ok || next.Format("Mon 15:04") != "Mon 09:00" {
		t.Errorf("next %v, %v", next, ok)
	}
}

// same compares what stands in the files.
func same(t testing.TB, got, want Job) {
	t.Helper()
	if d := difference(got, want); d != "" {
		t.Error(d)
	}
}

func difference(got, want Job) (lines string) {
	if got.RunAt.Format(time.RFC3339Nano) == want.RunAt.Format(time.RFC3339Nano) { // also in the offset it is written with
		got.RunAt = want.RunAt
	}
	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	for i := range g.NumField() {
		f := g.Type().Field(i)
		if f.IsExported() && f.Name != "Schedule" && !reflect.DeepEqual(g.Field(i).Interface(), w.Field(i).Interface()) {
			lines += fmt.Sprintf("%s is %#v, want %#v\n", f.Name, g.Field(i).Interface(), w.Field(i).Interface())
		}
	}
	return lines
}

func TestDefaults(t *testing.T) {
	j, err := Parse(Routine, "x.md", []byte(page("id: a", "cron: '@daily'")))
	if err != nil {
		t.Fatal(err)
	}
	want := Job{
		Kind: Routine, Path: "x.md", Body: "Do it.", ID: "a", Cron: "@daily",
		Thinking: "true", Update: OnPing, AllowPing: true, Timeout: 30 * time.Minute, Network: NetworkAny, Enabled: true,
	}
	same(t, j, want)
	want = New(Routine)
	want.Path, want.Body, want.ID, want.Cron = "x.md", "Do it.", "a", "@daily"
	same(t, j, want)
}

// The tables of sections 1.3 and 1.4 of the behaviour, in their order.
func TestFieldsOfTheTables(t *testing.T) {
	for kind, want := range map[Kind]string{
		Routine: `id cron timezone description background session isolated model fallback thinking update-main-session allow-ping
			allowed-tools skills subagent engine timeout catch-up max-cost gate gate-audit after verify retry heartbeat dirs seal network unsealed host enabled`,
		Reminder: `id run-at description background isolated model fallback thinking update-main-session allow-ping allowed-tools skills
			subagent engine timeout max-cost gate after verify retry heartbeat dirs seal network unsealed max-chain chain-depth chain-parent plain host enabled`,
	} {
		var got []string
		for _, f := range Fields(kind) {
			got = append(got, f.Key)
			want := Field{Key: f.Key, Kind: scalarField, Help: f.Help}
			switch f.Key {
			case "background", "isolated", "allow-ping", "plain", "enabled":
				on := f.Key == "allow-ping" || f.Key == "enabled" || f.Key == "background" && kind == Reminder
				want.Kind, want.Default = Bool, fmt.Sprint(on)
			case "allowed-tools", "skills", "dirs", "unsealed", "fallback":
				want.Kind = List
			}
			if f != want || f.Help == "" {
				t.Errorf("%s: %+v, want %+v", kind, f, want)
			}
		}
		if !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("\n got %q\nwant %q", got, strings.Fields(want))
		}
	}
}

// Each line is added to a good file whose frontmatter ends on line 3; bg stands for background: true on line 4.
func TestRules(t *testing.T) {
	const onlyBg = ": only a background routine can have it: add background: true"
	for line, want := range map[string]string{
		"":                        "",
		"background: true":        "",
		"background: false":       "",
		"bg; session: persistent": "",
		"bg; isolated: true":      "",
		"background: yes":         `x.md:4: background: want true or false, not "yes"`,
		"bg; session: forked":     `x.md:5: session: "forked" is not one of: persistent`,
		"bg; session:":            "x.md:5: session: want text, not an empty value",
		"session: persistent":     "x.md:4: session" + onlyBg,
		"isolated: false":         "x.md:4: isolated" + onlyBg,
		"thinking: off":           "x.md:4: thinking" + onlyBg,
		"update_main_session: x":  "x.md:4: update-main-session: \"x\" is not one of: on_ping, always, freely, blocked\nx.md:4: update-main-session" + onlyBg,
		"allow-ping: true":        "x.md:4: allow-ping" + onlyBg,
		"bg; session: persistent; isolated: true":                   "x.md:5: session: persistent and isolated: true exclude each other",
		"bg; session: persistent; isolated: false":                  "",
		"background: maybe; session: persistent; allow-ping: false": `x.md:4: background: want true or false, not "maybe"`,

		"timezone: Europe/Paris":  "",
		"timezone: UTC":           "",
		"timezone: Paris":         `x.md:4: timezone: unknown zone "Paris": write one like Europe/Paris`,
		"timezone: Local":         `x.md:4: timezone: "Local" is not a zone: write one like Europe/Paris`,
		"timezone: ''":            `x.md:4: timezone: "" is not a zone: write one like Europe/Paris`,
		"timezone: ../etc/passwd": `x.md:4: timezone: unknown zone "../etc/passwd": write one like Europe/Paris`,
		"timezone: +02:00":        `x.md:4: timezone: unknown zone "+02:00": write one like Europe/Paris`,
		"description: [a]":        "x.md:4: description: want text, not a list",
		"model: 5":                "",
		"bg; thinking: true":      "", "bg; thinking: false": "", "bg; thinking: off": "", "bg; thinking: adaptive": "", "bg; thinking: 1": "",
		"bg; thinking: on":                 `x.md:5: thinking: "on" is not one of: true, false, off, adaptive, main`,
		"bg; thinking: 0":                  `x.md:5: thinking: "0" is not one of: true, false, off, adaptive, main`,
		"bg; thinking: -5":                 `x.md:5: thinking: "-5" is not one of: true, false, off, adaptive, main`,
		"bg; thinking: 1.5":                `x.md:5: thinking: "1.5" is not one of: true, false, off, adaptive, main`,
		"bg; thinking: [true]":             "x.md:5: thinking: want text, not a list",
		"bg; update-main-session: on_ping": "", "bg; update-main-session: always": "", "bg; update-main-session: freely": "", "bg; update-main-session: blocked": "",
		"bg; update-main-session: on-ping": `x.md:5: update-main-session: "on-ping" is not one of: on_ping, always, freely, blocked`,
		"bg; allow-ping: 1":                `x.md:5: allow-ping: want true or false, not "1"`,
		"allowed-tools: Read":              `x.md:4: allowed-tools: want a list like [a, b], not "Read"`,
		"allowed-tools: [Read, {a: b}]":    "x.md:4: allowed-tools: item 2: want text, not a section",
		"skills: [a, b c]":                 `x.md:4: skills: item 2: "b c" is not a name: want letters and digits and, after the first character, . _ -`,
		"skills: [../x]":                   `x.md:4: skills: item 1: "../x" is not a name: want letters and digits and, after the first character, . _ -`,
		"subagent: a/b":                    `x.md:4: subagent: "a/b" is not a name: want letters and digits and, after the first character, . _ -`,
		"gate: .hidden":                    `x.md:4: gate: ".hidden" is not a name: want letters and digits and, after the first character, . _ -`,
		"gate: ''":                         `x.md:4: gate: "" is not a name: want letters and digits and, after the first character, . _ -`,
		"after: -x":                        `x.md:4: after: "-x" is not a name: want letters and digits and, after the first character, . _ -`,
		"timeout: 90s":                     "", "timeout: 1d": "",
		"timeout: 0":   "x.md:4: timeout: must be longer than zero",
		"timeout: 0s":  "x.md:4: timeout: must be longer than zero",
		"timeout: 30":  `x.md:4: timeout: "30" is not a duration: write one like 30m, 2h or 1d`,
		"timeout: -5m": `x.md:4: timeout: "-5m" is not a duration: write one like 30m, 2h or 1d`,
		"catch-up: 0":  "", "catch-up: 12h": "",
		"catch-up: soon": `x.md:4: catch-up: "soon" is not a duration: write one like 30m, 2h or 1d`,
		"max-cost: 1":    "", "max-cost: .01": "",
		"seal: on": "", "network: none": "", "network: any": "",
		"seal: off":                          `x.md:4: seal: "off" is not one of: on`,
		"seal: auto":                         `x.md:4: seal: "auto" is not one of: on`,
		"network: some":                      `x.md:4: network: "some" is not one of: any, none`,
		"max-cost: 0":                        "x.md:4: max-cost: must be more than zero, and less than a billion",
		"max-cost: -1":                       "x.md:4: max-cost: must be more than zero, and less than a billion",
		"max-cost: 1e12":                     "x.md:4: max-cost: must be more than zero, and less than a billion",
		"max-cost: .nan":                     `x.md:4: max-cost: want a number, not ".nan"`,
		"max-cost: $1":                       `x.md:4: max-cost: want a number, not "$1"`,
		"enabled: nope":                      `x.md:4: enabled: want true or false, not "nope"`,
		"corn: x":                            "x.md:4: corn: unknown key (did you mean cron?)",
		"allow_tools: []":                    "x.md:4: allow_tools: unknown key (did you mean allowed-tools?)",
		"run-at: x":                          "x.md:4: run-at: unknown key",
		"background: true; Background: true": "x.md:5: Background: unknown key (did you mean background?)",
		"catch_up: 1h; catch-up: 1h":         "x.md:5: catch-up: given twice (as catch_up on line 4)",
		"id: b":                              "x.md:4: id: given twice (as id on line 2)",
	} {
		t.Run(line, func(t *testing.T) {
			lines := []string{"id: a", "cron: 0 9 * * *"}
			for _, l := range strings.Split(line, "; ") {
				lines = append(lines, map[bool]string{true: "background: true", false: l}[l == "bg"])
			}
			_, err := Parse(Routine, "x.md", []byte(page(lines...)))
			if got := faults(err); got != want {
				t.Errorf("\n got %s\nwant %s", got, want)
			}
		})
	}
}

func TestRulesOfIdAndCron(t *testing.T) {
	const notID = " is not a valid id: want letters and digits and, after the first character, . _ -"
	for name, tc := range map[string]struct{ text, want string }{
		"nothing":       {"---\n---\nDo it.", "x.md: cron: is missing"},
		"no body":       {"---\nid: a\ncron: 0 9 * * *\n---\n \n\t\n", "x.md: the text below the frontmatter, the prompt, is empty"},
		"no cron":       {page("id: a"), "x.md: cron: is missing"},
		"null cron":     {page("id: a", "cron:"), "x.md:3: cron: want text, not an empty value"},
		"empty cron":    {page("id: a", "cron: ' '"), "x.md:3: cron: is empty"},
		"list cron":     {page("id: a", "cron: [1]"), "x.md:3: cron: want text, not a list"},
		"star cron":     {page("id: a", "cron: * * * * *"), `x.md:3: cron: a value that starts with * must be quoted: cron: "* * * * *"`},
		"bad cron":      {page("id: a", "cron: 0 9 * *"), "x.md:3: cron: " + cronFault("0 9 * *")},
		"bad field":     {page("id: a", "cron: 0 25 * * *"), "x.md:3: cron: " + cronFault("0 25 * * *")},
		"reboot":        {page("id: a", "cron: '@reboot'"), "x.md:3: cron: " + cronFault("@reboot")},
		"null id":       {page("id:", "cron: 0 9 * * *"), "x.md:2: id: want text, not an empty value"},
		"empty id":      {page("id: ''", "cron: 0 9 * * *"), "x.md:2: id: is empty"},
		"path id":       {page("id: ../../x", "cron: 0 9 * * *"), `x.md:2: id: "../../x"` + notID},
		"dots id":       {page("id: ..", "cron: 0 9 * * *"), `x.md:2: id: ".."` + notID},
		"slash id":      {page("id: a/b", "cron: 0 9 * * *"), `x.md:2: id: "a/b"` + notID},
		"space id":      {page("id: a b", "cron: 0 9 * * *"), `x.md:2: id: "a b"` + notID},
		"option id":     {page("id: -q", "cron: 0 9 * * *"), `x.md:2: id: "-q"` + notID},
		"nul id":        {page(`id: "a\0"`, "cron: 0 9 * * *"), `x.md:2: id: "a\x00"` + notID},
		"letter id":     {page("id: é", "cron: 0 9 * * *"), `x.md:2: id: "é"` + notID},
		"long id":       {page("id: "+strings.Repeat("a", 65), "cron: 0 9 * * *"), "x.md:2: id: longer than 64 characters"},
		"longest id":    {page("id: "+strings.Repeat("a", 64), "cron: 0 9 * * *"), ""},
		"all of id":     {page("id: A9._-z", "cron: 0 9 * * *"), ""},
		"in order":      {page("timeout: x", "cron: 0 25 * * *", "id: a", "session: persistent"), "x.md:2: timeout: \"x\" is not a duration: write one like 30m, 2h or 1d\nx.md:3: cron: " + cronFault("0 25 * * *") + "\nx.md:5: session: only a background routine can have it: add background: true"},
		"missing first": {page("id: a", "corn: x"), "x.md: cron: is missing\nx.md:3: corn: unknown key (did you mean cron?)"},
		"crlf":          {strings.ReplaceAll(page("id: a", "cron: x"), "\n", "\r\n"), "x.md:3: cron: " + cronFault("x")},
		"not a page":    {"id: a\n", "x.md:1: does not open with a --- line (frontmatter)"},
		"not yaml":      {page("id: [", "cron: x"), "x.md:2: not valid YAML: did not find expected ',' or ']'"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(Routine, "x.md", []byte(tc.text))
			if got := faults(err); got != tc.want {
				t.Errorf("\n got %s\nwant %s", got, tc.want)
			}
		})
	}
}

// TestNameAsID: a file without id has the name of the file as its id, also while it is fired, if that can be one.
func TestNameAsID(t *testing.T) {
	const text = "---\nrun-at: 2026-03-07T09:00\n---\nDo it.\n"
	for path, want := range map[string]string{
		"reminders/call-mom.md": "call-mom", "state/firing/call-mom.md": "call-mom", "state/firing/call-mom.retry.md": "call-mom",
		"Daily.News_2.md": "Daily.News_2",
	} {
		j, err := Parse(Reminder, path, []byte(text))
		if err != nil || j.ID != want {
			t.Errorf("%s: id %q, %v", path, j.ID, err)
		}
	}
	for _, name := range []string{"tägliche Post", "-x", "reminders/x.retry", strings.Repeat("a", 65)} {
		if _, err := Parse(Reminder, name+".md", []byte(text)); err == nil || !strings.Contains(err.Error(), ": id: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	j, err := Parse(Reminder, "reminders/x.md", []byte(strings.Replace(text, "run-at", "id: 00123456\nrun-at", 1)))
	if err != nil || j.ID != "00123456" {
		t.Errorf("written: id %q, %v", j.ID, err)
	}
}

// cronFault is what cron says of an expression.
func cronFault(expr string) string {
	_, err := cron.Parse(expr)
	return err.Error()
}

func TestBody(t *testing.T) {
	for body, want := range map[string]string{
		"x":                 "x",
		"\n\nx\n\n\n":       "x",
		"  x  \n":           "  x  ",
		"a\r\n\r\nb\r\n":    "a\n\nb",
		"---\nid: b\n---\n": "---\nid: b\n---",
		"\u2028x\r":         "\u2028x",
	} {
		j, err := Parse(Routine, "x.md", []byte("---\nid: a\ncron: 0 9 * * *\n---\n"+body))
		if err != nil || j.Body != want {
			t.Errorf("%q is read as %q, %v, want %q", body, j.Body, err, want)
		}
	}
}

func TestModes(t *testing.T) {
	for lines, want := range map[string]Mode{
		"background: false":                     Foreground,
		"background: true":                      Forked,
		"background: true; isolated: true":      Isolated,
		"background: true; session: persistent": Persistent,
		"background: true; isolated: false":     Forked,
	} {
		j, err := Parse(Routine, "x.md", []byte(page(append([]string{"id: a", "cron: 0 9 * * *"}, strings.Split(lines, "; ")...)...)))
		if err != nil || j.Mode() != want {
			t.Errorf("%s: %s, %v, want %s", lines, j.Mode(), err, want)
		}
	}
}

func TestLabelNameZone(t *testing.T) {
	paris, err := time.LoadLocation("Europe/Paris")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ description, label string }{
		{"", "daily"}, {"'  '", "daily"}, {`"\n\t"`, "daily"}, {"Daily market", "Daily market"}, {`" two\nlines\t "`, "two lines"},
	} {
		j, err := Parse(Routine, "/x/routines/daily.md", []byte(page("id: a", "cron: 0 9 * * *", "description: "+tc.description)))
		if tc.description == "" {
			j, err = Parse(Routine, "/x/routines/daily.md", []byte(page("id: a", "cron: 0 9 * * *")))
		}
		if err != nil || j.Label() != tc.label || j.Name() != "daily" {
			t.Errorf("%q: label %q, name %q, %v", tc.description, j.Label(), j.Name(), err)
		}
		if tc.label == "daily" && j.Description != "" {
			t.Errorf("a blank description is %q", j.Description)
		}
		if j.Zone(paris) != paris {
			t.Errorf("zone %v", j.Zone(paris))
		}
	}
	j := Job{Timezone: "America/New_York"}
	if got := j.Zone(paris).String(); got != "America/New_York" {
		t.Error(got)
	}
}
