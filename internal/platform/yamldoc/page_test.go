package yamldoc_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/platform/yamldoc"
)

func TestPage(t *testing.T) {
	for name, tc := range map[string]struct{ text, head, body string }{
		"plain":          {"---\nid: a\n---\nHello\n", "id: a\n", "Hello\n"},
		"empty head":     {"---\n---\nHello", "", "Hello"},
		"no body":        {"---\nid: a\n---", "id: a\n", ""},
		"fence in body":  {"---\nid: a\n---\nHello\n---\nid: b\n---\n", "id: a\n", "Hello\n---\nid: b\n---\n"},
		"body is fence":  {"---\nid: a\n---\n---\n", "id: a\n", "---\n"},
		"crlf":           {"---\r\nid: a\r\n---\r\nHello\r\n", "id: a\r\n", "Hello\r\n"},
		"bom":            {"\ufeff---\nid: a\n---\nHello\n", "id: a\n", "Hello\n"},
		"bom and crlf":   {"\ufeff---\r\nid: a\r\n---\r\n", "id: a\r\n", ""},
		"comments":       {"---\n# c\n\n---\nx", "# c\n\n", "x"},
		"fence in quote": {"---\nd: \"a --- b\"\n---\nx", "d: \"a --- b\"\n", "x"},
		"not utf-8 body": {"---\nid: a\n---\n\xff\x00", "id: a\n", "\xff\x00"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := yamldoc.ParsePage("f.md", []byte(tc.text))
			if err != nil {
				t.Fatal(err)
			}
			if got := string(p.Doc.Text()); got != tc.head {
				t.Errorf("head %q, want %q", got, tc.head)
			}
			if p.Body != tc.body {
				t.Errorf("body %q, want %q", p.Body, tc.body)
			}
			if got := string(p.With(p.Doc)); got != tc.text {
				t.Errorf("With the same head: %q, want %q", got, tc.text)
			}
		})
	}
}

func TestPageFaults(t *testing.T) {
	const noOpening = "f.md:1: does not open with a --- line (frontmatter)"
	const noClosing = "f.md:1: the frontmatter that opens here is never closed by a --- line"
	for name, tc := range map[string]struct{ text, want string }{
		"empty":           {"", noOpening},
		"only a fence":    {"---", noOpening},
		"no fence":        {"id: a\n", noOpening},
		"blank first":     {"\n---\nid: a\n---\n", noOpening},
		"four dashes":     {"----\nid: a\n----\n", noOpening},
		"trailing space":  {"--- \nid: a\n---\n", noOpening},
		"two boms":        {"\ufeff\ufeff---\nid: a\n---\n", noOpening},
		"utf-16":          {"\xff\xfe-\x00-\x00-\x00\n\x00", noOpening},
		"never closed":    {"---\nid: a\nHello\n", noClosing},
		"closed by space": {"---\nid: a\n--- \nHello\n", noClosing},
		"closed by dots":  {"---\nid: a\n...\nHello\n", noClosing},
		"indented fence":  {"---\nid: a\n ---\nHello\n", noClosing},
		"line of a key":   {"---\nid: a\nid: b\n---\nHello\n", ""},
		"line of a fault": {"---\r\nid: a\r\ncron: [\r\n---\r\nHello\r\n", "f.md:3: not valid YAML: did not find expected node content"},
		"odd fence":       {"---\nid: a\n---\t\nid: b\n---\nx", "f.md:3: more than one YAML document"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := yamldoc.ParsePage("f.md", []byte(tc.text))
			if got := lines(err); got != tc.want {
				t.Errorf("%q\n got %s\nwant %s", tc.text, got, tc.want)
			}
			if (p == nil) != (tc.want != "") {
				t.Errorf("page %v beside the error %v", p, err)
			}
		})
	}
}

func TestNewPage(t *testing.T) {
	text, err := yamldoc.NewPage([]yamldoc.Pair{
		{Key: "id", Value: "00123456"}, {Key: "on", Value: true}, {Key: "n", Value: 5}, {Key: "cost", Value: 0.25},
		{Key: "list", Value: []string{"a b", "null", ""}}, {Key: "none", Value: []string{}}, {Key: "text", Value: " two\nlines"},
		{Key: "in", Value: yamldoc.Pair{Key: "side", Value: " a\n b"}},
	}, "Body")
	want := `---
id: "00123456"
on: true
n: 5
cost: 0.25
list:
  - a b
  - "null"
  - ""
none: []
text: " two\nlines"
in:
  side: " a\n b"
---
Body
`
	if string(text) != want || err != nil {
		t.Errorf("%v\n%s", err, text)
	}
	if _, err := yamldoc.NewPage([]yamldoc.Pair{{Key: "id", Value: "\xff"}}, ""); err == nil || err.Error() != "id: not valid UTF-8" {
		t.Errorf("a text that is not UTF-8: %v", err)
	}
	if _, err := yamldoc.NewPage([]yamldoc.Pair{{Key: "id", Value: []string{"a", "\xff"}}}, ""); err == nil {
		t.Error("an item that is not UTF-8 was written")
	}
}

func FuzzPage(f *testing.F) {
	f.Add([]byte("---\nid: a\ncron: \"* * * * *\"\n---\nHello\n"))
	f.Add([]byte("\ufeff---\r\n# c\r\nlist:\r\n  - a\r\n---\r\n---\r\n"))
	f.Add([]byte("---\n---"))
	f.Add([]byte("---\na: |+\n  x\n\n---\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := yamldoc.ParsePage("f.md", data)
		if err != nil {
			checkFault(t, data, 1, err)
			return
		}
		if got := p.With(p.Doc); !bytes.Equal(got, data) {
			t.Fatalf("With the same head gives %q", got)
		}
		if !bytes.HasSuffix(data, []byte(p.Body)) {
			t.Fatal("the body is not the end of the file")
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"a: 1\nb: [x, \"y\"]\nc:\n  d: |\n    text\n  # e: 1\n", "cron: * * * * *\n", "a: &x 1\nb: *x\n", "---\na: 1\n---\nb: 2\n",
		"a: 'it''s'\n\"b\": \"\\\"#\n  # no\"\n", "? a\n: b\n", "{a: 1, b: {c: 2}}\n", "a: >-2\n    x\n\n  y\n# c\nb:\n", "\ufeffa: 1 # c\r\nb:\r\n- x\r\n",
		"a_b: 1\na-b: 2\n", "a: \"\\\nb: 1", "a: !!binary x\n<<: {}\n",
	} {
		f.Add([]byte(seed), "a")
	}
	f.Fuzz(func(t *testing.T, text []byte, key string) {
		doc, err := yamldoc.Parse("f", text, 1)
		checkShift(t, text)
		if err != nil {
			checkFault(t, text, 1, err)
			return
		}
		if !bytes.Equal(doc.Text(), text) {
			t.Fatal("the text is not as written")
		}
		doc.Values()
		if err := doc.Decode(nil); err != nil {
			checkFault(t, text, 1, err)
		}
		edit(t, doc, key)
	})
}

// checkFault holds a fault to the form that everything above relies on.
func checkFault(t *testing.T, text []byte, first int, err error) {
	t.Helper()
	faults, ok := err.(yamldoc.Faults) //nolint:errorlint // it must be one, not wrap one
	if !ok || len(faults) == 0 {
		t.Fatalf("%T: %v", err, err)
	}
	last := first + bytes.Count(text, []byte("\n"))
	for _, f := range faults {
		if f.Line < 0 || f.Line > last || f.Line > 0 && f.Line < first {
			t.Fatalf("line %d of %d to %d: %v", f.Line, first, last, f)
		}
		if f.Reason == "" || strings.Contains(f.Reason, "\n") {
			t.Fatalf("reason %q", f.Reason)
		}
	}
}

// checkShift: the same text three lines further down has the same faults three lines further down.
func checkShift(t *testing.T, text []byte) {
	t.Helper()
	if bytes.HasPrefix(text, []byte("\ufeff")) || len(text) > 1000 {
		return // a byte order mark must come first, and long texts are not searched for the line
	}
	faults := func(text string) (list []yamldoc.Fault) {
		doc, err := yamldoc.Parse("f", []byte(text), 1)
		if err == nil {
			err = doc.Decode([]yamldoc.Field{{Key: "a", Read: func(v yamldoc.Value) error { _, err := v.Texts(); return err }}})
		}
		if all := (yamldoc.Faults)(nil); errors.As(err, &all) {
			for _, f := range all {
				f.Reason, _, _ = strings.Cut(f.Reason, " (as ")
				list = append(list, *f)
			}
		}
		return list
	}
	here, below := faults(string(text)), faults("\n\n\n"+string(text))
	if len(here) != len(below) {
		t.Fatalf("%v became %v", here, below)
	}
	for i, f := range here {
		if f.Line > 0 {
			f.Line += 3
		}
		if f != below[i] {
			t.Fatalf("%v became %v", here[i], below[i])
		}
	}
}

// edit sets and deletes one key: refused, or done and readable, and never with a panic.
func edit(t *testing.T, doc *yamldoc.Doc, key string) {
	t.Helper()
	one := yamldoc.Field{Key: yamldoc.Kebab(key), Read: func(yamldoc.Value) error { return nil }}
	if err := doc.Decode([]yamldoc.Field{one}); err != nil && strings.Contains(lines(err), "given twice") {
		return
	}
	before := doc.Values()
	for _, path := range [][]string{{key}, {key, "inner"}} {
		set, err := doc.Set(path, "new value")
		if err == nil && set.Line(path...) == 0 {
			t.Fatalf("Set %q is not there: %q", path, set.Text())
		}
		if err == nil && len(path) == 1 && set.Values()[yamldoc.Kebab(key)] != "new value" {
			t.Fatalf("Set %q reads back as %q", path, set.Values()[yamldoc.Kebab(key)])
		}
		if cut, err := doc.Delete(path); err == nil && len(cut.Values()) > len(before) {
			t.Fatalf("Delete %q adds: %q", path, cut.Text())
		}
	}
}
