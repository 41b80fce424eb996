package cli

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func marks() *rapid.Generator[string] {
	return rapid.StringOfN(rapid.SampledFrom([]rune("```~~~ \n\nxé")), 0, 40, -1)
}

// TestFenced: whatever stands in a fence, the first line that could end it is the last one.
func TestFenced(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := marks().Draw(t, "text")
		lines := strings.Split(fenced("json", text), "\n")
		fence, found := strings.CutSuffix(lines[0], "json")
		if !found || len(fence) < 3 || strings.Trim(fence, "`") != "" {
			t.Fatalf("it begins with %q", lines[0])
		}
		for i, line := range lines[1:] {
			if ends := strings.HasPrefix(strings.TrimLeft(line, " "), fence); ends != (i == len(lines)-2) {
				t.Fatalf("line %d of %q ends it: %v", i, lines, ends)
			}
		}
		if inside := strings.Join(lines[1:len(lines)-1], "\n"); strings.TrimSuffix(text, "\n") != inside {
			t.Fatalf("%q became %q", text, inside)
		}
	})
}

// TestUnclosed: what is added closes what is open, and nothing is added to what is closed.
func TestUnclosed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "text": "", "```\ncode\n```": "", "```\ncode": "\n```", "````go\n```\ncode": "\n````", "~~~\n```": "\n~~~",
		"``` `a` ```": "", "```a``` b": "", "    ```": "", "   ```": "\n```", "```\n```x\n": "\n```", "``\n": "", "a ```": "", "```\r\ncode\r\n```\r\n": "",
	} {
		if got := unclosed(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := marks().Draw(t, "text")
		if again := unclosed(text + unclosed(text)); again != "" {
			t.Fatalf("%q is open with %q, too", text, unclosed(text))
		}
	})
}
