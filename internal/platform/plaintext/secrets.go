package plaintext

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// Secrets replaces the values of secrets in text by [secret], including their form in a JSON string. Values shorter
// than eight bytes are kept: they occur in ordinary text, and replacing them there would reveal them. A value in
// another encoding is not recognized. The zero value replaces nothing.
type Secrets struct {
	values   []string // sorted by length, longest first
	replacer *strings.Replacer
}

const (
	shortestSecret = 8 // bytes of the shortest value that is replaced
	shortestPiece  = 4 // bytes of the shortest piece of a cut value that is replaced
	hidden         = "[secret]"
)

// NewSecrets returns the Secrets of these values.
func NewSecrets(values ...string) (s Secrets) {
	for _, v := range values {
		if len(v) >= shortestSecret {
			s.values = append(s.values, v, inJSON(v, true), inJSON(v, false))
		}
	}
	slices.SortFunc(s.values, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	s.values = slices.Compact(s.values)
	var pairs []string
	for _, v := range s.values {
		pairs = append(pairs, v, hidden)
	}
	s.replacer = strings.NewReplacer(pairs...)
	return s
}

// inJSON returns a text as it appears between the quotes of a JSON string. html says whether <, > and & are escaped, in which writers
// differ.
func inJSON(text string, html bool) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(html)
	if e.Encode(text) != nil { // a string can always be encoded
		return text
	}
	return strings.Trim(strings.TrimSuffix(b.String(), "\n"), `"`)
}

// Hide replaces the values in a text.
func (s Secrets) Hide(text string) string {
	if len(s.values) == 0 {
		return text
	}
	return s.replacer.Replace(text)
}

// HideCut is Hide for a text that was cut at its beginning (front) or end, perhaps inside a value. It also replaces a piece of at least
// four bytes there.
func (s Secrets) HideCut(text string, front, end bool) string {
	text = s.Hide(text)
	longest := 0
	if len(s.values) > 0 {
		longest = len(s.values[0])
	}
	for n := min(longest, len(text)); n >= shortestPiece; n-- {
		if end && slices.ContainsFunc(s.values, func(v string) bool { return len(v) > n && v[:n] == text[len(text)-n:] }) {
			text = text[:len(text)-n] + hidden
			break
		}
	}
	for n := min(longest, len(text)); n >= shortestPiece; n-- {
		if front && slices.ContainsFunc(s.values, func(v string) bool { return len(v) > n && v[len(v)-n:] == text[:n] }) {
			return hidden + text[n:]
		}
	}
	return text
}

// HideJSON replaces the values in a JSON document. If a replaced value was not a string, the document becomes one.
func (s Secrets) HideJSON(document json.RawMessage) json.RawMessage {
	if len(s.values) == 0 || len(document) == 0 {
		return document
	}
	text := s.Hide(string(document))
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	whole, err := json.Marshal(text)
	if err != nil { // a string can always be encoded
		return nil
	}
	return whole
}
