// Package request stores what was sent to models, in state/runs/ID/requests.jsonl, one line for each request after one for the file of the
// job, and what they answered, in answers.jsonl, one line for each answer with its usage, price, times and body. The line of a request holds
// the parameters and refers to the system prompt, the tools and the messages, which are objects, each stored once under the hash of its
// content. So a body is rebuilt byte for byte, and a long conversation that is sent again and again takes the place of its messages.
//
// The marks of a service's cache, which move from message to message, and the base64 of files are not part of a message's object:
// its references insert them. Messages are referenced in lists of 32, which are objects too, so that a line is about a
// hundredth of a conversation.
//
// Values of secrets are replaced before a body is stored. Nothing waits for the disk: a power cut may lose requests, and the line or
// the object that it damages is recognized. Objects are written before the line that refers to them.
package request

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/object"
	"github.com/ollim/ollim/internal/state/runlog"
)

// Book is the requests of one data directory.
type Book struct {
	Home    paths.Dir
	Disk    store.Disk
	Objects object.Box

	// Secrets returns the values that are replaced; nil replaces none.
	Secrets func() plaintext.Secrets
}

// line is one request in requests.jsonl, or the job's file.
type line struct {
	At     time.Time       `json:"at"`
	SHA256 string          `json:"sha256,omitempty"` // hash of the body as it is rebuilt
	Hidden bool            `json:"hidden,omitempty"` // values of secrets were replaced in the body
	Body   json.RawMessage `json:"body,omitempty"`   // body with references, see fold
	Bare   bool            `json:"bare,omitempty"`   // Body has no line break at its end
	Whole  string          `json:"whole,omitempty"`  // object that is the whole body, in place of Body
	Job    bool            `json:"job,omitempty"`    // it is the text of the job's file
}

// Answer is what a service answered to a request.
type Answer struct {
	To     int           `json:"to"`               // the request, from 1
	Status int           `json:"status,omitempty"` // of HTTP; 0: there was no response
	Model  string        `json:"model,omitempty"`  // the model that answered
	Usage  *runlog.Usage `json:"usage,omitempty"`  // nil: the service reported none
	Cost   float64       `json:"cost,omitempty"`   // USD, by the table of models
	First  int64         `json:"first_ms"`         // milliseconds from the request to the first byte of the body
	Millis int64         `json:"ms"`               // to the end
	Cut    string        `json:"cut,omitempty"`    // why the answer ended before its end; "": it is complete

	Body []byte `json:"-"`
}

// answered is an answer in answers.jsonl. The body is not an object, because no two answers are the same.
type answered struct {
	At     time.Time `json:"at"`               // when it ended
	Hidden bool      `json:"hidden,omitempty"` // values of secrets were replaced in the body, or the body is not stored because of one
	Answer
	Text   string `json:"text,omitempty"`   // the body
	Base64 []byte `json:"base64,omitempty"` // the body, if it is not UTF-8
}

// Exchange is a request, and the answer if there is one.
type Exchange struct {
	Number int // from 1
	At     time.Time
	Hidden bool // values of secrets were replaced in the request
	Answer *Answer
}

// Errors of a request that cannot be read.
var (
	ErrNone    = errors.New("not kept")
	ErrDamaged = errors.New("the request cannot be rebuilt")
)

// runLog appends the requests of one run.
type runLog struct {
	book Book
	run  string

	mu    sync.Mutex
	count int             // requests in the file; 0: not counted yet
	added map[string]bool // hashes of the objects that lines of this runLog refer to
}

// Log returns the log to which a run's requests are added.
func (b Book) Log(run string) *runLog { return &runLog{book: b, run: run, added: map[string]bool{}} }

// Add stores the body of a request and returns its number.
func (l *runLog) Add(ctx context.Context, body []byte) (n int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count == 0 {
		exchanges, err := l.book.Exchanges(l.run)
		if err != nil {
			return 0, err
		}
		l.count = len(exchanges)
	}
	e := line{At: l.book.Disk.Now()}
	body, e.Hidden = l.book.hide(body)
	e.SHA256 = hashOf(body)
	f := folder{objects: map[string][]byte{}}
	if folded, bare, err := f.fold(body); err == nil {
		e.Body, e.Bare = folded, bare
	} else {
		f = folder{objects: map[string][]byte{}}
		e.Whole = f.put(body)
	}
	if err := l.store(ctx, e, f.objects); err != nil {
		return 0, err
	}
	l.count++
	return l.count, nil
}

// AddAnswer stores the answer to a request. A body in whose parts a secret is spread is not stored.
func (l *runLog) AddAnswer(ctx context.Context, a Answer) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := answered{At: l.book.Disk.Now(), Answer: a}
	body, hidden := l.book.hide(a.Body)
	switch e.Hidden = hidden; {
	case l.book.spread(body):
		e.Hidden = true
	case utf8.Valid(body):
		e.Text = string(body)
	default:
		e.Base64 = body
	}
	return l.book.Disk.Locked(ctx, l.book.Home.Run(l.run, "lock"), func() error {
		return store.AppendJSON(l.book.Home.Answers(l.run), store.Buffered, e)
	})
}

// spread reports whether a secret is spread over the events of a stream. The pieces of a text come in events of their own.
func (b Book) spread(stream []byte) bool {
	if b.Secrets == nil {
		return false
	}
	var text strings.Builder
	for part := range bytes.Lines(stream) {
		var e struct {
			Delta struct {
				Text     string `json:"text"`
				Thinking string `json:"thinking"`
				Input    string `json:"partial_json"`
			} `json:"delta"`
			Choices []struct {
				Delta struct {
					Content string `json:"content"`
				} `json:"delta"`
			} `json:"choices"`
		}
		if data, found := bytes.CutPrefix(part, []byte("data:")); !found || json.Unmarshal(data, &e) != nil {
			continue
		}
		text.WriteString(e.Delta.Text + e.Delta.Thinking + e.Delta.Input)
		for _, c := range e.Choices {
			text.WriteString(c.Delta.Content)
		}
	}
	return b.Secrets().Hide(text.String()) != text.String()
}

// AddJob stores the text of the file of the run's job.
func (l *runLog) AddJob(ctx context.Context, text []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := line{At: l.book.Disk.Now(), Job: true}
	f := folder{objects: map[string][]byte{}}
	text, e.Hidden = l.book.hide(text)
	e.Whole, e.SHA256 = f.put(text), hashOf(text)
	return l.store(ctx, e, f.objects)
}

// hide returns a body without the values of secrets, and reports whether there were any.
func (b Book) hide(body []byte) ([]byte, bool) {
	if b.Secrets == nil {
		return body, false
	}
	shown := b.Secrets().Hide(string(body))
	return []byte(shown), shown != string(body)
}

// store appends a line, after the objects that it refers to.
func (l *runLog) store(ctx context.Context, e line, objects map[string][]byte) error {
	for hash := range objects {
		if l.added[hash] {
			delete(objects, hash)
		}
	}
	if err := l.book.Objects.Add(ctx, objects); err != nil {
		return err
	}
	if err := l.append(ctx, e); err != nil {
		return err
	}
	for hash := range objects {
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
		if e.Job {
			continue
		}
		if count++; count == n {
			body, err := b.body(e)
			return body, e.Hidden, err
		}
	}
	return nil, false, fmt.Errorf("%w: the run has %d", ErrNone, count)
}

// ReadAnswer returns the body of the answer to the n-th request of a run, and whether values of secrets were replaced in it. The error is
// an ErrNone.
func (b Book) ReadAnswer(run string, n int) (body []byte, hidden bool, err error) {
	for e, err := range store.Lines[answered](b.Home.Answers(run), nil) {
		switch {
		case err != nil:
			return nil, false, err
		case e.To == n && e.Base64 != nil:
			return e.Base64, e.Hidden, nil
		case e.To == n:
			return []byte(e.Text), e.Hidden, nil
		}
	}
	return nil, false, fmt.Errorf("%w: no answer to request %d is kept: ollim run show --requests lists the requests", ErrNone, n)
}

// ReadJob returns the text of the file of a run's job as it was when the run began, and whether values of secrets were replaced in it. The
// error is an ErrNone or an ErrDamaged.
func (b Book) ReadJob(run string) (text []byte, hidden bool, err error) {
	for e, err := range store.Lines[line](b.Home.Requests(run), nil) {
		if err != nil {
			return nil, false, err
		}
		if e.Job {
			text, err := b.body(e)
			return text, e.Hidden, err
		}
	}
	return nil, false, fmt.Errorf("%w: no job file is kept: the run has no job, did not reach its engine, or is from an earlier version", ErrNone)
}

// Exchanges returns the requests of a run with their answers, in the order in which they were sent. The answers have no bodies.
func (b Book) Exchanges(run string) (all []Exchange, err error) {
	for e, err := range store.Lines[line](b.Home.Requests(run), nil) {
		if err != nil {
			return all, err
		}
		if !e.Job {
			all = append(all, Exchange{Number: len(all) + 1, At: e.At, Hidden: e.Hidden})
		}
	}
	for e, err := range store.Lines[answered](b.Home.Answers(run), nil) {
		if err != nil {
			return all, err
		}
		if 0 < e.To && e.To <= len(all) {
			all[e.To-1].Answer = &e.Answer
		}
	}
	return all, nil
}

func (b Book) body(e line) (body []byte, err error) {
	if e.Whole != "" {
		body, err = b.Objects.Get(e.Whole)
	} else {
		body, err = unfold(e.Body, e.Bare, b.Objects.Get)
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
