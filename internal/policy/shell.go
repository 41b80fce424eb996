package policy

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// longestCommand, in bytes, and mostWords bound what is looked at: one decision stays well below a second.
const (
	longestCommand = 32 << 10
	mostWords      = 512
)

// shellWord is one word of a command, as pieces between unquoted stars.
type shellWord struct {
	wild
	bare bool // nothing in it is quoted
}

// Words splits a command into its words: one simple command of literal words, which every shell would split alike. The error
// says why it is none.
func Words(text string) ([]string, error) {
	parsed, err := splitShell(text, false)
	if err != nil {
		return nil, err
	}
	words := make([]string, len(parsed))
	for i, w := range parsed {
		words[i] = w.wild[0]
	}
	return words, nil
}

// splitShell reads one simple command. With stars, an unquoted * is a wildcard; without, it is refused.
func splitShell(text string, stars bool) ([]shellWord, error) {
	if err := plainText(text, longestCommand); err != nil {
		return nil, err
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true)).Parse(strings.NewReader(text), "")
	if err != nil {
		return nil, errors.New("the shell parser cannot read it")
	}
	call, err := simpleCommand(file)
	if err != nil {
		return nil, err
	}
	if len(call.Args) > mostWords {
		return nil, fmt.Errorf("more than %d words", mostWords)
	}
	words := make([]shellWord, len(call.Args))
	for i, arg := range call.Args {
		if words[i], err = readWord(arg, stars); err != nil {
			return nil, err
		}
	}
	if !words[0].bare || words[0].wild[0] == "" {
		return nil, errors.New("the command name must not contain quotes or wildcards")
	}
	return words, nil
}

// simpleCommand is the file's only statement, if that is a command and its words and nothing else.
func simpleCommand(file *syntax.File) (*syntax.CallExpr, error) {
	switch {
	case len(file.Last) > 0:
		return nil, errors.New("it has a comment")
	case len(file.Stmts) == 0:
		return nil, errors.New("it is empty")
	case len(file.Stmts) > 1:
		return nil, errors.New("one simple command at a time; no ; & or newline")
	}
	stmt := file.Stmts[0]
	switch {
	case len(stmt.Comments) > 0:
		return nil, errors.New("it has a comment")
	case len(stmt.Redirs) > 0:
		return nil, errors.New("no redirection")
	case stmt.Background, stmt.Coprocess, stmt.Disown, stmt.Negated, stmt.Semicolon.IsValid():
		return nil, errors.New("one simple command; no & or ; and no ! before it")
	}
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	switch {
	case !ok:
		return nil, errors.New("one simple command; no pipe, && or || or other shell construct")
	case len(call.Assigns) > 0:
		return nil, errors.New("no variable assignment")
	case len(call.Args) == 0:
		return nil, errors.New("it is empty")
	}
	return call, nil
}

func readWord(arg *syntax.Word, stars bool) (shellWord, error) {
	word := shellWord{wild: wild{""}, bare: true}
	add := func(s string) { word.wild[len(word.wild)-1] += s }
	for i, part := range arg.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			if err := bareText(part.Value, i == 0, stars); err != nil {
				return word, err
			}
			pieces := strings.Split(part.Value, "*")
			add(pieces[0])
			for _, piece := range pieces[1:] {
				word.wild = append(word.wild, piece)
				word.bare = false
			}
		case *syntax.SglQuoted:
			if part.Dollar {
				return word, errors.New("no $'…'")
			}
			word.bare = false
			add(part.Value)
		case *syntax.DblQuoted:
			text, err := doubleQuoted(part)
			if err != nil {
				return word, err
			}
			word.bare = false
			add(text)
		default:
			return word, errors.New("no substitution, expansion or pattern; put the text in single quotes if it is meant literally")
		}
	}
	return word, nil
}

// bareText checks unquoted text: only characters that mean themselves in every shell.
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

// doubleQuoted is the text between double quotes.
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
		text.WriteString(unescaped(lit.Value, "\\\"$`"))
	}
	return text.String(), nil
}

// plainText refuses what readers could disagree about: bad UTF-8, the mark that decoders put in its place, and control
// characters, newlines among them.
func plainText(s string, longest int) error {
	if len(s) > longest {
		return fmt.Errorf("longer than %d bytes", longest)
	}
	if !utf8.ValidString(s) || strings.ContainsRune(s, utf8.RuneError) {
		return errors.New("not valid UTF-8")
	}
	for _, r := range s {
		if r == '\n' || r == '\r' || r == '\u2028' || r == '\u2029' {
			return errors.New("no newline")
		}
		if unicode.IsControl(r) {
			return fmt.Errorf("no control character (%U)", r)
		}
	}
	return nil
}
