package shell_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/platform/shell"
)

// show writes commands in one line: words in <>, in $<> if they are not literal.
func show(commands []shell.Command) string {
	var all []string
	for _, c := range commands {
		text := strings.Join(c.Sets, "=,")
		if len(c.Sets) > 0 {
			text += "="
		}
		if c.In {
			text += "|"
		}
		for _, w := range c.Words {
			if !w.Literal {
				text += "$"
			}
			text += "<" + w.Text + ">"
		}
		for _, f := range c.Files {
			text += fmt.Sprintf(" %s %s", f.Op, f.To.Text)
		}
		if c.Out {
			text += "|"
		}
		all = append(all, text)
	}
	return strings.Join(all, " ; ")
}

func TestCommands(t *testing.T) {
	for text, want := range map[string]string{
		``:                           ``,
		`# nothing`:                  ``,
		`a b`:                        `<a><b>`,
		`a 'b c' "d e" f\ g`:         `<a><b c><d e><f g>`,
		`a "x\"y\\z\$w\q" 'it'\''s'`: `<a><x"y\z$w\q><it's>`,
		`a "$HOME/x" ~/y *.md`:       `<a>$<$HOME/x><~/y><*.md>`,
		`a $'b\n'`:                   `<a>$<b\n>`,
		`a && b || c; d & e`:         `<a> ; <b> ; <c> ; <d> ; <e>`,
		`a | b | c`:                  `<a>| ; |<b>| ; |<c>`,
		`(a; b) | { c; d; }`:         `<a>| ; <b>| ; |<c> ; |<d>`,
		`X=1 Y="$Z" a`:               `X=,Y=<a>`,
		`X=1; export Y=2`:            `X= ; Y=<export>`,
		`a > x 2>&1 < y`:             `<a> > x 2>& 1 < y`,
		`(cd d && a) >> log`:         `<cd><d> >> log ; <a> >> log`,
		`a <<< "b"`:                  `<a> <<< b`,
		`if a; then b; else c; fi`:   `<a> ; <b> ; <c>`,
		`time a`:                     `<a>`,
		`[[ -f x ]] && a`:            `$<[[ -f x ]]> ; <a>`,
		`for f in x; do a; done`:     `$<for f in x; do a; done>`,
		`a "x $(b | c) y"`:           `<b>| ; |<c>| ; <a>$<x $(b | c) y>`,
		`X=$(a) b <(c)`:              `<c>| ; <a>| ; X=<b>$<<(c)>`,
	} {
		commands, err := shell.Commands(text)
		if got := show(commands); err != nil || got != want {
			t.Errorf("%s\n got %s, %v\nwant %s", text, got, err, want)
		}
	}
	for _, text := range []string{`a "`, `a (`, `| a`, `if a`, strings.Repeat("a ", 20000)} {
		if _, err := shell.Commands(text); err == nil {
			t.Errorf("%.20q: no error", text)
		}
	}
}

// What may be allowed as one command is read here in the same words.
func FuzzCommands(f *testing.F) {
	for _, text := range []string{`a 'b c' "d\"e"`, `a | b`, `a "$(b)"`, `x=1 a >b`, "a <<E\nb\nE\n", `a \`, `((`, `$(`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		commands, err := shell.Commands(text)
		words, wordsErr := shell.Words(text)
		if wordsErr != nil {
			return
		}
		if err != nil || len(commands) != 1 {
			t.Fatalf("%q: %v, %v", text, commands, err)
		}
		for i, w := range commands[0].Words {
			if !w.Literal || i >= len(words) || w.Text != words[i] {
				t.Fatalf("%q: %v, want %q", text, commands, words)
			}
		}
	})
}
