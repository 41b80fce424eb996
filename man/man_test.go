package man_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit"
	"github.com/ollim/ollim/man"
)

// pages are the pages that match a pattern; those of sections 5 and 7 are written by hand.
func pages(t *testing.T, pattern string) map[string]string {
	t.Helper()
	names, err := fs.Glob(man.Pages(), pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: no pages, %v", pattern, err)
	}
	found := map[string]string{}
	for _, name := range names {
		text, err := fs.ReadFile(man.Pages(), name)
		if err != nil {
			t.Fatal(err)
		}
		found[name] = string(text)
	}
	return found
}

// TestLint has the hand-written pages judged by mandoc.
func TestLint(t *testing.T) {
	testkit.Program(t, "mandoc", "mandoc")
	for name := range pages(t, "*.[57]") {
		if out, err := exec.Command("mandoc", "-T", "lint", "-W", "warning", name).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%v\n%s", err, out)
		}
	}
}

// TestReferences finds pages of ours that are referred to and do not exist, and lists under SEE ALSO that are not in order.
func TestReferences(t *testing.T) {
	all := pages(t, "*.[157]")
	reference := regexp.MustCompile(`^\.BR (ollim\S*) \((\d)\)`)
	for name, text := range pages(t, "*.[57]") {
		_, last, found := strings.Cut(text, ".SH SEE ALSO\n")
		if !found {
			t.Errorf("%s has no SEE ALSO", name)
		}
		for line := range strings.Lines(text) {
			if m := reference.FindStringSubmatch(line); m != nil {
				if to := strings.ReplaceAll(m[1], `\-`, "-") + "." + m[2]; all[to] == "" {
					t.Errorf("%s refers to %s", name, to)
				}
			}
		}
		if lines := strings.Split(strings.TrimSpace(last), "\n"); !slices.IsSortedFunc(lines, bySection) {
			t.Errorf("%s: SEE ALSO is not in order of sections and names", name)
		}
	}
	for name := range pages(t, "ollim-*.[57]") {
		stem := strings.ReplaceAll(strings.TrimSuffix(name, path.Ext(name)), "-", `\-`)
		if _, last, _ := strings.Cut(all["ollim.7"], ".SH SEE ALSO\n"); !strings.Contains(last, ".BR "+stem+" ("+path.Ext(name)[1:]+")") {
			t.Errorf("ollim.7 does not see %s", name)
		}
	}
}

func bySection(a, b string) int {
	key := func(line string) string {
		name, number, _ := strings.Cut(strings.TrimPrefix(line, ".BR "), " (")
		return number[:1] + name
	}
	return strings.Compare(key(a), key(b))
}

// TestSecurity: each test that ollim-security(7) names for a claim is there.
func TestSecurity(t *testing.T) {
	text := pages(t, "ollim-security.7")["ollim-security.7"]
	claims := regexp.MustCompile(`\[([^\[\]]*: Test[^\[\]]*)\]`).FindAllStringSubmatch(text, -1)
	if len(claims) < 30 {
		t.Errorf("only %d claims", len(claims))
	}
	for _, claim := range claims {
		for part := range strings.SplitSeq(claim[1], ";") {
			dir, names, _ := strings.Cut(strings.TrimSpace(part), ": ")
			files, err := filepath.Glob(filepath.Join("..", dir, "*_test.go"))
			if err != nil || len(files) == 0 {
				t.Errorf("%s has no tests, %v", dir, err)
			}
			var code strings.Builder
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				code.Write(text)
			}
			for name := range strings.SplitSeq(names, ",") {
				if !strings.Contains(code.String(), "\nfunc "+strings.TrimSpace(name)+"(t ") {
					t.Errorf("%s has no %s", dir, strings.TrimSpace(name))
				}
			}
		}
	}
}
