// Package shell parses the text of shell commands: as the words of one command that every shell reads alike, and as a line whose first
// program can be named. It also writes words for them. It executes nothing and expands nothing.
package shell

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"github.com/ollim/ollim/internal/platform/plaintext"
)

// longest (bytes) and mostWords limit the text that is parsed, so that parsing takes well below a second.
const (
	longest   = 32 << 10
	mostWords = 512
)

// Quote returns a word as every shell reads it literally.
func Quote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// Words splits a text into the words of one simple command with literal words, which every shell would split alike. The error says why
// the text is not such a command.
func Words(text string) ([]string, error) {
	parsed, err := Patterns(text, false)
	if err != nil {
		return nil, err
	}
	words := make([]string, len(parsed))
	for i, pieces := range parsed {
		words[i] = pieces[0]
	}
	return words, nil
}

// Patterns parses one simple command whose words may have wildcards. It returns for each word the pieces between its unquoted stars.
// Without stars an unquoted * is an error. The first word must be unquoted and have one piece.
func Patterns(text string, stars bool) ([][]string, error) {
	if err := plaintext.Check(text, longest); err != nil {
		return nil, err
	}
	file, err := parse(text)
	if err != nil {
		return nil, err
	}
	call := simpleCommand(file)
	switch {
	case strings.TrimSpace(text) == "":
		return nil, errors.New("it is empty")
	case call == nil:
		return nil, errors.New("one simple command: no pipe, redirection, variable assignment, comment, newline, ! ; or &")
	case len(call.Args) > mostWords:
		return nil, fmt.Errorf("more than %d words", mostWords)
	}
	words := make([][]string, len(call.Args))
	for i, arg := range call.Args {
		if words[i], err = readWord(arg, stars); err != nil {
			return nil, err
		}
	}
	if lit, bare := call.Args[0].Parts[0].(*syntax.Lit); !bare || len(call.Args[0].Parts) > 1 || lit.Value != words[0][0] {
		return nil, errors.New("the command name must not contain quotes or wildcards")
	}
	return words, nil
}

// Program returns the name of the program that a shell line starts first; "" if the line does not name it literally. Use it to find
// mistakes in what a person wrote, not to allow anything. The error says why a shell cannot parse the line; a line of more than 32 KiB is
// an error too.
func Program(line string) (name string, err error) {
	if len(line) > longest {
		return "", fmt.Errorf("longer than %d bytes", longest)
	}
	file, err := parse(line)
	if err != nil {
		return "", err
	}
	found := false
	syntax.Walk(file, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.CallExpr); ok && !found && len(call.Args) > 0 {
			found = true
			if pieces, err := readWord(call.Args[0], false); err == nil {
				name = pieces[0]
			}
		}
		return !found
	})
	return name, nil
}

func parse(text string) (*syntax.File, error) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true)).Parse(strings.NewReader(text), "")
	if err != nil {
		return nil, errors.New("the shell parser cannot read it")
	}
	return file, nil
}

// simpleCommand returns the only statement of a file, if that is a command with words and nothing else.
func simpleCommand(file *syntax.File) *syntax.CallExpr {
	if len(file.Stmts) != 1 || len(file.Last) > 0 {
		return nil
	}
	stmt := file.Stmts[0]
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	if !ok || len(stmt.Comments) > 0 || len(stmt.Redirs) > 0 || stmt.Background || stmt.Coprocess || stmt.Disown || stmt.Negated ||
		stmt.Semicolon.IsValid() || len(call.Assigns) > 0 || len(call.Args) == 0 {
		return nil
	}
	return call
}

// readWord returns the pieces of a word between its unquoted stars.
func readWord(arg *syntax.Word, stars bool) ([]string, error) {
	pieces := []string{""}
	for _, part := range arg.Parts {
		text, err := "", error(nil)
		switch part := part.(type) {
		case *syntax.Lit:
			begin, more, found := strings.Cut(part.Value, "*")
			err = bareText(part.Value, len(pieces) == 1 && pieces[0] == "", stars) // zsh expands the word ''=ls too
			for text = begin; found; text = begin {
				pieces[len(pieces)-1] += text
				pieces = append(pieces, "")
				begin, more, found = strings.Cut(more, "*")
			}
		case *syntax.SglQuoted:
			if text = part.Value; part.Dollar {
				err = errors.New("no $'…'")
			}
		case *syntax.DblQuoted:
			text, err = doubleQuoted(part)
		default:
			err = errors.New("no substitution, expansion or pattern; put the text in single quotes if it is meant literally")
		}
		if err != nil {
			return nil, err
		}
		pieces[len(pieces)-1] += text
	}
	return pieces, nil
}

// bareText returns an error if unquoted text has a character that is special in any shell.
func bareText(s string, first, stars bool) error {
	if first && strings.HasPrefix(s, "=") {
		return errors.New("a word that begins with = must be quoted")
	}
	for _, r := range s {
		if (r == '*' && stars) || strings.ContainsRune("_./:,@%+=-", r) || (r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r))) {
			continue
		}
		return fmt.Errorf("put the word with %q in single quotes", r)
	}
	return nil
}

// doubleQuoted returns the text between double quotes.
func doubleQuoted(q *syntax.DblQuoted) (string, error) {
	if q.Dollar {
		return "", errors.New(`no $"…"`)
	}
	var text strings.Builder
	for _, part := range q.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok {
			return "", errors.New("no substitution or expansion in double quotes; use single quotes if it is meant literally")
		}
		if strings.ContainsAny(strings.NewReplacer(`\\`, "", `\$`, "", "\\`", "").Replace(lit.Value), "$`") {
			return "", errors.New("no $ or ` in double quotes; use single quotes if it is meant literally")
		}
		text.WriteString(unescaped(lit.Value))
	}
	return text.String(), nil
}

// unescaped removes backslashes that quote a character between double quotes.
func unescaped(s string) string {
	var text strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && strings.IndexByte("\\\"$`\n", s[i+1]) >= 0 {
			if i++; s[i] == '\n' {
				continue
			}
		}
		text.WriteByte(s[i])
	}
	return text.String()
}
