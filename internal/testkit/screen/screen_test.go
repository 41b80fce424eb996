//go:build linux

package screen_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit/screen"
)

// TestScreen: a program's lines, its wide characters and its cursor are where a person would see them.
func TestScreen(t *testing.T) {
	t.Parallel()
	s := screen.Start(t, screen.Size{Columns: 20, Rows: 4}, exec.Command("sh", "-c",
		`stty -echo; printf 'one\ntwo\n\033[1mthree\033[m\n\346\227\245\346\234\254> '; read line; printf '\033[2A\033[Kgot %s' "$line"; exit 3`))
	s.WaitFor(`(?m)^日本>$`)
	if column, row := s.Cursor(); column != 6 || row != 3 {
		t.Errorf("the cursor is at %d, %d:\n%s", column, row, s.Picture())
	}
	if !strings.Contains(s.Styled(), "\x1b[1mthree") {
		t.Errorf("three is not bold: %q", s.Styled())
	}
	s.Type("it\r")
	if status := s.Leave(); status != 3 {
		t.Errorf("exit status %d", status)
	}
	if lines := s.Lines(); lines[0] != "one" || !strings.Contains(s.Text(), "got it") {
		t.Errorf("the screen has %q", s.Lines())
	}
	if picture := s.Picture(); !strings.Contains(picture, "|one                 |\n") {
		t.Errorf("the picture:\n%s", picture)
	}
}

// TestScrolledAndResized: lines that left the screen are kept, and the program gets the new size.
func TestScrolledAndResized(t *testing.T) {
	t.Parallel()
	s := screen.Start(t, screen.Size{Columns: 30, Rows: 3}, exec.Command("sh", "-c",
		`trap 'stty size' WINCH; printf 'a\nb\nc\nd\n'; while :; do read line && exit 0; done`))
	s.WaitFor("d\n")
	if got := s.Scrolled(); !slices.Equal(got, []string{"a", "b", "c", "d"}) {
		t.Errorf("scrolled: %q", got)
	}
	s.Resize(screen.Size{Columns: 40, Rows: 5})
	s.Type("\r")
	s.WaitFor("5 40\n")
	s.Type("\r")
	if status := s.Leave(); status != 0 {
		t.Errorf("exit status %d", status)
	}
}
