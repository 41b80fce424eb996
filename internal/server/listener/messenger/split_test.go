package messenger

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// TestSplit shows where texts are cut.
func TestSplit(t *testing.T) {
	word := strings.Repeat("word ", 10) // 50
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"empty":       {"", nil},
		"blank":       {" \n\n ", nil},
		"short":       {"one\ntwo", []string{"one\ntwo"}},
		"paragraph":   {word + word + "\n\n" + word + word, []string{word + word + "\n\n", word + word}},
		"line":        {word + word + "\n" + word + word, []string{word + word + "\n", word + word}},
		"sentence":    {word + "end. " + word + "more " + word, []string{word + "end. ", word + "more " + word}},
		"word":        {strings.Repeat("x", 60) + " " + strings.Repeat("y", 70), []string{strings.Repeat("x", 60) + " ", strings.Repeat("y", 70)}},
		"hard":        {strings.Repeat("x", 150), []string{strings.Repeat("x", 116), strings.Repeat("x", 34)}},
		"astral":      {strings.Repeat("🦊", 75), []string{strings.Repeat("🦊", 58), strings.Repeat("🦊", 17)}},
		"accents":     {strings.Repeat("x", 115) + "e\u0301" + strings.Repeat("y", 40), []string{strings.Repeat("x", 115), "e\u0301" + strings.Repeat("y", 40)}},
		"code":        {"intro\n```go\n" + strings.Repeat("line of code\n", 12) + "```\nend", nil},
		"code text":   {"```" + word + "\n" + word + word + "\n```", []string{"```" + word + "\n```", "```\n" + word + word + "\n```"}},
		"code open":   {"```go\n" + word + word + "\n" + word, []string{"```go\n" + word + word + "\n```", "```go\n" + word + "\n```"}},
		"code begins": {word + word + "\n```go\n" + word + "\n```\n", []string{word + word + "\n", "```go\n" + word + "\n```\n"}},
	} {
		var got []string
		for _, p := range split(tc.text, 120) {
			if strings.TrimSpace(p.text) != "" {
				got = append(got, p.open+p.text+p.end)
			}
		}
		if name == "code" {
			for i, part := range got {
				if strings.Count(part, "```")%2 != 0 || i > 0 && !strings.HasPrefix(part, "```go\n") {
					t.Errorf("code: part %d is %q", i, part)
				}
			}
			continue
		}
		if strings.Join(got, "|") != strings.Join(tc.want, "|") {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// checkSplit checks that nothing is lost, that every part fits, and that every code block is whole.
func checkSplit(t interface{ Fatalf(string, ...any) }, text string, most int) {
	var joined strings.Builder
	parts := split(text, most)
	for i, p := range parts {
		joined.WriteString(p.text)
		whole := p.open + p.text + p.end
		if Size(whole) > most || p.text == "" {
			t.Fatalf("part %d has %d units of %q", i, Size(whole), text)
		}
		if open, _ := blockAfter("", whole); open != "" && (i < len(parts)-1 || p.open != "") {
			t.Fatalf("part %d leaves a code block open: %q", i, whole)
		}
		if p.open != "" && strings.TrimSuffix(p.open, "\n") == p.open || p.open == "" && i > 0 && parts[i-1].end != "" {
			t.Fatalf("part %d does not go on with the code block: %q", i, whole)
		}
	}
	if joined.String() != text {
		t.Fatalf("%q became %q", text, joined.String())
	}
}

func TestSplitLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.SampledFrom([]string{"word ", "\n", "\n\n", "```go\n", "```\n", "```", "  ```\n", "end. ", "é", "🦊", "👩‍👩‍👧", "xxxxxxxxxxxxxxxxxxxxxxxx", "~~~\n", "`", "\r\n"})
		text := strings.Join(rapid.SliceOfN(piece, 0, 200).Draw(t, "text"), "")
		checkSplit(t, text, rapid.IntRange(100, 300).Draw(t, "most"))
	})
}

func FuzzSplit(f *testing.F) {
	f.Add("intro\n```go\n"+strings.Repeat("line\n", 50)+"```\nend", uint8(0))
	f.Add("```"+strings.Repeat("i", 300)+"\n"+strings.Repeat("x ", 200), uint8(9))
	f.Fuzz(func(t *testing.T, text string, more uint8) {
		if utf8.ValidString(text) {
			checkSplit(t, text, 100+int(more))
		}
	})
}

const maxFile = 8 << 20

func TestParts(t *testing.T) {
	long := strings.Repeat("A sentence of a long answer. ", 400) // six messages
	able := Able{Text: 2000, File: maxFile}
	parts := Parts("m.1", Outgoing{Text: long, ReplyTo: "9", Files: []File{{Name: "a.png"}}}, able)
	if len(parts) != 4 || parts[0].ReplyTo != "9" || parts[1].ReplyTo != "" {
		t.Fatalf("%d parts", len(parts))
	}
	last := parts[3]
	if len(last.Files) != 2 || last.Files[0].Name != "answer.md" || string(last.Files[0].Data) != long || last.Files[1].Name != "a.png" {
		t.Errorf("the last part has %d files", len(last.Files))
	}
	seen := map[string]bool{}
	for i, p := range parts {
		if seen[p.Nonce] || len(p.Nonce) > 25 || p.Nonce != nonce("m.1", i) {
			t.Errorf("nonce %q", p.Nonce)
		}
		seen[p.Nonce] = true
	}
	if parts := Parts("m.2", Outgoing{Text: long[:6000]}, able); len(parts) != 4 || len(parts[3].Files) != 0 {
		t.Errorf("6000 characters are %d parts", len(parts))
	}
	var joined []byte
	for _, piece := range bytesOf(strings.Repeat("ä", maxFile), maxFile) {
		if len(piece) > maxFile || !utf8.Valid(piece) {
			t.Errorf("a file of %d bytes", len(piece))
		}
		joined = append(joined, piece...)
	}
	if len(joined) != 2*maxFile {
		t.Errorf("%d bytes", len(joined))
	}
}
