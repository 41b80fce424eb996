package policy_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/testkit"
)

// anything matches every ollim command that is one at all, so what Decide allows shows how it read the command.
func anything(t testing.TB) policy.Policy {
	return newFixture(t).policy(t, "Bash(ollim *)")
}

// shells are those that are here; at least sh.
func shells(t testing.TB) []string {
	t.Helper()
	var found []string
	for _, name := range []string{"sh", "bash", "zsh", "ksh", "busybox"} {
		if path, err := exec.LookPath(name); err == nil {
			found = append(found, path)
		}
	}
	if len(found) == 0 {
		testkit.Missing(t, "no shell: apt-get install dash")
	}
	return found
}

// split lets a real shell split commands, each followed by an empty line's worth of separation, in an empty directory without any
// program to find. It fails if the shell did anything else.
func split(t testing.TB, shell string, commands []string) [][]string {
	t.Helper()
	dir := t.TempDir()
	var script strings.Builder
	for _, c := range commands {
		fmt.Fprintf(&script, "printf '%%s\\0' %s\nprintf '\\0\\0END\\0'\n", c)
	}
	args := []string{"-s"}
	if strings.HasSuffix(shell, "busybox") {
		args = []string{"sh", "-s"}
	}
	cmd := exec.Command(shell, args...)
	cmd.Dir, cmd.Env, cmd.Stdin = dir, []string{"HOME=/", "PATH=/nonexistent", "x=expanded"}, strings.NewReader(script.String())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || stderr.Len() > 0 {
		t.Fatalf("%s: %v %s", shell, err, stderr.String())
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Fatalf("%s left %v %v", shell, left, err)
	}
	var all [][]string
	for part := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00\x00END\x00"), "\x00\x00END\x00") {
		all = append(all, strings.Split(strings.TrimSuffix(part, "\x00"), "\x00"))
	}
	return all
}

// harmless are pieces of commands that may stand nearly anywhere.
func harmless() []string {
	return []string{" ", "  ", " ", "a", "-n", "--x=y", "'b c'", "\"d e\"", "''", "\"\"", "%s", "1", ":", ",", "@", "'$x;*é'", "\"it's\"", "\"\\$\\\\\\`\\\"\\x!;*\""}
}

// fragments are what hostile commands are made of.
func fragments() []string {
	return []string{
		"ollim", "help", "tasks", "'", "'", "\"", "\"", "é", "=",
		";", "&", "&&", "||", "|", "|&", "!", "(", ")", "{", "}", "$(touch pwned)", "`touch pwned`", "$x", "${x}", "$((1))", "$'\\n'", "$\"x\"", "$",
		">pwned", "2>&1", "<pwned", "<<E", "<(touch pwned)", "\n", "\r", "\t", "\\", "\\\n", "~", "*", "?", "[a]", "{a,b}", "#", "^", "+(a)", "x=1", "\x00",
		"\u00a0", "\u2028", "\x7f", "\x85",
	}
}

// Whatever is put together from hostile pieces: what passes is split by every shell here as Decide split it, does nothing else,
// and matches a pattern of exactly these words.
func TestAllowedMeansPlainWords(t *testing.T) {
	p := anything(t)
	var allowed []string
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOfN(rapid.SampledFrom(harmless()), 0, 7).Draw(t, "harmless")
		for _, piece := range rapid.SliceOfN(rapid.SampledFrom(fragments()), 0, 3).Draw(t, "fragments") {
			pieces = slices.Insert(pieces, rapid.IntRange(0, len(pieces)).Draw(t, "at"), piece)
		}
		command := "ollim tasks " + strings.Join(pieces, "")
		if p.Decide("Bash", rapidObject(command)).Allow {
			allowed = append(allowed, command)
		}
	})
	checkSplit(t, slices.Compact(slices.Sorted(slices.Values(allowed))))
}

// Words in any quoting come out as they went in, and pass.
func TestQuotedWordsPass(t *testing.T) {
	p := anything(t)
	var allowed []string
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.StringOfN(rapid.RuneFrom([]rune(" ab$`\"'\\*?[]{}()<>|&;#~!=éü%-")), 1, 8, -1), 0, 5).Draw(t, "words")
		command := "ollim tasks"
		for _, w := range words {
			command += " " + quoted(t, w)
		}
		if v := p.Decide("Bash", rapidObject(command)); !v.Allow {
			t.Fatalf("%s: %s", command, v.Reason)
		}
		if want := append([]string{"ollim", "tasks"}, words...); !slices.Equal(posix(command), want) {
			t.Fatalf("%s: the oracle reads %q, want %q", command, posix(command), want)
		}
		allowed = append(allowed, command)
	})
	checkSplit(t, slices.Compact(slices.Sorted(slices.Values(allowed))))
}

// A hostile construct stays refused however the words around it are spaced and quoted.
func TestHostileVariants(t *testing.T) {
	p := anything(t)
	hostile := []string{
		";id", "; id", "&", "&&id", "||id", "|sh", "$(id)", "`id`", "$x", "${x}", ">f", "<f", "2>&1", "<<<x", "<(id)", "\n", "\nid", "\r", "\x00", "~", "*", "a?", "[a]",
		"{a,b}", "#x", "!x", "\\", "\\x", "$'x'", "$\"x\"", "\"$x\"", "\"`id`\"", "\"$(id)\"", "=x", "'", "\"", "(", ")", "+(x)",
	}
	rapid.Check(t, func(t *rapid.T) {
		space := rapid.StringMatching(` {1,3}`)
		word := func(label string) string {
			return quoted(t, rapid.StringMatching(`[a-z]{1,5}`).Draw(t, label))
		}
		h := rapid.SampledFrom(hostile).Draw(t, "hostile")
		parts := []string{"ollim", space.Draw(t, "s1"), word("w1"), space.Draw(t, "s2"), h, space.Draw(t, "s3"), word("w2")}
		if h != "=x" && h != "!x" && h != "#x" && h != "~" && rapid.Bool().Draw(t, "glued") {
			parts[3] = ""
		}
		command := strings.Join(parts, "")
		if v := p.Decide("Bash", rapidObject(command)); v.Allow {
			t.Fatalf("%q passes", command)
		}
		if err := policy.Judge("Bash(" + strings.ReplaceAll(command, "*", ";") + ")"); err == nil {
			t.Fatalf("%q passes as a pattern", command)
		}
	})
}

// checkSplit compares the shells' words with the oracle's, and with those that Decide matches: a pattern that holds exactly
// these words allows the command, and with any one changed does not.
func checkSplit(t *testing.T, commands []string) {
	t.Helper()
	if len(commands) == 0 {
		t.Fatal("nothing was allowed")
	}
	h := newFixture(t)
	for _, shell := range shells(t) {
		for i, words := range split(t, shell, commands) {
			if !slices.Equal(words, posix(commands[i])) {
				t.Errorf("%s splits %q into %q, want %q", shell, commands[i], words, posix(commands[i]))
			}
			if i%7 == 0 {
				exact(t, h, commands[i], words)
			}
		}
	}
	t.Logf("%d commands", len(commands))
}

func exact(t *testing.T, h fixture, command string, words []string) {
	t.Helper()
	pattern := "Bash(ollim"
	for _, w := range words[1:] {
		pattern += " '" + strings.ReplaceAll(w, "'", `'"'"'`) + "'"
	}
	if len(pattern) < 4000 {
		bash(t, h.policy(t, pattern+")"), true, command)
		bash(t, h.policy(t, pattern+" more)"), false, command)
		bash(t, h.policy(t, pattern+"x)"), false, command)
	}
}

func rapidObject(command string) []byte {
	var b bytes.Buffer
	b.WriteString(`{"command":"`)
	for _, r := range command {
		if r < ' ' || r == '"' || r == '\\' {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	b.WriteString(`"}`)
	return b.Bytes()
}

// quoted writes a word in one of the ways that are allowed.
func quoted(t *rapid.T, w string) string {
	single := "'" + strings.ReplaceAll(w, "'", `'"'"'`) + "'"
	double := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(w) + `"`
	ways := []string{single, double}
	if w != "" && strings.Trim(w, "abcdefghijklmnopqrstuvwxyz%-") == "" {
		ways = append(ways, w, w[:1]+"'"+w[1:]+"'", `""`+w)
	}
	return rapid.SampledFrom(ways).Draw(t, "quoting")
}

// posix is a second reader of shell words, written from the standard and sharing nothing with the first. It returns nil for
// what has any unquoted character that could mean something.
func posix(s string) []string {
	var words []string
	var word strings.Builder
	in := false
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == ' ':
			if in {
				words = append(words, word.String())
				word.Reset()
			}
			in = false
		case c == '\'':
			end := strings.IndexByte(s[i+1:], '\'')
			if end < 0 {
				return nil
			}
			word.WriteString(s[i+1 : i+1+end])
			in, i = true, i+1+end
		case c == '"':
			in = true
			for i++; ; i++ {
				if i >= len(s) || s[i] == '$' || s[i] == '`' {
					return nil
				}
				if s[i] == '"' {
					break
				}
				if s[i] == '\\' && i+1 < len(s) && strings.IndexByte("$`\"\\", s[i+1]) >= 0 {
					i++
				}
				word.WriteByte(s[i])
			}
		case strings.IndexByte("\\$`;&|<>(){}[]*?~#!^\t\n\r", c) >= 0 || c >= utf8.RuneSelf || c < ' ' || c == 0x7f || c == '=' && !in:
			return nil
		default:
			in = true
			word.WriteByte(c)
		}
	}
	if in {
		words = append(words, word.String())
	}
	return words
}
