package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/agent/conversation"
	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/channel"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
)

// channelLimit bounds a turn of a channel, as the default of jobs does.
const channelLimit = 30 * time.Minute

// ChatChannel takes one turn of a channel's session, as an automatic run. If the session cannot be saved, the answer is still in the
// record, and the error is a *store.NotWritten.
func (r *Runner) ChatChannel(ctx context.Context, name channel.Name, m Message, o Options) (runlog.Record, error) {
	system, err := r.channelPrompt()
	c := &conversation.Channel{Book: r.Channels, Name: name, Zone: r.Zone}
	record, err := r.runTurn(ctx, Spec{
		Identity:     Identity{Kind: kindChannel, ID: name.String(), Path: name.String(), Answers: m.answers()},
		Input:        prompt.Input{Task: prompt.Task{Body: m.Text}, Piped: prompt.Piped{Text: o.Input, Files: m.Attachments}},
		Conversation: c,
		Engine:       Choice{Name: o.Engine, Model: o.Model, Thinking: "off"},
		Policy:       Policy{System: system, Tools: r.Channel.AllowedTools, Update: job.Blocked, Awaited: true},
		Limits:       Limits{Time: channelLimit, Patience: askPatience},
		Observe:      o.Observe,
	}, err)
	return record, errors.Join(err, c.Unsaved())
}

// channelPrompt returns the system prompt of a channel turn. A CHANNEL.md that cannot be read is an error, because other people read
// the answers.
func (r *Runner) channelPrompt() (string, error) {
	path := r.Home.ChannelPrompt()
	text, err := store.ReadText(path, maxProfile, false)
	switch own := strings.TrimSpace(string(text)); {
	case errors.Is(err, fs.ErrNotExist), err == nil && own == "":
		return prompt.SystemChannel, nil
	case err == nil:
		return own, nil
	}
	return "", fmt.Errorf("%s: %s", path, store.Cause(err))
}
