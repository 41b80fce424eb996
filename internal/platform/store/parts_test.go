package store

import (
	"slices"
	"testing"
)

func TestParts(t *testing.T) {
	for text, want := range map[string][]string{
		`{}`:                           {},
		`{"a":1, "b":[1,2,{"c":","}]}`: {`"a":1`, ` "b":[1,2,{"c":","}]`},
		`{"a\"}":"\\","b":2}`:          {`"a\"}":"\\"`, `"b":2`},
		`{"a":1}{"b":2}`:               nil,
		`{"a":[1}`:                     nil,
		`{"a":"}`:                      nil,
		`[1]`:                          nil,
		`{`:                            nil,
	} {
		got := []string{}
		if !Parts([]byte(text), '{', '}', func(part []byte) bool { got = append(got, string(part)); return true }) {
			got = nil
		}
		if (got == nil) != (want == nil) || !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	if Parts([]byte(`[1,2]`), '[', ']', func([]byte) bool { return false }) {
		t.Error("the end was not asked for, and is reported")
	}
}
