package conversation

import (
	"fmt"

	"github.com/ollim/ollim/internal/state/runlog"
)

// maxRecord bounds the events of one run, in bytes: about fifteen windows of a million tokens.
const maxRecord = 64 << 20

// meter counts the events of one run.
type meter struct {
	most  int // bytes
	taken int
}

// perEvent is the size of an event besides its text, in bytes.
const perEvent = 200

// take counts an event, and fails if the record would be too large. An event of usage never fails.
func (m *meter) take(e runlog.Event) error {
	m.taken += perEvent + len(e.Text) + len(e.Input)
	if m.taken > m.most && e.Type != runlog.UsageEvent {
		return fmt.Errorf("the engine printed more than %d bytes, the limit of a run record", m.most)
	}
	return nil
}
