package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
	"github.com/ollim/ollim/internal/testkit/screen"
)

// onScreen starts a command on a terminal of so many columns.
func (c *command) onScreen(columns int, args ...string) *screen.Screen {
	c.t.Helper()
	cmd := c.cmd(args...)
	cmd.Env = append([]string{"TERM=xterm-256color"}, cmd.Env...)
	return screen.Start(c.t, screen.Size{Columns: columns, Rows: 24}, cmd)
}

// talker is a prompt of chat, and the model that answers at it.
type talker struct {
	*screen.Screen
	*command
	api *anthropicapi.Server
}

// talk starts chat before a model whose answer to each message is "Answer N."
func talk(t *testing.T, columns int, env ...string) talker {
	t.Helper()
	c, api := withNative(t)
	c.env = append(c.env, env...)
	n := 0
	api.Handle(func(anthropicapi.Request) anthropicapi.Reply {
		n++
		return anthropicapi.Reply{Text: "Answer " + string(rune('0'+n)) + "."}
	})
	return talker{c.again(columns), c, api}
}

// again starts chat once more.
func (c *command) again(columns int) *screen.Screen {
	s := c.onScreen(columns, "chat")
	s.WaitFor(`(?m)^>$`)
	return s
}

// asked returns the latest message that the model got, and its number.
func (p talker) asked() string {
	requests := p.api.Requests()
	text := strings.TrimSpace(requests[len(requests)-1].LastUserText())
	return text[strings.LastIndex(text, "\n\n")+1:]
}

// leave ends the loop with Ctrl-D and looks that nothing is left of the prompt.
func (p talker) leave() {
	p.t.Helper()
	p.WaitFor(`(?m)^>$`)
	p.Type("\x04")
	if status := p.Leave(); status != 0 {
		p.t.Errorf("exit status %d", status)
	}
	if lines := p.Lines(); lines[len(lines)-1] == ">" {
		p.t.Errorf("the prompt is left:\n%s", p.Picture())
	}
}

// TestCursorAtThePrompt: the cursor is where it seems to be, whatever characters are before it.
func TestCursorAtThePrompt(t *testing.T) {
	t.Parallel()
	const left = "\x1b[D"
	for name, c := range map[string]struct {
		typed, want string
		column      int
	}{
		"wide":         {"日本語テスト\x7f\x7f\x01ab", "ab日本語テ", 4},
		"combining":    {"e\u0301e\u0301x\x7f\x7fy", "e\u0301y", 4},
		"emoji":        {"a👩‍👩‍👧b" + left + left + "c\x1b[F!", "ac👩‍👩‍👧b!", 8},
		"flags":        {"🇩🇪🇯🇵\x7fx", "🇩🇪x", 5},
		"words":        {"one two three\x1bb\x1bbX\x1bd\x1bfY", "one X threeY", 14},
		"killed":       {"one two three\x17\x19\x19\x01\x0b\x19!", "one two threethree!", 21},
		"to the begin": {"abc def\x15ghi", "ghi", 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := talk(t, 40)
			p.Type(c.typed)
			p.Wait("the prompt shows "+c.want, func() bool {
				lines := p.Lines()
				column, row := p.Cursor()
				return len(lines) > 0 && lines[len(lines)-1] == "> "+c.want && column == c.column && row == len(lines)-1
			})
			p.Type("\r")
			p.WaitFor(`Answer 1\.`)
			if got := strings.TrimSpace(p.asked()); got != c.want {
				t.Errorf("the model got %q, want %q", got, c.want)
			}
			p.leave()
		})
	}
}

// TestLongInputWraps: a text longer than a row is shown in several, and edited in them.
func TestLongInputWraps(t *testing.T) {
	t.Parallel()
	for _, columns := range []int{40, 60, 80} {
		p := talk(t, columns)
		text := strings.Repeat("日本語 abc ", 12) // 120 columns
		p.Type(text + "end\x01\x1b[3~\x05!")
		want := []rune(text + "end!")[1:]
		p.Wait("the text is shown as a whole", func() bool {
			var shown strings.Builder
			for _, line := range p.Lines()[1:] { // below the remark
				shown.WriteString(strings.TrimPrefix(strings.TrimPrefix(line, "> "), "  "))
			}
			return strings.ReplaceAll(shown.String(), " ", "") == strings.ReplaceAll(string(want), " ", "")
		})
		for _, line := range p.Lines()[2:] {
			if !strings.HasPrefix(line, "  ") {
				t.Errorf("%d columns: the row %q is not below the text:\n%s", columns, line, p.Picture())
			}
		}
		p.Type("\r")
		p.WaitFor(`Answer 1\.`)
		if got := strings.TrimSpace(p.asked()); got != string(want) {
			t.Errorf("the model got %q", got)
		}
		p.leave()
	}
}

// TestSeveralLines: Alt-Enter, a backslash and a pasted text make a message of several lines, which Enter sends as one.
func TestSeveralLines(t *testing.T) {
	t.Parallel()
	p := talk(t, 60)
	p.Type("one\\\rtwo\x1b\r\x1b[200~three\r\n\tfour\x1b[201~")
	p.WaitFor(`(?m)^> one\n  two\n  three\n   four$`)
	p.Type("\x1b[A\x1b[A!\r")
	p.WaitFor(`Answer 1\.`)
	if got := p.asked(); !strings.HasSuffix(got, "one\ntwo!\nthree\n\tfour") {
		t.Errorf("the model got %q", got)
	}
	p.leave()
}

// TestHistoryAcrossStarts: what was entered comes back with the arrows and with Ctrl-R in another process, from a file that only the
// owner can read. It has no secrets.
func TestHistoryAcrossStarts(t *testing.T) {
	t.Parallel()
	p := talk(t, 60)
	if err := os.MkdirAll(filepath.Join(p.data, ".config/ollim"), 0o700); err != nil {
		t.Fatal(err)
	}
	p.write(".config/ollim/secrets.env", "engine.OPENAI_API_KEY=hidden-value-1\n")
	for i, line := range []string{"first one", "the key is hidden-value-1", "second two", "/help"} {
		p.Type(line + "\r")
		p.WaitFor([]string{`Answer 1`, `Answer 2`, `Answer 3`, `//TEXT`}[i])
		p.WaitFor(`(?m)^>$`)
	}
	p.leave()
	path := filepath.Join(p.data, "state/chat_history.jsonl")
	data, err := os.ReadFile(path)
	if want := "\"first one\"\n\"second two\"\n\"/help\"\n"; err != nil || string(data) != want {
		t.Errorf("the history is %q, %v, want %q", data, err, want)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	p.Screen = p.again(60)
	p.Type("draft\x1b[A\x1b[A")
	p.WaitFor(`(?m)^> second two$`)
	p.Type("\x1b[B\x1b[B")
	p.WaitFor(`(?m)^> draft$`)
	p.Type("\x15\x12o")
	p.WaitFor(`(?m)^\(search\) o: second two$`)
	p.Type("ne")
	p.WaitFor(`(?m)^\(search\) one: first one$`)
	p.Type("\x07")
	p.WaitFor(`(?m)^>$`)
	p.Type("\x12o\x12")
	p.WaitFor(`(?m)^\(search\) o: first one$`)
	p.Type("\x05!\r")
	p.WaitFor(`Answer 4`)
	if got := p.asked(); !strings.HasSuffix(got, "first one!") {
		t.Errorf("the model got %q", got)
	}
	p.leave()
}

// TestEditorAtThePrompt: Ctrl-X Ctrl-E edits the text in $EDITOR, which has the terminal to itself, and Enter sends what comes back.
func TestEditorAtThePrompt(t *testing.T) {
	t.Parallel()
	p := talk(t, 60, "EDITOR=sh editor")
	editor := "printf 'in the editor: '; read line; { cat \"$1\"; echo; echo \"$line\"; } > new; mv new \"$1\"\n"
	if err := os.WriteFile(filepath.Join(p.data, "editor.sh"), []byte(editor), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Type("exit\r")
	p.Leave()
	p.env = []string{"EDITOR=sh " + filepath.Join(p.data, "editor.sh"), "TMPDIR=" + p.data}
	p.Screen = p.again(60)
	p.Type("begun\x18\x05")
	p.WaitFor(`(?m)^in the editor:`)
	p.Type("and ended\r")
	p.WaitFor(`(?m)^> begun\n  and ended$`)
	p.Type(" well\r")
	p.WaitFor(`Answer 1`)
	if got := p.asked(); !strings.HasSuffix(got, "begun\nand ended well") {
		t.Errorf("the model got %q", got)
	}
	if left, err := filepath.Glob(filepath.Join(p.data, "ollim-chat-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
	p.leave()
}

// TestStatusLineOfATurn: while a turn runs, a line below the text says what it does and costs. What is typed ahead stays, a resize
// spoils nothing, and at the end nothing is left of the line.
func TestStatusLineOfATurn(t *testing.T) {
	t.Parallel()
	p := talk(t, 60)
	hold, said := make(chan struct{}), make(chan struct{})
	p.write("notes.txt", "seen\n")
	p.api.Handle(func(r anthropicapi.Request) anthropicapi.Reply {
		if len(r.ToolResults()) == 0 {
			return anthropicapi.Reply{Text: "I look.", ToolUses: []anthropicapi.ToolUse{{Name: "list_reminders"}}}
		}
		close(said)
		return anthropicapi.Reply{Text: strings.Repeat("some more words ", 8) + "**end**.", Hold: hold}
	})
	p.Type("look\r")
	<-said
	p.WaitFor(`(?m)^  I look\.\nchat  \d+s  [\d.]+k? tokens  \$\d.\d\d\n>$`)
	p.Type("typed ahead")
	p.WaitFor(`(?m)^chat  \d+s  .*\n> typed ahead$`)
	for _, columns := range []int{40, 80, 50} {
		p.Resize(screen.Size{Columns: columns, Rows: 20})
		p.Type("!")
		p.WaitFor(`(?m)^  I look\.\nchat  \d+s  .*\n> typed ahead!+$`)
	}
	p.Type("\x7f\x7f\x7f")
	close(hold)
	p.WaitFor(`words end\.\n  [\d.]+m?s, [\d.]+k? tokens, \$\d\.\d\d\n> typed ahead\n`)
	p.WaitGone(`(?m)^chat  \d`)
	if want := []string{"  I look.", "  some more words some more words some more words",
		"  some more words some more words some more words", "  some more words some more words end."}; !slices.Equal(p.Lines()[2:6], want) {
		t.Errorf("the answer is not wrapped:\n%s", p.Picture())
	}
	if !regexp.MustCompile(`\x1b\[1m ?end\x1b\[(0;|)m`).MatchString(p.Styled()) {
		t.Errorf("end is not bold: %q", p.Styled())
	}
	p.Type("\x03")
	p.leave()
}

// TestStatusLineOfOneTurn: chat TEXT, ask and fire have the line, too; a quiet command has none.
func TestStatusLineOfOneTurn(t *testing.T) {
	t.Parallel()
	c, api := withNative(t)
	c.write("routines/daily-market.md", daily)
	for _, args := range [][]string{{"chat", "hello"}, {"ask", "hello"}, {"fire", "daily"}, {"-q", "ask", "hello"}} {
		hold, asked := make(chan struct{}), make(chan struct{}, 9)
		api.Handle(func(anthropicapi.Request) anthropicapi.Reply {
			asked <- struct{}{}
			return anthropicapi.Reply{Text: "One *two* three.", Hold: hold}
		})
		s := c.onScreen(50, args...)
		<-asked
		if args[0] != "-q" {
			s.WaitFor(`(?m)^(chat|ask|daily)  \d+s`)
		}
		close(hold)
		if status := s.Leave(); status != 0 {
			t.Errorf("%q: exit status %d:\n%s", args, status, s.Picture())
		}
		text := s.Text()
		if args[0] != "fire" && !strings.HasPrefix(text, "One two three.\n") {
			t.Errorf("%q:\n%s", args, s.Picture())
		}
		if regexp.MustCompile(`(?m)^(chat|ask|daily)  \d`).MatchString(text) || args[0] == "-q" && text != "One two three.\n" {
			t.Errorf("%q left the line behind:\n%s", args, s.Picture())
		}
	}
}

const markdown = "# Title\n\nSome **bold** text and `code`.\n\n- item\n"

// TestNoStyles: NO_COLOR and chat.markdown: off show Markdown as it was written.
func TestNoStyles(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*command){
		"NO_COLOR": func(c *command) { c.env = append(c.env, "NO_COLOR=1") },
		"off":      func(c *command) { c.ok("config", "set", "chat.markdown", "off") },
	} {
		c, api := withNative(t)
		api.Handle(func(anthropicapi.Request) anthropicapi.Reply { return anthropicapi.Reply{Text: markdown} })
		set(c)
		p := talker{c.again(60), c, api}
		p.Type("go\r")
		p.WaitFor(`(?m)^> go\n  # Title\n\n  Some \*\*bold\*\* text and ` + "`code`" + `\.\n\n  - item\n  .*\$.*\n>$`)
		if attributes := regexp.MustCompile(`\x1b\[\d*m`).FindString(p.Raw()); name == "NO_COLOR" && attributes != "" {
			t.Errorf("NO_COLOR, and the terminal gets %q", attributes)
		}
		p.leave()
	}
}

// TestDumbTerminal: a terminal without control sequences gets none, and the prompt works.
func TestDumbTerminal(t *testing.T) {
	t.Parallel()
	p := talk(t, 60, "TERM=dumb")
	p.Type("hello\r")
	p.WaitFor(`(?m)^/help lists the commands; Ctrl-D leaves\n> hello\n  Answer 1\.\n  .*\$.*\n>$`)
	p.Type("more\r")
	p.WaitFor(`(?m)^> more\n  Answer 2\.\n  .*\$.*\n>$`)
	p.Type("exit\r")
	if status := p.Leave(); status != 0 || strings.Contains(p.Raw(), "\x1b") {
		t.Errorf("exit status %d, the terminal got %q", status, p.Raw())
	}
}

// TestPipesGetTheTextAsItIs: neither the prompt's styles nor its rows reach a pipe, whatever the other streams are.
func TestPipesGetTheTextAsItIs(t *testing.T) {
	t.Parallel()
	c, api := withNative(t)
	long := markdown + strings.Repeat("word ", 60) + "\n\n| a | b |\n|---|---|\n| 1 | 2 |"
	api.Handle(func(anthropicapi.Request) anthropicapi.Reply { return anthropicapi.Reply{Text: long} })
	for _, args := range [][]string{{"chat", "hello"}, {"ask", "hello"}} {
		var out bytes.Buffer
		cmd := c.cmd(args...)
		cmd.Env = append(cmd.Env, "TERM=xterm-256color")
		cmd.Stdout = &out
		s := screen.Start(t, screen.Size{Columns: 40, Rows: 10}, cmd)
		s.Leave()
		if out.String() != long+"\n" {
			t.Errorf("%q: the pipe got %q", args, out.String())
		}
		if piped := c.ok(args...); piped != long+"\n" {
			t.Errorf("%q: without a terminal: %q", args, piped)
		}
	}
}

// TestRemarksAtThePrompt: the prompt says how to get help and how to leave, and after a turn what it took, faintly; a quiet one does not.
// The list of commands leaves the answer before it on the screen.
func TestRemarksAtThePrompt(t *testing.T) {
	t.Parallel()
	p := talk(t, 80)
	p.Type("hello\r")
	p.WaitFor(`(?m)^/help lists the commands; Ctrl-D leaves\n> hello\n  Answer 1\.\n  [\d.]+m?s, [\d.]+k? tokens, \$\d\.\d\d\n>$`)
	for _, faint := range []string{`/help lists`, `  [\d.]+m?s, `} {
		if !regexp.MustCompile(`\x1b\[2m` + faint).MatchString(p.Styled()) {
			t.Errorf("%s is not faint: %q", faint, p.Styled())
		}
	}
	p.Type("/help\r")
	p.WaitFor(`(?m)^//TEXT +a message .*\n>$`)
	if !strings.Contains(p.Text(), "  Answer 1.\n") || strings.Count(p.Text(), "\n") > 17 {
		t.Errorf("the list is long:\n%s", p.Picture())
	}
	p.leave()
	quiet := p.onScreen(80, "-q", "chat")
	quiet.WaitFor(`(?m)\A>$`)
	quiet.Type("hello\r")
	quiet.WaitFor(`(?m)\A> hello\n  Answer 2\.\n>$`)
}

// TestSuspendAtThePrompt: Ctrl-Z stops chat and gives the terminal back as it was; when chat continues, the prompt has what was typed.
func TestSuspendAtThePrompt(t *testing.T) {
	t.Parallel()
	p := talk(t, 60)
	p.leave()
	cmd := p.cmd()
	cmd.Path, cmd.Args = "/bin/bash", []string{"bash", "-c", `set -m; "$0" chat; echo "stopped $?"; read line; fg >/dev/null; echo "left $?"`, p.path}
	cmd.Env = append([]string{"TERM=xterm-256color"}, cmd.Env...)
	p.Screen = screen.Start(t, screen.Size{Columns: 60, Rows: 24}, cmd)
	p.WaitFor(`(?m)^>$`)
	p.Type("draft\x1a")
	p.WaitFor(`(?m)^stopped 148$`)
	p.WaitGone(`(?m)^> draft$`)
	p.Type("to the shell")
	p.WaitFor(`(?m)^to the shell$`) // which the terminal shows itself
	p.Type("\r")
	p.WaitFor(`(?m)^> draft$`)
	p.Type("!\r")
	p.WaitFor(`Answer 1`)
	if got := p.asked(); !strings.HasSuffix(got, "draft!") {
		t.Errorf("the model got %q", got)
	}
	p.Type("\x04")
	p.WaitFor(`(?m)^left 0$`)
}
