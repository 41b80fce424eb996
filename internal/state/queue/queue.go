// Package queue keeps the owner's messages in the order in which they arrived, from before a turn answers them until that turn
// has ended. A message is never answered twice, and none is lost when a process is killed.
//
// On disk: state/queue/<id>.json is one message, <id>.lock the flock that its sender holds while it lives, and <id>.files/ has
// copies of its attachments. Ids sort by arrival; they are assigned, and messages change, under the lock "queue". A sender
// waits for the lock of the message before its own, so the order is kept without polling.
//
// A message notes the run that answers it before the run begins, and is removed when the run has ended. The removal of one whose run ended
// well is not synced: after a power failure the message may be there again, and is removed like one that a dead process left. A message
// without a lock holder was left by a process that died. What its run has done decides what becomes of it:
//
//   - No run was given its text: it waits, and the next process that takes a turn answers it. Abandoned reports that there is none.
//   - The run ended well: it was answered, and is removed.
//   - The run was cut off, or failed when its sender was gone: the next turn reports it, and it is removed once the agent has
//     begun to answer that turn.
package queue

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
)

// Message is one message of the owner. Its sender sets the fields up to Source, and may set Run.
type Message struct {
	Tag    string `json:"tag,omitempty"` // tag of its prompt; "": the owner wrote it
	Text   string `json:"text"`
	Input  string `json:"input,omitempty"` // data that was piped in
	Files  []File `json:"files,omitempty"`
	Model  string `json:"model,omitempty"`  // "" is the engine's default
	Group  string `json:"group,omitempty"`  // neighbours of one group are answered together; "": alone
	Owner  bool   `json:"owner,omitempty"`  // the owner typed it
	First  bool   `json:"first,omitempty"`  // it stops the turn in progress and goes before those that wait
	Source string `json:"source,omitempty"` // the id that a messenger gave it

	ID       string    `json:"id"`
	Arrived  time.Time `json:"arrived"`
	Run      string    `json:"run,omitempty"`      // the run that answers it; see Add
	Ended    string    `json:"ended,omitempty"`    // why the run ended without an answer
	Reporter string    `json:"reporter,omitempty"` // the run whose prompt reports that it was cut off
}

// File is an attachment.
type File struct {
	Name string `json:"name"`
	Type string `json:"type"`
	Path string `json:"path"` // of the copy
}

// Fate says what a run has done with its messages.
type Fate struct {
	Begun    bool // the engine was given the prompt
	Done     bool // the record of the run is finished
	OK       bool // it ended well
	Answered bool // the agent began to answer
}

// Book is the queue of one data directory.
type Book struct {
	Home paths.Dir
	Disk store.Disk
	Zone *time.Location
	Runs func(run string) Fate
	Stop func(run string) error // requests that a run ends because of a message that goes first
}

// errGone is the error of a message that was removed from the queue by hand.
var errGone = errors.New("the message is no longer in the queue")

// Ticket is a message that this process has put into the queue, or has taken over from a sender that died. Its holder calls
// Remove or Leave.
type Ticket struct {
	Message

	book  Book
	guard *lock.Guard
}

// Place is the position of a message in the queue.
type Place struct {
	Ahead   int    // messages before it
	Running string // the run that is answering one of them; "" if none is
}

// String returns how many messages are answered first.
func (p Place) String() string {
	if p.Ahead == 1 {
		return "queued: one message is before it"
	}
	return fmt.Sprintf("queued: %d messages are before it", p.Ahead)
}

// Add puts a message at the end of the queue. If it has a run and no message is before it, that run is the one that answers it: a sender
// that calls Next at once saves the note of the run. The error is a *store.NotWritten or *lock.Failed, or wraps lock.ErrBusy; then the
// message is not in the queue.
func (b Book) Add(ctx context.Context, m Message) (*Ticket, Place, error) {
	var random [3]byte
	_, _ = rand.Read(random[:]) // never fails
	name := hex.EncodeToString(random[:])
	if err := store.MkdirOwn(b.Home.Queue()); err != nil {
		return nil, Place{}, err
	}
	files, err := b.copyFiles(name, m.Files)
	if err != nil {
		return nil, Place{}, errors.Join(err, b.removeFiles(name))
	}
	m.Files = files
	t, place, err := b.add(ctx, name, m)
	if err != nil {
		return nil, Place{}, errors.Join(err, b.removeFiles(name))
	}
	return t, place, nil
}

func (b Book) add(ctx context.Context, name string, m Message) (*Ticket, Place, error) {
	held, err := b.Disk.Lock(ctx, b.Home.Lock("queue"))
	if err != nil {
		return nil, Place{}, err
	}
	defer held.Release()
	all, err := b.load(true)
	if err != nil {
		return nil, Place{}, err
	}
	m.ID, m.Arrived = number(all)+"-"+name, b.Disk.Now().In(b.Zone)
	place := b.placeOf(all, m)
	if place.Ahead > 0 {
		m.Run = ""
	}
	guard, err := lock.TryGuard(b.lockPath(m.ID))
	if err != nil {
		return nil, Place{}, err
	}
	t := &Ticket{m, b, guard}
	if err := t.create(); err != nil {
		return nil, Place{}, errors.Join(err, guard.Delete())
	}
	if m.First && place.Running != "" {
		if err := b.Stop(place.Running); err != nil {
			return nil, Place{}, errors.Join(err, t.Remove())
		}
	}
	return t, place, nil
}

// number returns the first part of the id of the next message.
func number(all []entry) string {
	last := 0
	for _, e := range all {
		digits, _, _ := strings.Cut(e.ID, "-")
		n, _ := strconv.Atoi(digits)
		last = max(last, n)
	}
	return fmt.Sprintf("%09d", last+1)
}

// placeOf returns the place of a message that comes after all others.
func (b Book) placeOf(all []entry, m Message) (p Place) {
	waiting, _, _ := b.judge(all)
	for _, e := range waiting {
		if e.running() {
			p.Running = e.Run
		}
		if e.running() || e.First || !m.First {
			p.Ahead++
		}
	}
	return p
}

// Remove takes the message out of the queue.
func (t *Ticket) Remove() error {
	err := t.unlink()
	if err == nil {
		err = t.book.removeFiles(nameOf(t.ID))
	}
	return errors.Join(err, t.guard.Delete())
}

// unlink removes the file of the message. It waits for the disk unless the record of the run, which is on the disk, says the same.
func (t *Ticket) unlink() error {
	path := t.book.path(t.ID)
	if !t.book.answered(t.Message) {
		return store.Remove(path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &store.NotWritten{Path: path, Err: err}
	}
	return nil
}

// Leave leaves the message in the queue, as if its process had died.
func (t *Ticket) Leave() { t.guard.Release() }

// Rewrite changes the text of the message, and reports whether it did: a run that answers the message keeps the text that it was given, and
// a message that is no longer in the queue stays out of it. It may be called beside the holder of the ticket.
func (t *Ticket) Rewrite(ctx context.Context, text string) (done bool, err error) {
	return t.ifWaiting(ctx, func(m Message) error {
		m.Text = text
		return store.WriteJSON(t.book.path(m.ID), m, store.Synced)
	})
}

// Withdraw takes the message out of the queue unless a run answers it, and reports whether it did. It may be called beside the holder of the
// ticket, who then calls Remove.
func (t *Ticket) Withdraw(ctx context.Context) (done bool, err error) {
	return t.ifWaiting(ctx, func(m Message) error { return store.Remove(t.book.path(m.ID)) })
}

// ifWaiting calls do with the message as it is on disk, unless a run answers it or it is gone.
func (t *Ticket) ifWaiting(ctx context.Context, do func(Message) error) (done bool, err error) {
	held, err := t.book.Disk.Lock(ctx, t.book.Home.Lock("queue"))
	if err != nil {
		return false, err
	}
	defer held.Release()
	m, err := store.ReadJSON[Message](t.book.Disk, t.book.path(t.ID))
	if err != nil || m.ID != t.ID || m.Run != "" {
		return false, err
	}
	return true, do(m)
}

// fail leaves the message in the queue, with the reason why its run ended without an answer.
func (t *Ticket) fail(why string) error {
	t.Ended = why
	defer t.Leave()
	return t.save()
}

func (t *Ticket) create() error {
	err := t.save()
	if err != nil {
		_ = os.Remove(t.book.path(t.ID)) // its directory may not have been synced
	}
	return err
}

func (t *Ticket) save() error { return store.WriteJSON(t.book.path(t.ID), t.Message, store.Synced) }

// nameOf returns the second part of an id.
func nameOf(id string) string {
	_, name, _ := strings.Cut(id, "-")
	return name
}

func (b Book) path(id string) string     { return filepath.Join(b.Home.Queue(), id+".json") }
func (b Book) lockPath(id string) string { return filepath.Join(b.Home.Queue(), id+lock.Ext) }

// filesPath returns the directory of a message's attachments, by the second part of its id.
func (b Book) filesPath(name string) string { return filepath.Join(b.Home.Queue(), name+".files") }

func (b Book) removeFiles(name string) error {
	if err := os.RemoveAll(b.filesPath(name)); err != nil {
		return &store.NotWritten{Path: b.filesPath(name), Err: err}
	}
	return nil
}

// maxFile is the largest attachment that is copied, in bytes; see engine.Attach.
const maxFile = 50 << 20

// copyFiles copies attachments, so that they stay as they were sent.
func (b Book) copyFiles(name string, files []File) (copies []File, err error) {
	for i, f := range files {
		data, err := store.ReadText(f.Path, maxFile, true) // an agent may have put a pipe or a link in its place
		if err != nil {
			return nil, err
		}
		path := filepath.Join(b.filesPath(name), strconv.Itoa(i)+filepath.Ext(f.Path))
		if err := store.Write(path, data, store.Synced); err != nil {
			return nil, err
		}
		copies = append(copies, File{f.Name, f.Type, path})
	}
	return copies, nil
}

// entry is a message in the queue.
type entry struct {
	Message

	living bool // a process holds its lock
}

// running reports whether a run is answering the message.
func (e entry) running() bool { return e.living && e.Run != "" }

// load reads the queue, in the order in which messages are answered. If tidy is set, it removes locks without a message; the caller then
// holds the lock of the queue.
func (b Book) load(tidy bool) ([]entry, error) {
	files, err := store.List(b.Home.Queue())
	if err != nil {
		return nil, err
	}
	var all []entry
	known := map[string]bool{}
	for _, f := range files { // ID.json comes before ID.lock
		ext := filepath.Ext(f.Name())
		id := strings.TrimSuffix(f.Name(), ext)
		switch {
		case ext == ".json" && !store.IsDraft(f.Name()):
			m, err := store.ReadJSON[Message](b.Disk, b.path(id))
			if err != nil {
				return nil, err
			}
			if m.ID == id { // else it was set aside
				known[id] = true
				all = append(all, entry{m, !lock.Free(b.lockPath(id))})
			}
		case ext == lock.Ext && tidy && !known[id]:
			if guard, err := lock.TryGuard(b.lockPath(id)); err == nil {
				_ = guard.Delete()
			}
		}
	}
	sortEntries(all)
	return all, nil
}
