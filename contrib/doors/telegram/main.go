// Telegram is a door of ollim, see ollim-door(5): it connects a bot of Telegram with the listener that starts it. README.md says how to
// get a bot. The door keeps nothing on disk. An update stays with Telegram until ollim has kept its message.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

const (
	exitUsage  = 64
	exitConfig = 78

	maxLine  = 1 << 20         // bytes
	lastTime = 4 * time.Second // for requests that run when the standard input ends
)

func main() {
	flags := flag.NewFlagSet("ollim-telegram", flag.ContinueOnError)
	server := flags.String("api", "https://api.telegram.org", "`URL` of the Bot API server")
	if err := flags.Parse(os.Args[1:]); errors.Is(err, flag.ErrHelp) {
		return
	} else if err != nil || flags.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "usage: ollim-telegram [-api URL]")
		os.Exit(exitUsage)
	}
	token := os.Getenv("TOKEN")
	if token == "" {
		fmt.Fprintln(os.Stderr, "no token: get one from @BotFather and run: ollim secret set door.telegram.TOKEN")
		os.Exit(exitConfig)
	}
	err := serve(context.Background(), os.Stdin, os.Stdout, newAPI(*server, token))
	if failed := (*failure)(nil); errors.As(err, &failed) && failed.final() {
		fmt.Fprintln(os.Stderr, "Telegram does not know the token: get one from @BotFather and run: ollim secret set door.telegram.TOKEN")
		os.Exit(exitConfig)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// door is the state of the process. All of it may be lost at any moment.
type door struct {
	api     *api
	me      user
	updates updates
	lanes   lanes

	writing sync.Mutex
	out     io.Writer

	mu        sync.Mutex
	keyboards recent[keyboard] // of the bot's messages, by id
	reactions recent[string]   // of the bot, by the id of the message
}

// serve speaks the protocol until the input ends. It returns an error if the door cannot work at all.
func serve(ctx context.Context, in io.Reader, out io.Writer, a *api) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	if !lines.Scan() {
		return lines.Err()
	}
	d := &door{api: a, out: out, updates: newUpdates()}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if err := d.greet(ctx); err != nil {
		return err
	}
	var polling sync.WaitGroup
	polling.Go(func() { cancel(d.poll(ctx)) })
	read := make(chan request)
	go func() {
		defer close(read)
		for lines.Scan() {
			var r request
			if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
				fmt.Fprintln(os.Stderr, "a line of ollim is no request:", err)
				continue
			}
			select {
			case read <- r:
			case <-ctx.Done():
				return
			}
		}
	}()
	working := context.WithoutCancel(ctx)
	for {
		select {
		case <-ctx.Done(): // polling has failed for good
			return context.Cause(ctx)
		case r, more := <-read:
			if more {
				d.take(working, r)
				continue
			}
			cancel(nil)
			polling.Wait()
			d.lanes.wait(lastTime)
			return lines.Err()
		}
	}
}

// greet waits until Telegram answers, and says what the door can do.
func (d *door) greet(ctx context.Context) error {
	err := d.insist(ctx, func() error { return d.api.call(ctx, "getMe", nil, &d.me) })
	if err != nil {
		return err
	}
	d.write(map[string]any{
		"type": "hello", "version": 1, "mentions": []string{"@" + d.me.Username},
		"able": map[string]any{
			"text": 4096, "file": mostFile, "edits": 20, "span": 60, "pause": 2, "typing": true, "reactions": true, "buttons": true,
		},
	})
	return nil
}

// insist repeats a call until it succeeds, with longer and longer pauses. It returns an error that stays.
func (d *door) insist(ctx context.Context, call func() error) error {
	for pause := time.Second; ; pause = min(2*pause, 30*time.Second) {
		err := call()
		if err == nil || ctx.Err() != nil {
			return err
		}
		failed := (*failure)(nil)
		if errors.As(err, &failed) && failed.final() {
			return err
		}
		fmt.Fprintln(os.Stderr, err)
		if failed != nil && failed.Parameters.RetryAfter > 0 {
			pause = failed.wait()
		}
		if sleep(ctx, pause) != nil {
			return ctx.Err()
		}
	}
}

// write writes a line. ollim reads it or has ended; then so does the standard input.
func (d *door) write(line any) {
	text, err := json.Marshal(line)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	d.writing.Lock()
	defer d.writing.Unlock()
	_, _ = d.out.Write(append(text, '\n'))
}

func sleep(ctx context.Context, wait time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(wait):
		return nil
	}
}

// recent is a map that forgets all but the latest few keys.
type recent[T any] struct {
	values map[string]T
	order  []string
}

const mostRecent = 1000

func (r *recent[T]) put(key string, value T) {
	if r.values == nil {
		r.values = map[string]T{}
	}
	if _, known := r.values[key]; !known {
		r.order = append(r.order, key)
	}
	r.values[key] = value
	if len(r.order) > mostRecent {
		delete(r.values, r.order[0])
		r.order = r.order[1:]
	}
}

// lanes runs work of one key in order, and that of different keys at once.
type lanes struct {
	mu      sync.Mutex
	waiting map[string][]func()
	running sync.WaitGroup
}

func (l *lanes) do(key string, work func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting == nil {
		l.waiting = map[string][]func(){}
	}
	list, busy := l.waiting[key]
	l.waiting[key] = append(list, work)
	if !busy {
		l.running.Go(func() { l.run(key) })
	}
}

func (l *lanes) run(key string) {
	for {
		l.mu.Lock()
		list := l.waiting[key]
		if len(list) == 0 {
			delete(l.waiting, key)
			l.mu.Unlock()
			return
		}
		l.waiting[key] = list[1:]
		l.mu.Unlock()
		list[0]()
	}
}

// wait waits until all work has ended, at most for a time.
func (l *lanes) wait(most time.Duration) {
	ended := make(chan struct{})
	go func() { l.running.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(most):
	}
}
