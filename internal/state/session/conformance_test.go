package session

import (
	"context"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/testkit/storetest"
)

func bookAt(dir string, warn func(string)) Book {
	return Book{Home: paths.Dir(dir), Disk: store.Disk{Now: time.Now, Warn: warn}, Zone: time.UTC}
}

func TestHistoryConformance(t *testing.T) {
	storetest.Run(t, storetest.Store{
		File: func(dir string) string { return paths.Dir(dir).SessionHistory() },
		Lock: func(dir string) string { return paths.Dir(dir).Lock("session_history") },
		Busy: lock.ErrBusy,
		Add: func(ctx context.Context, dir string, warn func(string), item string) error {
			return bookAt(dir, warn).Log(ctx, Event{SessionID: item, Event: IsolatedBg})
		},
		Count: func(dir string, warn func(string)) (int, error) {
			seen := map[string]bool{}
			for e, err := range bookAt(dir, warn).History(nil) { // a kill at the end of a page leaves a part of a line, which nobody waited for
				if err != nil {
					return 0, err
				}
				seen[e.SessionID] = true
			}
			return len(seen), nil
		},
	})
}

func TestMessagesConformance(t *testing.T) {
	storetest.Run(t, storetest.Store{
		File: func(dir string) string { return paths.Dir(dir).State("fork_messages.json") },
		Lock: func(dir string) string { return paths.Dir(dir).Lock("fork_messages") },
		Busy: lock.ErrBusy,
		Add: func(ctx context.Context, dir string, warn func(string), item string) error {
			return bookAt(dir, warn).Sent(ctx, Message{MessageID: item, ForkSessionID: "s"})
		},
		Count: func(dir string, _ func(string)) (int, error) {
			var all []Message
			text, err := os.ReadFile(paths.Dir(dir).State("fork_messages.json"))
			if err == nil {
				err = json.Unmarshal(text, &all)
			}
			return len(all), err
		},
		Corrupt: []string{`[{"message_id": "torn`, "", "{}"},
	})
}
