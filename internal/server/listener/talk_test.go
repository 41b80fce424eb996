package listener

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/ollim/ollim/internal/server/listener/messenger"
)

// stuck is a messenger that never answers a request for a reaction.
type stuck struct{ *plain }

func (stuck) React(ctx context.Context, _, _, _ string) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestMarkWithoutAnswer: a mark that the messenger never confirms does not keep the turns of the conversation waiting for good.
func TestMarkWithoutAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := stuck{&plain{T: t, able: messenger.Able{Reactions: true}}}
		l := &Listener{Options: Options{Actions: &Actions{API: api, Warn: func(m string) { t.Error(m) }}}, turns: t.Context()}
		c := &conversation{listener: l, channel: direct, busy: true}
		talks := talks{byID: map[string]*conversation{direct: c}}
		talks.add(l, direct, spoken{id: "one"})
		c.unmark(c.marked) // the bubble of the test has no other work: without an end of the request it is a deadlock
		talks.wait()
	})
}
