package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"
)

// updates knows which updates ollim has not kept yet. Telegram forgets those before the offset of the next call.
type updates struct {
	mu      sync.Mutex
	open    []int64            // delivered and not kept, as they came
	keys    map[string][]int64 // of the open ones, by the id of the message or the press
	last    int64
	changed chan struct{}
}

func newUpdates() updates {
	return updates{keys: map[string][]int64{}, changed: make(chan struct{}, 1)}
}

// next returns the offset of the next call, and whether updates are open. While some are, the call would return them at once.
func (u *updates) next() (offset int64, open bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.open) > 0 {
		return u.open[0], true
	}
	if u.last == 0 {
		return 0, false
	}
	return u.last + 1, false
}

// add notes updates that were delivered under one key.
func (u *updates) add(key string, ids ...int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.open = append(u.open, ids...)
	u.keys[key] = append(u.keys[key], ids...)
}

// fresh returns the updates of a call from the first open one on that were not delivered yet.
func (u *updates) fresh(list []update) []update {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.DeleteFunc(list, func(one update) bool { return one.ID <= u.last })
}

func (u *updates) seen(id int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.last = id
}

// taken notes that ollim has kept the message or the press of a key.
func (u *updates) taken(key string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	kept := u.keys[key]
	delete(u.keys, key)
	u.open = slices.DeleteFunc(u.open, func(id int64) bool { return slices.Contains(kept, id) })
	select {
	case u.changed <- struct{}{}:
	default:
	}
}

const (
	albumTime = 500 * time.Millisecond // in which the rest of an album arrives
	shortWait = 300 * time.Millisecond // between two calls that return nothing and do not wait
	longWait  = 10 * time.Second
)

// poll delivers updates until ctx ends. It returns an error that stays.
func (d *door) poll(ctx context.Context) error {
	pause := shortWait
	for {
		began := time.Now()
		list, err := d.fetchUpdates(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return err
		}
		for rest := list; len(rest) > 0; {
			rest = rest[d.deliver(rest):]
		}
		_, open := d.updates.next()
		switch {
		case len(list) > 0:
			pause = shortWait
			_ = d.updates.wait(ctx, pause)
		case open:
			_ = d.updates.wait(ctx, pause)
			pause = min(2*pause, longWait)
		case time.Since(began) < shortWait: // the server does not wait for updates
			_ = sleep(ctx, shortWait)
		}
	}
}

// wait waits until no update is open, or a time has passed.
func (u *updates) wait(ctx context.Context, most time.Duration) error {
	timer := time.NewTimer(most)
	defer timer.Stop()
	for _, open := u.next(); open; _, open = u.next() {
		select {
		case <-u.changed:
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// fetchUpdates returns the next updates. It waits for the rest of an album.
func (d *door) fetchUpdates(ctx context.Context) (list []update, err error) {
	offset, open := d.updates.next()
	params := map[string]any{"allowed_updates": []string{"message", "edited_message", "callback_query"}}
	if offset > 0 {
		params["offset"] = offset
	}
	if !open {
		params["timeout"] = int(pollTime / time.Second)
	}
	get := func() error {
		err := d.api.call(ctx, "getUpdates", params, &list)
		if f := (*failure)(nil); errors.As(err, &f) && f.Code == http.StatusConflict {
			return fmt.Errorf("%w (another program uses the bot: stop it, or remove its webhook with the method deleteWebhook)", err)
		}
		return err
	}
	err = d.insist(ctx, get)
	if open {
		return d.updates.fresh(list), err
	}
	if err != nil || len(list) == 0 {
		return nil, err
	}
	if last := list[len(list)-1].Message; last == nil || last.Group == "" {
		return list, nil
	}
	if err := sleep(ctx, albumTime); err != nil {
		return nil, err
	}
	first := list
	params["offset"], params["timeout"], list = first[0].ID, 0, nil
	if err := d.insist(ctx, get); err != nil || len(list) < len(first) {
		return first, err
	}
	return list, nil
}

// deliver writes the line of the first update, or of the album that begins with it. It returns how many updates that are.
func (d *door) deliver(list []update) (n int) {
	first := list[0]
	n = 1
	switch {
	case first.Message != nil:
		ids := []int64{first.ID}
		line := d.incoming(first.Message)
		for first.Message.Group != "" && n < len(list) && list[n].Message != nil && list[n].Message.Group == first.Message.Group {
			more := d.incoming(list[n].Message)
			line.Files = append(line.Files, more.Files...)
			if line.Text == "" {
				line.Text = more.Text
			}
			ids = append(ids, list[n].ID)
			n++
		}
		if line.Text != "" || len(line.Files) > 0 { // else it tells of the chat, such as a new title
			d.updates.add(line.ID, ids...)
			d.write(line)
		}
	case first.Edited != nil:
		line := d.incoming(first.Edited)
		line.Type = "edited"
		d.write(line)
	case first.Callback != nil:
		d.press(first)
	}
	d.updates.seen(list[n-1].ID)
	return n
}

// press delivers the press of a button. One that is disabled has no effect.
func (d *door) press(u update) {
	c := u.Callback
	if c.Message == nil || c.Data == "" || c.Data[0] == disabledMark[0] {
		d.answer(c.ID)
		return
	}
	line := press{
		Type: "press", ID: c.ID, Channel: channelOf(c.Message), Message: messageID(c.Message.Chat.ID, c.Message.ID),
		Button: c.Data, User: decimal(c.From.ID),
	}
	if k := c.Message.Keyboard; k != nil {
		line.Buttons = buttonsOf(*k)
		d.remember(line.Message, *k)
	}
	d.updates.add(c.ID, u.ID)
	d.write(line)
}

// answer ends the progress bar of a button.
func (d *door) answer(press string) {
	d.lanes.do("press "+press, func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := d.api.call(ctx, "answerCallbackQuery", map[string]any{"callback_query_id": press}, nil); err != nil && !says(err, "query is too old") {
			fmt.Fprintln(os.Stderr, err)
		}
	})
}
