package discord

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"github.com/ollim/ollim/internal/agent/turn"
	"github.com/ollim/ollim/internal/server/discord/api"
	"github.com/ollim/ollim/internal/state/queue"
	"github.com/ollim/ollim/internal/state/runlog"
)

// pageSize is how many messages of a history are read at a time.
const pageSize = 100

// catchUp has the lanes handle what was said in the known channels since the last handled message, before anything newer. At the
// start it also shows answers that an earlier process could not show.
func (l *listener) catchUp(ctx context.Context, start bool) {
	if start {
		open := l.handled.open()
		for _, id := range slices.SortedFunc(maps.Keys(open), compareIDs) {
			channel := open[id]
			l.lanes.do(channel, func() { l.recover(ctx, channel, id) })
		}
	}
	for _, channel := range l.handled.channels() {
		l.lanes.do(channel, func() {
			err := l.insist(ctx, func() error { return l.readHistory(ctx, channel) })
			if channel != l.dm && errors.Is(err, api.ErrRefused) {
				err = l.handled.forget(channel) // it is deleted, or the bot was removed from it
			}
			l.warn(err)
		})
	}
}

// openDMs opens the direct messages of those who are allowed, so that the history of each has a beginning before its first message:
// that of a channel which an earlier process did not know is newest, the last message that it handled. One that cannot be opened is
// opened at the next start.
func (l *listener) openDMs(ctx context.Context, h Home, newest string) {
	for _, user := range slices.Concat(l.owners(h), h.Allow) {
		if l.handled.upTo(user) != "" { // a channel
			continue
		}
		channel, err := l.API.OpenDM(ctx, user)
		switch {
		case errors.Is(err, api.ErrRefused), errors.Is(err, api.ErrClosed): // a channel, or somebody who takes no messages
			continue
		case err == nil && l.handled.upTo(channel) != "":
			continue
		case err == nil && snowflake(newest) <= 1: // nothing was handled yet
			err = l.readHistory(ctx, channel)
		case err == nil:
			err = l.handled.begin(channel, newest)
		}
		if ctx.Err() != nil {
			return
		}
		l.warn(err)
	}
}

// readHistory handles the messages of a channel since the last handled one. It runs in the channel's lane.
func (l *listener) readHistory(ctx context.Context, channel string) error {
	after := l.handled.upTo(channel)
	if after == "" { // the first start
		list, err := l.API.History(ctx, channel, "", 1)
		if err != nil {
			return err
		}
		newest := before("1", 0)
		if len(list) > 0 {
			newest = list[0].ID
		}
		return l.handled.begin(channel, newest)
	}
	guild := ""
	if channel != l.dm { // a message in the history does not say
		at, err := l.places.find(ctx, l.API, channel)
		if err != nil {
			return err
		}
		guild = at.guild
	}
	newest := ""
	for {
		list, err := l.API.History(ctx, channel, after, pageSize)
		if err != nil {
			return err
		}
		for _, m := range list {
			m.GuildID = guild
			l.take(ctx, m)
			after, newest = m.ID, m.ID
		}
		if len(list) < pageSize || ctx.Err() != nil {
			break
		}
	}
	if newest == "" || ctx.Err() != nil {
		return nil //nolint:nilerr // the next start goes on
	}
	return l.handled.passed(channel, newest)
}

// slack is how much earlier than the last note on disk a run may have begun whose message is not noted.
const slack = time.Hour

// earlier returns the ids of messages that an earlier process has put into the queue, or whose runs it has begun.
func (l *listener) earlier(h Home) map[string]bool {
	known := map[string]bool{}
	waiting, err := h.Runner.Queue.Contents()
	l.warn(err)
	for _, list := range [][]string{sources(waiting.Running), sources(waiting.Waiting), sources(waiting.CutOff)} {
		for _, id := range list {
			known[id] = true
		}
	}
	at := l.handled.state.At
	if at.IsZero() {
		return known
	}
	for r, err := range h.Runner.Runs.Since(at.Add(-slack)) {
		if err != nil {
			l.warn(err)
			break
		}
		for _, id := range r.Answers {
			known[id] = true
		}
	}
	return known
}

// recover completes what a process that was killed has left of a message: it removes the reaction, and shows the answer or says why
// there is none.
func (l *listener) recover(ctx context.Context, channel, id string) {
	if ctx.Err() != nil {
		return
	}
	h := l.now()
	for _, emoji := range []string{working, waitingMark} {
		l.warn(l.insist(ctx, func() error { return ignoreRefusal(l.API.Unreact(ctx, channel, id, emoji)) }))
	}
	text, err := l.unshown(h, channel, id)
	switch {
	case errors.Is(err, errDelivered):
		err = nil
	case err == nil:
		err = l.showMissing(ctx, channel, id, text)
	}
	l.warn(err)
	if ctx.Err() == nil && (err == nil || api.Permanent(err)) {
		l.warn(l.handled.close(id))
	}
}

func ignoreRefusal(err error) error {
	if errors.Is(err, api.ErrRefused) {
		return nil
	}
	return err
}

// What the listener says about turns that it did not finish.
const (
	sayCutOff = "-# The listener was restarted during this turn, and the answer was cut off. Your message is kept: the agent reads it again with your next one."
	sayCut    = "-# The listener was restarted during this turn, and the answer was cut off. Send your message again to have it answered."
)

// errDelivered is the error of an answer whose end went to the outbox: its beginning is shown and stays.
var errDelivered = errors.New("the answer was delivered by way of the outbox")

// unshown returns what is to be shown for a message whose answer was not shown. A message that waits in the queue is answered by way
// of the outbox.
func (l *listener) unshown(h Home, channel, id string) (text string, err error) {
	record, err := l.answering(h, id)
	if err != nil {
		return "", err
	}
	contents, err := h.Runner.Queue.Contents()
	if err != nil {
		return "", err
	}
	switch {
	case contains(contents.Waiting, id), contains(contents.Running, id):
		return "", nil
	case contains(contents.CutOff, id):
		return sayCutOff, nil
	case record.ID == "" && channel == l.dm: // the owner took it out of the queue
		return "", nil
	case record.ID == "":
		return sayCut, nil
	}
	standing, err := h.Runner.Runs.Standing(record.ID)
	switch {
	case err != nil:
		return "", err
	case standing.Messages > standing.Pings:
		return "", errDelivered
	case !record.Done():
		return sayCut, nil
	}
	return answerOf(h, record)
}

// answerOf returns the whole answer of a run that has ended, as it is shown.
func answerOf(h Home, record runlog.Record) (string, error) {
	c := newContent(record.Started)
	for e, err := range h.Runner.Runs.Events(record.ID, nil) {
		if err != nil {
			return "", err
		}
		c.hear(e, record.Started)
	}
	c.conclude(record, nil)
	return c.text(), nil
}

// answering returns the record of the run that answers a message; the zero record if there is none.
func (l *listener) answering(h Home, id string) (runlog.Record, error) {
	for r, err := range h.Runner.Runs.Since(h.Disk.Now().Add(-turn.ForkIdle * 6 * 24)) {
		if err != nil {
			return runlog.Record{}, err
		}
		if slices.Contains(r.Answers, id) {
			return r, nil
		}
	}
	return runlog.Record{}, nil
}

// showMissing makes the bot's messages about a message say a text: it sends the parts that are not there, in order, and deletes what
// else the process that was killed has shown. The answer of a turn that was cut off is all that there will be of it, so it is sent
// again.
func (l *listener) showMissing(ctx context.Context, channel, after, text string) error {
	var list []*discordgo.Message
	err := l.insist(ctx, func() (err error) {
		list, err = l.API.History(ctx, channel, after, pageSize)
		return err
	})
	if err != nil {
		return err
	}
	shown := l.answerTo(list, after)
	if text == sayCut || text == sayCutOff {
		text = strings.TrimSpace(begun(shown) + "\n\n" + text)
	}
	var missing []api.Outgoing
	if text != "" {
		missing = api.Parts("late-"+after, api.Outgoing{Text: text, ReplyTo: after})
	}
	for len(missing) > 0 {
		i := slices.IndexFunc(shown, func(m *discordgo.Message) bool { return says(m, missing[0]) })
		if i < 0 {
			break
		}
		shown, missing = slices.Delete(shown, i, i+1), missing[1:]
	}
	for _, part := range missing {
		if err := l.insist(ctx, func() error { _, err := l.API.Send(ctx, channel, part); return err }); err != nil {
			return err
		}
	}
	for _, m := range shown {
		if err := l.insist(ctx, func() error { return ignoreRefusal(l.API.Delete(ctx, channel, m.ID)) }); err != nil {
			return err
		}
	}
	return nil
}

func says(m *discordgo.Message, part api.Outgoing) bool {
	return strings.TrimSpace(m.Content) == strings.TrimSpace(part.Text)
}

// answerTo returns the messages of list that show a part of the answer to a message: those that are noted, and the first one also if
// the process was killed before it noted that, because it is a reply.
func (l *listener) answerTo(list []*discordgo.Message, to string) (answer []*discordgo.Message) {
	noted := l.handled.unfinished(to)
	for _, m := range list {
		reply := m.MessageReference != nil && m.MessageReference.MessageID == to
		if m.Author != nil && m.Author.ID == l.self && (reply || slices.Contains(noted, m.ID)) {
			answer = append(answer, m)
		}
	}
	return answer
}

// begun returns the beginning of an answer that messages show, without the line that says what the agent does.
func begun(answer []*discordgo.Message) string {
	var texts []string
	for _, m := range answer {
		texts = append(texts, m.Content)
	}
	text := "\n" + strings.Join(texts, "\n")
	if i := strings.LastIndex(text, "\n"); strings.HasPrefix(text[i+1:], subtext) {
		text = text[:i]
	}
	return strings.TrimSpace(text)
}

func sources(list []queue.Message) (ids []string) {
	for _, m := range list {
		if m.Source != "" {
			ids = append(ids, m.Source)
		}
	}
	return ids
}

func contains(list []queue.Message, id string) bool { return slices.Contains(sources(list), id) }
