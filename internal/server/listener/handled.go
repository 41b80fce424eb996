package listener

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/server/listener/messenger"
)

// handled knows which messages were handled. All of it is on disk.
type handled struct {
	path    string
	now     func() time.Time
	order   *messenger.Order // nil: ids have none
	earlier map[string]bool  // ids that an earlier process has put into the queue or answered, and perhaps not noted

	offering sync.RWMutex // held for reading from before a message with buttons is sent until they are noted

	mu    sync.Mutex
	state noted
}

// noted is the content of path.
type noted struct {
	At       time.Time         `json:"at"` // of the last change
	Channels map[string]seen   `json:"channels"`
	Open     map[string]string `json:"open,omitempty"` // messages whose answer is not shown yet: the channel of each

	// Unfinished are the bot's messages that show the answer to an open message, by that message.
	Unfinished map[string][]string `json:"unfinished,omitempty"`

	// Direct are the channels in which owners have written directly, by their user ids.
	Direct map[string]string `json:"direct,omitempty"`

	// Offers are the buttons that the bot's messages would have if the messenger had buttons, the latest last.
	Offers []offer `json:"offers,omitempty"`
}

// seen is which messages of a channel were handled: all up to one, and some after it. Without an order of ids, UpTo is the latest one,
// and After the latest ones as they came.
type seen struct {
	UpTo  string   `json:"up_to"`
	After []string `json:"after,omitempty"` // ascending

	At time.Time `json:"at,omitzero"` // of the latest note; without an order only
}

// Limits of what is kept. A messenger may deliver two messages of one moment in another order than that of their ids; after
// disorder, an id that is missing between others is that of a message that will not arrive.
const (
	disorder     = time.Minute
	mostAfter    = 1000
	mostChannels = 500
)

func loadHandled(path string, d store.Disk, order *messenger.Order) (*handled, error) {
	state, err := store.ReadJSON[noted](d, path)
	if state.Channels == nil {
		state.Channels = map[string]seen{}
	}
	if state.Open == nil {
		state.Open = map[string]string{}
	}
	if state.Unfinished == nil {
		state.Unfinished = map[string][]string{}
	}
	return &handled{path: path, now: d.Now, order: order, state: state}, err
}

// compare compares two ids, in some order if the messenger has none.
func (h *handled) compare(a, b string) int {
	if h.order == nil {
		return strings.Compare(a, b)
	}
	return h.order.Compare(a, b)
}

// has reports whether a message was handled.
func (h *handled) has(channel, id string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	s, known := h.state.Channels[channel]
	if !known {
		return false
	}
	if h.order == nil {
		return id == s.UpTo || slices.Contains(s.After, id)
	}
	_, found := slices.BinarySearchFunc(s.After, id, h.compare)
	return found || h.compare(id, s.UpTo) <= 0
}

// upTo returns the id after which the history of a channel is to be read; "" if the channel is not known.
func (h *handled) upTo(channel string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.state.Channels[channel].UpTo
}

// newest returns the id of the newest message that was handled in any channel, "" before the first start.
func (h *handled) newest() (id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.state.Channels {
		id = slices.MaxFunc(append([]string{id, s.UpTo}, s.After...), h.compare)
	}
	return id
}

func (h *handled) channels() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Sorted(maps.Keys(h.state.Channels))
}

// open returns the messages whose answers are not shown yet, with their channels.
func (h *handled) open() map[string]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.state.Open)
}

// begin notes the channel's beginning: what was said up to id is no concern of the listener's.
func (h *handled) begin(channel, id string) error {
	return h.change(func(s *noted) { s.Channels[channel] = h.dated(seen{UpTo: id}) })
}

// add notes a message as handled. With open its answer is still to be shown.
func (h *handled) add(channel, id string, open bool) error {
	return h.change(func(s *noted) {
		known, ok := s.Channels[channel]
		i, found := len(known.After), false
		if h.order != nil {
			if !ok {
				known.UpTo = h.order.Before(id, disorder)
			}
			i, found = slices.BinarySearchFunc(known.After, id, h.compare)
		}
		if !found {
			known.After = slices.Insert(slices.Clone(known.After), i, id)
		}
		s.Channels[channel] = h.shortened(known, id)
		if open {
			s.Open[id] = channel
		}
	})
}

// passed notes that there is nothing to handle up to a message.
func (h *handled) passed(channel, id string) error {
	return h.change(func(s *noted) { s.Channels[channel] = h.shortened(s.Channels[channel], id) })
}

// shortened forgets ids long before newest, and all but the newest of too many.
func (h *handled) shortened(s seen, newest string) seen {
	if h.order == nil {
		s.UpTo, s.After = newest, s.After[max(0, len(s.After)-mostAfter):]
		return h.dated(s)
	}
	if old := h.order.Before(newest, disorder); h.compare(old, s.UpTo) > 0 {
		s.UpTo = old
	}
	if n := len(s.After) - mostAfter; n > 0 && h.compare(s.After[n-1], s.UpTo) > 0 {
		s.UpTo = s.After[n-1]
	}
	s.After = slices.DeleteFunc(slices.Clone(s.After), func(id string) bool { return h.compare(id, s.UpTo) <= 0 })
	return s
}

// dated returns what is known of a channel with the time, if ids do not tell it.
func (h *handled) dated(s seen) seen {
	if h.order == nil {
		s.At = h.now().UTC()
	}
	return s
}

// older compares two channels by their latest messages.
func (h *handled) older(a, b string) int {
	one, other := h.state.Channels[a], h.state.Channels[b]
	if h.order == nil {
		return one.At.Compare(other.At)
	}
	return h.compare(one.UpTo, other.UpTo)
}

// close notes that nothing is left to show for messages.
func (h *handled) close(ids ...string) error {
	return h.change(func(s *noted) {
		for _, id := range ids {
			delete(s.Open, id)
			delete(s.Unfinished, id)
		}
	})
}

// showing returns what to call with the ids of the messages that show the answer to a message.
func (h *handled) showing(id string) func(parts []string) error {
	return func(parts []string) error {
		if id == "" {
			return nil
		}
		return h.change(func(s *noted) {
			s.Unfinished[id] = parts
		})
	}
}

// unfinished returns the ids of the messages that show a part of the answer to a message.
func (h *handled) unfinished(id string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.state.Unfinished[id]
}

// shownTo returns the message to which the answer to several messages is shown: of those whose answer is still to be shown the one for which
// that is noted, else the first, since a message that was left in the queue before the turn's own is not among them; "" if there is none.
func (h *handled) shownTo(ids []string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, id := range ids {
		if h.state.Open[id] != "" && len(h.state.Unfinished[id]) > 0 {
			return id
		}
	}
	for _, id := range ids {
		if h.state.Open[id] != "" {
			return id
		}
	}
	return ""
}

// forget drops a channel that the bot cannot see any more.
func (h *handled) forget(channel string) error {
	return h.change(func(s *noted) { delete(s.Channels, channel) })
}

func (h *handled) change(edit func(*noted)) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	edit(&h.state)
	h.state.At = h.now().UTC()
	for len(h.state.Channels) > mostChannels {
		delete(h.state.Channels, slices.MinFunc(slices.Collect(maps.Keys(h.state.Channels)), h.older))
	}
	return store.WriteJSON(h.path, h.state, store.Synced)
}
