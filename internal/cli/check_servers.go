package cli

import (
	"fmt"
	"path/filepath"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/state/job"
)

// servers reports the MCP servers that jobs name and that cannot start. None is started.
func (c *checker) servers(h app.Home, jobs []job.Job) {
	for _, s := range h.Config.Servers {
		if err := h.ServerFault(s.Name); err != nil {
			c.bad = true
			c.say(finding{What: "error", Text: "mcp-servers." + s.Name + ": " + err.Error()})
		}
	}
	for _, j := range jobs {
		for _, name := range h.UnknownServers(j) {
			c.fault(wrong(filepath.Join(filepath.Base(filepath.Dir(j.Path)), filepath.Base(j.Path)), "allowed-tools",
				fmt.Sprintf("the MCP server %s is not in mcp-servers of config.yaml", name)))
		}
	}
}
