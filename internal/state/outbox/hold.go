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

// Hold writes a message that no process sends before Release, in place of one with the same id that is held. A caller that durably notes
// the message between Hold and Release has it sent once, even if the caller is killed. A note after Send instead could lead to a
// repetition, because another process may have delivered the message before the note.
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

// Release puts a message that Hold has written into the outbox, for Flush. If it was released already, Release does nothing.
func (p Post) Release(id string) error {
	if _, err := os.Lstat(p.holding(id)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return store.Rename(p.holding(id), p.path(id))
}
