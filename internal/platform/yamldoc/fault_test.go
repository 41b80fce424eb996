package yamldoc_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/platform/yamldoc"
)

// fields are the keys of the documents in these tests.
func fields() []yamldoc.Field {
	text := func(v yamldoc.Value) error { _, err := v.Text(); return err }
	number := func(v yamldoc.Value) error { _, err := v.Int(); return err }
	return []yamldoc.Field{
		{Key: "id", Read: text},
		{Key: "cron", Read: text},
		{Key: "run-at", Read: text},
		{Key: "description", Read: text},
		{Key: "background", Read: func(v yamldoc.Value) error { _, err := v.Bool(); return err }},
		{Key: "tokens", Read: number},
		{Key: "max-cost", Read: func(v yamldoc.Value) error { _, err := v.Number(); return err }},
		{Key: "allowed-tools", Read: func(v yamldoc.Value) error { _, err := v.Texts(); return err }},
		{Key: "skills", Read: func(v yamldoc.Value) error { _, err := v.Texts(noSpace); return err }},
		{Key: "input", Read: func(v yamldoc.Value) error { _, err := v.Section(); return err }},
		{Key: "delivery", Read: func(v yamldoc.Value) error {
			return v.Decode([]yamldoc.Field{{Key: "timeout", Read: text}, {Key: "retry-after", Read: number}})
		}},
		{Key: "turns", Read: readTurns},
	}
}

func noSpace(s string) error {
	if strings.Contains(s, " ") {
		return fmt.Errorf("%q has a space", s)
	}
	return nil
}

// readTurns goes two lists deep, without saying where anything stands.
func readTurns(v yamldoc.Value) error {
	turns, err := v.Items()
	if err != nil {
		return err
	}
	for _, turn := range turns {
		steps, err := turn.Items()
		if err != nil {
			return err
		}
		for _, step := range steps {
			err := step.Decode([]yamldoc.Field{{Key: "times", Read: func(v yamldoc.Value) error { _, err := v.Int(); return err }}})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// faultsIn parses and decodes, and gives every fault a line.
func faultsIn(text string) string {
	doc, err := yamldoc.Parse("f.md", []byte(text), 2)
	if err == nil {
		err = doc.Decode(fields())
	}
	return lines(err)
}

func lines(err error) string {
	var faults yamldoc.Faults
	if !errors.As(err, &faults) {
		if err == nil {
			return ""
		}
		return "not Faults: " + err.Error()
	}
	var out []string
	for _, f := range faults {
		out = append(out, f.Error())
	}
	return strings.Join(out, "\n")
}

// Texts stand from line 2 on, as in a page, so a line number that forgets the offset is seen.
func TestFaults(t *testing.T) {
	const unsupported = "anchors, aliases, merge keys and tags are not supported"
	for name, tc := range map[string]struct{ text, want string }{
		"good":    {"id: a\ncron: \"* * * * *\"\nbackground: true\ntokens: 5\nmax-cost: .5\nallowed-tools: [a, 1, true]\n", ""},
		"empty":   {"", ""},
		"comment": {"# nothing\n\n", ""},
		"null":    {"~\n", ""},
		"start":   {"---\nid: a\n", ""},
		"end":     {"id: a\n...\n", ""},

		"star":                {"id: a\ncron: * * * * *\n", `f.md:3: cron: a value that starts with * must be quoted: cron: "* * * * *"`},
		"star on line one":    {"cron: * * * * *\nid: a\n", `f.md:2: cron: a value that starts with * must be quoted: cron: "* * * * *"`},
		"star slash, comment": {"cron: */5 * * * *   # often\n", `f.md:2: cron: a value that starts with * must be quoted: cron: "*/5 * * * *"`},
		"star crlf":           {"id: a\r\ncron: * 9 * * *\r\n", `f.md:3: cron: a value that starts with * must be quoted: cron: "* 9 * * *"`},
		"star letter":         {"id: a\ndescription: *bold*\n", `f.md:3: description: a value that starts with * must be quoted: description: "*bold*"`},
		"nickname":            {"cron: @daily\n", `f.md:2: cron: a value that starts with @ must be quoted: cron: "@daily"`},
		"backtick":            {"description: `x`\n", "f.md:2: description: a value that starts with ` must be quoted: description: \"`x`\""},
		"percent":             {"id: a\n\ndescription: %x\n", `f.md:4: description: a value that starts with % must be quoted: description: "%x"`},
		"colon":               {"id: a\ndescription: Daily: the market\n", `f.md:3: description: a value with a colon must be quoted: description: "Daily: the market"`},
		"not the star's fault": {"description: \"open\nid: a\n# cron: * * * * *\n",
			"f.md:2: not valid YAML: found unexpected end of stream"},

		"open bracket":   {"id: a\nskills: [x, y\ncron: b\n", "f.md:3: not valid YAML: did not find expected ',' or ']'"},
		"open brace":     {"id: a\ninput: {x: 1\ncron: b\n", "f.md:3: not valid YAML: did not find expected ',' or '}'"},
		"stray bracket":  {"id: a\n]\ncron: b\n", "f.md:3: not valid YAML: did not find expected key"},
		"after a quote":  {"id: 'a' b\n", "f.md:2: not valid YAML: did not find expected key"},
		"after a quote2": {"id: a\n\ncron: 'a' b\nskills: []\n", "f.md:4: not valid YAML: did not find expected key"},
		"list in map":    {"id: a\n- b\n", "f.md:3: not valid YAML: did not find expected key"},
		"indented":       {"id: a\n  cron: b\n", "f.md:3: not valid YAML: mapping values are not allowed in this context"},
		"dedented":       {"skills:\n    - a\n  - b\nid: a\n", "f.md:4: not valid YAML: did not find expected key"},
		"tab":            {"delivery:\n\ttimeout: 5\nid: a\n", "f.md:3: not valid YAML: found character that cannot start any token"},
		"tab behind":     {"id: a\n\tcron: b\n", "f.md:3: not valid YAML: found a tab character that violates indentation"},
		"no colon":       {"id: a\ncron\nskills: []\n", "f.md:3: not valid YAML: could not find expected ':'"},
		"escape":         {"id: a\ncron: \"\\q\"\n", "f.md:3: not valid YAML: found unknown escape character"},
		"control":        {"id: a\ncron: \x01\n", "f.md:3: not valid YAML: control characters are not allowed"},
		"not utf-8":      {"id: a\ncron: \xff\n", "f.md:3: not valid UTF-8"},
		"utf-16":         {"\xff\xfea\x00:\x00", "f.md:2: not valid UTF-8"},
		"block header":   {"id: a\ncron: |x\n  y\n", "f.md:3: not valid YAML: did not find expected comment or line break"},
		"below a block":  {"id: a\ndescription: |\n  x\n  y\nz\ncron: b\n", "f.md:6: not valid YAML: could not find expected ':'"},

		"two documents":      {"id: a\n--- \nid: b\n", "f.md:3: more than one YAML document"},
		"two after dots":     {"id: a\n...\nid: b\n", "f.md:4: not valid YAML: did not find expected <document start>"},
		"second is broken":   {"id: a\n--- \nid: [\n", "f.md:3: not valid YAML: did not find expected node content"},
		"scalar":             {"# c\nhello\n", "f.md:3: want `key: value` lines"},
		"list":               {"- a\n- b\n", "f.md:2: want `key: value` lines"},
		"anchor":             {"id: a\ncron: &x y\n", "f.md:3: " + unsupported},
		"anchor of nothing":  {"id: a\ncron: &x\n", "f.md:3: " + unsupported},
		"anchor as document": {"&x\n", "f.md:2: want `key: value` lines"},
		"alias":              {"id: &x a\ncron: *x\n", "f.md:2: " + unsupported},
		"alias in a list":    {"id: a\nskills:\n  - *x\n", "f.md:4: not valid YAML: unknown anchor 'x' referenced"},
		"tag":                {"id: a\ncron: !!str 5\n", "f.md:3: " + unsupported},
		"own tag":            {"id: a\nskills:\n  - !x 5\n", "f.md:4: " + unsupported},
		"merge":              {"id: a\n<<: {cron: b}\n", "f.md:3: " + unsupported},
		"next line":          {"id: a\n# x\u0085cron: b\n", "f.md:3: the line break U+0085 is not supported; use a newline"},
		"line separator":     {"id: a\ncron: \"x\u2028y\"\n", "f.md:3: the line break U+2028 is not supported; use a newline"},
		"old mac":            {"id: a\rcron: b\n", "f.md:2: the line break U+000D is not supported; use a newline"},

		"unknown":           {"id: a\ncorn: b\n", "f.md:3: corn: unknown key (did you mean cron?)"},
		"unknown snake":     {"update_main: b\nrun_att: c\n", "f.md:2: update_main: unknown key\nf.md:3: run_att: unknown key (did you mean run-at?)"},
		"unknown case":      {"ID: a\n", "f.md:2: ID: unknown key (did you mean id?)"},
		"duplicate":         {"id: a\n\nid: b\n", "f.md:4: id: given twice (as id on line 2)"},
		"both spellings":    {"run-at: a\nid: x\nrun_at: b\n", "f.md:4: run_at: given twice (as run-at on line 2)"},
		"list key":          {"? [id]\n: a\n", "f.md:2: unknown key"},
		"several":           {"background: maybe\nx1y2z3: 4\nid: [a]\n", "f.md:2: background: want true or false, not \"maybe\"\nf.md:3: x1y2z3: unknown key\nf.md:4: id: want text, not a list"},
		"null text":         {"id:\ncron: b\n", "f.md:2: id: want text, not an empty value"},
		"null text, spaced": {"id: a\ncron: # later\n\n# c\nskills: []\n", "f.md:3: cron: want text, not an empty value"},
		"null last":         {"id: a\ncron:\n\n\n", "f.md:3: cron: want text, not an empty value"},
		"tilde":             {"id: ~\n", "f.md:2: id: want text, not an empty value"},
		"section as text":   {"id: {a: b}\n", "f.md:2: id: want text, not a section"},
		"yes":               {"background: yes\n", "f.md:2: background: want true or false, not \"yes\""},
		"quoted true":       {"background: \"true\"\n", "f.md:2: background: want true or false, not \"true\""},
		"list as bool":      {"background: []\n", "f.md:2: background: want true or false, not a list"},
		"fraction":          {"tokens: 1.5\n", "f.md:2: tokens: want a whole number, not \"1.5\""},
		"hex":               {"tokens: 0x10\n", "f.md:2: tokens: want a whole number, not \"0x10\""},
		"quoted number":     {"tokens: '5'\n", "f.md:2: tokens: want a whole number, not \"5\""},
		"huge":              {"tokens: 99999999999999999999\n", "f.md:2: tokens: want a whole number, not \"99999999999999999999\""},
		"word as number":    {"max-cost: much\n", "f.md:2: max-cost: want a number, not \"much\""},
		"dot inf":           {"max-cost: .inf\n", "f.md:2: max-cost: want a number, not \".inf\""},
		"text as list":      {"allowed-tools: Read\n", "f.md:2: allowed-tools: want a list like [a, b], not \"Read\""},
		"null in a list":    {"allowed-tools:\n  - a\n  -\n", "f.md:4: allowed-tools: item 2: want text, not an empty value"},
		"item refused":      {"skills:\n  - a\n  # why\n  - \"b c\"\n", "f.md:5: skills: item 2: \"b c\" has a space"},
		"item in brackets":  {"skills: [a,\n  b c]\n", "f.md:3: skills: item 2: \"b c\" has a space"},
		"nested unknown":    {"delivery:\n  timeot: 5\n", "f.md:3: delivery.timeot: unknown key (did you mean timeout?)"},
		"nested type":       {"id: a\ndelivery:\n  timeout: 5\n  retry_after: soon\n", "f.md:5: delivery.retry-after: want a whole number, not \"soon\""},
		"nested twice":      {"delivery:\n  timeout: 5\n  timeout: 6\n", "f.md:4: delivery.timeout: given twice (as timeout on line 3)"},
		"nested is null":    {"delivery:\n  # timeout: 5\n", ""},
		"nested is text":    {"delivery: soon\n", "f.md:2: delivery: want a section of `key: value` lines, not \"soon\""},
		"deep":              {"turns:\n  - - times: 1\n  - - times: 2\n    - times: x\n", "f.md:5: turns[1][1].times: want a whole number, not \"x\""},
		"deep, not a list":  {"turns:\n  - - times: 1\n  - x\n", "f.md:4: turns[1]: want a list, not \"x\""},
		"deep, not a step":  {"turns:\n  - - times: 1\n    - x\n", "f.md:4: turns[0][1]: want a section of `key: value` lines, not \"x\""},
		"data twice":        {"input:\n  a: 1\n  b: {c: 1, c: 2}\n", "f.md:4: input.b.c: given twice"},
		"data key":          {"input:\n  a: 1\n  ? [x]\n  : 2\n", "f.md:4: input.: a key must be text"},
		"data number":       {"input:\n  a:\n    - .nan\n", "f.md:4: input.a[0]: want a number that JSON can have, not \".nan\""},
		"data is a list":    {"input: [a]\n", "f.md:2: input: want a section of `key: value` lines, not a list"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := faultsIn(tc.text); got != tc.want {
				t.Errorf("%q\n got %s\nwant %s", tc.text, got, tc.want)
			}
		})
	}
}

func TestTextKeepsWhatIsWritten(t *testing.T) {
	for written, want := range map[string]string{
		"00123456": "00123456", "0123": "0123", "1e3": "1e3", "12345678": "12345678", "0x1F": "0x1F", "1_000": "1_000",
		"2026-02-24": "2026-02-24", "2026-02-24T09:00:00+01:00": "2026-02-24T09:00:00+01:00", "09:30:00": "09:30:00",
		"true": "true", "yes": "yes", "No": "No", ".5": ".5", ".inf": ".inf", `"null"`: "null", `""`: "", "'a''b'": "a'b",
		`"a\nb"`: "a\nb", `"\u2028"`: "\u2028", "a#b # c": "a#b", "|\n    x\n    y\n": "x\ny\n",
		"a\n  b": "a b", "\n  next": "next",
	} {
		doc, err := yamldoc.Parse("f", []byte("id: "+written+"\n"), 1)
		if err != nil {
			t.Errorf("%q: %v", written, err)
			continue
		}
		err = doc.Decode([]yamldoc.Field{{Key: "id", Read: func(v yamldoc.Value) error {
			got, err := v.Text()
			if got != want || err != nil {
				t.Errorf("id: %s is read as %q, %v, want %q", written, got, err, want)
			}
			return nil
		}}})
		if err != nil {
			t.Error(err)
		}
	}
}

func TestValuesAndPlaces(t *testing.T) {
	doc, err := yamldoc.Parse("c.yaml", []byte("# c\nrun_at: 2026-01-02\nempty:\nlist: [a, 007]\ndelivery:\n  # x\n  Time_Out: 30s\n"), 1)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(doc.Values()), "map[delivery:map[Time-Out:30s] list:[a 007] run-at:2026-01-02]"; got != want {
		t.Errorf("Values: %s, want %s", got, want)
	}
	for _, tc := range []struct {
		path []string
		want int
	}{
		{[]string{"run-at"}, 2},
		{[]string{"delivery", "Time-Out"}, 7},
		{[]string{"delivery", "none"}, 0},
		{[]string{"none", "none"}, 0},
		{[]string{"list", "a"}, 0},
		{[]string{"run-at", "x"}, 0},
	} {
		if got := doc.Line(tc.path...); got != tc.want {
			t.Errorf("Line(%q) = %d, want %d", tc.path, got, tc.want)
		}
	}
	if !doc.Has("run-at") || !doc.Has("run_at") || doc.Has("a") {
		t.Error("Has does not see both spellings, or too much")
	}
	if got := doc.Fault("run-at", "is bad").Error(); got != "c.yaml:2: run_at: is bad" && got != "c.yaml:2: run-at: is bad" {
		t.Error(got)
	}
	if got := doc.Fault("id", "is missing").Error(); got != "c.yaml: id: is missing" {
		t.Error(got)
	}
	if got := doc.Fault("", "is bad").Error(); got != "c.yaml: is bad" {
		t.Error(got)
	}
}

func TestSectionIsData(t *testing.T) {
	text := "input:\n  at: 2026-01-02\n  n: 5\n  f: 1.5\n  b: true\n  s: \"5\"\n  none:\n  list: [a, {x: 1}]\n  1: one\n"
	doc, err := yamldoc.Parse("f", []byte(text), 1)
	if err != nil {
		t.Fatal(err)
	}
	err = doc.Decode([]yamldoc.Field{{Key: "input", Read: func(v yamldoc.Value) error {
		got, err := v.Section()
		want := "map[1:one at:2026-01-02 b:true f:1.5 list:[a map[x:1]] n:5 none:<nil> s:5]"
		if fmt.Sprint(got) != want || err != nil {
			t.Errorf("got %v, %v, want %s", got, err, want)
		}
		return err
	}}})
	if err != nil {
		t.Fatal(err)
	}
}

func TestManyFaultsInOneLine(t *testing.T) {
	one := yamldoc.Faults{{File: "f", Line: 3, Key: "k", Reason: "bad"}}
	if got := one.Error(); got != "f:3: k: bad" {
		t.Error(got)
	}
	if got := append(one, one[0], one[0]).Error(); got != "f:3: k: bad (and 2 more)" {
		t.Error(got)
	}
}

// A long file must not make finding the line slow.
func TestLongBrokenFile(t *testing.T) {
	text := "k: [\n" + strings.Repeat("k: v\n", 100_000)
	if got := faultsIn(text); got != "f.md: not valid YAML: did not find expected ',' or ']'" {
		t.Error(got)
	}
}
