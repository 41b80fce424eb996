package shell

import (
	"errors"
	"fmt"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Command is one command of a shell text, as Commands finds it.
type Command struct {
	Words []Word   // none when it only sets variables
	Sets  []string // names of variables that it sets, or that are set for it
	In    bool     // its standard input is a pipe
	Out   bool     // its standard output is a pipe, or what the shell fills in elsewhere
	Files []redirect
}

// Word is one word of a command.
type Word struct {
	Text    string // without quotes; what the shell would fill in stands as it was written
	Literal bool   // the shell fills in nothing
}

// redirect is one redirection of a command, or of a group that it stands in.
type redirect struct {
	Op string // ">>", or with a descriptor "2>"
	To Word
}

// Commands lists the simple commands of a shell text, for those who want to know what a text does that a person wrote; it is
// no ground for allowing one. They come in their order, those of pipes, lists, groups and conditions alike, a command
// substitution before the command that uses it. What is none of these (a loop, a test in double brackets) is one word that is
// not literal. The error says why the text cannot be read; longer than 32 KiB is one reason.
func Commands(text string) ([]Command, error) {
	if len(text) > longest {
		return nil, fmt.Errorf("longer than %d bytes", longest)
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return nil, errors.New("the shell parser cannot read it")
	}
	l := lister{text: text}
	l.list(file.Stmts, Command{})
	return l.found, nil
}

// lister collects commands. What it hands down is a Command without words: what holds for all within a group.
type lister struct {
	text  string
	found []Command
}

func (l *lister) list(stmts []*syntax.Stmt, around Command) {
	for _, s := range stmts {
		l.stmt(s, around)
	}
}

func (l *lister) stmt(s *syntax.Stmt, around Command) {
	around.Files = l.files(s.Redirs, around.Files)
	for _, r := range s.Redirs {
		l.within(r.Word)
	}
	switch cmd := s.Cmd.(type) {
	case nil:
		l.found = append(l.found, around)
	case *syntax.CallExpr:
		l.call(cmd, around)
	case *syntax.DeclClause:
		around.Words, around.Sets = []Word{{cmd.Variant.Value, true}}, l.names(cmd.Args)
		l.values(cmd.Args)
		l.found = append(l.found, around)
	case *syntax.BinaryCmd:
		left, right := around, around
		if cmd.Op == syntax.Pipe || cmd.Op == syntax.PipeAll {
			left.Out, right.In = true, true
		}
		l.stmt(cmd.X, left)
		l.stmt(cmd.Y, right)
	case *syntax.Subshell:
		l.list(cmd.Stmts, around)
	case *syntax.Block:
		l.list(cmd.Stmts, around)
	case *syntax.TimeClause:
		if cmd.Stmt != nil {
			l.stmt(cmd.Stmt, around)
		}
	case *syntax.IfClause:
		for c := cmd; c != nil; c = c.Else {
			l.list(c.Cond, around)
			l.list(c.Then, around)
		}
	default:
		around.Words = []Word{{l.source(cmd), false}}
		l.found = append(l.found, around)
	}
}

func (l *lister) call(call *syntax.CallExpr, around Command) {
	around.Sets = l.names(call.Assigns)
	for _, arg := range call.Args {
		around.Words = append(around.Words, l.word(arg))
		l.within(arg)
	}
	l.values(call.Assigns)
	l.found = append(l.found, around)
}

func (l *lister) values(assigns []*syntax.Assign) {
	for _, a := range assigns {
		l.within(a.Value)
	}
}

// within lists the commands whose output the shell fills in.
func (l *lister) within(w *syntax.Word) {
	if w == nil {
		return
	}
	syntax.Walk(w, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			l.list(n.Stmts, Command{Out: true})
			return false
		case *syntax.ProcSubst:
			l.list(n.Stmts, Command{Out: n.Op == syntax.CmdIn, In: n.Op == syntax.CmdOut})
			return false
		}
		return true
	})
}

func (l *lister) names(assigns []*syntax.Assign) (names []string) {
	for _, a := range assigns {
		if a.Name != nil {
			names = append(names, a.Name.Value)
		}
	}
	return names
}

func (l *lister) files(redirs []*syntax.Redirect, around []redirect) []redirect {
	files := append([]redirect{}, around...)
	for _, r := range redirs {
		op := r.Op.String()
		if r.N != nil {
			op = r.N.Value + op
		}
		if r.Word != nil {
			files = append(files, redirect{op, l.word(r.Word)})
		}
	}
	return files
}

func (l *lister) source(n syntax.Node) string {
	return l.text[n.Pos().Offset():n.End().Offset()]
}

func (l *lister) word(w *syntax.Word) Word {
	var text strings.Builder
	literal := l.parts(w.Parts, "", &text)
	return Word{text.String(), literal}
}

// parts writes the parts of a word, in which a backslash quotes as unescaped says, and reports whether they are literal.
func (l *lister) parts(parts []syntax.WordPart, only string, text *strings.Builder) bool {
	literal := true
	for _, part := range parts {
		switch part := part.(type) {
		case *syntax.Lit:
			text.WriteString(unescaped(part.Value, only))
		case *syntax.SglQuoted:
			literal = literal && !part.Dollar
			text.WriteString(part.Value)
		case *syntax.DblQuoted:
			literal = l.parts(part.Parts, "\\\"$`\n", text) && literal && !part.Dollar
		default:
			literal = false
			text.WriteString(l.source(part))
		}
	}
	return literal
}

// unescaped takes away the backslashes that quote: those before one of only, or before anything if that is "".
func unescaped(s, only string) string {
	var text strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && (only == "" || strings.IndexByte(only, s[i+1]) >= 0) {
			if i++; s[i] == '\n' {
				continue
			}
		}
		text.WriteByte(s[i])
	}
	return text.String()
}
