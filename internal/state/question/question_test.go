package question_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/question"
	"github.com/ollim/ollim/internal/testkit/storetest"
)

func at(dir string, now time.Time, warn func(string)) question.Book {
	disk := store.Disk{Now: func() time.Time { return now }, Warn: warn, Locks: &lock.Table{}}
	return question.Book{Home: paths.Dir(dir), Disk: disk, Zone: time.UTC}
}

func TestConformance(t *testing.T) {
	now := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	ask := func(ctx context.Context, dir string, warn func(string), run string) error {
		return at(dir, now, warn).Ask(ctx, question.Question{Run: run, Text: "Which?", Expires: now.Add(time.Hour)})
	}
	storetest.Run(t, storetest.Store{
		File: func(dir string) string { return paths.Dir(dir).Questions() },
		Lock: func(dir string) string { return paths.Dir(dir).Lock("questions") },
		Busy: lock.ErrBusy,
		Acts: map[string]storetest.Act{
			"Answer": func(ctx context.Context, dir string, warn func(string)) error {
				_, err := at(dir, now, warn).Answer(ctx, "first", "red")
				return err
			},
			"Lapse": func(ctx context.Context, dir string, warn func(string)) error {
				_, err := at(dir, now, warn).Lapse(ctx, "first")
				return err
			},
			"Drop": func(ctx context.Context, dir string, warn func(string)) error {
				return at(dir, now, warn).Drop(ctx, "first")
			},
		},
		Add: ask,
		Count: func(dir string, warn func(string)) (int, error) {
			all, err := at(dir, now, warn).List()
			return len(all), err
		},
	})
}

// An answer is given once, in time, and only to a question.
func TestAnswer(t *testing.T) {
	now := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	dir := t.TempDir()
	book := at(dir, now, func(m string) { t.Error(m) })
	if err := book.Ask(t.Context(), question.Question{Run: "r", Text: "Which?", Choices: []string{"red", "2"}, Asked: now, Expires: now.Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	refuses := func(b question.Book, run, text, why string) {
		t.Helper()
		_, err := b.Answer(t.Context(), run, text)
		var closed *question.Closed
		if !errors.As(err, &closed) || closed.Reason != why {
			t.Errorf("%q: %v, want %s", text, err, why)
		}
	}
	refuses(book, "other", "red", "it does not wait for an answer")
	refuses(book, "r", " \n", "the answer is empty")
	refuses(book, "r", "0", "there is no choice 0: want 1 to 2, or a text")
	refuses(at(dir, now.Add(time.Hour), nil), "r", "red", "its question expired at 2026-03-02 11:00")
	if q, err := book.Answer(t.Context(), "r", "2"); err != nil || q.Answer != "2" || !q.Answered.Equal(now) {
		t.Fatalf("%+v, %v", q, err)
	}
	refuses(book, "r", "1", "its question was answered at 2026-03-02 10:00")
	if q, err := book.Lapse(t.Context(), "r"); err != nil || q.Lapsed || q.Expired(now.Add(48*time.Hour)) {
		t.Errorf("an answered question has expired: %+v, %v", q, err)
	}
	if err := errors.Join(book.Drop(t.Context(), "r"), book.Drop(t.Context(), "r")); err != nil {
		t.Error(err)
	}
	if _, err := book.Load("r"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// Of many who answer or close a question at once, one does.
func TestOneAnswers(t *testing.T) {
	now := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	book := at(t.TempDir(), now, func(m string) { t.Error(m) })
	if err := book.Ask(t.Context(), question.Question{Run: "r", Text: "Which?", Expires: now.Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	const most = 16
	given := make(chan string, most+1)
	var all sync.WaitGroup
	for i := range most {
		all.Go(func() {
			text := fmt.Sprintf("answer %d", i)
			if _, err := book.Answer(t.Context(), "r", text); err == nil {
				given <- text
			}
		})
	}
	all.Go(func() {
		if q, err := book.Lapse(t.Context(), "r"); err != nil {
			t.Error(err)
		} else if q.Lapsed {
			given <- ""
		}
	})
	all.Wait()
	close(given)
	var won []string
	for text := range given {
		won = append(won, text)
	}
	if q, err := book.Load("r"); err != nil || len(won) != 1 || q.Answer != won[0] || q.Lapsed != (won[0] == "") {
		t.Errorf("%q, and the question is %+v, %v", won, q, err)
	}
}

// A file that cannot be read is reported, and the others are listed.
func TestDamaged(t *testing.T) {
	now := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	dir := t.TempDir()
	var warned []string
	book := at(dir, now, func(m string) { warned = append(warned, m) })
	for i, run := range []string{"new", "old", "bad"} {
		if err := book.Ask(t.Context(), question.Question{Run: run, Text: "Which?", Asked: now.Add(-time.Duration(i) * time.Hour)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(paths.Dir(dir).Question("bad"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := book.List()
	if err != nil || len(all) != 2 || all[0].Run != "old" || all[1].Run != "new" || len(warned) != 1 {
		t.Errorf("%+v, %v; warned %q", all, err, warned)
	}
	if _, err := book.Answer(t.Context(), "bad", "red"); !errors.As(err, new(*question.Closed)) || len(warned) != 2 {
		t.Errorf("%v; warned %q", err, warned)
	}
}
