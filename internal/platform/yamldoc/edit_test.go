package yamldoc_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ollim/ollim/internal/platform/yamldoc"
)

// An empty want means that the edit is refused.
func TestSet(t *testing.T) {
	const disturbing = ": cannot be changed without affecting other lines: edit it by hand"
	for name, tc := range map[string]struct {
		text, path string
		value      any
		want, err  string
	}{
		"empty":           {"", "a", "x", "a: x\n", ""},
		"only comments":   {"# settings\n\n# of mine\n", "a", "x", "# settings\n\n# of mine\na: x\n", ""},
		"no last newline": {"# settings", "a", "x", "# settings\na: x\n", ""},
		"replace":         {"a: 1\nb: 2\n", "a", "x", "a: x\nb: 2\n", ""},
		"append":          {"a: 1\n", "b", "x", "a: 1\nb: x\n", ""},
		"appended, end":   {"a: 1", "b", "x", "a: 1\nb: x\n", ""},
		"appended, crlf":  {"a: 1\r\nc: 3", "b", "x", "a: 1\r\nc: 3\r\nb: x\r\n", ""},
		"spelling stays":  {"run_at: 1\n", "run-at", "x", "run_at: x\n", ""},
		"comment stays":   {"a: 1   # why\nb: 2\n", "a", "x", "a: x # why\nb: 2\n", ""},
		"comment, list":   {"a: [1] # why\n", "a", []string{"x", "y"}, "a: # why\n  - x\n  - \"y\"\n", ""},
		"comment, block":  {"a: # why\n  - 1\n  # more\n  - 2\nb: 3\n", "a", "x", "a: x # why\nb: 3\n", ""},
		"comment, null":   {"a: # why\n  # below\nb: 3\n", "a", "x", "a: x # why\n  # below\nb: 3\n", ""},
		"no comment":      {"a: \"x # y\"\n", "a", "z", "a: z\n", ""},
		"bom":             {"\ufeffa: 1\n", "a", "x", "\ufeffa: x\n", ""},
		"crlf":            {"a: 1 # c\r\nb: 2\r\n", "a", []string{"x"}, "a: # c\r\n  - x\r\nb: 2\r\n", ""},
		"hostile text":    {"a: 1\n", "a", "it's \"a\": \\ # x", "a: 'it''s \"a\": \\ # x'\n", ""},
		"merge key":       {"a: 1\n", "a", "<<", "a: \"<<\"\n", ""},
		"older yaml":      {"a: 1\n", "a", []string{"off", "12:30:45", "=", "0o7", "1_0"}, "a:\n  - \"off\"\n  - \"12:30:45\"\n  - =\n  - \"0o7\"\n  - \"1_0\"\n", ""},
		"many lines":      {"a: 1\n", "a", " two\nlines ", "a: \" two\\nlines \"\n", ""},
		"bool":            {"a: 1\n", "a", false, "a: false\n", ""},
		"list":            {"a:\n- 1\n- 2\nb: 3\n", "a", []string{}, "a: []\nb: 3\n", ""},

		"indented comment below":        {"a: 1\n  # mine\nb: 2\n", "a", "x", "a: x\n  # mine\nb: 2\n", ""},
		"quote over lines":              {"a: \"1 \\\" '\n  # no comment\n  2\" # yes\n  # mine\nb: 2\n", "a", "x", "a: x # yes\n  # mine\nb: 2\n", ""},
		"single quotes":                 {"a: 'it''s\n  # \"text\"'\n# mine\nb: 2\n", "a", "x", "a: x\n# mine\nb: 2\n", ""},
		"literal":                       {"a: |\n  # text\n\n  more\n # mine\nb: 2\n", "a", "x", "a: x\n # mine\nb: 2\n", ""},
		"literal that keeps":            {"a: |+\n  x\n\n\nb: 2\n", "b", "y", "a: |+\n  x\n\n\nb: \"y\"\n", ""},
		"behind a literal":              {"a: |+\n  x\n\n\n", "b", "y", "a: |+\n  x\n\n\nb: \"y\"\n", ""},
		"literal, number":               {"a: |2\n    # x\n  # y\nb: 2\n", "a", "x", "a: x\nb: 2\n", ""},
		"literal of nothing":            {"a: |\n# mine\nb: 2\n", "a", "x", "a: x\n# mine\nb: 2\n", ""},
		"flow over lines":               {"a: [1,\n  # c\n  2\n  ]\n# mine\nb: 2\n", "a", "x", "a: x\n# mine\nb: 2\n", ""},
		"below the comment of its kind": {"a: 1\n\n# The b.\n# b: 0\n\n# end\n", "b", "x", "a: 1\n\n# The b.\n# b: 0\nb: x\n\n# end\n", ""},

		"below the last of them": {"a: 1\n# b: 0\n# b: 2\n# more\n", "b", "x", "a: 1\n# b: 0\n# b: 2\nb: x\n# more\n", ""},

		"nested":                  {"s:\n  a: 1\n  # b: 2\n  c: 3\nt: 4\n", "s.a", "x", "s:\n  a: x\n  # b: 2\n  c: 3\nt: 4\n", ""},
		"nested, four spaces":     {"s:\n    a: 1\nt: 4\n", "s.b", []string{"x"}, "s:\n    a: 1\n    b:\n      - x\nt: 4\n", ""},
		"nested, comment below":   {"s:\n  a: 1\n  # b: 2\nt: 4\n", "s.a", "x", "s:\n  a: x\n  # b: 2\nt: 4\n", ""},
		"nested, at its comment":  {"r:\n  # b: 0\n  z: 1\ns:\n  a: 1\n  # b: 2\n\nt: 4\n", "s.b", "x", "r:\n  # b: 0\n  z: 1\ns:\n  a: 1\n  # b: 2\n  b: x\n\nt: 4\n", ""},
		"nested, section missing": {"t: 4\n", "s.a", " x\ny", "t: 4\ns:\n  a: \" x\\ny\"\n", ""},
		"nested, two missing":     {"t: 4\n", "s.u.a", []string{"x"}, "t: 4\ns:\n  u:\n    a:\n      - x\n", ""},
		"nested, section null":    {"s:\n  # a: 1\n\n  # b: 2\nt: 4\n", "s.b", "x", "s:\n  b: x\n  # a: 1\n\n  # b: 2\nt: 4\n", ""},
		"nested, null last":       {"t: 4\ns: # mine\n", "s.b", "x", "t: 4\ns: # mine\n  b: x\n", ""},
		"nested, spelling":        {"s_t:\n  u_v: 1\n", "s-t.u-v", "x", "s_t:\n  u_v: x\n", ""},
		"root indented":           {"  a: 1\n  b: 2\n", "c", "x", "  a: 1\n  b: 2\n  c: x\n", ""},

		"braces":           {"s: {a: 1}\n", "s.a", "x", "", "s.a: written in one line with braces: edit it by hand"},
		"root in braces":   {"{a: 1}\n", "a", "x", "", "a: written in one line with braces: edit it by hand"},
		"braces replaced":  {"s: {a: 1} # c\n", "s", "x", "s: x # c\n", ""},
		"no section":       {"s: text\n", "s.a", "x", "", "s.a: s is not a section: edit it by hand"},
		"list, no section": {"s:\n  - a\n", "s.a", "x", "", "s.a: s is not a section: edit it by hand"},
		"behind the end":   {"a: 1\n...\n", "b", "x", "", "b" + disturbing},
		"explicit key":     {"? a\n: 1\n# c\n", "a", "x", "a: x\n# c\n", ""},
		"not utf-8":        {"a: 1\n", "a", "\xff", "", "a: not valid UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			doc, err := yamldoc.Parse("f", []byte(tc.text), 1)
			if err != nil {
				t.Fatal(err)
			}
			got, err := doc.Set(strings.Split(tc.path, "."), tc.value)
			if tc.err != "" {
				if err == nil || err.Error() != tc.err {
					t.Errorf("error %v, want %s (text %v)", err, tc.err, got)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if string(got.Text()) != tc.want {
				t.Errorf("\n got %q\nwant %q", got.Text(), tc.want)
			}
			if string(doc.Text()) != tc.text {
				t.Errorf("the old document changed to %q", doc.Text())
			}
		})
	}
}

func TestDelete(t *testing.T) {
	for name, tc := range map[string]struct{ text, path, want string }{
		"missing":            {"a: 1\n", "b", "a: 1\n"},
		"missing section":    {"a: 1\n", "b.c", "a: 1\n"},
		"no section":         {"a: 1\n", "a.c", "a: 1\n"},
		"first":              {"# of a\na: 1 # c\n# of b\nb: 2\n", "a", "# of a\n# of b\nb: 2\n"},
		"last":               {"a: 1\nb:\n  - 2\n\n# end\n", "b", "a: 1\n\n# end\n"},
		"only":               {"# c\na: 1\n", "a", "# c\n"},
		"either spelling":    {"run_at: 1\nb: 2\n", "run-at", "b: 2\n"},
		"nested":             {"s:\n  a: 1\n  # c\n  b: 2\nt: 3\n", "s.a", "s:\n  # c\n  b: 2\nt: 3\n"},
		"nested, only":       {"s:\n  a: 1\n  # c\nt: 3\n", "s.a", "s:\n  # c\nt: 3\n"},
		"section":            {"s:\n  a: 1\n  b:\n    - x\n  # c\nt: 3\n", "s", "  # c\nt: 3\n"},
		"null with comments": {"s:\n  # a: 1\nt: 3\n", "s", "  # a: 1\nt: 3\n"},
		"crlf":               {"a: 1\r\nb: 2\r\n", "a", "b: 2\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			doc, err := yamldoc.Parse("f", []byte(tc.text), 1)
			if err != nil {
				t.Fatal(err)
			}
			got, err := doc.Delete(strings.Split(tc.path, "."))
			if err != nil {
				t.Fatal(err)
			}
			if string(got.Text()) != tc.want {
				t.Errorf("\n got %q\nwant %q", got.Text(), tc.want)
			}
		})
	}
	doc, err := yamldoc.Parse("f", []byte("s: {a: 1}\n"), 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := doc.Delete([]string{"s", "a"}); err == nil {
		t.Error("an entry in braces was deleted")
	}
}

// An edit knows the line numbers of a page, and the page's other bytes stay.
func TestSetInPage(t *testing.T) {
	page, err := yamldoc.ParsePage("f.md", []byte("\ufeff---\r\nid: a # c\r\n---\r\nHello\r\n---\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := page.Doc.Set([]string{"enabled"}, false)
	if err != nil {
		t.Fatal(err)
	}
	want := "\ufeff---\r\nid: a # c\r\nenabled: false\r\n---\r\nHello\r\n---\r\n"
	if got := string(page.With(doc)); got != want {
		t.Errorf("\n got %q\nwant %q", got, want)
	}
	if got := doc.Line("enabled"); got != 3 {
		t.Errorf("it stands on line %d, want 3", got)
	}
}

// block is some lines of a document that no edit of another entry may touch.
type block struct {
	path  string // "" for comments and blank lines
	lines string
}

// values are ways to write a value after its key, with the lines that follow; deep is the indentation of those.
func values(deep string) []string {
	return []string{
		"word", "00123456 # why", "2026-02-24", "true", "'it''s # text'", "\"a \\\" b\" # why", "\"many\n" + deep + "# lines '\n" + deep + "here\" # why",
		"'single\n" + deep + "# \"lines\"'", "many\n" + deep + "plain lines", "|\n" + deep + "# text\n\n" + deep + "  deeper", ">-\n" + deep + "folded\n" + deep + "text",
		"|+\n" + deep + "kept", "[a, 'b',\n" + deep + "# c\n" + deep + "c]", "[] # none", "{x: 1}", "", "~", "# why",
		"\n" + deep + "- a\n" + deep + "# c\n" + deep + "- \"b\"", "# why\n" + deep + "- |\n" + deep + "    # text\n" + deep + "- b", "\n" + deep + "far below",
	}
}

// document makes a random document out of blocks.
func document(t *rapid.T) (blocks []block, keys []string) {
	comment := func(most int, label string) {
		for range rapid.IntRange(0, 2).Draw(t, label) {
			indent := strings.Repeat(" ", rapid.IntRange(0, most).Draw(t, "indent"))
			text := rapid.SampledFrom([]string{"\n", indent + "# note: of mine\n", indent + "#\n"}).Draw(t, "filler")
			blocks = append(blocks, block{"", text})
		}
	}
	entry := func(path, key, indent string) {
		value := rapid.SampledFrom(values(indent+"  ")).Draw(t, "value")
		blocks = append(blocks, block{path, indent + strings.TrimRight(key+": "+value, " ") + "\n"})
		keys = append(keys, path)
		if most := len(indent); strings.ContainsAny(value, "|>") {
			comment(most, "behind") // deeper, it would be text
		} else {
			comment(most+3, "behind")
		}
	}
	comment(3, "head")
	for i := range rapid.IntRange(1, 5).Draw(t, "entries") {
		key := fmt.Sprintf("key%s%d", rapid.SampledFrom([]string{"-", "_"}).Draw(t, "spelling"), i)
		if !rapid.Bool().Draw(t, "section") {
			entry(key, key, "")
			continue
		}
		blocks = append(blocks, block{key, key + ":" + rapid.SampledFrom([]string{"", " # why"}).Draw(t, "remark") + "\n"})
		indent := strings.Repeat(" ", rapid.IntRange(1, 4).Draw(t, "depth"))
		for j := range rapid.IntRange(1, 3).Draw(t, "inner") {
			inner := fmt.Sprintf("in%d", j)
			entry(key+"."+inner, inner, indent)
		}
	}
	return blocks, keys
}

func join(blocks []block) string {
	var b strings.Builder
	for _, block := range blocks {
		b.WriteString(block.lines)
	}
	return b.String()
}

func TestEditsTouchNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		blocks, keys := document(t)
		ends := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "line ends")
		written := func(s string) string { return strings.ReplaceAll(s, "\n", ends) }
		text := written(join(blocks))
		doc, err := yamldoc.Parse("f", []byte(text), 1)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		path := rapid.SampledFrom(append(keys, "new", "new.inner", "key-0.new")).Draw(t, "path")
		value := rapid.OneOf(rapid.StringMatching(`[ -~\n\tä☃'":#\\-]*`).AsAny(), rapid.SliceOfN(rapid.String(), 1, 3).AsAny()).Draw(t, "to")
		at, before, after := 0, text, ""
		for i, b := range blocks {
			if yamldoc.Kebab(b.path) == yamldoc.Kebab(path) {
				at, before, after = i+1, written(join(blocks[:i])), written(join(blocks[i+1:]))
			}
		}
		keypath := strings.Split(path, ".")
		set, err := doc.Set(keypath, value)
		if path == "key-0.new" && (err != nil || doc.Values()["key-0"] == nil) {
			return // key-0 is no section, or ~, which gives way to one
		}
		if err != nil {
			t.Fatalf("Set %s: %v\n%s", path, err, text)
		}
		got := string(set.Text())
		if stays := strings.HasPrefix(got, before) && strings.HasSuffix(got, after); at > 0 && !stays {
			t.Fatalf("Set %s disturbed the rest\n%q\n%q", path, text, got)
		}
		if at == 0 && !inserted(text, got) {
			t.Fatalf("Set %s did more than insert lines\n%q\n%q", path, text, got)
		}
		readsBack(t, set, keypath, value)
		cut, err := set.Delete(keypath)
		if err != nil && strings.ContainsAny(text, "|>") {
			return // blank lines or comments after the entry would come to belong to the text before it
		}
		if err != nil {
			t.Fatalf("Delete %s: %v\n%s", path, err, got)
		}
		switch {
		case at > 0 && string(cut.Text()) != before+after:
			t.Fatalf("Delete %s\n%q\n%q", path, got, cut.Text())
		case at == 0 && len(keypath) == 1 && string(cut.Text()) != text:
			t.Fatalf("Set and Delete %s\n%q\n%q", path, text, cut.Text())
		}
	})
}

// inserted reports whether long is short with some lines put in at one place.
func inserted(short, long string) bool {
	a, b := strings.SplitAfter(short, "\n"), strings.SplitAfter(long, "\n")
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	return head+tail == len(a)
}

func readsBack(t *rapid.T, doc *yamldoc.Doc, path []string, want any) {
	field := func(key string, read func(yamldoc.Value) error) []yamldoc.Field {
		return []yamldoc.Field{{Key: yamldoc.Kebab(key), Read: read}}
	}
	read := false
	leaf := func(v yamldoc.Value) error {
		read = true
		var got any
		var err error
		if list, isList := want.([]string); isList {
			var texts []string
			texts, err = v.Texts()
			got = texts
			want = list
		} else {
			got, err = v.Text()
		}
		if err != nil || fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
			t.Fatalf("%q reads back as %q, %v", want, got, err)
		}
		return nil
	}
	decode := leaf
	if len(path) == 2 {
		decode = func(v yamldoc.Value) error { _ = v.Decode(field(path[1], leaf)); return nil }
	}
	_ = doc.Decode(field(path[0], decode)) // every other key is unknown
	if !read {
		t.Fatalf("%q is not there:\n%s", path, doc.Text())
	}
}
