package job

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func zoneOf(t *testing.T, name string) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

func TestReminderDefaults(t *testing.T) {
	j, err := Parse(Reminder, "x.md", []byte(page("id: a", "run-at: 2026-03-07T09:00:00+01:00")))
	if err != nil {
		t.Fatal(err)
	}
	want := New(Reminder)
	want.Path, want.Body, want.ID, want.RunAt = "x.md", "Do it.", "a", time.Date(2026, 3, 7, 9, 0, 0, 0, time.FixedZone("", 3600))
	same(t, j, want)
	if !j.Background || j.Mode() != Forked || j.MaxChain+j.ChainDepth != 0 || j.ChainParent != "" || j.Plain {
		t.Errorf("%+v", j)
	}
}

// Each line is added to a good reminder whose frontmatter ends on line 3.
func TestRulesOfReminders(t *testing.T) {
	const noAgent = ": a plain reminder has no agent: remove plain: true, or this key"
	const onlyBg = ": only a background reminder can have it: remove background: false"
	rules := map[string]string{
		"":                                  "",
		"background: false":                 "",
		"background: true; isolated: true":  "",
		"isolated: true":                    "",
		"plain: true":                       "",
		"plain: true; description: Pizza":   "",
		"plain: true; background: false":    "",
		"plain: true; enabled: false":       "",
		"plain: false; model: opus":         "",
		"plain: yes":                        `x.md:4: plain: want true or false, not "yes"`,
		"plain: false; max_chain: 0":        "",
		"max-chain: 3":                      "",
		"max-chain: 1000":                   "",
		"max-chain: 1001":                   "x.md:4: max-chain: want 0 to 1000",
		"max-chain: -1":                     "x.md:4: max-chain: want 0 to 1000",
		"max-chain: many":                   `x.md:4: max-chain: want a whole number, not "many"`,
		"max-chain: 1.5":                    `x.md:4: max-chain: want a whole number, not "1.5"`,
		"max-chain: '3'":                    `x.md:4: max-chain: want a whole number, not "3"`,
		"max-chain: 3; chain-depth: 3":      "",
		"max-chain: 3; chain-depth: 4":      "x.md:5: chain-depth: is beyond max-chain",
		"chain-depth: 1":                    "x.md:4: chain-depth: is beyond max-chain",
		"chain_depth: 1; max_chain: many":   `x.md:5: max-chain: want a whole number, not "many"`,
		"max-chain: 1; chain-depth: -1":     "x.md:5: chain-depth: want 0 to 1000",
		"max-chain: 1; chain-depth: 9999":   "x.md:5: chain-depth: want 0 to 1000",
		"max-chain: 1; chain-parent: ../x":  `x.md:5: chain-parent: "../x" is not a valid id: want letters and digits and, after the first character, . _ -`,
		"chain-parent: b":                   "",
		"run_at: 2026-03-07T10:00":          "x.md:4: run_at: given twice (as run-at on line 3)",
		"cron: 0 9 * * *":                   "x.md:4: cron: unknown key",
		"timezone: UTC":                     "x.md:4: timezone: unknown key",
		"session: persistent":               "x.md:4: session: unknown key",
		"catch-up: 1h":                      "x.md:4: catch-up: unknown key",
		"max-chains: 2":                     "x.md:4: max-chains: unknown key (did you mean max-chain?)",
		"chain: 2":                          "x.md:4: chain: unknown key (did you mean plain?)",
		"runat: x":                          "x.md:4: runat: unknown key (did you mean run-at?)",
		"plane: true":                       "x.md:4: plane: unknown key (did you mean plain?)",
		"background: false; isolated: true": "x.md:5: isolated" + onlyBg,
		"background: false; thinking: off":  "x.md:5: thinking" + onlyBg,
		"background: false; allow_ping: true; update-main-session: always": "x.md:5: allow-ping" + onlyBg + "\nx.md:6: update-main-session" + onlyBg,
		"background: 1; isolated: true":                                    `x.md:4: background: want true or false, not "1"`,
		"background: false; model: opus; max-chain: 1; skills: [a]":        "",
	}
	for _, line := range []string{
		"isolated: true", "model: opus", "thinking: off", "update-main-session: always", "allow-ping: false", "allowed-tools: [Read]", "skills: [a]",
		"subagent: a", "engine: script:x", "max-cost: 1", "gate: g", "after: g", "dirs: [/x]", "seal: on", "network: none", "max-chain: 0", "chain-depth: 0", "chain-parent: b",
	} {
		key, _, _ := strings.Cut(line, ":")
		rules["plain: true; "+line] = "x.md:5: " + key + noAgent
	}
	for line, want := range rules {
		t.Run(line, func(t *testing.T) {
			lines := append([]string{"id: a", "run-at: 2026-03-07T09:00"}, strings.Split(line, "; ")...)
			_, err := Parse(Reminder, "x.md", []byte(page(lines...)))
			if got := faults(err); got != want {
				t.Errorf("\n got %s\nwant %s", got, want)
			}
		})
	}
}

func TestRequiredOfReminders(t *testing.T) {
	const notTime = ` is not a time: write one like 2026-03-07T09:00 or 2026-03-07T09:00:00+01:00`
	for text, want := range map[string]string{
		"---\n---\nDo it.": "x.md: run-at: is missing",
		"---\nid: a\nrun-at: 2026-03-07T09:00\n---\n ": "x.md: the text below the frontmatter, the prompt, is empty",
		page("id: a"):                                   "x.md: run-at: is missing",
		page("id: a", "run-at:"):                        "x.md:3: run-at: want text, not an empty value",
		page("id: a", "run-at: ''"):                     `x.md:3: run-at: ""` + notTime,
		page("id: a", "run-at: tomorrow"):               `x.md:3: run-at: "tomorrow"` + notTime,
		page("id: a", "run-at: 2026-02-30T09:00"):       `x.md:3: run-at: "2026-02-30T09:00"` + notTime,
		page("id: a", "run-at: 1772870400"):             `x.md:3: run-at: "1772870400"` + notTime,
		page("id: a", "run-at: [2026-03-07]"):           "x.md:3: run-at: want text, not a list",
		page("id: a.retry", "run-at: 2026-03-07 09:00"): "x.md:2: id: cannot end in .retry, which marks a second attempt",
		page("id: a.Retry", "run-at: 2026-03-07 09:00"): "x.md:2: id: cannot end in .retry, which marks a second attempt",
	} {
		if _, err := Parse(Reminder, "x.md", []byte(text)); faults(err) != want {
			t.Errorf("%q\n got %s\nwant %s", text, faults(err), want)
		}
	}
}

// A time with an offset stays what it is; one without means the configured zone, and is never an hour early or late where the
// clocks change.
func TestRunAt(t *testing.T) {
	for _, tc := range []struct{ zone, written, want string }{
		{"Europe/Paris", "2026-03-07T09:00:00+05:30", "2026-03-07T09:00:00+05:30"},
		{"Europe/Paris", "2026-03-07T09:00:00Z", "2026-03-07T09:00:00Z"},
		{"Europe/Paris", "2026-03-07T09:00-08:00", "2026-03-07T09:00:00-08:00"},
		{"Europe/Paris", "2026-03-07 09:00:00.75-08:00", "2026-03-07T09:00:00-08:00"},
		{"Europe/Paris", "2026-03-07T09:00", "2026-03-07T09:00:00+01:00"},
		{"Europe/Paris", "2026-03-07T09:00:30", "2026-03-07T09:00:30+01:00"},
		{"Europe/Paris", "2026-03-07T09:00:30.999999", "2026-03-07T09:00:30+01:00"},
		{"Europe/Paris", "2026-07-07 09:00", "2026-07-07T09:00:00+02:00"},
		{"Europe/Paris", "2026-07-07 09:00:01", "2026-07-07T09:00:01+02:00"},
		// gaps
		{"Europe/Paris", "2026-03-29T02:00", "2026-03-29T03:00:00+02:00"},
		{"Europe/Paris", "2026-03-29T02:59:59", "2026-03-29T03:00:00+02:00"},
		{"America/New_York", "2026-03-08T02:30", "2026-03-08T03:00:00-04:00"},
		{"Australia/Lord_Howe", "2026-10-04T02:15", "2026-10-04T02:30:00+11:00"},
		{"Pacific/Apia", "2011-12-30T12:00", "2011-12-31T00:00:00+14:00"},
		// times that clocks show twice
		{"Europe/Paris", "2026-10-25T02:30", "2026-10-25T02:30:00+02:00"},
		{"America/New_York", "2026-11-01T01:30", "2026-11-01T01:30:00-04:00"},
	} {
		j, err := Parse(Reminder, "x.md", []byte(page("id: a", "run-at: "+tc.written)))
		if err != nil {
			t.Error(err)
			continue
		}
		j = j.In(zoneOf(t, tc.zone))
		if got := j.RunAt.Format(time.RFC3339Nano); got != tc.want {
			t.Errorf("%s in %s is %s, want %s", tc.written, tc.zone, got, tc.want)
		}
		// what is settled once stays
		if again := j.In(time.UTC); !again.RunAt.Equal(j.RunAt) {
			t.Errorf("%s moved to %s", j.RunAt, again.RunAt)
		}
	}
}

// A reminder that was read in a zone and written again means the same instant everywhere.
func TestRunAtRoundTrip(t *testing.T) {
	zones := []*time.Location{
		zoneOf(t, "UTC"), zoneOf(t, "Europe/Paris"), zoneOf(t, "America/St_Johns"), zoneOf(t, "Australia/Lord_Howe"), zoneOf(t, "Asia/Kathmandu"),
	}
	rapid.Check(t, func(t *rapid.T) {
		civil := time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "civil"), 0).UTC()
		form := rapid.SampledFrom([]string{"2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02 15:04:05", time.RFC3339}).Draw(t, "form")
		zone := rapid.SampledFrom(zones).Draw(t, "zone")
		j, err := Parse(Reminder, "x.md", []byte(page("id: a", "run-at: "+civil.Format(form))))
		if err != nil {
			t.Fatal(err)
		}
		j = j.In(zone)
		if form == time.RFC3339 && !j.RunAt.Equal(civil) {
			t.Fatalf("%s became %s", civil, j.RunAt)
		}
		text, err := Format(j)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(Reminder, "x.md", text)
		if err != nil {
			t.Fatal(err)
		}
		if got := again.In(rapid.SampledFrom(zones).Draw(t, "other")).RunAt; !got.Equal(j.RunAt) {
			t.Fatalf("%s became %s\n%s", j.RunAt, got, text)
		}
	})
}

func TestChainParent(t *testing.T) {
	for lines, want := range map[string]string{"": "", "max-chain: 2": "a", "max-chain: 2; chain-parent: b": "b", "chain-parent: b": "b"} {
		text := page(append([]string{"id: a", "run-at: \"2026-03-07T09:00:00Z\""}, strings.Split(lines, "; ")...)...)
		j, err := Parse(Reminder, "x.md", []byte(text))
		if err != nil || j.ChainParent != want {
			t.Errorf("%s: %q, %v", lines, j.ChainParent, err)
		}
		out, err := Format(j)
		if want := strings.ReplaceAll(text, "\n\n", "\n"); string(out) != want || err != nil { // its own id is not written
			t.Errorf("%v\n%s\nwant\n%s", err, out, want)
		}
	}
}

// A follow-up is the same reminder later: a field that it lost would be a right or a limit lost.
func TestFollowUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := anyJob(Reminder).Filter(func(j Job) bool { return j.ChainDepth < j.MaxChain }).Draw(t, "job")
		at := j.RunAt.Add(time.Hour)
		next := j.FollowUp("next", at)
		want := j
		want.ID, want.RunAt, want.ChainDepth = "next", at, j.ChainDepth+1
		if !reflect.DeepEqual(next, want) {
			t.Fatal(difference(next, want))
		}
		text, err := Format(next)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(Reminder, "", text)
		if err != nil || difference(again, want) != "" {
			t.Fatalf("%v\n%s", err, difference(again, want))
		}
	})
	// that the first was written without an offset says nothing of the next
	j, err := Parse(Reminder, "x.md", []byte(page("id: a", "run-at: 2026-03-07T09:00", "max-chain: 2")))
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 7, 10, 0, 0, 0, time.UTC)
	next := j.FollowUp("b", at)
	if got := next.In(zoneOf(t, "Asia/Tokyo")); !got.RunAt.Equal(at) || got.ChainParent != "a" || got.ChainDepth != 1 {
		t.Errorf("%s, %s, %d", got.RunAt, got.ChainParent, got.ChainDepth)
	}
}
