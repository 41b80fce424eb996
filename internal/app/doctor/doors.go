package doctor

import (
	"context"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/plaintext"
)

// doors looks at the programs that connect messengers, and whether each is served.
func (e *examination) doors(context.Context) string {
	list := e.home.Config.Doors
	for _, d := range list {
		switch err := e.home.DoorFault(d.Name); {
		case err != nil:
			e.fault(err, "correct doors."+d.Name+" in "+e.App.ConfigFile(e.home.Dir))
		case lock.Free(e.home.Dir.Lock("door_" + d.Name)):
			e.warn("start ollim door serve "+d.Name, "%s is not served: messages to the bot are not answered", d.Name)
		default:
			if why := e.home.DoorFailure(d.Name); why != "" {
				e.fail("correct the program, and try it with ollim door test COMMAND", "%s does not run, so messages to the bot are not answered: %s", d.Name, why)
			}
		}
	}
	if len(list) == 0 {
		return ""
	}
	return plaintext.Count(len(list), "door")
}
