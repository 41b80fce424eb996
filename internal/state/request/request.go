// Package request stores what was sent to models: the body of each request, in state/runs/ID/requests.jsonl, one line for each. A
// line holds the parameters and refers to the system prompt, the tools and the messages, which are objects, each stored once under
// the hash of its content. So a body is rebuilt byte for byte, and a long conversation that is sent again and again takes the place of
// its messages.
//
// The marks of a service's cache, which move from message to message, and the base64 of files are not part of a message's object:
// its references insert them. Messages are referenced in lists of 32, which are objects too, so that a line is about a
// hundredth of a conversation.
//
// Values of secrets are replaced before a body is stored. Nothing waits for the disk: a power cut may lose requests, and the line or
// the object that it damages is recognized. Objects are written before the line that refers to them.
package request

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"syscall"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/object"
)

// Book is the requests of one data directory.
type Book struct {
	Home    paths.Dir
	Disk    store.Disk
	Objects object.Box

	// Secrets returns the values that are replaced; nil replaces none.
	Secrets func() plaintext.Secrets
}

// line is one request in requests.jsonl.
type line struct {
	At     time.Time       `json:"at"`
	SHA256 string          `json:"sha256"`           // hash of the body as it is rebuilt
	Hidden bool            `json:"hidden,omitempty"` // values of secrets were replaced in the body
	Body   json.RawMessage `json:"body,omitempty"`   // body with references, see fold
	Whole  string          `json:"whole,omitempty"`  // object that is the whole body, in place of Body
}

// Errors of a request that cannot be read.
var (
	ErrNone    = errors.New("no such request")
	ErrDamaged = errors.New("the request cannot be rebuilt")
)

// runLog appends the requests of one run.
type runLog struct {
	book Book
	run  string

	mu    sync.Mutex
	added map[string]bool // hashes of the objects that lines of this runLog refer to
}

// Log returns the log to which a run's requests are added.
func (b Book) Log(run string) *runLog { return &runLog{book: b, run: run, added: map[string]bool{}} }

// Add stores the body of a request.
func (l *runLog) Add(ctx context.Context, body []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := line{At: l.book.Disk.Now()}
	if l.book.Secrets != nil {
		shown := l.book.Secrets().Hide(string(body))
		e.Hidden = shown != string(body)
		body = []byte(shown)
	}
	e.SHA256 = hashOf(body)
	f := folder{objects: map[string][]byte{}}
	if folded, err := f.fold(body); err == nil {
		e.Body = folded
	} else {
		f = folder{objects: map[string][]byte{}}
		e.Whole = f.put(body)
	}
	for hash := range f.objects {
		if l.added[hash] {
			delete(f.objects, hash)
		}
	}
	if err := l.book.Objects.Add(ctx, f.objects); err != nil {
		return err
	}
	if err := l.append(ctx, e); err != nil {
		return err
	}
	for hash := range f.objects {
		l.added[hash] = true
	}
	return nil
}

func (l *runLog) append(ctx context.Context, e line) error {
	return l.book.Disk.Locked(ctx, l.book.Home.Run(l.run, "lock"), func() error {
		return store.AppendJSON(l.book.Home.Requests(l.run), store.Buffered, e)
	})
}

// Read returns the body of the n-th request of a run, from 1, and whether values of secrets were replaced in it. The error is an
// ErrNone that gives the number of requests, or an ErrDamaged.
func (b Book) Read(run string, n int) (body []byte, hidden bool, err error) {
	count := 0
	for e, err := range store.Lines[line](b.Home.Requests(run), nil) {
		if err != nil {
			return nil, false, err
		}
		if count++; count == n {
			body, err := b.body(e)
			return body, e.Hidden, err
		}
	}
	return nil, false, fmt.Errorf("%w: the run has %d", ErrNone, count)
}

func (b Book) body(e line) (body []byte, err error) {
	if e.Whole != "" {
		body, err = b.Objects.Get(e.Whole)
	} else {
		body, err = unfold(e.Body, b.Objects.Get)
	}
	if err == nil && hashOf(body) != e.SHA256 {
		err = errors.New("its hash does not match")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return body, nil
}

// Named returns the hashes of the objects to which requests of all runs refer. An error means that the list may be incomplete.
func (b Book) Named(runs []string) (map[string]bool, error) {
	named := map[string]bool{}
	for _, run := range runs {
		for e, err := range store.Lines[line](b.Home.Requests(run), nil) {
			if err != nil {
				return nil, err
			}
			if e.Whole != "" {
				named[e.Whole] = true
			}
			if err := b.name(named, refsIn(e.Body)); err != nil {
				return nil, err
			}
		}
	}
	delete(named, "")
	return named, nil
}

// name adds the hashes in references. It reads each list once.
func (b Book) name(named map[string]bool, refs []ref) error {
	for _, r := range refs {
		for _, insert := range r.Insert {
			named[insert.Base64] = true
		}
		if r.List == "" {
			named[r.Object] = true
			continue
		}
		if named[r.List] {
			continue
		}
		named[r.List] = true
		list, err := listed(r.List, b.Objects.Get)
		if errors.As(err, new(syscall.Errno)) && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err != nil {
			continue // it is missing or damaged: the request is lost, and objects that only the list names
		}
		if err := b.name(named, list); err != nil {
			return err
		}
	}
	return nil
}

func hashOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
