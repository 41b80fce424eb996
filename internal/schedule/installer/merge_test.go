package installer

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The words around the block, said once more here: they must not change, or an installed block would not be found.
const (
	begin = "# BEGIN ollim (managed; do not edit between the markers)\n"
	end   = "# END ollim\n"
	noted = "# END ollim (the line before the block had no newline)\n"
	block = begin + "* * * * * /bin/ollim tick\n" + end
	other = begin + "0 9 * * * /bin/ollim fire -- x\n* * * * * /bin/ollim tick\n" + end
)

func TestMergeRemoveExtract(t *testing.T) {
	const others = "# BEGIN ollim-other\n# BEGIN ollims\n#BEGIN ollim\n## END ollim\necho # END ollim\n"
	for _, c := range []struct{ name, old, merged, removed, extracted string }{
		{"empty", "", other, "", ""},
		{"foreign", "a\nb\n", "a\nb\n" + other, "a\nb\n", ""},
		{"blank line", "\n", "\n" + other, "\n", ""},
		{"no final newline", "a\nb", "a\nb\n" + strings.TrimSuffix(other, end) + noted, "a\nb", ""},
		{"carriage return", "a\r\nb\r", "a\r\nb\r\n" + strings.TrimSuffix(other, end) + noted, "a\r\nb\r", ""},
		{"replaced", "a\n" + block, "a\n" + other, "a\n", block},
		{"moved to the end", "a\n" + block + "b\n", "a\nb\n" + other, "a\nb\n", block},
		{"moved, what follows has no newline", "a\n" + block + "b", "a\nb\n" + strings.TrimSuffix(other, end) + noted, "a\nb", block},
		{"nothing glued", "a\n" + strings.TrimSuffix(block, end) + noted + "b\n", "a\nb\n" + other, "a\nb\n", block},
		{"note, and nothing above", strings.TrimSuffix(block, end) + noted, other, "", block},
		{"cut end", "a\n" + strings.TrimSuffix(block, "\n"), "a\n" + other, "a\n", strings.TrimSuffix(block, "\n")},
		{"windows", "a\r\n" + strings.ReplaceAll(block, "\n", "\r\n") + "b\r\n", "a\r\nb\r\n" + other, "a\r\nb\r\n", strings.ReplaceAll(block, "\n", "\r\n")},
		{"markers indented, with other words", " # BEGIN ollim\nx\n\t# END ollim (z)\n", other, "", " # BEGIN ollim\nx\n\t# END ollim (z)\n"},
		{"other programs", others, others + other, others, ""},
	} {
		merged, err := Merge([]byte(c.old), other)
		if err != nil || string(merged) != c.merged {
			t.Errorf("%s: merged %v\n%q\nwant\n%q", c.name, err, merged, c.merged)
		}
		removed, found, err := Remove([]byte(c.old))
		if err != nil || string(removed) != c.removed || found != (c.extracted != "") {
			t.Errorf("%s: removed %v %v\n%q\nwant\n%q", c.name, found, err, removed, c.removed)
		}
		extracted, found, err := Extract([]byte(c.old))
		if err != nil || extracted != c.extracted || found != (c.extracted != "") {
			t.Errorf("%s: extracted %v %v\n%q\nwant\n%q", c.name, found, err, extracted, c.extracted)
		}
	}
}

func TestDamagedMarkers(t *testing.T) {
	for _, c := range []struct{ text, why string }{
		{begin, "the block has no end"},
		{"a\n" + begin + "b", "the block has no end"},
		{end, "line 1 ends a block that has no beginning"},
		{"a\n" + noted, "line 2 ends a block that has no beginning"},
		{end + begin, "line 1 ends a block that has no beginning"},
		{block + block, "line 4 begins a second block"},
		{block + "a\n" + end, "line 5 ends a block that has no beginning"},
		{begin + block, "line 2 begins a second block"},
		{begin + begin + end + end, "line 2 begins a second block"},
		{strings.ReplaceAll(begin, "\n", "\r\n"), "the block has no end"},
		{"  # END ollim", "line 1 ends a block that has no beginning"},
	} {
		old := []byte(c.text)
		_, mergeErr := Merge(old, block)
		_, _, removeErr := Remove(old)
		_, _, extractErr := Extract(old)
		for i, err := range []error{mergeErr, removeErr, extractErr} {
			if !errors.Is(err, ErrMarkers) || !strings.HasSuffix(err.Error(), c.why) {
				t.Errorf("%q, %d: %v, want %s", c.text, i, err, c.why)
			}
		}
	}
}

func TestMergeIntoManyLines(t *testing.T) {
	var b strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&b, "%d * * * * # BEGIN %d\n", i%60, i)
	}
	old := []byte(b.String())
	merged, err := Merge(old, block)
	if err != nil || !bytes.HasPrefix(merged, old) || string(merged[len(old):]) != block {
		t.Fatalf("%v, %d bytes", err, len(merged))
	}
	if rest, found, err := Remove(merged); err != nil || !found || !bytes.Equal(rest, old) {
		t.Error("not as it was", found, err)
	}
}

// What is handed in is not written into, nor is what is handed out.
func TestMergeLeavesItsInputAlone(t *testing.T) {
	old := append(make([]byte, 0, 4096), "a\n"+block+"b\n"...)
	spare := old[len(old):cap(old)]
	if _, err := Merge(old, other); err != nil {
		t.Fatal(err)
	}
	rest, _, err := Remove(old)
	if err != nil {
		t.Fatal(err)
	}
	rest[0] = 'z'
	if string(old) != "a\n"+block+"b\n" || bytes.ContainsFunc(spare, func(r rune) bool { return r != 0 }) {
		t.Errorf("%q", old)
	}
}

// tables are crontabs that no tidy person wrote.
func tables(lines ...string) *rapid.Generator[string] {
	line := rapid.OneOf(
		rapid.SampledFrom(append(lines, "", "0 9 * * * true", "PATH=/bin", "# END ollim-x", "# BEGIN ollimx", "#END ollim", "x # BEGIN ollim", "\x00", "é\u2028", " \t")),
		rapid.StringN(0, 20, 40).Filter(func(s string) bool { return !strings.Contains(s, "ollim") }),
	)
	return rapid.Custom(func(t *rapid.T) string {
		var b strings.Builder
		for _, text := range rapid.SliceOfN(line, 0, 12).Draw(t, "lines") {
			b.WriteString(text + rapid.SampledFrom([]string{"\n", "\n", "\r\n"}).Draw(t, "end"))
		}
		if rapid.Bool().Draw(t, "cut") {
			return strings.TrimRight(b.String(), "\n")
		}
		return b.String()
	})
}

func TestWhatIsForeignStaysAsItWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkForeign(t, []byte(tables().Draw(t, "crontab")))
	})
}

func TestAnyMarkers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkAny(t, []byte(tables("# BEGIN ollim", "# END ollim", strings.TrimSpace(begin), strings.TrimSpace(noted)).Draw(t, "crontab")))
	})
}

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkForeign holds for every text without our markers.
func checkForeign(t failer, old []byte) {
	t.Helper()
	merged, err := Merge(old, block)
	if err != nil || !bytes.HasPrefix(merged, old) || merged[len(merged)-1] != '\n' {
		t.Fatalf("%q: %v: %q", old, err, merged)
	}
	again, err := Merge(merged, block)
	if err != nil || !bytes.Equal(again, merged) {
		t.Fatalf("%q: merged twice: %v: %q", old, err, again)
	}
	if got, found, err := Extract(merged); err != nil || !found || got != block {
		t.Fatalf("%q: extracted %v %v: %q", old, found, err, got)
	}
	changed, err := Merge(merged, other)
	direct, directErr := Merge(old, other)
	if err != nil || directErr != nil || !bytes.Equal(changed, direct) {
		t.Fatalf("%q: replaced: %v: %q, want %q", old, err, changed, direct)
	}
	if rest, found, err := Remove(changed); err != nil || !found || !bytes.Equal(rest, old) {
		t.Fatalf("%q: removed %v %v: %q", old, found, err, rest)
	}
}

// checkAny holds for every text: it is refused by all three or by none, and then what is removed is whole lines in one piece.
func checkAny(t failer, old []byte) {
	t.Helper()
	rest, found, err := Remove(old)
	text, extracted, extractErr := Extract(old)
	merged, mergeErr := Merge(old, block)
	if (err == nil) != (extractErr == nil) || (err == nil) != (mergeErr == nil) || found != extracted {
		t.Fatalf("%q: %v, %v, %v", old, err, extractErr, mergeErr)
	}
	switch {
	case err != nil:
		if !errors.Is(err, ErrMarkers) || rest != nil || merged != nil || text != "" {
			t.Fatalf("%q: %v", old, err)
		}
		return
	case !found && !bytes.Equal(rest, old):
		t.Fatalf("%q: nothing there, and yet %q", old, rest)
	case found && (len(rest)+len(text) > len(old)+1 || !strings.Contains(text, "# BEGIN ollim") || !strings.Contains(text, "# END ollim")):
		t.Fatalf("%q: %q and %q", old, rest, text)
	}
	if _, again, err := Remove(rest); err != nil || again {
		t.Fatalf("%q: removed, and yet there: %q", old, rest)
	}
	checkForeign(t, rest)
}

func FuzzMerge(f *testing.F) {
	for _, seed := range []string{"", "a", "a\r\n", block, "a" + block, "a\n" + block + "b", strings.TrimSuffix(block, end) + noted, begin, end + begin, block + block, "\x00# END ollim\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, old []byte) { checkAny(t, old) })
}
