// Package session stores the ids of sessions, that of the main session and one for each persistent routine, and the history of
// all sessions. An id is stored in its own file as a bare string without newline, which is replaced atomically. Ids are used
// in names of transcripts and locks and in arguments of engines, so an id that could escape a directory is neither stored nor
// read. Files may have been written by other software: surrounding white space and a byte order mark are ignored, and a blank
// file, or one with the JSON object of an older layout, holds no id.
//
// Callers hold the session's own lock (home.Dir.SessionLock) around the setters; reading and Log need none.
package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
)

// ErrID is the error of an invalid session or routine id: it could name a file elsewhere, look like an option of a
// command, or be read back differently.
var ErrID = errors.New("not a valid id")

// Book holds the session ids of one data directory.
type Book struct {
	Home paths.Dir
	Disk store.Disk
	Zone *time.Location // of the timestamps in the history; never nil
}

// Main returns the id of the main session, "" if there is none. A file with other content is set aside and reported
// through Disk.Warn, and the id is "".
func (b Book) Main() (string, error) { return b.read(b.Home.MainSession()) }

// SetMain makes id the main session. The caller holds session-main. An unchanged id is not written again. The error is
// a *store.NotWritten or wraps ErrID. The empty id is an error too, so that an engine that reports none does not lose
// the history; see ClearMain.
func (b Book) SetMain(id string) error { return b.set(b.Home.MainSession(), id) }

// MainAt returns Main with a mark that identifies the state of the file.
func (b Book) MainAt() (id, at string, err error) {
	if id, err = b.Main(); err != nil { // it may set the file aside
		return "", "", err
	}
	data, err := store.Read(b.Home.MainSession())
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return id, string(data), err
}

// FollowMain is SetMain for a turn that found or left the file in the state of a mark. It returns the new mark. If the session was cleared
// since, nothing is written: a turn that is still in progress must not restore its session.
func (b Book) FollowMain(ctx context.Context, at, id string) (now string, err error) {
	err = b.locked(ctx, func() error {
		if _, now, err = b.MainAt(); err != nil || now != at {
			return err
		}
		if err := b.SetMain(id); err != nil {
			return err
		}
		_, at, err = b.MainAt()
		return err
	})
	return at, err
}

// ClearMainNow clears the main session while a turn of it may be in progress, and returns its id. The file then has a JSON
// object instead of an id.
func (b Book) ClearMainNow(ctx context.Context) (id string, err error) {
	err = b.locked(ctx, func() error {
		if id, err = b.Main(); err != nil {
			return err
		}
		text := fmt.Sprintf("{\"cleared\":%q}\n", b.Disk.Now().In(b.Zone).Format(time.RFC3339Nano))
		return store.Write(b.Home.MainSession(), []byte(text), store.Synced)
	})
	return id, err
}

func (b Book) locked(ctx context.Context, do func() error) error {
	return b.Disk.Locked(ctx, b.Home.Lock("sessions"), do)
}

// ClearMain removes the id of the main session; the next turn creates a new session. The caller holds session-main.
func (b Book) ClearMain() error { return store.Remove(b.Home.MainSession()) }

// Routine returns the id of a persistent routine's session, "" if it has none yet. Errors as in Main.
func (b Book) Routine(routineID string) (id string, err error) {
	err = b.routine(routineID, func(path string) error { id, err = b.read(path); return err })
	return id, err
}

// SetRoutine makes id the session of a persistent routine. The caller holds session-routine-<id>. Errors as in SetMain.
func (b Book) SetRoutine(routineID, id string) error {
	return b.routine(routineID, func(path string) error { return b.set(path, id) })
}

// Under returns the id of the session of the main conversation or of a persistent routine; key is that of the conversation's lock. It is ""
// if there is none yet, or if the key is that of another conversation. Errors as in Main.
func (b Book) Under(key string) (id string, err error) {
	if key == MainKey {
		return b.Main()
	}
	if routine, ok := strings.CutPrefix(key, paths.RoutinePrefix); ok {
		return b.Routine(routine)
	}
	return "", nil
}

// RemoveRoutine removes the session id of a persistent routine. It succeeds if there is none.
func (b Book) RemoveRoutine(routineID string) error {
	return b.routine(routineID, func(path string) error {
		return errors.Join(store.Remove(path), b.DropCarry(paths.RoutinePrefix+routineID))
	})
}

// routine calls do with the file of a persistent routine's session.
func (b Book) routine(id string, do func(path string) error) error {
	if !plaintext.IsID(id) {
		return fmt.Errorf("routine %q: %w", id, ErrID)
	}
	return do(b.Home.RoutineSession(id))
}

// Routines lists the ids of routines that have a session file, sorted. Other files (temporary, set aside, directories)
// are omitted, so that a cleanup after deleted routines leaves them alone.
func (b Book) Routines() ([]string, error) {
	entries, err := store.List(b.Home.State("routine_sessions"))
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, e := range entries {
		if !e.IsDir() && plaintext.IsID(e.Name()) && !strings.Contains(e.Name(), ".corrupt-") {
			ids = append(ids, e.Name())
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// Current returns the owner of each current session id: a routine's id, or "" for main. Errors as in Main.
func (b Book) Current() (map[string]string, error) {
	routines, err := b.Routines()
	if err != nil {
		return nil, err
	}
	owner := map[string]string{}
	for _, routine := range routines {
		id, err := b.Routine(routine)
		if err != nil {
			return nil, err
		}
		owner[id] = routine
	}
	id, err := b.Main() // takes precedence
	if err != nil {
		return nil, err
	}
	owner[id] = ""
	delete(owner, "") // not created yet
	return owner, nil
}

func (b Book) set(path, id string) error {
	if !plaintext.IsName(id) {
		return fmt.Errorf("session %q: %w", plaintext.Short(id, 200), ErrID)
	}
	old, err := b.read(path)
	switch {
	case err != nil:
		return &store.NotWritten{Path: path, Err: err}
	case old == id:
		return nil
	}
	return store.Write(path, []byte(id), store.Synced)
}

// read takes no lock: a file is always replaced as a whole. An invalid id is set aside, because its bytes may be the
// only link to a long conversation.
func (b Book) read(path string) (string, error) {
	data, err := store.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	id := string(bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\ufeff"))))
	if id == "" || id[0] == '{' {
		return "", nil
	}
	if plaintext.IsName(id) {
		return id, nil
	}
	aside, err := store.SetAside(path, b.Disk.Now())
	if err != nil {
		return "", err
	}
	b.Disk.Warn(fmt.Sprintf("%s: %q is not a session id: kept as %s, and a new session was started", path, plaintext.Short(id, 200), aside))
	return "", nil
}
