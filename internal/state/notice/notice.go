// Package notice stores causes and the messages about them: what is wrong now, since when, which jobs it concerns, when the owner was last
// notified, and which messages wait. It has no rules of its own; package internal/agent/notify decides which messages are sent and when.
//
// In the ledger: notice.cause, which takes the place of the earlier one of its key, notice.forgotten, notice.waiting, the messages that
// wait now, and notice.said, a message that was said.
package notice

import (
	"context"
	"iter"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/ledger"
)

// Book holds the notices of one data directory. For its errors see ledger.Ledger.Change; the notices are unchanged then.
type Book struct{ Ledger *ledger.Ledger }

// Entry is a cause: something that is wrong, or was until lately.
type Entry struct {
	Kind    string           `json:"kind"`
	Subject string           `json:"subject"`
	Name    string           `json:"name"`             // of what is wrong, as a message begins with it
	Text    string           `json:"text"`             // what is wrong, a sentence
	Remedy  string           `json:"remedy,omitempty"` // what to do
	Since   time.Time        `json:"since"`
	Until   time.Time        `json:"until,omitzero"`  // when it ends by itself; zero: it does not
	Jobs    map[string]Count `json:"jobs,omitempty"`  // jobs that it concerns, by id
	Told    time.Time        `json:"told,omitzero"`   // the last message about it
	Said    bool             `json:"said,omitempty"`  // the owner was told that it lasts
	Fresh   bool             `json:"fresh,omitempty"` // it had another effect since the last message
	Closed  time.Time        `json:"closed,omitzero"` // when it ended; zero: it lasts
}

// Open reports whether the cause lasts.
func (e Entry) Open() bool { return e.Closed.IsZero() }

// Count is the effect of a cause on a job.
type Count struct {
	Name   string `json:"name"`             // for people
	Failed int    `json:"failed,omitempty"` // fires that failed or were refused
	Missed int    `json:"missed,omitempty"` // slots for which there was no fire
}

// Message is a message that has not reached the outbox.
type Message struct {
	ID       string    `json:"id"`
	Cause    string    `json:"cause"` // its key
	Run      string    `json:"run,omitempty"`
	Kind     string    `json:"kind"` // of the outbox
	Label    string    `json:"label"`
	Job      string    `json:"job,omitempty"`
	Text     string    `json:"text"`
	Critical bool      `json:"critical,omitempty"`
	At       time.Time `json:"at"`
}

// Page holds the notices at one moment. Its entries, with their maps, are replaced and never changed.
type Page struct {
	Causes map[string]Entry `json:"causes,omitempty"`
	Unsent []Message        `json:"unsent,omitempty"` // oldest first
}

// JobKind is the kind of a cause that is the failure of one job.
const JobKind = "job"

// Key returns the key of a cause.
func Key(kind, subject string) string { return kind + " " + subject }

// Set stores a cause.
func (p *Page) Set(key string, e Entry) {
	if p.Causes == nil {
		p.Causes = map[string]Entry{}
	}
	p.Causes[key] = e
}

func (p *Page) clone() Page { return Page{maps.Clone(p.Causes), slices.Clone(p.Unsent)} }

type cause struct {
	Key   string `json:"key"`
	Cause Entry  `json:"cause"`
}

func (cause) Fact() string { return "notice.cause" }

type forgotten struct {
	Key string `json:"key"`
}

func (forgotten) Fact() string { return "notice.forgotten" }

type waiting struct {
	Messages []Message `json:"messages"`
}

func (waiting) Fact() string { return "notice.waiting" }

type said struct {
	Message Message `json:"message"`
}

func (said) Fact() string { return "notice.said" }

// Facts returns the book of the notices.
func Facts() *ledger.Book[Page] {
	return ledger.NewBook("notice",
		ledger.On("notice.cause", func(p *Page, _ time.Time, f cause) { p.Set(f.Key, f.Cause) }),
		ledger.On("notice.forgotten", func(p *Page, _ time.Time, f forgotten) { delete(p.Causes, f.Key) }),
		ledger.On("notice.waiting", func(p *Page, _ time.Time, f waiting) { p.Unsent = f.Messages }),
	)
}

// Read returns the page as it is now. It takes no lock.
func (b Book) Read() (page Page, err error) {
	err = b.Ledger.Read(func(v ledger.View) error {
		p, err := ledger.Of(v, Facts())
		if err == nil {
			page = p.clone()
		}
		return err
	})
	return page, err
}

// Empty reports whether there is nothing on the page.
func (b Book) Empty() bool {
	p, err := b.Read()
	return err == nil && len(p.Causes) == 0 && len(p.Unsent) == 0
}

// Edit changes the page. Nothing is written unless change reports a change. change must not use the ledger.
func (b Book) Edit(ctx context.Context, change func(*Page) bool) error {
	return b.Ledger.Change(ctx, store.Synced, func(tx *ledger.Tx) error { return Edit(tx, change) })
}

// Edit is Book.Edit as a part of a change.
func Edit(tx *ledger.Tx, change func(*Page) bool) error {
	before, err := ledger.Of(tx.View, Facts())
	if err != nil {
		return err
	}
	after := before.clone()
	if !change(&after) {
		return nil
	}
	return tx.Add(before.differences(after)...)
}

// differences returns the facts that change p into after.
func (p *Page) differences(after Page) (facts []ledger.Fact) {
	for _, key := range slices.Sorted(maps.Keys(after.Causes)) {
		if e, known := p.Causes[key]; !known || !reflect.DeepEqual(e, after.Causes[key]) {
			facts = append(facts, cause{key, after.Causes[key]})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(p.Causes)) {
		if _, stays := after.Causes[key]; !stays {
			facts = append(facts, forgotten{key})
		}
	}
	if !slices.Equal(p.Unsent, after.Unsent) {
		facts = append(facts, waiting{after.Unsent})
	}
	return facts
}

// Say removes messages from the page and records that they were sent. It ignores messages that are not on the page.
func (b Book) Say(ctx context.Context, messages ...Message) error {
	return b.Ledger.Change(ctx, store.Synced, func(tx *ledger.Tx) error {
		var facts []ledger.Fact
		err := Edit(tx, func(p *Page) bool {
			p.Unsent = slices.DeleteFunc(p.Unsent, func(m Message) bool {
				gone := slices.ContainsFunc(messages, func(s Message) bool { return s.ID == m.ID })
				if gone {
					facts = append(facts, said{m})
				}
				return gone
			})
			return len(facts) > 0
		})
		if err != nil {
			return err
		}
		return tx.Add(facts...)
	})
}

// Said yields the messages that were sent since an instant, the oldest first.
func (b Book) Said(since time.Time) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		for line, err := range b.Ledger.Lines(since, said{}.Fact()) {
			var f said
			if err == nil && line.Into(&f) != nil {
				continue // it is not a fact of this version
			}
			if !yield(f.Message, err) {
				return
			}
		}
	}
}

// Former lists the names of the files of earlier versions in state/.
func Former() []string { return []string{"notices.json", "told.json", "notices.jsonl"} }

// Import adds the facts of the files of earlier versions: the page, which was once called told.json, and the messages that were said. The
// oldest version counted the failures of each job; such a job becomes a cause that the owner knows about.
func Import(tx *ledger.Tx, path func(name string) string) error {
	for m, err := range store.Lines[Message](path("notices.jsonl"), nil) {
		if err == nil {
			err = tx.AddAt(m.At, said{m})
		}
		if err != nil {
			return err
		}
	}
	type file struct {
		Page
		Failures map[string]int `json:"failures"`
	}
	old, _, err := store.PeekJSON[file](path("told.json"))
	if err != nil {
		return err
	}
	if f, _, err := store.PeekJSON[file](path("notices.json")); err != nil || f.Causes != nil || f.Unsent != nil || f.Failures != nil {
		old = f
		if err != nil {
			return err
		}
	}
	for id, n := range old.Failures {
		key := Key(JobKind, id)
		if _, known := old.Causes[key]; !known {
			old.Set(key, Entry{
				Kind: JobKind, Subject: id, Name: id, Text: id + " failed", Since: tx.At, Told: tx.At, Said: true,
				Jobs: map[string]Count{id: {Name: id, Failed: n}},
			})
		}
	}
	return tx.Add((&Page{}).differences(old.Page)...)
}
