package shell_test

import (
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/platform/shell"
)

func TestProgram(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		``: "", `# nothing`: "", `a b`: "a", `'a' b`: "a", `a | b`: "a", `X=1 a`: "a", `X=1; export Y=2; a`: "a", `(a; b) | c`: "a", `if a; then b; fi`: "a",
		`[[ -f x ]] && a`: "a", `for f in x; do a; done`: "a", `$X b; c`: "", `~/a b`: "", `[ -f x ] && a`: "", `a <(b) > c`: "a", `a "$(b)"`: "a",
	} {
		if got, err := shell.Program(line); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", line, got, err, want)
		}
	}
	for _, line := range []string{`a "`, `a (`, `| a`, `if a`, strings.Repeat("a ", 20000)} {
		if _, err := shell.Program(line); err == nil {
			t.Errorf("%.20q: no error", line)
		}
	}
}
