package job

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ollim/ollim/internal/platform/yamldoc"
	"github.com/ollim/ollim/internal/policy"
)

func TestFormat(t *testing.T) {
	j := New(Routine)
	j.ID, j.Cron, j.Body = "00123456", "* * * * *", "Do it."
	for _, tc := range []struct {
		change func(*Job)
		want   string
	}{
		{func(*Job) {}, ""},
		{func(j *Job) {
			j.Enabled, j.Description, j.Background, j.Session, j.Thinking = false, "Daily: \"market\" \\ a\nb", true, "persistent", "off"
		}, "description: \"Daily: \\\"market\\\" \\\\ a\\nb\"\nbackground: true\nsession: persistent\nthinking: \"off\"\nenabled: false\n"},
		{func(j *Job) {
			j.Timezone, j.Background, j.Thinking, j.Update, j.AllowPing = "UTC", true, "false", Always, false
		}, "timezone: UTC\nbackground: true\nthinking: false\nupdate-main-session: always\nallow-ping: false\n"},
		{func(j *Job) {
			j.Thinking, j.AllowedTools, j.Timeout, j.CatchUp, j.MaxCost = "2000", []string{"a: b", "null"}, time.Hour, 36*time.Hour, .5
		}, "thinking: 2000\nallowed-tools:\n  - 'a: b'\n  - \"null\"\ntimeout: 1h\ncatch-up: 1d12h\nmax-cost: 0.5\n"},
	} {
		j := j
		tc.change(&j)
		text, err := Format(j)
		if want := "---\nid: \"00123456\"\ncron: '* * * * *'\n" + tc.want + "---\nDo it.\n"; string(text) != want || err != nil {
			t.Errorf("%v\n got %s\nwant %s", err, text, want)
		}
	}
	j.Description = "\xff"
	if _, err := Format(j); err == nil {
		t.Error("a description that is not UTF-8 was written")
	}
}

// hostile is text that YAML, markdown or a shell would take for something else.
func hostile() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom([]string{
			"null", "~", "yes", "no", "on", "true", "1e3", "0x10", "007", "1_000", ".5", ".inf", "12:30:45", "2026-02-24", "<<", "=", "---", "...",
			"- a", "? a", ": a", "a: b", "a #b", "# a", "* * *", "&a", "*a", "!a", "@a", "`a`", "%a", "'", "\"", "it's", `\`, `\n`, "[", "]", "{a}", ",",
			"|", ">", "|-", " a", "a ", "\ta", "a\n", "\na", "a\n\nb", "a\n---\nb", "a\r\nb", "\r", "\u0085", "\u2028", "\ufeff", "\u200b", "\x00", "\x1b[31m", "☃", "日本語",
			"é", "e\u0301", "\U0001f600", "\u202eabc", "\ufffe", "\U0010ffff", "\ufffd",
		}),
		rapid.String(), rapid.StringMatching(`[ -~\n\t]{0,40}`), rapid.StringOfN(rapid.RuneFrom([]rune("a \n\t'\"\\:#-|>{}[]&*!%@`,?")), 0, 12, -1),
	)
}

func name() *rapid.Generator[string] { return rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9._-]{0,63}`) }

// pattern is a tool pattern that any job may have.
func pattern() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom([]string{"Read", "Read(./**.md)", "Write(./notes/**.md)", "WebFetch(domain:*.example.org)", "mcp__x__*", "Bash(ollim tasks *)", "Task(helper)"}),
		rapid.Map(rapid.StringMatching(`[ -&(-~é☃]{0,12}`), func(s string) string { return "Bash(note '" + s + "' *)" }),
	).Filter(func(s string) bool { return policy.Judge(s) == nil })
}

// directory is an entry of dirs.
func directory() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return rapid.SampledFrom([]string{"", "rw:"}).Draw(t, "rw") + rapid.SampledFrom([]string{"/", "~/"}).Draw(t, "from") +
			strings.Join(rapid.SliceOfN(rapid.StringMatching(`[A-Za-z0-9é][A-Za-z0-9é ._#:,@%+=&'"-]{0,8}[A-Za-z0-9é]`), 1, 3).Draw(t, "names"), "/")
	})
}

func optional(of *rapid.Generator[string]) *rapid.Generator[string] {
	return rapid.OneOf(rapid.Just(""), of)
}

func listed(t *rapid.T, label string, of *rapid.Generator[string]) []string {
	items := rapid.SliceOfN(of, 0, 3).Draw(t, label)
	if len(items) == 0 {
		return nil
	}
	return items
}

func span() *rapid.Generator[time.Duration] {
	return rapid.Map(rapid.Int64Range(1, int64(70_000*time.Hour)), func(n int64) time.Duration { return time.Duration(n) })
}

// anyJob is a valid job of a kind, of which nothing else is known.
func anyJob(kind Kind) *rapid.Generator[Job] {
	return rapid.Custom(func(t *rapid.T) Job {
		j := New(kind)
		j.ID = rapid.OneOf(name(), rapid.StringMatching(`[0-9]{8}`), rapid.StringMatching(`[0-9]e[0-9]{6}`)).Draw(t, "id")
		if j.Description = optional(hostile()).Draw(t, "description"); strings.TrimSpace(j.Description) == "" {
			j.Description = ""
		}
		j.Timeout, j.Enabled, j.Background = span().Draw(t, "timeout"), rapid.Bool().Draw(t, "enabled"), rapid.Bool().Draw(t, "background")
		if kind == Routine {
			j.Cron = rapid.SampledFrom([]string{"* * * * *", "@daily", "*/5 0 1,15 jan mon", "0 9 * * 1-5"}).Draw(t, "cron")
			j.Timezone = rapid.SampledFrom([]string{"", "UTC", "Europe/Paris", "America/New_York"}).Draw(t, "timezone")
			j.CatchUp = span().Draw(t, "catch-up")
		} else {
			zone := time.FixedZone("", 60*rapid.IntRange(-14*60, 14*60).Draw(t, "offset"))
			j.RunAt = time.Unix(rapid.Int64Range(-60e9, 250e9).Draw(t, "run-at"), 0).In(zone)
			j.Plain = rapid.Bool().Draw(t, "plain")
		}
		if !j.Plain {
			forAgent(t, &j)
		}
		body := strings.ReplaceAll(hostile().Draw(t, "body")+rapid.SampledFrom([]string{"", "\n---\n", "x"}).Draw(t, "more"), "\r\n", "\n")
		if j.Body = strings.Trim(body, "\r\n"); strings.TrimSpace(j.Body) == "" {
			j.Body = "x"
		}
		return j
	})
}

// forAgent sets what only a job with an agent has.
func forAgent(t *rapid.T, j *Job) {
	j.Model, j.Engine = optional(hostile()).Draw(t, "model"), optional(hostile()).Draw(t, "engine")
	j.AllowedTools, j.Dirs, j.Skills = listed(t, "allowed-tools", pattern()), listed(t, "dirs", directory()), listed(t, "skills", name())
	j.Subagent, j.Gate, j.After = optional(name()).Draw(t, "subagent"), optional(name()).Draw(t, "gate"), optional(name()).Draw(t, "after")
	j.Host = rapid.SampledFrom([]string{"", "server", "null", "a.example.org"}).Draw(t, "host")
	j.Seal, j.Network = rapid.SampledFrom([]string{"", SealOn}).Draw(t, "seal"), rapid.SampledFrom([]string{NetworkAny, NetworkNone}).Draw(t, "network")
	j.Verify, j.Heartbeat = optional(name()).Draw(t, "verify"), rapid.SampledFrom([]string{"", "https://hc-ping.com/a?b=c"}).Draw(t, "heartbeat")
	if rapid.Bool().Draw(t, "has fallback") {
		j.Fallback = rapid.SliceOfN(name(), 0, 3).Draw(t, "fallback")
	}
	for _, p := range j.Programs() {
		if rapid.Bool().Draw(t, "unsealed "+p.Key) {
			j.Unsealed = append(j.Unsealed, p.Key)
		}
	}
	if j.Verify != "" {
		j.Retry = rapid.IntRange(0, 1000).Draw(t, "retry")
	}
	j.MaxCost = rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(1e-12, 1e8), rapid.Map(rapid.IntRange(1, 1000), func(n int) float64 { return float64(n) })).Draw(t, "max-cost")
	if j.Kind == Reminder {
		j.MaxChain = rapid.IntRange(0, 1000).Draw(t, "max-chain")
		j.ChainDepth = rapid.IntRange(0, j.MaxChain).Draw(t, "chain-depth")
		j.ChainParent = optional(name()).Draw(t, "chain-parent")
		if j.MaxChain > 0 && j.ChainParent == "" {
			j.ChainParent = j.ID
		}
	}
	if !j.Background {
		return
	}
	if j.Kind == Routine && j.Gate != "" {
		j.GateAudit = rapid.IntRange(0, 1000).Draw(t, "gate-audit")
	}
	if j.Kind == Routine {
		j.Session = rapid.SampledFrom([]string{"", "persistent"}).Draw(t, "session")
	}
	j.Isolated = j.Session == "" && rapid.Bool().Draw(t, "isolated")
	j.Thinking = rapid.SampledFrom([]string{"true", "false", "off", "adaptive", "1", "31999"}).Draw(t, "thinking")
	j.Update = rapid.SampledFrom([]UpdateMode{OnPing, Always, Freely, Blocked}).Draw(t, "update")
	if j.Update == Always {
		j.GateAudit = 0
	}
	j.AllowPing = rapid.Bool().Draw(t, "ping")
}

func TestRoundTrip(t *testing.T) {
	for _, kind := range []Kind{Routine, Reminder} {
		t.Run(string(kind), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { roundTrip(t, anyJob(kind).Draw(t, "job")) })
		})
	}
}

// roundTrip checks that a job is written in full, in the order of the table and without anything that is as by default.
func roundTrip(t *rapid.T, j Job) {
	text, err := Format(j)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse(j.Kind, j.Path, text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if d := difference(again, j); d != "" {
		t.Fatalf("%swritten as\n%s", d, text)
	}
	p, err := yamldoc.ParsePage("x", text)
	if err != nil {
		t.Fatal(err)
	}
	written := p.Doc.Values()
	at := 0
	for _, f := range Fields(j.Kind) {
		line := p.Doc.Line(f.Key)
		if line > 0 && line <= at {
			t.Fatalf("%s stands on line %d, the field before on %d:\n%s", f.Key, line, at, text)
		}
		at = max(at, line)
		if wants := isSet(j, f.Key); wants != (line > 0) {
			t.Fatalf("%s is written: %v, want %v\n%s", f.Key, line > 0, wants, text)
		}
		delete(written, f.Key)
	}
	if len(written) > 0 {
		t.Fatalf("what are %v?", written)
	}
}

// isSet reports whether a field differs from its default.
func isSet(j Job, key string) bool {
	set, known := map[string]bool{
		"id": true, "cron": true, "run-at": true, "timezone": j.Timezone != "", "description": j.Description != "",
		"background": j.Background != (j.Kind == Reminder), "session": j.Session != "", "isolated": j.Isolated, "model": j.Model != "",
		"thinking": j.Thinking != "true", "update-main-session": j.Update != OnPing, "allow-ping": !j.AllowPing,
		"allowed-tools": len(j.AllowedTools) > 0, "skills": len(j.Skills) > 0, "subagent": j.Subagent != "", "engine": j.Engine != "",
		"timeout": j.Timeout != 30*time.Minute, "catch-up": j.CatchUp != 0, "max-cost": j.MaxCost != 0, "gate": j.Gate != "", "gate-audit": j.GateAudit != 0, "after": j.After != "",
		"verify": j.Verify != "", "retry": j.Retry != 0, "heartbeat": j.Heartbeat != "", "seal": j.Seal != "", "network": j.Network != NetworkAny,
		"dirs": len(j.Dirs) > 0, "unsealed": len(j.Unsealed) > 0, "fallback": j.Fallback != nil, "max-chain": j.MaxChain != 0, "chain-depth": j.ChainDepth != 0,
		"chain-parent": j.ChainParent != "" && (j.MaxChain == 0 || j.ChainParent != j.ID), "plain": j.Plain, "host": j.Host != "", "enabled": !j.Enabled,
	}[key]
	return set || !known
}

func TestWithEnabled(t *testing.T) {
	const head, tail = "\ufeff---\r\n# mine\r\nid: a   # keep\r\ncron: '0 9 * * *'\r\n", "---\r\n\r\nDo it.\r\n---\r\nenabled: false\r\n"
	for _, tc := range []struct {
		line     string
		enabled  bool
		wantLine string
	}{
		{"", false, "enabled: false\r\n"},
		{"", true, ""},
		{"enabled: false\r\n", true, ""},
		{"enabled: false\r\n", false, "enabled: false\r\n"},
		{"enabled: true # on\r\n", false, "enabled: false # on\r\n"},
		{"enabled: true\r\n# last\r\n", true, "# last\r\n"},
	} {
		j, err := Parse(Routine, "x.md", []byte(head+tc.line+tail))
		if err != nil {
			t.Fatal(err)
		}
		text, err := j.WithEnabled(tc.enabled)
		if want := head + tc.wantLine + tail; string(text) != want || err != nil {
			t.Errorf("%q, %v: %v\n got %q\nwant %q", tc.line, tc.enabled, err, text, want)
			continue
		}
		again, err := Parse(Routine, "x.md", text)
		if err != nil || again.Enabled != tc.enabled {
			t.Errorf("%q, %v: reads back as %v, %v", tc.line, tc.enabled, again.Enabled, err)
		}
	}
	j, err := Parse(Routine, "x.md", []byte("---\n{id: a, cron: 0 9 * * *}\n---\nDo it.\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.WithEnabled(false); err == nil {
		t.Error("a frontmatter in braces was changed")
	}
}

func TestDurations(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"0": 0, "90s": 90 * time.Second, "30m": 30 * time.Minute, "2h": 2 * time.Hour, "1h30m": 90 * time.Minute, "7d": 7 * day,
		"1d12h": 36 * time.Hour, "0d": 0, "0s": 0, "1.5h": 90 * time.Minute, "500ms": 500 * time.Millisecond, "65535d": 65535 * day,
		"": -1, "30": -1, "d": -1, "-5m": -1, "+5m": -1, "1d-5m": -1, "1d+5m": -1, "5m1d": -1, "1d2d": -1, "1.5d": -1, " 5m": -1, "5 m": -1, "5M": -1,
		"-1d": -1, "65536d": -1, "99999999999h": -1, "65535d1000000h": -1, "99999999999999999999d": -1, "1w": -1, "one": -1, "５m": -1,
	} {
		got, err := ParseDuration(text)
		if (err != nil) != (want < 0) || err == nil && got != want {
			t.Errorf("%q is %v, %v, want %v", text, got, err, want)
		}
		long := slices.Contains([]string{"65536d", "99999999999h", "65535d1000000h", "99999999999999999999d"}, text)
		if err != nil && strings.Contains(err.Error(), " is too long: write at most 65535d") != long {
			t.Errorf("%q: %v", text, err)
		}
	}
	for d, want := range map[time.Duration]string{
		0: "0", time.Second: "1s", 30 * time.Minute: "30m", time.Hour: "1h", 90 * time.Minute: "1h30m", 10 * time.Hour: "10h", 20*time.Hour + 20*time.Second: "20h0m20s",
		day: "1d", 36 * time.Hour: "1d12h", 10*day + time.Minute: "10d1m", 1500 * time.Millisecond: "1.5s", 100 * time.Minute: "1h40m", -time.Hour: "-1h",
	} {
		if got := FormatDuration(d); got != want {
			t.Errorf("%d is written %q, want %q", d, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.OneOf(
			rapid.Int64Range(0, int64(65535*day)),
			rapid.Map(rapid.Int64Range(0, 5_000_000), func(n int64) int64 { return n * int64(time.Second) }),
			rapid.Map(rapid.Int64Range(0, 50_000), func(n int64) int64 { return n * int64(time.Minute) }),
		).Draw(t, "d"))
		text := FormatDuration(d)
		if got, err := ParseDuration(text); got != d || err != nil {
			t.Fatalf("%d is written %q and read as %d, %v", d, text, got, err)
		}
	})
}

func TestSlug(t *testing.T) {
	for text, want := range map[string]string{
		"Daily market analysis": "daily-market-analysis", "  A -- b!  ": "a-b", "": "", "日本語": "", "Café №5": "caf-5", "../../etc/passwd": "etc-passwd",
		strings.Repeat("a", 60): strings.Repeat("a", 50), strings.Repeat("a", 49) + " b": strings.Repeat("a", 49), "x\x00\ny": "x-y", "K": "k", // the Kelvin sign
	} {
		if got := Slug(text); got != want {
			t.Errorf("Slug(%q) = %q, want %q", text, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := hostile().Draw(t, "text")
		slug := Slug(text)
		strange := strings.Trim(slug, "abcdefghijklmnopqrstuvwxyz0123456789-")
		if strange != "" || len(slug) > 50 || strings.Contains(slug, "--") || strings.Trim(slug, "-") != slug || Slug(slug) != slug {
			t.Fatalf("Slug(%q) = %q", text, slug)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(page("id: 00123456", `cron: "* * * * *"`, "background: true", "session: persistent", "thinking: 0100", "skills: [a]")), false)
	f.Add([]byte(page("id: a", "cron: '@daily'", "max_cost: 1e3", "timeout: 1d2h", "dirs:\n  - |\n    a\n  - b")), false)
	f.Add([]byte("\ufeff---\r\nid: a\r\ncron: 0 9 * * *\r\nthinking: True\r\nbackground: TRUE\r\ndescription: \" \"\r\n---\r\n\r\nx\r\n"), false)
	f.Add([]byte(page("id: a", "cron: * * * * *", "enabled: false")), false)
	f.Add([]byte(page("id: a", "cron: 0 9 * * *", "dirs: [rw:~/x, /y]", "allowed-tools: [Read(/y/**), Bash(ls -l *)]")), false)
	f.Add([]byte(page("id: a", "run_at: 2026-03-08 02:30", "max-chain: 3", "chain-depth: 1", "chain-parent: b")), true)
	f.Add([]byte(page("id: 1", "run-at: 2026-03-08T02:30:00.5+01:00", "plain: true", "background: false")), true)
	f.Add([]byte(page("id: 1", "run-at: 9999-12-31T23:59:59-23:00", "max-chain: 1", "chain-parent: '1'")), true)
	f.Fuzz(func(t *testing.T, data []byte, reminder bool) {
		kind := map[bool]Kind{false: Routine, true: Reminder}[reminder]
		j, err := Parse(kind, "x.md", data)
		if err != nil {
			if all, ok := err.(yamldoc.Faults); !ok || len(all) == 0 || !slices.IsSortedFunc(all, func(a, b *yamldoc.Fault) int { return a.Line - b.Line }) { //nolint:errorlint // it must be one
				t.Fatalf("%T %v", err, err)
			}
			return
		}
		text, err := Format(j)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(kind, "x.md", text)
		if err != nil {
			t.Fatalf("%v\n%q", err, text)
		}
		for _, list := range []*[]string{&j.AllowedTools, &j.Skills, &j.Dirs} {
			if len(*list) == 0 { // an empty list is none
				*list = nil
			}
		}
		same(t, again, j)
		if j.Schedule != again.Schedule {
			t.Fatal("another schedule")
		}
		j.Roots("/home/me")
		j.In(time.FixedZone("", 3600))
		for _, on := range []bool{true, false} {
			text, err := j.WithEnabled(on)
			if err != nil {
				continue
			}
			if again, err := Parse(kind, "x.md", text); err != nil || again.Enabled != on {
				t.Fatalf("WithEnabled(%v): %v\n%q", on, err, text)
			}
		}
	})
}
