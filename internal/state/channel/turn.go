package channel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/ollim/ollim/internal/platform/store"
)

// saveEvery is the time between two saves during a turn.
const saveEvery = 30 * time.Second

// Turn is one turn of a session. The session's lock is held until End. Its methods may be called by several goroutines; Ask, Answer,
// Call and Result do not wait for the disk.
type Turn struct {
	book Book
	name Name

	mu      sync.Mutex
	session Session   // with the messages before the turn
	tail    []Message // messages of earlier turns that are in session and not in the file
	own     []Message // messages of this turn
	answer  answer
	calls   map[string]int // the indexes in own of results that are to come
	version int            // counts the changes

	disk onDisk

	stop context.CancelFunc // ends the saves in the background; nil before Begin
	done sync.WaitGroup
}

// onDisk is the file of a session, as the turn has read or written it.
type onDisk struct {
	mu      sync.Mutex  // held during a save
	info    fs.FileInfo // nil: there is none
	damaged *Damaged    // why it is not a session, until it is set aside
	saved   []Message   // messages of the turn that it has
	version int         // that it has
	warned  bool        // that saving failed
}

// answer is the answer that is arriving.
type answer struct {
	at     int  // its index in the turn's messages; -1: none
	asked  bool // the model was asked since the last answer
	marked bool // Ask was called before this answer, so it will be called before the next one too
	result bool // it has a result
}

// Open reads a session, and what an earlier turn could not save, and changes nothing. A missing or damaged file is an empty session.
func (b Book) Open(n Name) (*Turn, error) {
	t := &Turn{book: b, name: n, answer: answer{at: -1}, calls: map[string]int{}}
	var err error
	t.session, t.disk.info, err = b.read(n)
	switch {
	case err == nil:
	case errors.Is(err, fs.ErrNotExist):
		t.session = Session{}
	case !errors.As(err, &t.disk.damaged):
		return nil, err
	}
	if u, ok := b.Cache.pending(n); ok {
		t.tail = u.tail
		if same(u.info, t.disk.info) {
			t.session = u.session
		} else {
			t.session.Messages = slices.Concat(t.session.Messages, u.tail)
		}
		t.session.LastAccessed = u.session.LastAccessed
		t.version++
	}
	if t.session.CreatedAt.IsZero() {
		now := t.now(b.Disk.Now())
		t.session.CreatedAt, t.session.LastAccessed = now, now
	}
	t.session.SessionID, t.session.Channel, t.session.ChatID = n.ID(), n.channel, n.chat
	return t, nil
}

// now returns a time in the form of the file.
func (*Turn) now(at time.Time) time.Time { return at.UTC().Truncate(time.Second) }

// Messages returns the messages before the turn, oldest first, as many as leave space for the user's.
func (t *Turn) Messages() []Message { return last(t.session.Messages, maxMessages-1) }

// Begin adds the user's message and saves the session, now and every 30 seconds until End, and when ctx ends. A failed save is
// reported by Disk.Warn, once, and tried again.
func (t *Turn) Begin(ctx context.Context, text string, at time.Time) {
	t.say(Message{Role: User, Content: text, Timestamp: t.now(at)})
	t.trySave()
	saves, stop := context.WithCancel(context.WithoutCancel(ctx))
	t.stop = stop
	t.done.Go(func() {
		tick := time.NewTicker(saveEvery)
		defer tick.Stop()
		ended := ctx.Done()
		for {
			select {
			case <-tick.C:
				t.trySave()
			case <-ended:
				t.trySave()
				ended = nil
			case <-saves.Done():
				return
			}
		}
	})
}

func (t *Turn) say(m Message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.own = append(t.own, m)
	t.changed()
}

func (t *Turn) changed() {
	t.session.LastAccessed = t.now(t.book.Disk.Now())
	t.version++
}

// Ask records that the model is called. What follows is a new answer.
func (t *Turn) Ask() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.answer = answer{at: -1, asked: true}
}

// Answer adds text of the assistant. Texts and calls without a result in between are one message, and so are the calls of one answer
// after Ask.
func (t *Turn) Answer(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.answer.result {
		t.answer = answer{at: -1}
	}
	m := t.answering()
	if m.Content != "" {
		m.Content += "\n"
	}
	m.Content += text
	t.changed()
}

// answering returns the answer that is arriving, or a new one if there is none.
func (t *Turn) answering() *Message {
	if t.answer.at < 0 {
		t.answer = answer{at: len(t.own), marked: t.answer.asked}
		t.own = append(t.own, Message{Role: Assistant, Timestamp: t.now(t.book.Disk.Now())})
	}
	return &t.own[t.answer.at]
}

// Call adds a call to the answer, and Unanswered as its result.
func (t *Turn) Call(c ToolCall) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(c.Input) == 0 {
		c.Input = json.RawMessage("{}")
	}
	c.Failed = true
	m := t.answering()
	m.ToolCalls = append(m.ToolCalls, c)
	t.calls[c.ID] = len(t.own)
	t.own = append(t.own, Message{Role: ToolResult, Content: Unanswered, Timestamp: m.Timestamp})
	t.changed()
}

// Result replaces the result of a call. It ignores the result of an unknown call.
func (t *Turn) Result(id, text string, failed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, ok := t.calls[id]
	if !ok {
		return
	}
	delete(t.calls, id)
	t.own[at].Content, t.own[at].Timestamp = text, t.now(t.book.Disk.Now())
	asked := at - 1
	for t.own[asked].Role == ToolResult {
		asked--
	}
	calls := slices.Clone(t.own[asked].ToolCalls) // a save may be reading the old ones
	calls[at-asked-1].Failed = failed
	t.own[asked].ToolCalls = calls
	if t.answer.result = true; !t.answer.marked {
		t.answer = answer{at: -1}
	}
	t.changed()
}

// Restart drops everything after the user's message, for another attempt.
func (t *Turn) Restart() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.own, t.answer, t.calls = t.own[:min(len(t.own), 1)], answer{at: -1}, map[string]int{}
	t.changed()
}

// End saves the session. If that fails, the process keeps it for Persist and for the next turn, and the error, a *store.NotWritten,
// says so.
func (t *Turn) End() error {
	if t.stop != nil {
		t.stop()
		t.done.Wait()
	}
	err := t.save()
	t.book.Cache.postpone(t.name, t.unsaved())
	return err
}

// trySave saves the session, and warns if that fails for the first time.
func (t *Turn) trySave() {
	err := t.save()
	t.disk.mu.Lock()
	defer t.disk.mu.Unlock()
	if err != nil && !t.disk.warned {
		t.disk.warned = true
		t.book.Disk.Warn(fmt.Sprintf("%v; the session stays in memory, and saving it is tried again", err))
	}
}

// save writes the session if it has changed.
func (t *Turn) save() error {
	t.disk.mu.Lock()
	defer t.disk.mu.Unlock()
	s, own, version := t.snapshot()
	if version == t.disk.version {
		return nil
	}
	if t.disk.damaged != nil {
		if err := t.book.setAside(t.disk.damaged); err != nil {
			return err
		}
		t.disk.damaged, t.disk.info = nil, nil
	}
	path := t.book.Home.Channel(t.name.String())
	if err := store.WriteJSON(path, s, store.Synced); err != nil {
		return err
	}
	t.disk.version, t.disk.saved, t.tail = version, own, nil
	info, err := os.Lstat(path)
	if err == nil {
		t.disk.info = info
	}
	t.book.Cache.put(t.name, s, info)
	return err
}

// snapshot returns the session as it is to be saved now, the messages of the turn, and their version.
func (t *Turn) snapshot() (s Session, own []Message, version int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, own = t.session, slices.Clone(t.own)
	s.Messages = slices.Concat(last(s.Messages, maxMessages-len(own)), own)
	return s, own, t.version
}

// unsaved returns what the file does not have: the messages of the turn from the first group that is not on disk as it is now. A
// group of which the file has an older form is repeated rather than lost.
func (t *Turn) unsaved() unsaved {
	s, own, version := t.snapshot()
	if version == t.disk.version {
		return unsaved{}
	}
	saved := t.disk.saved
	for len(own) > 0 {
		n := group(own)
		if len(saved) < n || !reflect.DeepEqual(own[:n], saved[:n]) {
			break
		}
		own, saved = own[n:], saved[n:]
	}
	return unsaved{s, t.disk.info, slices.Concat(t.tail, own)}
}
