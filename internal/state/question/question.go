// Package question keeps the questions that runs have asked the owner and whose answers they wait for, and the prompts of buttons.
//
// On disk: state/questions/<run>.json, one file for each run that waits, changed under the lock "questions". The run's record
// says whether it waits; the file says for what. It is written before the question is sent, holds the answer from the moment it
// is given until the run has ended, and is removed then. A question that expired stays until the agent of its job has been told. If the
// file of a run that waits was removed or cannot be parsed, one that takes no answer replaces it, so that the run ends.
//
// The first answer is kept; any other is a *Closed error. The events of the run say whether the agent has read the answer.
//
// The id of a button is too short for a prompt, so prompts are in state/inquiries.json, changed under the lock "inquiries":
//
//	{"<id>": {"prompt": "Prepare the meeting", "ts": "2026-02-24T14:30:00Z", "used": "2026-02-24T15:00:00Z"}}
//
// A prompt is used once, and forgotten seven days after it was kept. A file that cannot be parsed is set aside.
package question

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
)

// Question is the content of one file.
type Question struct {
	Run      string        `json:"run"`
	Job      string        `json:"job"`
	Name     string        `json:"name"` // of the job's file, for people
	Text     string        `json:"question"`
	Choices  []string      `json:"choices,omitempty"`
	Asked    time.Time     `json:"asked"`
	Expires  time.Time     `json:"expires"`
	Message  string        `json:"message"`           // id of the message that asks it
	Sent     bool          `json:"sent"`              // the message was handed over
	Left     time.Duration `json:"left_ns"`           // rest of the run's time limit when it asked
	Answer   string        `json:"answer,omitempty"`  // "": none yet
	Answered time.Time     `json:"answered,omitzero"` // when it was given
	Tried    time.Time     `json:"tried,omitzero"`    // when the run was last started to continue
	Lapsed   bool          `json:"lapsed,omitempty"`  // no answer is taken any more
	Gone     bool          `json:"gone,omitempty"`    // it replaces a file that was removed or damaged
}

// Expired reports whether the question can no longer be answered.
func (q Question) Expired(now time.Time) bool {
	return q.Answer == "" && (q.Lapsed || !q.Expires.After(now))
}

// Choose returns the answer that a text stands for: the choice of that number, if the question has choices, else the text itself.
func (q Question) Choose(text string) (string, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return "", &Closed{q.Run, "the answer is empty"}
	}
	if n, err := strconv.Atoi(text); err == nil && len(q.Choices) > 0 {
		if n < 1 || n > len(q.Choices) {
			return "", &Closed{q.Run, fmt.Sprintf("there is no choice %d: want 1 to %d, or a text", n, len(q.Choices))}
		}
		return q.Choices[n-1], nil
	}
	return text, nil
}

// Closed is the error of an answer that a run cannot take, or of a button that has no effect any more.
type Closed struct {
	Run    string // "" for a button
	Reason string
}

func (e *Closed) Error() string {
	if e.Run == "" {
		return e.Reason
	}
	return fmt.Sprintf("run %s: %s", e.Run, e.Reason)
}

// Book holds the questions of one data directory. Besides those that its methods name, an error wraps *store.NotWritten,
// *lock.Failed, or lock.ErrBusy after ten seconds; nothing is changed then.
type Book struct {
	Home paths.Dir
	Disk store.Disk
	Zone *time.Location
}

// Ask stores a question. It replaces an earlier one of the same run.
func (b Book) Ask(ctx context.Context, q Question) error {
	return b.locked(ctx, func() error {
		if err := store.MkdirOwn(b.Home.Questions()); err != nil {
			return err
		}
		q.Asked, q.Expires = q.Asked.In(b.Zone), q.Expires.In(b.Zone)
		return store.WriteJSON(b.Home.Question(q.Run), q, store.Synced)
	})
}

// Replace stores a question of a run that waits unless the run has one, and returns the one that is stored. A file that cannot be parsed is
// set aside.
func (b Book) Replace(ctx context.Context, q Question) (stored Question, err error) {
	err = b.locked(ctx, func() error {
		stored, err = store.ReadJSON[Question](b.Disk, b.Home.Question(q.Run))
		if err != nil || stored.Run == q.Run {
			return err
		}
		stored = q
		if err := store.MkdirOwn(b.Home.Questions()); err != nil {
			return err
		}
		return store.WriteJSON(b.Home.Question(q.Run), q, store.Synced)
	})
	return stored, err
}

// Load reads the question of a run. The error is fs.ErrNotExist if there is none.
func (b Book) Load(run string) (q Question, err error) {
	data, err := store.Read(b.Home.Question(run))
	if err != nil {
		return q, err
	}
	if err := json.Unmarshal(data, &q); err != nil {
		return q, fmt.Errorf("%s: not valid: %w", b.Home.Question(run), err)
	}
	return q, nil
}

// List returns all questions, oldest first, those with an answer too.
func (b Book) List() ([]Question, error) {
	entries, err := store.List(b.Home.Questions())
	if err != nil {
		return nil, err
	}
	var all []Question
	for _, e := range entries {
		run, isQuestion := strings.CutSuffix(e.Name(), ".json")
		if !isQuestion || store.IsDraft(e.Name()) {
			continue
		}
		q, err := b.Load(run)
		switch {
		case errors.Is(err, fs.ErrNotExist): // it was just removed
		case err != nil:
			b.Disk.Warn(err.Error())
		default:
			all = append(all, q)
		}
	}
	slices.SortStableFunc(all, func(p, q Question) int { return p.Asked.Compare(q.Asked) })
	return all, nil
}

// Answer stores the answer to the question of a run and returns the question. The error is a *Closed if there is none, if it is answered or
// expired, or if the text is no answer to it.
func (b Book) Answer(ctx context.Context, run, text string) (answered Question, err error) {
	err = b.Edit(ctx, run, func(q *Question) error {
		switch {
		case q.Answer != "":
			return &Closed{run, "its question was answered at " + q.Answered.In(b.Zone).Format("2006-01-02 15:04")}
		case q.Gone:
			return &Closed{run, "its question was removed or damaged and takes no answer"}
		case q.Expired(b.Disk.Now()):
			return &Closed{run, "its question expired at " + q.Expires.In(b.Zone).Format("2006-01-02 15:04")}
		}
		answer, err := q.Choose(text)
		if err != nil {
			return err
		}
		q.Answer, q.Answered = answer, b.Disk.Now().In(b.Zone)
		answered = *q
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = &Closed{run, "it does not wait for an answer"}
	}
	return answered, err
}

// Lapse closes the question of a run, unless it is answered, and returns it as it is then. The error is fs.ErrNotExist if there is
// none.
func (b Book) Lapse(ctx context.Context, run string) (lapsed Question, err error) {
	err = b.Edit(ctx, run, func(q *Question) error {
		q.Lapsed = q.Answer == ""
		lapsed = *q
		return nil
	})
	return lapsed, err
}

// Edit changes the question of a run. The error is fs.ErrNotExist if there is none; a file that cannot be parsed is set aside. An
// error of change leaves the question as it is.
func (b Book) Edit(ctx context.Context, run string, change func(*Question) error) error {
	return b.locked(ctx, func() error {
		q, err := store.ReadJSON[Question](b.Disk, b.Home.Question(run))
		if err == nil && q.Run == "" {
			err = fs.ErrNotExist
		}
		if err == nil {
			err = change(&q)
		}
		if err != nil {
			return err
		}
		return store.WriteJSON(b.Home.Question(run), q, store.Synced)
	})
}

// Drop removes the question of a run, if there is one.
func (b Book) Drop(ctx context.Context, run string) error {
	if _, err := os.Lstat(b.Home.Question(run)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return b.locked(ctx, func() error { return store.Remove(b.Home.Question(run)) })
}

func (b Book) locked(ctx context.Context, change func() error) error {
	return b.Disk.Locked(ctx, b.Home.Lock("questions"), change)
}
