package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// change is one place of a file with other text in it.
type change struct {
	file     string
	line     int
	from, to int // bytes of the file
	was      string
	with     string
}

// opposites are the operators that take the place of others.
func opposites() map[token.Token]string {
	return map[token.Token]string{
		token.EQL: "!=", token.NEQ: "==", token.LSS: ">=", token.GEQ: "<", token.GTR: "<=", token.LEQ: ">",
		token.LAND: "||", token.LOR: "&&", token.ADD: "-", token.SUB: "+",
	}
}

// changes lists what can be changed in the files of the package in dir, tests aside.
func changes(dir string) (all []change, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, file, source, 0)
		if err != nil {
			return nil, err
		}
		f := finder{file: file, source: source, set: set}
		ast.Inspect(tree, f.visit)
		all = append(all, f.found...)
	}
	return all, nil
}

// finder collects the changes of one file.
type finder struct {
	file   string
	source []byte
	set    *token.FileSet
	found  []change
}

func (f *finder) add(from, to token.Pos, with string) {
	a, b := f.set.Position(from), f.set.Position(to)
	f.found = append(f.found, change{f.file, a.Line, a.Offset, b.Offset, string(f.source[a.Offset:b.Offset]), with})
}

func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if with, ok := opposites()[n.Op]; ok {
			f.add(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), with)
		}
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			f.add(n.OpPos, n.OpPos+1, "")
		}
	case *ast.Ident:
		if with, ok := map[string]string{"true": "false", "false": "true"}[n.Name]; ok {
			f.add(n.Pos(), n.End(), with)
		}
	case *ast.BranchStmt:
		if with, ok := map[token.Token]string{token.CONTINUE: "break", token.BREAK: "continue"}[n.Tok]; ok && n.Label == nil {
			f.add(n.Pos(), n.End(), with)
		}
	case *ast.ExprStmt:
		f.add(n.Pos(), n.End(), "")
	case *ast.DeferStmt:
		f.add(n.Pos(), n.End(), "")
	case *ast.ReturnStmt:
		f.returned(n)
	}
	return true
}

// returned turns a returned err into nil.
func (f *finder) returned(n *ast.ReturnStmt) {
	if len(n.Results) == 0 {
		return
	}
	last := n.Results[len(n.Results)-1]
	if id, ok := last.(*ast.Ident); ok && id.Name == "err" {
		f.add(id.Pos(), id.End(), "nil")
	}
}
