package yamldoc

import (
	"bytes"
	"slices"
	"testing"

	"gopkg.in/yaml.v3"
)

// A text means the same, line by line, with its comments shortened.
func FuzzShortComments(f *testing.F) {
	for _, seed := range []string{
		"# all\n\nkey: value\n  # deeper\n# end", "a: |\n  # text\n  # text\n", "a: \"one\n# two\"\n", "a: one\n  # comment\n  two\n", "a: [\n # x\n b]\n",
		"a: >-\n\n  # text\n", "a: 'it\n  # is'\n", "- a\n# b\n- c\n", "a:\n# b\r\n  c: d # e\n", "# \x01\na: b\n", "a: b\n\t# c\n", "? a\n# b\n: c\n", "--- # a\n# b\n...\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if i, _ := oddity(text); i >= 0 || bytes.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\n' && r != '\r' && r != '\t' || r >= 0x7f }) {
			return // not YAML, even in a comment
		}
		var whole, short yaml.Node
		wholeErr, shortErr := yaml.Unmarshal(text, &whole), yaml.Unmarshal(shortComments(text), &short)
		if (wholeErr == nil) != (shortErr == nil) || wholeErr == nil && !alike(&whole, &short) {
			t.Errorf("%q: %v, %v", text, wholeErr, shortErr)
		}
	})
}

func alike(a, b *yaml.Node) bool {
	return a.Kind == b.Kind && a.Tag == b.Tag && a.Value == b.Value && a.Style == b.Style && a.Anchor == b.Anchor && a.Line == b.Line && a.Column == b.Column &&
		slices.EqualFunc(a.Content, b.Content, alike)
}
