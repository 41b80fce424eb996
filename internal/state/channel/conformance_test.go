package channel

import (
	"context"
	"errors"
	"io/fs"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/testkit/storetest"
)

// TestConformance: the messages of many processes, each with the number that follows the last one, as a session keeps only 50.
func TestConformance(t *testing.T) {
	bookAt := func(dir string, warn func(string)) Book {
		return Book{Home: paths.Dir(dir), Disk: store.Disk{Now: time.Now, Warn: warn, Locks: &lock.Table{}}}
	}
	n := telegram(t)
	storetest.Run(t, storetest.Store{
		File: func(dir string) string { return paths.Dir(dir).Channel(n.String()) },
		Lock: func(dir string) string { return paths.Dir(dir).ConversationLock(n.Key()) },
		Busy: lock.ErrBusy,
		Acts: map[string]storetest.Act{
			"Remove": func(_ context.Context, dir string, warn func(string)) error { return bookAt(dir, warn).Remove(n) },
		},
		Add: func(ctx context.Context, dir string, warn func(string), _ string) error {
			other := func(text string) {
				if !strings.Contains(text, "is tried again") { // it comes before the error
					warn(text)
				}
			}
			return inTurn(ctx, bookAt(dir, other), n, func(turn *Turn) error {
				turn.Begin(ctx, strconv.Itoa(number(turn.Messages())+1), time.Now())
				return nil
			})
		},
		Count: func(dir string, warn func(string)) (int, error) {
			s, err := bookAt(dir, warn).Read(n)
			if errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
			return number(s.Messages), err
		},
		Corrupt: []string{"", "{", "{}", `{"session_id":"telegram_1"}`, "[]"},
		Aside:   ".corrupted",
	})
}

// number is the last message.
func number(messages []Message) int {
	if len(messages) == 0 {
		return 0
	}
	n, err := strconv.Atoi(messages[len(messages)-1].Content)
	if err != nil {
		return -1
	}
	return n
}
