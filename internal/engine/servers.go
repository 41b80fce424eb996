package engine

import (
	"maps"
	"slices"

	"github.com/ollim/ollim/internal/state/runlog"
)

// ReportServers records the MCP servers that could not be used, with the reasons by name.
func ReportServers(sink Sink, failed map[string][]string) error {
	for _, name := range slices.Sorted(maps.Keys(failed)) {
		for _, reason := range failed[name] {
			if err := sink(runlog.Event{Type: runlog.ServerFailed, Tool: name, Text: reason, IsError: true}); err != nil {
				return err
			}
		}
	}
	return nil
}
