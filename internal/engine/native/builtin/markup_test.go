package builtin

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"pgregory.net/rapid"
)

// TestMarkup compares texts and attributes with what the library's own methods return.
func TestMarkup(t *testing.T) {
	pieces := []string{
		"<a", "<A ", "<img", "<p>", "</a>", "</title>", "<title>", "<xmp>", "</xmp>", "<plaintext>", "<textarea>", "</textarea", ">", "/", "/>", "=", "==", " ",
		"\n", "\t", "\f", "\r", "\r\n", "\"", "'", "href", "HREF=", "alt=", "x", "12", "&", "&amp;", "&amp", "&copy", "&copy=", "&notit;", "&not", "&semi;", "&lt;", "&#65;",
		"&#65", "&#x41;", "&#xZ", "&#0;", "&;", ";", "&acE;", "&fjlig;", "&AMP", "\x00", "ä", "<!--", "-->", "text", "?a=1&b=2",
	}
	rapid.Check(t, func(t *rapid.T) {
		page := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 40).Draw(t, "page"), "")
		z := html.NewTokenizer(strings.NewReader(page))
		element := ""
		for {
			kind := z.Next()
			raw := append([]byte{}, z.Raw()...)
			switch kind {
			case html.ErrorToken:
				return
			case html.TextToken:
				if want, got := string(z.Text()), content(raw, element); got != want {
					t.Fatalf("the text of %q in %q: %q, want %q", raw, element, got, want)
				}
				element = ""
			case html.StartTagToken, html.SelfClosingTagToken:
				name, more := z.TagName()
				if element = ""; slices.Contains([]string{"title", "textarea", "xmp", "plaintext"}, string(name)) {
					element = string(name)
				}
				want := map[string]string{}
				for more {
					var key, value []byte
					key, value, more = z.TagAttr()
					want[string(key)] = string(value)
				}
				for _, key := range []string{"href", "alt", "x", "text"} {
					if got := attribute(raw, key); got != want[key] {
						t.Fatalf("%s of %q: %q, want %q", key, raw, got, want[key])
					}
				}
			case html.EndTagToken:
				element = ""
			case html.CommentToken, html.DoctypeToken:
			}
		}
	})
}
