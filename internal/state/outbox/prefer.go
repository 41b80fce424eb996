package outbox

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/ollim/ollim/internal/platform/process"
)

// handTime is how long an attempt waits for the process that has a carrier.
const handTime = 2 * time.Minute

// lookTime is the pause between two looks at a message that another process is to send.
const lookTime = 50 * time.Millisecond

// Elsewhere is the error of a carrier that another process has, such as a door that is served. That process sends the message.
type Elsewhere struct{ Name string }

func (e *Elsewhere) Error() string { return "the process that serves " + e.Name + " is to send it" }

// overdue returns the error of a carrier whose process was waited for in vain.
func (e *Elsewhere) overdue() error {
	return fmt.Errorf("the process that serves %s has not sent it for %s", e.Name, handTime)
}

// elsewhere reports whether another process is to send a message.
func elsewhere(err error) bool {
	_, is := errors.AsType[*Elsewhere](err)
	return is
}

// all returns the carriers that send every message if no order says otherwise.
func (p Post) all() (ways []Carrier) {
	if len(p.Command) > 0 && p.Command[0] != "" {
		ways = append(ways, command{p})
	}
	return append(ways, p.Carriers...)
}

// byCommand is the name of the delivery command among the carriers.
const byCommand = "command"

// order returns the names of the carriers that may send a message, the preferred first; none: all send it.
func (p Post) order(m Message) []string {
	if m.Critical && len(p.Urgent) > 0 {
		return p.Urgent
	}
	return p.Order
}

// prefers reports whether the first carrier that takes a message is enough.
func (p Post) prefers(m Message) bool { return len(p.order(m)) > 0 }

// ways returns the carriers of a message.
func (p Post) ways(m Message) (ways []Carrier) {
	if p.Waits {
		return nil
	}
	if !p.prefers(m) {
		return p.all()
	}
	for _, name := range p.order(m) {
		for _, way := range append(p.all(), p.Doors...) {
			if way.Name() == name {
				ways = append(ways, way)
			}
		}
	}
	return ways
}

// With returns p with a carrier in place of the door with the same name, if there is one.
func (p Post) With(c Carrier) Post {
	p.Doors = slices.Clone(p.Doors)
	for i, old := range p.Doors {
		if old.Name() == c.Name() {
			p.Doors[i] = c
		}
	}
	return p
}

// inTurn returns carriers in the order in which an attempt tries them. By preference, those that have finished the message are first, then
// those that have begun it.
func (e *entry) inTurn(ways []Carrier, prefers bool) []Carrier {
	if !prefers {
		return ways
	}
	rank := func(c Carrier) int {
		switch t := e.trips[c.Name()]; {
		case t.fate == Sent:
			return 0
		case len(t.parts) > 0 && t.fate == "":
			return 1
		}
		return 2
	}
	ways = slices.Clone(ways)
	slices.SortStableFunc(ways, func(a, b Carrier) int { return cmp.Compare(rank(a), rank(b)) })
	return ways
}

// wake lets the processes that have carriers read the outbox again. The caller does not hold an entry that they are to send.
func (p Post) wake() {
	now := p.Disk.Now()
	if err := os.Chtimes(p.Home.Outbox(), now, now); err != nil {
		p.Disk.Warn(err.Error())
	}
}

// Changed returns when a message was last put into the outbox or woke the processes that have carriers; zero: never.
func (p Post) Changed() time.Time {
	info, err := os.Stat(p.Home.Outbox())
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// await waits until another process has finished a message or failed, for the time of an attempt. file is the message's entry. If nothing
// comes of it, the message stays in the outbox, and the receipt is r.
func (p Post) await(ctx context.Context, file io.ReadSeeker, id string, r Receipt) Receipt {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(p.Timeout, defaultTimeout))
	defer cancel()
	for {
		_, err := os.Lstat(p.path(id))
		gone := errors.Is(err, os.ErrNotExist)
		e := reread(file)
		refusal := errors.New("it was refused")
		for name, t := range e.trips {
			if t.fate == Sent {
				return Receipt{Fate: Sent, Outside: t.parts}
			}
			if t.fate == Refused {
				refusal = fmt.Errorf("%s refused it", name)
			}
		}
		switch {
		case gone:
			return Receipt{Fate: Refused, Reason: refusal}
		case e.Attempts > 0:
			return Receipt{Fate: Queued, Reason: errors.New(e.LastError)}
		case process.Sleep(ctx, lookTime) != nil:
			return r
		}
	}
}

// reread reads an entry from the file that it is in, or was in.
func reread(file io.ReadSeeker) (e entry) {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return e
	}
	lines := bufio.NewReader(file)
	for n := 0; ; n++ {
		raw, err := lines.ReadBytes('\n')
		if err != nil { // the last line may be incomplete
			return e
		}
		if n > 0 {
			e.add(json.RawMessage(raw))
		}
	}
}
