package listener

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/agent/turn"
	"github.com/ollim/ollim/internal/server/listener/messenger"
	"github.com/ollim/ollim/internal/server/listener/stream"
	"github.com/ollim/ollim/internal/state/queue"
	"github.com/ollim/ollim/internal/state/runlog"
)

// pageSize is how many messages of a history are read at a time.
const pageSize = 100

// showOpen has the lanes show the answers that an earlier process could not show, before anything newer.
func (l *Listener) showOpen(ctx context.Context) {
	open := l.handled.open()
	for _, id := range slices.SortedFunc(maps.Keys(open), l.handled.compare) {
		channel := open[id]
		l.lanes.do(channel, func() { l.recover(ctx, channel, id) })
	}
}

// CatchUp has the lanes handle what was said in the known channels since the last handled message, before anything newer, and before the
// messages that wait: what became of these is known only from the history.
func (l *Listener) CatchUp(ctx context.Context) {
	if !l.API.Able().History {
		return
	}
	for _, channel := range l.handled.channels() {
		l.due.Store(channel, true)
		l.lanes.do(channel, func() { l.catchUp(ctx, channel) })
	}
}

// catchUp reads the history of a channel if it has not been read since CatchUp. It runs in the channel's lane.
func (l *Listener) catchUp(ctx context.Context, channel string) {
	if _, due := l.due.LoadAndDelete(channel); !due {
		return
	}
	err := l.Insist(ctx, func() error { return l.readHistory(ctx, channel) })
	if channel != l.self.Direct && messenger.IsRefused(err) {
		err = l.handled.forget(channel) // it is deleted, or the bot was removed from it
	}
	l.warn(err)
}

// Newest returns the id of the newest message that was handled in any channel, "" before the first start.
func (l *Listener) Newest() string { return l.handled.newest() }

// Knows reports whether messages of a channel were handled, or Begin was called for it.
func (l *Listener) Knows(channel string) bool { return l.handled.upTo(channel) != "" }

// Begin notes that what was said in a channel up to a message is no concern of the listener's. With "" it is the newest message.
func (l *Listener) Begin(ctx context.Context, channel, newest string) error {
	if newest == "" {
		list, err := l.Messenger.History(ctx, channel, "", 1)
		order := l.API.Able().Order
		switch {
		case err != nil:
			return err
		case len(list) > 0:
			newest = list[0].ID
		case order != nil:
			newest = order.First
		default: // the first message begins it
			return nil
		}
	}
	return l.handled.begin(channel, newest)
}

// readHistory handles the messages of a channel since the last handled one. It runs in the channel's lane.
func (l *Listener) readHistory(ctx context.Context, channel string) error {
	after, newest := l.handled.upTo(channel), ""
	if after == "" {
		return l.Begin(ctx, channel, "")
	}
	waited := slices.DeleteFunc(l.heard.waiting(channel), func(id string) bool { // else the history does not have it
		return l.handled.order != nil && l.handled.compare(id, after) <= 0
	})
	read := map[string]bool{}
	for {
		list, err := l.Messenger.History(ctx, channel, after, pageSize)
		if err != nil {
			return err
		}
		for _, m := range list {
			read[m.ID] = true
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
	l.heard.compare(waited, read)
	return l.handled.passed(channel, newest)
}

// slack is how much earlier than the last note on disk a run may have begun whose message is not noted.
const slack = time.Hour

// earlier returns the ids of messages that an earlier process has put into the queue, or whose runs it has begun.
func (l *Listener) earlier(h Home) map[string]bool {
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
func (l *Listener) recover(ctx context.Context, channel, id string) {
	if _, open := l.handled.open()[id]; !open || ctx.Err() != nil { // an answer to several messages is shown once
		return
	}
	text, answered, err := l.unshown(l.now(), channel, id)
	if errors.Is(err, errOther) {
		return
	}
	if !slices.Contains(answered, id) {
		answered = append(answered, id)
	}
	l.unreact(ctx, channel, answered...)
	switch {
	case errors.Is(err, errDelivered):
		err = nil
	case err == nil:
		err = l.showMissing(ctx, channel, id, text)
	}
	l.warn(err)
	if ctx.Err() == nil && (err == nil || messenger.IsPermanent(err)) {
		l.warn(l.handled.close(answered...))
	}
}

// unreact removes the reactions of messages that were left by a process that has ended.
func (l *Listener) unreact(ctx context.Context, channel string, ids ...string) {
	if !l.API.Able().Reactions {
		return
	}
	for _, id := range ids {
		for _, emoji := range []string{stream.Working, waitingMark} {
			l.warn(l.Insist(ctx, func() error { return messenger.WithoutRefusal(l.API.Unreact(ctx, channel, id, emoji)) }))
		}
	}
}

// What the listener says about turns that it did not finish.
const (
	sayCutOff = "ollim was restarted during this turn, and the answer was cut off. Your message is kept: the agent reads it again with your next one."
	sayCut    = "ollim was restarted during this turn, and the answer was cut off. Send your message again to have it answered."
)

var (
	// errDelivered is the error of an answer whose end went to the outbox: its beginning is shown and stays.
	errDelivered = errors.New("the answer was delivered by way of the outbox")
	// errOther is the error of a message that was answered together with another one, to which the answer is shown.
	errOther = errors.New("the answer is a reply to another message")
)

// unshown returns what is to be shown for a message whose answer was not shown, and which messages that answers. A message that waits in
// the queue is answered by way of the outbox.
func (l *Listener) unshown(h Home, channel, id string) (text string, answered []string, err error) {
	record, err := l.answering(h, id)
	if err != nil {
		return "", nil, err
	}
	contents, err := h.Runner.Queue.Contents()
	if err != nil {
		return "", nil, err
	}
	switch {
	case contains(contents.Waiting, id), contains(contents.Running, id):
		return "", nil, nil
	case contains(contents.CutOff, id):
		return sayCutOff, nil, nil
	case record.ID == "" && channel == l.self.Direct: // the owner took it out of the queue
		return "", nil, nil
	case record.ID == "":
		return sayCut, nil, nil
	}
	standing, err := h.Runner.Runs.Standing(record.ID)
	switch {
	case err != nil:
		return "", nil, err
	case standing.Messages > standing.Pings:
		return "", nil, errDelivered
	case !record.Done():
		return sayCut, nil, nil
	case l.handled.shownTo(record.Answers) != id:
		return "", nil, errOther
	}
	text, err = stream.Whole(l.API.Able(), record, h.Runner.Runs.Events(record.ID, nil))
	return text, record.Answers, err
}

// answering returns the record of the run that answers a message; the zero record if there is none.
func (l *Listener) answering(h Home, id string) (runlog.Record, error) {
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
func (l *Listener) showMissing(ctx context.Context, channel, after, text string) error {
	able, cut := l.API.Able(), text == sayCut || text == sayCutOff
	shown, err := l.answerTo(ctx, channel, after, cut)
	if err != nil {
		return err
	}
	if cut {
		var texts []string
		for _, m := range shown {
			texts = append(texts, m.Text)
		}
		text = strings.TrimSpace(stream.Begun(able, texts) + "\n\n" + able.Style.Line(text))
	}
	nonces := messenger.Answer(after)
	if cut && !able.History && len(l.handled.unfinished(after)) > 0 { // what is shown has these nonces, and stays
		nonces = "late-" + after
	}
	var missing []messenger.Outgoing
	if text != "" {
		missing = messenger.Parts(nonces, messenger.Outgoing{Text: text, ReplyTo: after}, able)
	}
	for len(missing) > 0 {
		i := slices.IndexFunc(shown, func(m *messenger.Message) bool {
			return strings.TrimSpace(m.Text) == strings.TrimSpace(missing[0].Text)
		})
		if i < 0 {
			break
		}
		shown, missing = slices.Delete(shown, i, i+1), missing[1:]
	}
	for _, part := range missing {
		var sent messenger.Sent
		if err := l.Insist(ctx, func() (err error) { sent, err = l.sendAgain(ctx, channel, part); return err }); err != nil {
			return err
		}
		shown = slices.DeleteFunc(shown, func(m *messenger.Message) bool { return m.ID == sent.ID })
	}
	for _, m := range shown {
		if err := l.Insist(ctx, func() error { return messenger.WithoutRefusal(l.API.Delete(ctx, channel, m.ID)) }); err != nil {
			return err
		}
	}
	return nil
}

// sendAgain sends a part of an answer that another process has perhaps sent with another text.
func (l *Listener) sendAgain(ctx context.Context, channel string, part messenger.Outgoing) (sent messenger.Sent, err error) {
	sent, err = l.API.Send(ctx, channel, part)
	if err == nil && strings.TrimSpace(sent.Text) != strings.TrimSpace(part.Text) && l.API.Able().Edits > 0 {
		err = l.API.Edit(ctx, channel, sent.ID, messenger.Outgoing{Text: part.Text})
	}
	return sent, err
}

// answerTo returns the messages that show a part of the answer to a message: those that are noted, and the first one also if the process
// was killed before it noted that, because it is a reply. Where the messenger has no history, their texts are not known, and those of an
// answer that was cut off are left as they are.
func (l *Listener) answerTo(ctx context.Context, channel, to string, cut bool) (answer []*messenger.Message, err error) {
	noted := l.handled.unfinished(to)
	if !l.API.Able().History {
		for _, id := range noted {
			if !cut {
				answer = append(answer, &messenger.Message{ID: id})
			}
		}
		return answer, nil
	}
	var list []*messenger.Message
	err = l.Insist(ctx, func() error {
		list, err = l.Messenger.History(ctx, channel, to, pageSize)
		return err
	})
	for _, m := range list {
		if m.Own && (m.ReplyTo == to || slices.Contains(noted, m.ID)) {
			answer = append(answer, m)
		}
	}
	return answer, err
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
