// Package door reaches messengers through programs, the doors, that speak JSON lines on their standard streams. A door knows the API of
// its messenger and nothing of ollim; the package listener decides the rest. ollim-door(5) describes the lines.
//
// Serve keeps a door running: it starts the program again when that has ended or does not answer. Requests wait meanwhile, and those that
// the door has not answered are made again. A door keeps nothing of ollim's and may be killed at any time: it delivers a message again
// until a line says that the message is taken.
package door

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/server/listener"
)

// Options are what a door is served with. The listener's messenger is set by Serve.
type Options struct {
	listener.Options
	Program

	Sleep func(ctx context.Context, d time.Duration) error // pauses before the program is started again; nil: process.Sleep
}

// Times of a server.
const (
	firstPause = time.Second
	mostPause  = time.Minute
	pingEvery  = 30 * time.Second
)

// server is one door that is served.
type server struct {
	*listener.Listener

	o         Options
	bot       *Bot
	first     chan Hello      // of the first door that was connected
	listening chan struct{}   // closed when events are handled
	receiving context.Context // of events, once listening is closed
}

// Serve answers what a door receives until ctx ends, which is no error. Its errors are those of listener.Open, and that of the program if
// it cannot be started the first time.
func Serve(ctx context.Context, o Options) (err error) {
	if o.Sleep == nil {
		o.Sleep = process.Sleep
	}
	if o.Hide == nil {
		o.Hide = func(text string) string { return text }
	}
	if o.Quiet == nil {
		o.Quiet = &atomic.Bool{}
	}
	s := &server{o: o, bot: newBot(o.Name, o.Files), first: make(chan Hello, 1), listening: make(chan struct{})}
	o.Messenger, o.Home = s.bot, s.delivering(o.Home)
	if s.Listener, err = listener.Open(o.Options); err != nil {
		return err
	}
	defer s.Close()
	s.Notify("STATUS=starting the door")
	keeping, stop := context.WithCancel(context.WithoutCancel(ctx)) // answers are shown after the end of ctx
	ended := make(chan error, 1)
	go func() { ended <- s.keep(keeping) }()
	defer func() {
		stop()
		err = errors.Join(err, <-ended)
	}()
	select {
	case h := <-s.first:
		self := listener.Self{Owners: h.Owners, Direct: h.Direct}
		return s.Run(ctx, self, func(ctx context.Context) error {
			s.receiving = ctx
			close(s.listening)
			<-ctx.Done()
			return nil
		})
	case err := <-ended:
		ended <- nil
		return err // the program cannot be started
	case <-ctx.Done():
		return nil
	}
}

// keep keeps the program running until ctx ends.
func (s *server) keep(ctx context.Context) error {
	pause, failed := firstPause, 0
	s.warn(s.noteFailure(""))
	for begun := false; ; begun = true {
		l, err := s.o.open(ctx)
		began := s.Now()
		switch {
		case ctx.Err() != nil && err == nil:
			l.close()
		case err == nil:
			err = s.serve(ctx, l)
		case !begun && errors.Is(err, process.ErrNotFound):
			return err
		}
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the program was ended
		}
		if s.Now().Sub(began) >= mostPause {
			pause, failed = firstPause, 0
		}
		failed++
		s.report(err, failed)
		if s.o.Sleep(ctx, pause) != nil {
			return nil //nolint:nilerr // ctx has ended
		}
		pause = min(2*pause, mostPause)
	}
}

// serve uses a program until it ends, or does not answer, which is the error, or ctx ends.
func (s *server) serve(ctx context.Context, l *live) (err error) {
	if err := s.bot.connect(l.conn, l.hello); err != nil {
		return l.explain(err)
	}
	defer s.bot.lost(l.conn)
	s.Notify("READY=1", "WATCHDOG=1", "STATUS=connected")
	select {
	case s.first <- l.hello:
	default:
	}
	select {
	case <-s.listening:
		s.CatchUp(s.receiving)
	default: // the listener does that when it begins
	}
	read, answering := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(read)
		l.serve(func(line line) error { return s.handle(ctx, l.conn, line) }, s.warn)
	}()
	watching, stop := context.WithCancel(ctx)
	defer stop()
	go func() { answering <- s.watch(watching, l.conn) }()
	select {
	case <-read:
		err = errors.New("the door ended")
	case err = <-answering:
	}
	if ctx.Err() != nil {
		l.close()
	} else {
		err = l.explain(err)
	}
	<-read
	return err
}

// watch asks the door regularly whether it works. It returns why it does not, or when ctx ends.
func (s *server) watch(ctx context.Context, c *conn) error {
	for pings := 1; ; pings++ {
		_, err := c.ask(ctx, Request{Type: TypePing})
		if errors.Is(err, errSilent) || ctx.Err() != nil {
			return err
		}
		s.Notify("WATCHDOG=1")
		switch {
		case err != nil: // it has ended, as its output tells
		case pings == 1:
			s.warn(s.noteFailure(""))
		default:
			s.o.Quiet.Store(false)
		}
		if err := process.Sleep(ctx, pingEvery); err != nil {
			return err
		}
	}
}

// handle handles a line that is no answer, once the listener listens. A line that was read before its door has ended counts: a later one
// must not come before it.
func (s *server) handle(ctx context.Context, c *conn, l line) error {
	select {
	case <-s.listening:
	case <-ctx.Done(): // events are not handled any more
		return nil
	}
	switch l.kind {
	case TypeMessage:
		m, err := decode[Message](l.data)
		if err != nil {
			return err
		}
		received, err := s.bot.received(m)
		received.Own = false
		received.Taken = func() { _ = c.in.put(Taken{TypeTaken, l.number, m.ID}) }
		if err != nil {
			received.Taken() // it would be as faulty the next time
			return err
		}
		s.Hear(s.receiving, received)
	case TypeEdited, TypeDeleted:
		return s.changed(l)
	case TypePress:
		p, err := decode[Press](l.data)
		if err == nil {
			err = errors.Join(checkID("id", p.ID), checkID("channel", p.Channel), checkID("message", p.Message), checkUser(p.User))
		}
		if err != nil || s.receiving.Err() != nil || !s.Owns(p.User) {
			return err
		}
		s.Go(func() { s.Press(s.receiving, p.Channel, p.Button, &press{Press: p, bot: s.bot, line: c.in.put}) })
	case "":
		return errors.New("type: it is missing")
	}
	return nil
}

// changed handles a line about a message that was edited or deleted. It is not answered: what it changes is what waits in this process.
func (s *server) changed(l line) error {
	m, err := s.bot.changed(l)
	switch {
	case err != nil:
		return err
	case l.kind == TypeEdited:
		s.Edited(s.receiving, m)
	default:
		s.Deleted(s.receiving, m.Channel, m.ID)
	}
	return nil
}

func (s *server) warn(err error) {
	if err != nil {
		s.Warn(fmt.Sprintf("%s: %v", s.o.Name, err))
	}
}
