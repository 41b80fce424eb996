package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/state/session"
)

// TestBusyAtThePing: whether the owner is in mid-conversation is judged when a run pings, not when it begins.
func TestBusyAtThePing(t *testing.T) {
	t.Parallel()
	for name, atStart := range map[string]bool{"becomes busy": false, "becomes idle": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.must("config", "set", "delivery.command", "true")
			w.script("turns: [[{delay: 1m}, {tool: ping_user, input: {message: look}}]]\n")
			w.must("routine", "add", "watch", "--cron", "0 9 * * *", "--background", "--isolated", "--update-main-session", "freely", "Look.")
			var turn *lock.Guard
			begin := func() {
				var err error
				if turn, err = lock.TryGuard(paths.Dir(w.dir).ConversationLock(session.MainKey)); err != nil {
					t.Error(err)
				}
			}
			if atStart {
				begin()
			}
			var out, errOut bytes.Buffer
			d := w.deps(strings.NewReader(""), &out, &errOut)
			d.Sleep = func(ctx context.Context, _ time.Duration) error { // in the script's delay
				if atStart {
					turn.Release()
				} else {
					begin()
				}
				return ctx.Err()
			}
			if status := execute(t.Context(), d, []string{"fire", "watch"}); status != 0 {
				t.Fatalf("exit status %d, %s", status, errOut.String())
			}
			if !atStart {
				turn.Release()
			}
			record := w.last()
			refused := strings.Contains(w.read(runFile(record["id"].(string), "events.jsonl")), "The owner is in mid-conversation.")
			if pings := record["pings"].(float64); record["busy"] != atStart || refused == atStart || (pings == 1) != atStart {
				t.Errorf("busy at the start: %v; refused: %v, %v pings", record["busy"], refused, pings)
			}
		})
	}
}
