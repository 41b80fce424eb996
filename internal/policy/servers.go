package policy

import "slices"

// Servers returns the MCP servers, besides ollim's own, whose tools the patterns name, sorted. What is no pattern is left out.
func Servers(patterns []string) (names []string) {
	for _, text := range patterns {
		if p, err := Parse(text); err == nil && p.server != "" && p.server != OwnServer {
			names = append(names, p.server)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// OfServers returns the patterns that name tools of MCP servers besides ollim's own, sorted.
func OfServers(patterns ...string) []string {
	list := slices.DeleteFunc(slices.Clone(patterns), func(text string) bool { return len(Servers([]string{text})) == 0 })
	slices.Sort(list)
	return slices.Compact(list)
}

// Names reports whether a pattern names the tool, whatever its scope.
func (p Policy) Names(tool string) bool { return len(p.of(tool)) > 0 }
