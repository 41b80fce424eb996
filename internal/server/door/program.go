package door

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/process"
)

// Program is a door as a program.
type Program struct {
	Name  string
	Files string                        // the private directory, which is made; what is in it is removed
	Start func() (*process.Peer, error) // starts the program
	Hide  func(text string) string      // replaces secrets in what it has written; nil: there are none
	Quiet *atomic.Bool                  // what the program writes on standard error is not in the log; may be nil
}

// Times of a program.
const (
	endTime   = 5 * time.Second // to end after its input has ended
	flushTime = time.Second     // to read the last lines
)

// live is a program that has said hello.
type live struct {
	*conn

	peer  *process.Peer
	hello Hello
}

// open starts the program, and waits for its hello.
func (p Program) open(ctx context.Context) (*live, error) {
	err := os.RemoveAll(p.Files)
	if err == nil {
		err = os.MkdirAll(p.Files, 0o700)
	}
	if err != nil {
		return nil, err
	}
	peer, err := p.Start()
	if err != nil {
		return nil, err
	}
	l := &live{conn: newConn(peer.In, peer.Out), peer: peer}
	ctx, cancel := context.WithTimeoutCause(ctx, helloTime, fmt.Errorf("no hello within %s", helloTime))
	defer cancel()
	said := make(chan error, 1)
	go func() {
		var err error
		l.hello, err = l.conn.hello(Start{Name: p.Name, Files: p.Files})
		said <- err
	}()
	select {
	case err = <-said:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, l.explain(err)
	}
	return l, nil
}

// explain ends the program, and returns an error with the end of what it has written on standard error.
func (l *live) explain(err error) error {
	l.in.end()
	l.in.drop()
	how := l.peer.End(flushTime)
	l.peer.Close(0)
	if said, _ := l.peer.Stderr(); strings.TrimSpace(said) != "" {
		how = strings.TrimPrefix(how+": "+plaintext.Line(said), ": ")
	}
	if how != "" {
		err = fmt.Errorf("%w (%s)", err, how)
	}
	return err
}

// close ends the program, after it has got what waits for it.
func (l *live) close() {
	l.in.end()
	select {
	case <-l.in.closed:
	case <-time.After(flushTime):
	}
	l.peer.Close(endTime)
}

// Dial starts a door for requests only: what it receives is left for the next one. end ends it.
func Dial(ctx context.Context, p Program) (b *Bot, end func(), err error) {
	l, err := p.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	b = newBot(p.Name, p.Files)
	b.alone = true
	if err := b.connect(l.conn, l.hello); err != nil {
		return nil, nil, errors.Join(err, l.explain(err))
	}
	go l.serve(func(line) error { return nil }, func(error) {})
	return b, l.close, nil
}
