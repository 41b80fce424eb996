// Package arch reviews the architecture: which package may import which, and which package owns which outside library. The
// table of table_test.go is the review; a new package needs no line unless it imports a package of its own layer.
package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/ollim/ollim/"

// TestLayers holds the imports of every package against the table.
func TestLayers(t *testing.T) {
	used := map[string]bool{}
	for dir, imports := range packages(t) {
		here := layerOf(dir)
		if here < 0 && !inside(dir, tests) {
			t.Errorf("%s: in no layer of the table", dir)
		}
		for _, path := range imports {
			target, own := strings.CutPrefix(path, module)
			if !own {
				continue
			}
			if fault := judge(dir, target, used); fault != "" {
				t.Errorf("%s imports %s: %s", dir, target, fault)
			}
		}
	}
	for _, l := range layers() {
		for from, all := range l.beside {
			for _, to := range all {
				if key := l.path + " " + from + " " + to; !used[key] {
					t.Errorf("the table allows %s an import of %q in its layer, which it does not need", l.path+"/"+from, to)
				}
			}
		}
	}
}

// judge returns why dir may not import target, "" if it may; it notes the lines of the table that it needed.
func judge(dir, target string, used map[string]bool) string {
	here, there := layerOf(dir), layerOf(target)
	switch {
	case inside(dir, tests) && inside(target, tests):
		return ""
	case inside(dir, tests) || inside(target, tests):
		return "packages for tests stand alone"
	case there < 0:
		return "it is in no layer"
	case there > here:
		return "its layer is above"
	case there < here:
		return ""
	}
	l := layers()[here]
	from, to := below(dir, l.path), below(target, l.path)
	used[l.path+" "+from+" "+to] = true
	if !slices.Contains(l.beside[from], to) {
		return "the table does not allow it within the layer"
	}
	return ""
}

// layerOf returns the index of the layer that holds a package, -1 for none.
func layerOf(dir string) int {
	return slices.IndexFunc(layers(), func(l layer) bool { return inside(dir, l.path) })
}

func inside(dir, top string) bool { return dir == top || strings.HasPrefix(dir, top+"/") }

func below(dir, top string) string { return strings.TrimPrefix(strings.TrimPrefix(dir, top), "/") }

// TestOutsideLibrariesHaveOneOwner also finds owners that no longer need their library.
func TestOutsideLibrariesHaveOneOwner(t *testing.T) {
	used := map[string]bool{}
	for dir, imports := range packages(t) {
		if inside(dir, tests) {
			continue // a peer in tests may speak a protocol by the library that the program uses
		}
		for _, path := range imports {
			if strings.HasPrefix(path, module) || !strings.Contains(strings.SplitN(path, "/", 2)[0], ".") {
				continue
			}
			library, owner := ownerOf(path)
			used[library] = true
			if !slices.ContainsFunc(strings.Fields(owner), func(owner string) bool { return inside(dir, owner) }) {
				t.Errorf("%s imports %s, which belongs to %q", dir, path, owner)
			}
		}
	}
	for library, owner := range owners() {
		if !used[library] {
			t.Errorf("%s owns %s, which nothing imports", owner, library)
		}
	}
}

func ownerOf(path string) (library, owner string) {
	for library, owner := range owners() {
		if inside(path, library) {
			return library, owner
		}
	}
	return "", ""
}

const (
	longestFunction = 60
	longestFile     = 400
)

// TestToolNames: engines and the server of tools learn from engine.Tool what a tool of the agent does, and know none by its name.
func TestToolNames(t *testing.T) {
	descriptions, err := filepath.Glob(filepath.Join(root, "internal/agent/tools/*.md"))
	if err != nil || len(descriptions) == 0 {
		t.Fatal("no tools found", err)
	}
	for _, path := range sources(t) {
		if !inside(path, filepath.Join(root, "internal/engine")) && !inside(path, filepath.Join(root, "internal/server/mcp")) {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, description := range descriptions {
			if name := strings.TrimSuffix(filepath.Base(description), ".md"); strings.Contains(string(text), name+`"`) {
				t.Errorf("%s knows the tool %s by its name", path, name)
			}
		}
	}
}

func TestSizes(t *testing.T) {
	for _, path := range sources(t) {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if n := fset.Position(file.End()).Line; n > longestFile {
			t.Errorf("%s: %d lines", path, n)
		}
		for _, decl := range file.Decls {
			if n := fset.Position(decl.End()).Line - fset.Position(decl.Pos()).Line + 1; isFunc(decl) && n > longestFunction {
				t.Errorf("%s: a function of %d lines", fset.Position(decl.Pos()), n)
			}
		}
	}
}

// TestNoExpressionAtStart: no regular expression is compiled at the start of every command, which has to wait for it.
func TestNoExpressionAtStart(t *testing.T) {
	for _, path := range sources(t) {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			if isFunc(decl) {
				continue
			}
			ast.Inspect(decl, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "MustCompile" {
					t.Errorf("%s: compile it at its first use", fset.Position(n.Pos()))
				}
				_, inner := n.(*ast.FuncLit)
				return !inner
			})
		}
	}
}

// mostMethods is the most methods that a type of internal/agent may have, with those of the types of internal/agent that it embeds: a type
// with more is several types that share a receiver.
const mostMethods = 25

func TestMethods(t *testing.T) {
	own := map[string]map[string]bool{} // type → its methods
	embeds := map[string][]string{}     // type → types that it embeds
	for _, path := range sources(t) {
		if !inside(path, filepath.Join(root, "internal/agent")) {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					continue
				}
				name := nameOf(file, d.Recv.List[0].Type)
				if own[name] == nil {
					own[name] = map[string]bool{}
				}
				own[name][d.Name.Name] = true
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if s, ok := spec.(*ast.TypeSpec); ok {
						embeds[file.Name.Name+"."+s.Name.Name] = embedded(file, s.Type)
					}
				}
			}
		}
	}
	if len(own["run.work"]) == 0 || !slices.Contains(embeds["turn.forkOrigin"], "turn.turnOrigin") {
		t.Fatal("known methods are not found")
	}
	for name := range own {
		if n := len(methods(name, own, embeds)); n > mostMethods {
			t.Errorf("%s has %d methods, more than %d", name, n, mostMethods)
		}
	}
}

// methods returns the methods of a type and of what it embeds.
func methods(name string, own map[string]map[string]bool, embeds map[string][]string) map[string]bool {
	all := maps.Clone(own[name])
	if all == nil {
		all = map[string]bool{}
	}
	for _, e := range embeds[name] {
		maps.Copy(all, methods(e, own, embeds))
	}
	return all
}

// embedded returns the types that a struct or interface embeds.
func embedded(file *ast.File, expr ast.Expr) (names []string) {
	var fields *ast.FieldList
	switch t := expr.(type) {
	case *ast.StructType:
		fields = t.Fields
	case *ast.InterfaceType:
		fields = t.Methods
	default:
		return nil
	}
	for _, f := range fields.List {
		if len(f.Names) == 0 {
			names = append(names, nameOf(file, f.Type))
		}
	}
	return names
}

// nameOf returns the name of a type with its package: "run.work" for *work.
func nameOf(file *ast.File, expr ast.Expr) string {
	switch t := expr.(type) {
	case *ast.StarExpr:
		return nameOf(file, t.X)
	case *ast.IndexExpr:
		return nameOf(file, t.X)
	case *ast.IndexListExpr:
		return nameOf(file, t.X)
	case *ast.SelectorExpr:
		return t.X.(*ast.Ident).Name + "." + t.Sel.Name
	case *ast.Ident:
		return file.Name.Name + "." + t.Name
	}
	return ""
}

// packages maps each directory with Go code to what its non-test files import.
func packages(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for _, path := range sources(t) {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		found[dir] = append(found[dir], []string{}...)
		for _, spec := range file.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			found[dir] = append(found[dir], name)
		}
	}
	return found
}

const root = "../.."

// sources lists the Go files of cmd and internal, tests aside.
func sources(t *testing.T) (paths []string) {
	t.Helper()
	for _, top := range []string{"cmd", "internal", "man"} {
		err := fs.WalkDir(os.DirFS(root), top, func(path string, _ fs.DirEntry, err error) error {
			if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
				paths = append(paths, filepath.Join(root, path))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(paths) == 0 {
		t.Fatal("no source files found")
	}
	return paths
}

func isFunc(d ast.Decl) bool {
	_, ok := d.(*ast.FuncDecl)
	return ok
}
