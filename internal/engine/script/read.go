package script

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/transcript"
)

// Entries returns the messages of a session, oldest first; a prompt names its run. The error wraps transcript.ErrUnknown if there is no
// such session.
func Entries(h paths.Dir, id string) (list []transcript.Entry, err error) {
	path := (&Engine{Home: h}).path(id)
	if _, statErr := os.Stat(path); !strings.HasPrefix(id, prefix) || !plaintext.IsName(id) || errors.Is(statErr, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %.100q", transcript.ErrUnknown, id)
	}
	for l, err := range store.Lines[line](path, nil) {
		if err != nil {
			return nil, err
		}
		if l.Message != nil {
			list = append(list, transcript.Entry{Message: transcript.Said(l.Message.Role, l.Message.Content), Run: l.Run})
		}
	}
	return list, nil
}
