package cli

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"time"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/order"
	"github.com/ollim/ollim/internal/state/channel"
)

type channelRow struct {
	Session      string    `json:"session"` // its name
	Channel      string    `json:"channel"`
	ChatID       string    `json:"chat_id"`
	CreatedAt    time.Time `json:"created_at"`
	LastAccessed time.Time `json:"last_accessed"`
	Messages     int       `json:"messages"`
	Busy         bool      `json:"busy"`
}

func runChannelList(d *Deps) error {
	h, err := d.AnyHome()
	if err != nil {
		return err
	}
	if err := d.OwnerOnly(); err != nil {
		return err
	}
	names, err := h.Channels().Names()
	if err != nil {
		return err
	}
	rows := make([]channelRow, 0, len(names))
	for _, n := range names {
		s, err := h.Channels().Read(n)
		switch {
		case err == nil:
			rows = append(rows, channelRow{
				n.String(), s.Channel, s.ChatID, inZone(s.CreatedAt, h), inZone(s.LastAccessed, h), len(s.Messages), channelBusy(h, n),
			})
		case !errors.Is(err, fs.ErrNotExist): // it expired meanwhile
			d.warn(err.Error())
		}
	}
	order.Sort(rows, func(a, b channelRow) int { return b.LastAccessed.Compare(a.LastAccessed) })
	return records(d, "SESSION USED MESSAGES STATE", rows, func(r channelRow) []any {
		return []any{r.Session, past(r.LastAccessed), strconv.Itoa(r.Messages), state(idleOr(r.Busy))}
	})
}

func channelBusy(h app.Home, n channel.Name) bool { return !lock.Free(h.Dir.ConversationLock(n.Key())) }

// channelNamed returns the session of a channel that text names, as listings do; found is false if there is no file of it.
func (d *Deps) channelNamed(h app.Home, text string) (n channel.Name, found bool) {
	n, err := channel.Parse(text)
	if err != nil || d.OwnerOnly() != nil {
		return n, false
	}
	_, err = os.Lstat(h.Dir.Channel(n.String()))
	return n, err == nil
}

func channelFacts(h app.Home, n channel.Name) (sessionFacts, error) {
	path := h.Dir.Channel(n.String())
	s, err := h.Channels().Read(n)
	if err != nil {
		return sessionFacts{}, err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return sessionFacts{}, err
	}
	return sessionFacts{
		Session: n.String(), ID: s.SessionID, Busy: channelBusy(h, n), Path: path, Timestamp: inZone(s.CreatedAt, h),
		Last: inZone(s.LastAccessed, h), Messages: len(s.Messages), Size: info.Size(),
	}, nil
}
