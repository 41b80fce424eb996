package approval

import (
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestDifferenceOfTheFirstTime(t *testing.T) {
	d := newDesk(t)
	d.furnish()
	if err := os.RemoveAll(d.Home.Path("skills/news")); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"allowed-tools: + Bash(curl *)", "allowed-tools: + WebFetch", "gate: + check", "after: + clean",
		"dirs: + rw:~/notes", "dirs: + ~/src", "subagent: + scout", "skills: + maps", "skills: + news",
		"file: agents/scout.md added", "file: gates/check added", "file: gates/clean added",
		"file: skills/maps/SKILL.md added", "file: skills/maps/lib/.hidden added", "file: skills/news missing",
		"body: + Watch.", "body: + Then tell.",
		"agents/scout.md: | text of agents/scout.md", "gates/check: | text of gates/check", "gates/clean: | text of gates/clean",
		"skills/maps/SKILL.md: | text of skills/maps/SKILL.md", "skills/maps/lib/.hidden: | text of skills/maps/lib/.hidden",
	}
	s := d.of(widened())
	if got := d.difference(s); !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
	d.approve(s)
	if got := d.difference(s); len(got) != 0 {
		t.Errorf("approved, but %q", got)
	}
}

func TestDifferenceOfAChange(t *testing.T) {
	d := newDesk(t)
	d.furnish()
	d.approve(d.of(widened()))
	j := widened()
	j.Kind, j.AllowedTools, j.Gate, j.Body = "reminder", []string{"WebFetch", "Bash(wget *)"}, "", "Watch.\nAnd wait.\nThen tell."
	d.write("agents/scout.md", "other")
	d.write("skills/news/new.sh", "")
	if err := os.Remove(d.Home.Gate("clean")); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"kind: - routine", "kind: + reminder", "allowed-tools: - Bash(curl *)", "allowed-tools: + Bash(wget *)", "gate: - check",
		"file: gates/check removed", "file: agents/scout.md changed", "file: gates/clean missing", "file: skills/news/new.sh added",
		"body: + And wait.", "agents/scout.md: @@ -1,1 +1,1 @@", "agents/scout.md: -text of agents/scout.md", "agents/scout.md: +other",
	}
	if got := d.difference(d.of(j)); !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

// If the digest of an entry was edited, everything is shown.
func TestDifferenceOfTheDigestOnly(t *testing.T) {
	d := newDesk(t)
	s := d.of(widened())
	d.approve(s)
	text := d.read(d.Home.Approvals())
	d.write("state/approvals.json", strings.Replace(text, s.Digest(), strings.Repeat("0", 64), 1))
	d.approved(s, false)
	if got := d.difference(s); !slices.Contains(got, "allowed-tools: + WebFetch") || !slices.Contains(got, "body: + Watch.") {
		t.Errorf("%q", got)
	}
}

// Nobody approves what cannot be seen.
func TestNothingIsHidden(t *testing.T) {
	d := newDesk(t)
	j := widened()
	j.Body = "a\x1b[2Jb\r\n\u202ec\u200b\tü 🙂\xffd"
	got := d.difference(d.of(j))
	want := []string{`body: + a\x1b[2Jb\r`, `body: + \u202ec\u200b\tü 🙂\xffd`}
	if !slices.Equal(got[len(got)-2:], want) {
		t.Errorf("%q", got[len(got)-2:])
	}
}

func TestEdits(t *testing.T) {
	for _, c := range []struct{ a, b, want string }{
		{"", "", ""}, {"a", "a", ""}, {"", "a b", "+ a,+ b"}, {"a b", "", "- a,- b"}, {"a b c", "a c", "- b"},
		{"a b c", "a x c", "- b,+ x"}, {"a b c d", "b c e d", "- a,+ e"}, {"a a", "a", "- a"},
	} {
		if got := strings.Join(edits(strings.Fields(c.a), strings.Fields(c.b)), ","); got != c.want {
			t.Errorf("%q to %q: %q, want %q", c.a, c.b, got, c.want)
		}
	}
}

// The edits make one text of the other; equal texts have none.
func TestEditsAreRight(t *testing.T) {
	text := rapid.SliceOfN(rapid.SampledFrom([]string{"", "a", "b", "c"}), 0, 12)
	rapid.Check(t, func(t *rapid.T) {
		a, b := text.Draw(t, "a"), text.Draw(t, "b")
		out := edits(a, b)
		if !explains(a, b, out) {
			t.Errorf("%q to %q: %q", a, b, out)
		}
		if slices.Equal(a, b) != (len(out) == 0) {
			t.Errorf("%q to %q: %q", a, b, out)
		}
	})
}

// explains reports whether b is a without the lines "- " and with the lines "+ ", each in its place.
func explains(a, b, out []string) bool {
	if len(out) > 0 {
		line := out[0][2:]
		if out[0][0] == '-' && len(a) > 0 && a[0] == line && explains(a[1:], b, out[1:]) ||
			out[0][0] == '+' && len(b) > 0 && b[0] == line && explains(a, b[1:], out[1:]) {
			return true
		}
	}
	if len(a) == 0 && len(b) == 0 {
		return len(out) == 0
	}
	return len(a) > 0 && len(b) > 0 && a[0] == b[0] && explains(a[1:], b[1:], out)
}

func TestEditsOfLongTexts(t *testing.T) {
	var a, b []string
	for i := range 2000 {
		a, b = append(a, "a", strings.Repeat("x", i%7)), append(b, "b", strings.Repeat("x", i%5))
	}
	count := map[string]int{}
	for _, line := range edits(a, b) {
		count[line[2:]] += map[byte]int{'-': -1, '+': 1}[line[0]]
	}
	for _, line := range a {
		count[line]++
	}
	for _, line := range b {
		count[line]--
	}
	for line, n := range count {
		if n != 0 {
			t.Errorf("%q: off by %d", line, n)
		}
	}
}

// Of a changed file the changed lines are shown; all of it where the approved text is not known, or where only what cannot be seen differs.
func TestDifferenceOfAFile(t *testing.T) {
	long := strings.Repeat("line\n", 50)
	for name, c := range map[string]struct {
		before, after string
		forget        bool
		want          string
	}{
		"one line":       {long + "a\n" + long, long + "b\x1b\n" + long, false, "@@ -48,7 +48,7 @@, line, line, line,-a,+b\\x1b, line, line, line"},
		"not known":      {"a\nb\n", "a\nc\n", true, "| a,| c"},
		"last newline":   {"a\n", "a", false, "| a"},
		"was no text":    {"a\xff", "a\n", false, "| a"},
		"is no text now": {"a\n", "a\xff", false, "2 bytes, not text"},
	} {
		d := newDesk(t)
		d.furnish()
		d.write("agents/scout.md", c.before)
		d.approve(d.of(widened()))
		d.write("agents/scout.md", c.after)
		if c.forget {
			if err := os.RemoveAll(d.Home.Objects()); err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		for _, line := range d.difference(d.of(widened())) {
			if rest, found := strings.CutPrefix(line, "agents/scout.md: "); found {
				got = append(got, rest)
			}
		}
		if strings.Join(got, ",") != c.want {
			t.Errorf("%s: %q", name, strings.Join(got, ","))
		}
	}
}
