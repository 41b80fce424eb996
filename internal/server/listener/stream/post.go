package stream

import (
	"context"
	"crypto/rand"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/server/listener/messenger"
)

// posted is the messages that show an answer, and the requests for them.
type posted struct {
	able   messenger.Able
	list   []message
	nonce  string      // of a message that was perhaps created; "": there is none
	placed time.Time   // when the first message was sent
	began  time.Time   // when the turn began
	opened bool        // text of the agent is shown
	mute   bool        // messages are refused
	hold   time.Time   // no request before, after a failure
	last   []time.Time // of the latest requests

	unnoted error // of Stream.Showing
}

// message is a message as it is.
type message struct {
	id   string // "": it cannot be edited any more
	text string // what it shows; "": not known
}

func (p *posted) ids() (list []string) {
	for _, m := range p.list {
		if m.id != "" {
			list = append(list, m.id)
		}
	}
	return list
}

// slot returns when the next request may be made. Without a pause it follows the one before at once, as far as the rate allows.
func (p *posted) slot(now time.Time, pause bool) time.Time {
	at, n := p.hold, len(p.last)
	if n > 0 && pause {
		at = later(at, p.last[n-1].Add(p.pause(now)))
	}
	if n >= p.able.Edits {
		at = later(at, p.last[n-p.able.Edits].Add(p.able.Span))
	}
	return at
}

// pause returns the shortest time between two edits: the longer the turn has taken, the longer.
func (p *posted) pause(now time.Time) time.Duration {
	switch spent := now.Sub(p.began); {
	case spent < 30*time.Second:
		return p.able.Pause
	case spent < 2*time.Minute:
		return max(2500*time.Millisecond, p.able.Pause)
	}
	return max(5*time.Second, p.able.Pause)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func (p *posted) count(now time.Time) {
	p.last = append(p.last, now)
	p.last = p.last[max(0, len(p.last)-p.able.Edits):]
}

// differing returns the first message that does not show its text; -1 if all do.
func (p *posted) differing(texts []string) int {
	for i, text := range texts {
		switch {
		case i >= len(p.list) && p.mute:
			return -1
		case i >= len(p.list), p.list[i].id != "" && p.list[i].text != text:
			return i
		}
	}
	return -1
}

// post keeps the messages up to date until live ends. There is one request at a time, with what is to be shown by then.
func (a *Answer) post(live, request context.Context) {
	wait := a.step(request)
	close(a.placed)
	for {
		due := time.NewTimer(wait)
		select {
		case <-a.changed:
		case <-due.C:
		case <-live.Done():
		}
		due.Stop()
		if live.Err() != nil {
			return
		}
		wait = a.step(request)
	}
}

// step makes the next request, if one is due. It returns how long there is none, unless the answer changes.
func (a *Answer) step(ctx context.Context) time.Duration {
	if a.able.Edits == 0 { // all is shown when the turn has ended
		return time.Hour
	}
	now, p := a.stream.Now(), &a.posted
	a.mu.Lock()
	due := a.content.open(now)
	opening := a.content.opened && !p.opened // the first text waits for nothing
	p.began = a.content.began
	if at := p.slot(now, !opening); at.After(now) {
		a.mu.Unlock()
		return earlier(at, due).Sub(now)
	}
	texts, next := a.content.live(now)
	a.mu.Unlock()
	i := p.differing(texts)
	switch {
	case i < 0 && next.IsZero():
		return time.Hour
	case i < 0:
		return next.Sub(now)
	}
	p.count(now)
	var err error
	o := messenger.Outgoing{Text: texts[i], Once: true}
	switch {
	case i < len(p.list):
		err = a.edit(ctx, i, o)
	case i == 0:
		o.ReplyTo = a.at.Message
		err = a.send(ctx, o)
	default:
		o.Silent = true
		err = a.send(ctx, o)
	}
	if err != nil {
		p.failed(i, err, a.stream.Now())
	}
	p.opened = p.opened || opening && err == nil
	return 0
}

// failed notes a request that failed while the turn goes on. It is not repeated: the next one shows more.
func (p *posted) failed(i int, err error, now time.Time) {
	p.hold = now.Add(max(p.pause(now), messenger.After(err)))
	switch {
	case messenger.IsPermanent(err) && i < len(p.list):
		p.list[i].id = ""
	case messenger.IsPermanent(err):
		p.mute, p.nonce = true, ""
	}
}

func (a *Answer) edit(ctx context.Context, i int, o messenger.Outgoing) error {
	m := &a.posted.list[i]
	m.text = "" // not known before the answer
	err := a.stream.API.Edit(ctx, a.at.Channel, m.id, o)
	if err == nil {
		m.text = o.Text
	}
	return err
}

// send adds a message. If an earlier request perhaps created it, that one is found by its nonce, and its text is not known.
func (a *Answer) send(ctx context.Context, o messenger.Outgoing) error {
	p := &a.posted
	if p.nonce == "" {
		p.nonce = a.nonce(len(p.list))
	}
	o.Nonce = p.nonce
	m, err := a.stream.API.Send(ctx, a.at.Channel, o)
	if err != nil {
		return err
	}
	p.nonce = ""
	if len(p.list) == 0 {
		p.placed = a.stream.Now()
	}
	sent := message{id: m.ID, text: o.Text}
	if strings.TrimSpace(m.Text) != strings.TrimSpace(o.Text) {
		sent.text = ""
	}
	p.list = append(p.list, sent)
	a.showing()
	return nil
}

// nonce returns the nonce of the n-th message: the same one in another process that finds the answer unfinished.
func (a *Answer) nonce(n int) string {
	if a.at.Message == "" { // nothing will finish it
		return messenger.AnswerNonce(rand.Text(), n)
	}
	return messenger.AnswerNonce(a.at.Message, n)
}

// complete makes the messages show the whole answer. What they cannot show is left.
func (a *Answer) complete(ctx context.Context, whole messenger.Outgoing) (rest messenger.Outgoing, left bool) {
	p := &a.posted
	p.hold = time.Time{} // the messenger knows how long it asks to wait
	parts := messenger.Parts(rand.Text(), whole, a.able)
	long := !p.placed.IsZero() && a.stream.Now().Sub(p.placed) >= longTurn
	if p.nonce != "" {
		a.find(ctx, parts[min(len(p.list), len(parts)-1)])
	}
	for i, o := range parts {
		loud := i == 0 || long && i == len(parts)-1
		o.Silent = !loud
		if i >= len(p.list) { // else it perhaps takes the place of a message with that nonce
			o.Nonce = a.nonce(i)
		}
		if a.settle(ctx, i, o, loud && long && i == len(parts)-1 || len(o.Files) > 0) != nil {
			return remaining(whole, parts, i), true
		}
	}
	for _, extra := range p.list[len(parts):] {
		a.remove(ctx, extra.id)
	}
	p.list = p.list[:len(parts)]
	return messenger.Outgoing{}, false
}

// find adds the message that perhaps exists, or a new one, to those that show the answer.
func (a *Answer) find(ctx context.Context, o messenger.Outgoing) {
	_ = Insist(ctx, func() error { // otherwise settle fails too
		return a.send(ctx, messenger.Outgoing{Text: o.Text, ReplyTo: o.ReplyTo})
	})
}

// remaining returns what the messages from the i-th on were to show. A file among them has the whole text.
func remaining(whole messenger.Outgoing, parts []messenger.Outgoing, i int) messenger.Outgoing {
	if len(parts[len(parts)-1].Files) > 0 {
		return whole
	}
	var texts []string
	for _, o := range parts[i:] {
		texts = append(texts, strings.TrimSuffix(o.Text, "\n"))
	}
	whole.Text = strings.Join(texts, "\n")
	return whole
}

// settle makes the i-th message show o: by an edit, or by a new message if anew is set or nothing can be edited.
func (a *Answer) settle(ctx context.Context, i int, o messenger.Outgoing, anew bool) error {
	p := &a.posted
	if i < len(p.list) && p.list[i].id != "" && !anew {
		if p.list[i].text == o.Text && len(o.Buttons) == 0 {
			return nil
		}
		err := Insist(ctx, func() error { return a.editSoon(ctx, i, messenger.Outgoing{Text: o.Text, Buttons: o.Buttons}) })
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
	return a.replace(ctx, i, o)
}

// editSoon edits a message as soon as the rate allows.
func (a *Answer) editSoon(ctx context.Context, i int, o messenger.Outgoing) error {
	now := a.stream.Now()
	if at := a.posted.slot(now, false); at.After(now) && process.Sleep(ctx, at.Sub(now)) != nil {
		return ctx.Err()
	}
	a.posted.count(a.stream.Now())
	return a.edit(ctx, i, o)
}

// replace sends a new message in the place of the i-th, if there is one.
func (a *Answer) replace(ctx context.Context, i int, o messenger.Outgoing) error {
	var id string
	err := Insist(ctx, func() error {
		m, err := a.stream.API.Send(ctx, a.at.Channel, o)
		if err == nil {
			id = m.ID
		}
		return err
	})
	if err != nil {
		return err
	}
	p := &a.posted
	if i == len(p.list) {
		p.list = append(p.list, message{})
	}
	old := p.list[i].id
	p.list[i] = message{id: id, text: o.Text}
	a.showing(old)
	a.remove(ctx, old)
	return nil
}

// remove deletes a message of an earlier state of the answer.
func (a *Answer) remove(ctx context.Context, id string) {
	if id != "" {
		_ = Insist(ctx, func() error { return a.stream.API.Delete(ctx, a.at.Channel, id) }) // at worst it says the same twice
	}
}
