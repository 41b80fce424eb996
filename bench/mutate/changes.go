package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// change is one place of a file that does something else while the change is on.
type change struct {
	file string
	line int
	last int      // line on which the changed code ends
	what string   // what stands there and what the change makes of it
	add  []insert // %d stands for the number of the change
}

// insert is text that is added to a file.
type insert struct {
	at   int // byte of the file
	text string
	wide int // length of the expression it opens or closes: a wider one opens first and closes last
	ends bool
}

func (c change) String() string { return fmt.Sprintf("%s:%d: %s", c.file, c.line, c.what) }

// place tells the change from all others.
func (c change) place() string { return fmt.Sprintf("%s %d %s", c.file, c.add[0].at, c.what) }

// opposites are the comparisons and conjunctions that take the place of others.
func opposites() map[token.Token]token.Token {
	return map[token.Token]token.Token{
		token.EQL: token.NEQ, token.NEQ: token.EQL, token.LSS: token.GEQ, token.GEQ: token.LSS,
		token.GTR: token.LEQ, token.LEQ: token.GTR, token.LAND: token.LOR, token.LOR: token.LAND,
	}
}

// changes lists what can be changed in the files of the package in dir, tests aside, and returns the name of the package.
func changes(dir string) (all []change, name string, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, "", err
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			return nil, "", err
		}
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, file, source, 0)
		if err != nil {
			return nil, "", err
		}
		f := finder{file: file, source: source, set: set}
		ast.Inspect(tree, f.visit)
		all, name = append(all, f.found...), tree.Name.Name
	}
	return all, name, nil
}

// finder collects the changes of one file.
type finder struct {
	file   string
	source []byte
	set    *token.FileSet
	found  []change
	failed token.Pos // end of the last block that is for err != nil
	beside token.Pos // end of the last return statement in it: what stands beside the error is not used
}

// around adds the change that puts before and after around a node.
func (f *finder) around(n ast.Node, what, before, after string) {
	f.add(n, what, f.wrap(n, before, after))
}

func (f *finder) add(n ast.Node, what string, inserts ...[]insert) {
	f.found = append(f.found, change{f.file, f.set.Position(n.Pos()).Line, f.set.Position(n.End()).Line, what, slices.Concat(inserts...)})
}

func (f *finder) wrap(n ast.Node, before, after string) []insert {
	from, to := f.set.Position(n.Pos()).Offset, f.set.Position(n.End()).Offset
	return []insert{{from, before, to - from, false}, {to, after, to - from, true}}
}

func (f *finder) text(n ast.Node) string {
	return strings.Join(strings.Fields(string(f.source[f.set.Position(n.Pos()).Offset:f.set.Position(n.End()).Offset])), " ")
}

func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GenDecl:
		return n.Tok == token.VAR
	case *ast.IfStmt:
		if f.text(n.Cond) == "err != nil" {
			f.failed = n.Body.End()
		}
	case *ast.BinaryExpr:
		f.binary(n)
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			f.around(n, f.text(n)+" without !", "((", ") != mutated(%d))")
		}
	case *ast.Ident:
		if (n.Name == "true" || n.Name == "false") && n.Pos() >= f.beside {
			f.around(n, "not "+n.Name, "(", " != mutated(%d))")
		}
	case *ast.BlockStmt:
		f.statements(n.List)
	case *ast.CaseClause:
		f.statements(n.Body)
	case *ast.CommClause:
		f.statements(n.Body)
	case *ast.ReturnStmt:
		if len(n.Results) == 0 {
			break
		}
		if id, ok := n.Results[len(n.Results)-1].(*ast.Ident); ok && id.Name == "err" {
			if n.End() <= f.failed {
				f.beside = n.End()
			}
			f.around(id, f.text(n)+" without the error", "mutatedError(%d, ", ")")
		}
	}
	return true
}

func (f *finder) binary(n *ast.BinaryExpr) {
	switch with, ok := opposites()[n.Op]; {
	case n.Op == token.LAND, n.Op == token.LOR: // a || b is !(!a && !b)
		f.add(n, f.text(n)+": "+with.String(), f.wrap(n, "((", ") != mutated(%d))"),
			f.wrap(n.X, "((", ") != mutated(%d))"), f.wrap(n.Y, "((", ") != mutated(%d))"))
	case ok:
		f.around(n, f.text(n)+": "+with.String(), "((", ") != mutated(%d))")
	case n.Op == token.ADD, n.Op == token.SUB:
		f.add(n, f.text(n)+": the other sign", f.wrap(n.Y, "mutatedSign(%d, ", ")"))
	}
}

// statements adds the changes that leave a statement out, or leave a loop in place of its round and the reverse.
func (f *finder) statements(list []ast.Stmt) {
	for _, n := range list {
		switch n := n.(type) {
		case *ast.ExprStmt, *ast.DeferStmt:
			f.around(n, "no "+f.text(n), "if !mutated(%d) { ", " }")
		case *ast.BranchStmt:
			if with, ok := map[token.Token]string{token.CONTINUE: "break", token.BREAK: "continue"}[n.Tok]; ok && n.Label == nil {
				f.add(n, n.Tok.String()+": "+with, f.wrap(n, "if mutated(%d) { "+with+" }; ", ""))
			}
		}
	}
}

// apply returns the source with the changes in it, by their numbers; all are off.
func apply(source []byte, all map[int]change) []byte {
	var inserts []insert
	for i, c := range all {
		for _, in := range c.add {
			in.text = strings.ReplaceAll(in.text, "%d", fmt.Sprint(i))
			inserts = append(inserts, in)
		}
	}
	slices.SortFunc(inserts, func(a, b insert) int {
		switch {
		case a.at != b.at:
			return cmp.Compare(a.at, b.at)
		case a.ends != b.ends: // what ends here ends before anything begins
			return map[bool]int{true: -1, false: 1}[a.ends]
		case a.ends:
			return cmp.Compare(a.wide, b.wide)
		default:
			return cmp.Compare(b.wide, a.wide)
		}
	})
	var out []byte
	done := 0
	for _, in := range inserts {
		out = append(append(out, source[done:in.at]...), in.text...)
		done = in.at
	}
	return append(out, source[done:]...)
}
