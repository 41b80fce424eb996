package plaintext_test

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ollim/ollim/internal/platform/plaintext"
)

func TestHide(t *testing.T) {
	s := plaintext.NewSecrets("", "short", "token-one", "token-one-and-more", `quo"ted<&>`)
	for text, want := range map[string]string{
		"":                                   "",
		"nothing short here":                 "nothing short here",
		"a token-one b token-one":            "a [secret] b [secret]",
		"a token-one-and-more":               "a [secret]",
		"token-one-and-mor":                  "[secret]-and-mor",
		`{"x":"quo\"ted<&>"}`:                `{"x":"[secret]"}`,
		`{"x":"quo\"ted\u003c\u0026\u003e"}`: `{"x":"[secret]"}`,
		`quo"ted<&>`:                         "[secret]",
	} {
		if got := s.Hide(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := (plaintext.Secrets{}).Hide("a"); got != "a" {
		t.Errorf("the zero value makes %q", got)
	}
}

// A text that was cut within a value shows at most three bytes of it.
func TestHideCut(t *testing.T) {
	const value = "abcdefgh-ijkl"
	s := plaintext.NewSecrets(value)
	for n := range len(value) + 1 {
		end, front := s.HideCut("x "+value[:n], false, true), s.HideCut(value[n:]+" x", true, false)
		if n >= 4 && end != "x [secret]" {
			t.Errorf("cut after %d bytes: %q", n, end)
		}
		if len(value)-n >= 4 && front != "[secret] x" {
			t.Errorf("cut before byte %d: %q", n, front)
		}
		if got := s.HideCut("x "+value[:n], true, false); n < len(value) && got != "x "+value[:n] {
			t.Errorf("not cut at the end: %q", got)
		}
	}
	if got := s.HideCut("ab", true, true); got != "ab" {
		t.Errorf("%q", got)
	}
}

func TestHideJSON(t *testing.T) {
	s := plaintext.NewSecrets("12345678")
	for document, want := range map[string]string{
		"":                    "",
		`{"a":"x12345678y"}`:  `{"a":"x[secret]y"}`,
		`{"a":12345678}`:      `"{\"a\":[secret]}"`,
		`{"12345678":[1, 2]}`: `{"[secret]":[1, 2]}`,
	} {
		got := s.HideJSON(json.RawMessage(document))
		if string(got) != want || want != "" && !json.Valid(got) {
			t.Errorf("%s: %s, want %s", document, got, want)
		}
	}
}

// No value is left, whatever surrounds it, as it is or within JSON.
func TestNoValueIsLeft(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringMatching(`[a-z"<\\]{8,20}`).Draw(t, "value")
		text := rapid.String().Draw(t, "before") + value + rapid.String().Draw(t, "after")
		s := plaintext.NewSecrets(value)
		if strings.Contains(s.Hide(text), value) {
			t.Fatalf("%q is left in %q", value, s.Hide(text))
		}
		document, err := json.Marshal(map[string]string{"text": text})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.HideJSON(document); !json.Valid(got) {
			t.Fatalf("%s is no JSON", got)
		}
	})
}
