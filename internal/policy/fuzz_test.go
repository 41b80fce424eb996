package policy_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/policy"
)

func FuzzParse(f *testing.F) {
	for _, text := range append(policy.DefaultMain(), "Bash(echo $(id))", "Write(./../x)", "Edit(**)", "mcp__a__*", "Skill(a *)", "Read(/a/**/b)", "WebFetch(domain:*.a)") {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := policy.Parse(text)
		judged := policy.Judge(text)
		if err != nil {
			if judged == nil || strings.ContainsAny(err.Error(), "\n\r") {
				t.Fatalf("%q: %v, %v", text, err, judged)
			}
			return
		}
		again, err := policy.Parse(p.String())
		if err != nil || again.String() != text {
			t.Fatalf("%q: again %v %v", text, again, err)
		}
		policy := policy.Policy{Allow: []policy.Pattern{p}, Roots: []policy.Root{{Dir: "/nonexistent/ollim"}, {Dir: "/"}}}
		tool, _, _ := strings.Cut(text, "(")
		policy.Decide(tool, json.RawMessage(`{"file_path":"x","command":"ollim config"}`))
		if v := policy.Decide("Bash", json.RawMessage(`{"command":"ollim config set a b"}`)); v.Allow {
			t.Fatalf("%q gives an owner's verb", text)
		}
		if v := policy.Decide("Bash", json.RawMessage(`{"command":"env id"}`)); v.Allow {
			t.Fatalf("%q gives env", text)
		}
	})
}

func FuzzDecideBash(f *testing.F) {
	for _, c := range append(fragments(), "help", "'a b' \"c\"", "x y z", "\"\\$\\`\\\"\\\\\"", "ping 'a; b'") {
		f.Add(c)
	}
	p := policy.Policy{Roots: []policy.Root{{Dir: f.TempDir()}}, Ollim: anyCommand}
	pattern, err := policy.Parse("Bash(ollim *)")
	if err != nil {
		f.Fatal(err)
	}
	p.Allow = []policy.Pattern{pattern}
	f.Fuzz(func(t *testing.T, rest string) {
		for _, command := range []string{rest, "ollim " + rest} {
			input, err := json.Marshal(map[string]string{"command": command})
			if err != nil {
				t.Fatal(err)
			}
			v := p.Decide("Bash", input)
			p.Decide("Bash", []byte(rest))
			if strings.ContainsAny(v.Reason, "\n\r") || v.Reason == "" {
				t.Fatalf("%q: reason %q", command, v.Reason)
			}
			if !v.Allow {
				continue
			}
			words := posix(command)
			if len(words) == 0 || words[0] != "ollim" {
				t.Fatalf("%q passes; the oracle reads %q", command, words)
			}
			if len(words) > 1 && (words[1] == "config" || words[1] == "" || strings.HasPrefix(words[1], "--data-dir")) {
				t.Fatalf("%q passes", command)
			}
			exactly(t, p, command, input, words)
		}
	})
}

// exactly checks that Decide read the oracle's words: the pattern made of them allows the command.
func exactly(t *testing.T, p policy.Policy, command string, input []byte, words []string) {
	text := "Bash(ollim"
	for _, w := range words[1:] {
		text += " '" + strings.ReplaceAll(w, "'", `'"'"'`) + "'"
	}
	pattern, err := policy.Parse(text + ")")
	if err != nil {
		return // too long, or with characters that no pattern may show
	}
	p.Allow = []policy.Pattern{pattern}
	if v := p.Decide("Bash", input); !v.Allow {
		t.Fatalf("%q: %s refuses: %s", command, text, v.Reason)
	}
}
