package doctor

import (
	"context"
	"fmt"

	"github.com/ollim/ollim/internal/state/job"
)

// seal looks at what the kernel enforces on the programs that agents start.
func (e *examination) seal(context.Context) string {
	const remedy = "use Linux 6.12 or later, with Landlock; ollim-security(7) says what is not enforced until then"
	support, why, err := e.home.Runner(false).Seals(job.New(job.Routine))
	switch {
	case err != nil:
		e.fault(err, remedy+"; or: ollim config set seal auto")
	case e.home.Config.Seal == "off":
		e.warn("ollim config set seal auto", "commands of agents are not sealed: seal: off")
	case why != "":
		e.warn(remedy, "commands of agents are not sealed: %s", why)
	}
	return fmt.Sprintf("commands of agents are sealed, by Landlock ABI %d", support.ABI)
}
