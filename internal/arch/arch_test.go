// Package arch reviews the architecture: which room may import which, and which room owns which outside library. The table
// is the review; adding a room means adding its line here.
package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/ollim/ollim/"

// room is a package and its place. It may import rooms on lower floors only, never a neighbour on its own.
type room struct {
	floor int
	owns  []string // outside modules that only this room may import
}

var rooms = map[string]room{
	"internal/home":    {0, nil},
	"internal/process": {0, nil},

	"internal/lock":     {0, []string{"github.com/gofrs/flock"}},
	"internal/cron":     {0, nil},
	"internal/when":     {0, nil},
	"internal/program":  {0, nil},                                       // the owner's executables: gates, commands in skills
	"internal/nearest":  {-1, []string{"github.com/agext/levenshtein"}}, // the cellar: words for errors of any room
	"internal/sanitize": {-1, nil},                                      // the cellar too: what others wrote, for any room
	"internal/yamldoc":  {0, []string{"gopkg.in/yaml.v3"}},

	"internal/toolpolicy": {0, []string{"mvdan.cc/sh/v3"}},
	"internal/wiretest":   {-1, nil}, // what the two below have in common
	"internal/apitest":    {0, nil},  // the model's API, for tests
	"internal/openaitest": {0, nil},  // and the other vendor's

	"internal/unprivileged": {-1, nil}, // an ordinary user, for tests

	"internal/store":  {1, nil},
	"internal/config": {2, []string{"github.com/spf13/viper"}},

	"internal/job":        {2, nil},
	"internal/update":     {2, nil},
	"internal/told":       {2, nil},
	"internal/session":    {2, nil},
	"internal/transcript": {2, nil},
	"internal/model":      {1, nil},
	"internal/run":        {2, nil},
	"internal/spend":      {2, nil},

	"internal/budget":    {2, nil},
	"internal/skill":     {2, nil},
	"internal/task":      {2, nil},
	"internal/slot":      {2, nil},
	"internal/unit":      {3, nil},
	"internal/agentline": {3, nil},
	"internal/approval":  {3, nil}, // it looks at jobs and their skills
	"internal/change":    {2, []string{"github.com/rogpeppe/go-internal/diff"}},

	"internal/schedule": {3, nil},
	"internal/deliver":  {3, nil},
	"internal/engine":   {3, nil},

	"internal/prompt":        {4, nil},
	"internal/engine/script": {4, nil},

	"internal/engine/claudecode": {4, nil},
	"internal/provider":          {4, []string{"github.com/anthropics/anthropic-sdk-go", "github.com/sashabaranov/go-openai"}},
	"internal/builtin":           {4, []string{"golang.org/x/net/html"}},
	"internal/engine/native":     {5, nil},

	"man":                {0, nil}, // the manual pages, embedded
	"internal/docs":      {1, nil},
	"internal/toolbox":   {5, nil},
	"internal/chat":      {6, []string{"github.com/cenkalti/backoff/v5"}},
	"internal/fire":      {7, nil},
	"internal/tick":      {8, nil},
	"internal/mcpserver": {8, []string{"github.com/mark3labs/mcp-go"}},
	"internal/cli":       {9, []string{"github.com/spf13/cobra", "github.com/spf13/pflag", "golang.org/x/term"}},
	"cmd/ollim":          {10, nil},
}

func TestFloors(t *testing.T) {
	for dir, imports := range packages(t) {
		here, known := rooms[dir]
		if !known {
			t.Errorf("%s: not in the table of rooms", dir)
			continue
		}
		for _, path := range imports {
			target, inside := strings.CutPrefix(path, module)
			if !inside {
				continue
			}
			if there, ok := rooms[target]; !ok {
				t.Errorf("%s imports %s, which is not in the table of rooms", dir, target)
			} else if there.floor >= here.floor {
				t.Errorf("%s (floor %d) imports %s (floor %d)", dir, here.floor, target, there.floor)
			}
		}
	}
}

func TestOutsideLibrariesHaveOneRoom(t *testing.T) {
	for dir, imports := range packages(t) {
		for _, path := range imports {
			if strings.HasPrefix(path, module) || !strings.Contains(strings.SplitN(path, "/", 2)[0], ".") {
				continue
			}
			owner := ""
			for name, r := range rooms {
				if slices.ContainsFunc(r.owns, func(lib string) bool { return path == lib || strings.HasPrefix(path, lib+"/") }) {
					owner = name
				}
			}
			if owner != dir {
				t.Errorf("%s imports %s, which belongs to %q", dir, path, owner)
			}
		}
	}
}

func TestEveryRoomOfTheTableExists(t *testing.T) {
	found := packages(t)
	for dir := range rooms {
		if _, ok := found[dir]; !ok {
			t.Errorf("%s: in the table, but there is no such package", dir)
		}
	}
}

const (
	longestFunction = 60
	longestFile     = 400
)

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

// packages maps each folder with Go code to what its non-test files import.
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
