package screen

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"golang.org/x/sys/unix"

	"github.com/ollim/ollim/internal/testkit"
)

// patience is how long a test waits for the screen to change as it wants. No test depends on how long it takes.
const patience = 2 * time.Minute

// Screen is a terminal that a test looks at and types on.
type Screen struct {
	t    testing.TB
	keys *os.File
	tty  *os.File // nil once a program has it

	mu      sync.Mutex
	vt      *vt.Emulator
	raw     bytes.Buffer
	size    Size
	changed chan struct{} // closed at the next change
	over    bool          // no program has the terminal open
	ended   chan struct{} // closed when the program has ended; nil: there is none
	status  int
}

// New opens a terminal for the test itself. Where there are no pseudo-terminals the test is skipped, or fails if CI=true.
func New(t testing.TB, size Size) (s *Screen, tty *os.File) {
	t.Helper()
	keys, tty := testkit.Terminal(t)
	s = &Screen{t: t, keys: keys, tty: tty, vt: vt.NewEmulator(size.Columns, size.Rows), size: size, changed: make(chan struct{})}
	s.setSize(size)
	go s.show()
	go func() { _, _ = io.Copy(keys, s.vt) }()                     // answers of the terminal to the program's requests
	t.Cleanup(func() { _ = s.vt.InputPipe().(io.Closer).Close() }) // ends Read; the emulator's own Close is a data race with it
	return s, tty
}

// Start starts a program on a terminal of its own, which is its controlling terminal. The terminal is each of its streams that cmd
// leaves open. The program is killed at the end of the test if it still runs.
func Start(t testing.TB, size Size, cmd *exec.Cmd) *Screen {
	t.Helper()
	s, tty := New(t, size)
	if cmd.Stdin == nil {
		cmd.Stdin = tty
	}
	if cmd.Stdout == nil {
		cmd.Stdout = tty
	}
	if cmd.Stderr == nil {
		cmd.Stderr = tty
	}
	cmd.ExtraFiles = append(cmd.ExtraFiles, tty)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 2 + len(cmd.ExtraFiles)}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = tty.Close()
	s.tty, s.ended = nil, make(chan struct{})
	go func() {
		_ = cmd.Wait()
		s.mu.Lock()
		s.status = cmd.ProcessState.ExitCode()
		s.mu.Unlock()
		close(s.ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-s.ended
	})
	return s
}

// show lets the emulator interpret what is written, until every program has closed the terminal.
func (s *Screen) show() {
	p := make([]byte, 32<<10)
	for {
		n, err := s.keys.Read(p)
		s.mu.Lock()
		s.raw.Write(p[:n])
		_, _ = s.vt.Write(p[:n])
		s.over = err != nil
		close(s.changed)
		s.changed = make(chan struct{})
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// Type types keys as they are: Enter is "\r", Ctrl-A "\x01", the up arrow "\x1b[A".
func (s *Screen) Type(keys string) {
	s.t.Helper()
	if _, err := io.WriteString(s.keys, keys); err != nil {
		s.t.Fatalf("typing %q: %v\n%s", keys, err, s.Picture())
	}
}

// WaitFor waits until the screen shows a match of a regular expression, and returns it. The lines of the screen end with a newline.
func (s *Screen) WaitFor(pattern string) string {
	s.t.Helper()
	find, found := regexp.MustCompile(pattern), ""
	s.Wait("the screen shows "+pattern, func() bool {
		text := s.Text()
		at := find.FindStringIndex(text)
		if at != nil {
			found = text[at[0]:at[1]]
		}
		return at != nil
	})
	return found
}

// WaitGone waits until the screen shows no match of a regular expression.
func (s *Screen) WaitGone(pattern string) {
	s.t.Helper()
	find := regexp.MustCompile(pattern)
	s.Wait("the screen shows no "+pattern, func() bool { return !find.MatchString(s.Text()) })
}

// Wait waits until something holds, looking again each time that the screen changes.
func (s *Screen) Wait(what string, holds func() bool) {
	s.t.Helper()
	late := time.After(patience)
	for {
		s.mu.Lock()
		changed, over := s.changed, s.over
		s.mu.Unlock()
		switch {
		case holds():
			return
		case over:
			s.t.Fatalf("the program has ended, and it is not so that %s:\n%s", what, s.Picture())
		}
		select {
		case <-changed:
		case <-late:
			s.t.Fatalf("it is not so that %s:\n%s", what, s.Picture())
		}
	}
}

// Leave waits until the program has ended and all that it wrote is on the screen, and returns its exit status; -1 after a signal.
func (s *Screen) Leave() int {
	s.t.Helper()
	select {
	case <-s.ended:
	case <-time.After(patience):
		s.t.Fatalf("the program has not ended:\n%s", s.Picture())
	}
	s.Wait("the terminal is closed", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.over
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

// Resize changes the size of the terminal. The program gets SIGWINCH.
func (s *Screen) Resize(size Size) {
	s.t.Helper()
	s.mu.Lock()
	s.size = size
	s.vt.Resize(size.Columns, size.Rows)
	s.mu.Unlock()
	s.setSize(size)
}

func (s *Screen) setSize(size Size) {
	s.t.Helper()
	to := &unix.Winsize{Col: uint16(size.Columns), Row: uint16(size.Rows)}
	if err := unix.IoctlSetWinsize(int(s.keys.Fd()), unix.TIOCSWINSZ, to); err != nil {
		s.t.Fatal(err)
	}
}

// Lines returns the lines of the screen without the spaces at their ends and without the empty lines at the bottom.
func (s *Screen) Lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return linesOf(s.vt, s.size)
}

// Text returns the lines of the screen, each with a newline.
func (s *Screen) Text() string { return strings.Join(append(s.Lines(), ""), "\n") }

// Scrolled returns the lines that have left the screen at its top, and those on it.
func (s *Screen) Scrolled() (lines []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for y := range s.vt.ScrollbackLen() {
		lines = append(lines, lineOf(s.size.Columns, func(x int) string {
			return content(s.vt.ScrollbackCellAt(x, y))
		}))
	}
	return append(lines, linesOf(s.vt, s.size)...)
}

// Cursor returns where the cursor is, from 0.
func (s *Screen) Cursor() (column, row int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.vt.CursorPosition()
	return at.X, at.Y
}

// Styled returns the screen with the sequences for colour and attributes.
func (s *Screen) Styled() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.vt.Render()
}

// Raw returns every byte that was written to the terminal.
func (s *Screen) Raw() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.raw.String()
}

// Picture returns the screen in a frame, with the cursor's place, for messages about failures.
func (s *Screen) Picture() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.vt.CursorPosition()
	edge := "+" + strings.Repeat("-", s.size.Columns) + "+\n"
	var picture strings.Builder
	picture.WriteString(edge)
	for y := range max(len(linesOf(s.vt, s.size)), at.Y+1) {
		line := "|" + strings.Join(slices.Collect(func(yield func(string) bool) {
			for x := range s.size.Columns {
				if !yield(content(s.vt.CellAt(x, y))) {
					return
				}
			}
		}), "") + "|"
		picture.WriteString(line + "\n")
		if y == at.Y {
			picture.WriteString(" " + strings.Repeat(" ", at.X) + "^\n")
		}
	}
	return picture.String() + edge + fmt.Sprintf("the cursor is in column %d of row %d\n", at.X, at.Y)
}
