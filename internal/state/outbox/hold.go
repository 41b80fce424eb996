package outbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ollim/ollim/internal/platform/store"
)

const heldExt = ".held" // with a dot in front; a message that is not in the outbox before Release

func (p Post) holding(id string) string { return filepath.Join(p.Home.Outbox(), "."+id+heldExt) }

// Hold writes a message that no process sends before Release. One that is held already is replaced. A caller that notes durably, between
// the two, that the message is made has it sent once, wherever it is killed: Send and a note after it could be a repetition, because
// another process may have delivered the message in between.
func (p Post) Hold(m Message) error {
	if !isMessageID(m.ID) {
		return fmt.Errorf("message %q: %w", m.ID, errID)
	}
	if m.Created.IsZero() {
		m.Created = p.Disk.Now()
	}
	m.Text = strings.ToValidUTF8(m.Text, "\ufffd")
	if err := store.MkdirOwn(p.Home.Outbox()); err != nil {
		return err
	}
	path := p.holding(m.ID)
	if err := store.Remove(path); err != nil {
		return err
	}
	return store.AppendJSON(path, store.Synced, m)
}

// Release puts a message into the outbox that Hold has written, for Flush. If it was released already nothing happens.
func (p Post) Release(id string) error {
	if _, err := os.Lstat(p.holding(id)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return store.Rename(p.holding(id), p.path(id))
}
