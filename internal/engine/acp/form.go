package acp

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
)

// Form is how an agent reports what a use of a tool is.
type Form int

const (
	// ByName says that the first title is the name of the tool, and rawInput its input.
	ByName Form = iota
	// ByInput says that rawInput is {command} or {server, tool, arguments}. The title of a command is the command.
	ByInput
	// ByTitle says that there is no rawInput. The title of an execution is the command; that of a use of the kind other is "TOOL (SERVER MCP
	// Server)" if the tool is one of a server, with its arguments in a text.
	ByTitle
)

// remote returns a use of a tool of an MCP server in the terms of a policy. is says that it is one of servers. The agent's model chooses the
// text of a command, so what could be a command is never taken for the name of such a tool.
func (p Profile) remote(u *use, servers []string) (n named, ok, is bool) {
	switch p.Form {
	case ByInput:
		server, tool := u.text("server"), u.text("tool")
		arguments, _ := u.input["arguments"].(map[string]any)
		if u.text("command", "cmd") != "" || !slices.Contains(servers, server) || tool == "" {
			return n, false, false
		}
		return named{"mcp__" + server + "__" + tool, []object{orEmpty(arguments)}}, true, true
	case ByTitle:
		found := regexp.MustCompile(`^(\S+) \((\S+) MCP Server\)$`).FindStringSubmatch(u.title)
		if u.kind != "other" || found == nil || !slices.Contains(servers, found[2]) {
			return n, false, false
		}
		var arguments map[string]any
		known := json.Unmarshal([]byte(u.said), &arguments) == nil
		return named{"mcp__" + found[2] + "__" + found[1], []object{orEmpty(arguments)}}, known || u.said == "", true
	}
	if tool := p.server(u.own, servers); tool != "" {
		return named{tool, []object{u.plain()}}, len(u.input) > 0 || u.started, true
	}
	return n, false, false
}

// tool returns the policy's name of a tool of the agent's own.
func (p Profile) tool(u *use) string {
	switch {
	case p.Form == ByName:
		return cmp.Or(p.Tools[u.own], byKind(u.kind))
	case p.Form == ByInput && u.text("command", "cmd") != "":
		return "Bash" // commands that only read have the kind read
	}
	return byKind(u.kind)
}

// ownName returns the agent's name of the tool; "" if the titles of the agent are no names.
func (p Profile) ownName(u *use) string {
	if p.Form == ByName {
		return u.own
	}
	return ""
}

func orEmpty(o map[string]any) object {
	if o == nil {
		return object{}
	}
	return o
}
