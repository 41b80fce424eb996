package shell

import (
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// FilterPrograms returns the programs and builtins that a filter may use: those that read text and print text, with no memory and no clock.
func FilterPrograms() []string {
	return strings.Fields("awk basename break cat continue cut dirname echo egrep exit expr false fgrep fold grep head jq local nl paste " +
		"printf read return rev sed set shift sort tail test tr true uniq wc [ :")
}

// Filter returns an error that says why a text is no filter: a POSIX shell script that reads its arguments and exits. A filter starts only
// FilterPrograms and functions of its own, makes no file and looks at none, and leaves nothing running. That keeps mistakes out; what the
// programs themselves may do is for a seal to decide. literals are the texts that the filter names, without expansions.
func Filter(text string) (literals []string, err error) {
	if len(text) > longest {
		return nil, fmt.Errorf("it is longer than %d bytes", longest)
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(text), "")
	if err != nil {
		return nil, fmt.Errorf("the shell cannot read it: %w", err)
	}
	f := &filterCheck{programs: FilterPrograms()}
	syntax.Walk(file, func(n syntax.Node) bool {
		if d, is := n.(*syntax.FuncDecl); is {
			f.programs = append(f.programs, d.Name.Value)
		}
		return true
	})
	syntax.Walk(file, func(n syntax.Node) bool { f.see(n); return f.err == nil })
	if f.err == nil && len(file.Stmts) == 0 {
		f.err = fmt.Errorf("it has no command")
	}
	return f.literals, f.err
}

// filterCheck looks at the parts of a script.
type filterCheck struct {
	programs []string
	literals []string
	err      error
}

func (f *filterCheck) see(n syntax.Node) {
	wrong := func(format string, args ...any) {
		if f.err == nil {
			f.err = fmt.Errorf(format, args...)
		}
	}
	switch n := n.(type) {
	case *syntax.Stmt:
		if n.Background || n.Coprocess || n.Disown {
			wrong("it starts a command in the background")
		}
	case *syntax.Redirect:
		target, _ := literal(n.Word)
		here := n.Op == syntax.Hdoc || n.Op == syntax.DashHdoc
		if !here && n.Op != syntax.DplOut && target != "/dev/null" {
			wrong("it reads or writes a file by a redirection: its input are its arguments, as in printf '%%s\\n' \"$1\" | grep x")
		}
	case *syntax.CallExpr:
		f.call(n, wrong)
	case *syntax.ProcSubst:
		wrong("it has a process substitution")
	case *syntax.Lit:
		f.literals = append(f.literals, n.Value)
	case *syntax.SglQuoted:
		f.literals = append(f.literals, n.Value)
	}
}

// call checks a command.
func (f *filterCheck) call(n *syntax.CallExpr, wrong func(string, ...any)) {
	for _, a := range n.Assigns {
		if a.Name != nil && slices.Contains([]string{"PATH", "ENV"}, a.Name.Value) {
			wrong("it sets %s", a.Name.Value)
		}
	}
	if len(n.Args) == 0 {
		return
	}
	name, is := literal(n.Args[0])
	switch {
	case !is:
		wrong("it starts a program whose name is not a plain word")
	case !slices.Contains(f.programs, name):
		wrong("it starts %s: it may only use %s", name, strings.Join(FilterPrograms(), " "))
	}
	for _, arg := range n.Args[1:] {
		text, _ := literal(arg)
		switch {
		case name == "awk" && (strings.Contains(text, "system(") || strings.Contains(text, "getline") || strings.Contains(text, "systime(") || strings.Contains(text, "rand(")):
			wrong("its awk program uses system, getline, systime or rand")
		case (name == "test" || name == "[") && len(text) == 2 && strings.HasPrefix(text, "-") && strings.Contains("bcdefghkprstuwxLOGSN", text[1:]): //nolint:gocritic // text is one letter
			wrong("it looks at a file: %s %s", name, text)
		}
	}
}

// literal returns the text of a word without expansions; is is false for another word.
func literal(w *syntax.Word) (text string, is bool) {
	if w == nil {
		return "", false
	}
	for _, part := range w.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			text += part.Value
		case *syntax.SglQuoted:
			text += part.Value
		case *syntax.DblQuoted:
			inner, plain := literal(&syntax.Word{Parts: part.Parts})
			if !plain {
				return text + inner, false
			}
			text += inner
		default:
			return text, false
		}
	}
	return text, true
}
