package run

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/request"
)

// keeper stores the requests to models and their answers, one after the other, while the service works on them.
type keeper struct {
	mu   sync.Mutex
	last chan struct{} // closed when what was to be stored last is stored
	err  error         // the first error
}

// do stores something after what was to be stored before. It waits until that is stored, so that no more than one waits in memory.
func (k *keeper) do(store func() error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.last != nil {
		<-k.last
	}
	done := make(chan struct{})
	k.last = done
	go func() {
		defer close(done)
		k.err = cmp.Or(k.err, store())
	}()
}

// keep stores the file of a run's job, if there is one, and returns what stores the run's requests.
func (k *keeper) keep(book request.Book, run string, file []byte) engine.Keep {
	log := book.Log(run)
	if file != nil {
		k.do(func() error { return log.AddJob(context.Background(), file) })
	}
	return func(body []byte) engine.Kept {
		number, first := 0, time.Duration(0)
		k.do(func() (err error) {
			number, err = log.Add(context.Background(), body)
			return err
		})
		sent := book.Disk.Now()
		begun := func() { first = book.Disk.Now().Sub(sent) }
		return engine.Kept{Begun: begun, Answered: func(a request.Answer) {
			a.First, a.Millis = first.Milliseconds(), book.Disk.Now().Sub(sent).Milliseconds()
			k.do(func() error {
				if a.To = number; number == 0 { // the request is not stored
					return nil
				}
				return log.AddAnswer(context.Background(), a)
			})
		}}
	}
}

// kept waits until everything is stored. A failure to store something is only a warning.
func (w *work) kept() {
	w.keeper.do(func() error { return nil })
	w.keeper.mu.Lock()
	defer w.keeper.mu.Unlock()
	<-w.keeper.last
	if w.keeper.err != nil {
		w.r.Warn(fmt.Errorf("run %s: its requests and answers are not all kept: %w", w.run.ID, w.keeper.err))
	}
}
