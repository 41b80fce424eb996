package acp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/ollim/ollim/internal/platform/shell"
	"github.com/ollim/ollim/internal/policy"
)

// use is a use of a tool by the agent, as far as the agent has reported it.
type use struct {
	id       string
	own      string // the agent's name of the tool
	kind     string // kind of the protocol
	title    string
	input    map[string]any // what the agent has reported of the input, by key
	files    []string       // paths that it has reported
	reported bool           // the record has the use
	allowed  bool           // ollim has allowed it
	denied   string         // why ollim has refused it; "": it has not
	started  bool           // its input is complete
	said     string         // the first text that came with it
	printed  string         // what it has printed
	ended    bool
	done     bool   // it has ended without an error
	failure  string // what it has said as it failed; "": it has not
}

// mostPrinted limits the output of a command that is kept, in bytes.
const mostPrinted = 256 << 10

// learn adds what an update says about the use. The first update of a use has the tool's name for a title.
func (u *use) learn(up update) {
	if u.own == "" {
		u.own = up.Title
	}
	u.title, u.kind = cmp.Or(up.Title, u.title), cmp.Or(up.Kind, u.kind)
	u.started = u.started || up.Status != "" && up.Status != "pending"
	if len(u.printed) < mostPrinted {
		u.printed += up.Meta.Delta.Data
	}
	var input map[string]any
	if json.Unmarshal(up.Input, &input) == nil && len(input) > 0 {
		if u.input == nil {
			u.input = map[string]any{}
		}
		maps.Copy(u.input, input)
	}
	for _, b := range up.parts() {
		if b.Type == "content" {
			u.said = cmp.Or(u.said, b.Content.Text)
		}
	}
	for _, l := range up.Locations {
		u.addFile(l.Path)
	}
	for _, b := range up.parts() {
		if b.Type == "diff" {
			u.addFile(b.Path)
		}
	}
}

func (u *use) addFile(path string) {
	if path != "" && !slices.Contains(u.files, path) {
		u.files = append(u.files, path)
	}
}

// text returns the first text of the input that has one of the keys.
func (u *use) text(keys ...string) string {
	for _, key := range keys {
		switch v := u.input[key].(type) {
		case string:
			if v != "" {
				return v
			}
		case []any: // argv
			var words []string
			for _, w := range v {
				word := fmt.Sprint(w)
				if strings.ContainsFunc(word, func(r rune) bool {
					return !strings.ContainsRune("-_./=:,@+%", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r)
				}) {
					word = shell.Quote(word)
				}
				words = append(words, word)
			}
			return strings.Join(words, " ")
		}
	}
	return ""
}

// pathKeys are the names that agents give to the file of a tool.
var pathKeys = []string{"filePath", "filepath", "file_path", "path", "absolute_path", "file", "target_file", "dir_path"} //nolint:gochecknoglobals // a constant

// paths returns the files of the use, absolute. They keep their "..", which a policy refuses, because a link before it leads elsewhere.
func (u *use) paths(root string) (list []string) {
	all := u.files
	if path := u.text(pathKeys...); path != "" {
		all = append([]string{path}, all...)
	}
	for _, path := range all {
		if path == "." {
			path = root
		}
		if !filepath.IsAbs(path) {
			path = root + "/" + path
		}
		if !slices.Contains(list, path) {
			list = append(list, path)
		}
	}
	return list
}

// elsewhere returns the directory in which a command is to run; "" if that is the root, which relative paths of a command are judged for.
func (u *use) elsewhere(root string) string {
	for _, key := range []string{"workdir", "cwd", "directory", "dir_path"} {
		dir, _ := u.input[key].(string)
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(root, dir)
		}
		if filepath.Clean(dir) != filepath.Clean(root) {
			return dir
		}
	}
	if strings.HasPrefix(u.said, "[in ") {
		return u.said
	}
	return ""
}

// named is a use in the terms of a policy.
type named struct {
	tool   string
	inputs []object // one for each file that the use changes; the use is allowed if each is
}

// server returns the policy's name of a tool of an MCP server; "" if the use is of no tool among servers.
func (p Profile) server(own string, servers []string) string {
	for _, name := range servers {
		for _, prefix := range []string{p.Server + name + p.Between, "mcp__" + name + "__", "mcp." + name + ".", name + "_", name + "/"} {
			if tool, found := strings.CutPrefix(own, prefix); found && tool != "" {
				return "mcp__" + name + "__" + tool
			}
		}
	}
	return ""
}

// name returns the use in the terms of a policy. ok is false as long as the agent has not reported enough of it.
func (p Profile) name(u *use, root string, servers []string) (n named, ok bool) {
	if n, ok, is := p.remote(u, servers); is {
		return n, ok
	}
	n.tool = p.tool(u)
	switch n.tool {
	case "Bash":
		command := u.text("command", "cmd")
		if p.Form == ByTitle {
			command = u.title
		}
		input := object{"command": command}
		if dir := u.elsewhere(root); dir != "" {
			input["directory"] = dir // no policy allows this field
		}
		return named{n.tool, []object{input}}, command != ""
	case "Read":
		return n.files(u.paths(root), func(path string) object { return object{"file_path": path} })
	case "Write":
		return n.files(u.paths(root), func(path string) object { return object{"file_path": path, "content": u.text("content")} })
	case "Edit":
		return n.files(u.paths(root), func(path string) object {
			return object{"file_path": path, "old_string": u.text("oldString", "old_string"), "new_string": u.text("newString", "new_string", "diff")}
		})
	case "Glob", "Grep":
		input := object{"pattern": cmp.Or(u.text("pattern", "query"), "*")}
		if paths := u.paths(root); len(paths) > 0 {
			input["path"] = paths[0]
		}
		n.inputs = []object{input}
		return n, len(u.input) > 0 || len(u.files) > 0
	case "WebFetch":
		url := u.text("url", "uri")
		return named{n.tool, []object{{"url": url}}}, url != ""
	case "WebSearch":
		query := u.text("query")
		return named{n.tool, []object{{"query": query}}}, query != ""
	case "TodoWrite":
		return named{n.tool, []object{{}}}, true
	}
	return named{cmp.Or(n.tool, p.ownName(u), "unknown"), []object{u.plain()}}, true
}

// plain returns a copy of the input, because updates change it.
func (u *use) plain() object { return orEmpty(maps.Clone(u.input)) }

// files returns the use of a tool with an input for each file.
func (n named) files(paths []string, input func(path string) object) (named, bool) {
	for _, path := range paths {
		n.inputs = append(n.inputs, input(path))
	}
	return n, len(paths) > 0
}

// subject returns an input without the texts of a file, of which agents report more and more.
func (o object) subject() object {
	if _, isFile := o["file_path"]; isFile {
		return object{"file_path": o["file_path"]}
	}
	return o
}

// byKind returns the tool of a policy that does what a kind of the protocol says; "" if there is none.
func byKind(kind string) string {
	switch kind {
	case "execute":
		return "Bash"
	case "read":
		return "Read"
	case "edit", "delete", "move":
		return "Edit"
	case "search":
		return "Grep"
	case "fetch":
		return "WebFetch"
	}
	return ""
}

// serversOf returns the names of the MCP servers of a run, ollim's own first.
func serversOf(patterns []string) []string {
	return append([]string{policy.OwnServer}, policy.Servers(patterns)...)
}
