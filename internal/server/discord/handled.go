package discord

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
)

// handled knows which messages were handled. All of it is on disk.
type handled struct {
	path    string
	now     func() time.Time
	earlier map[string]bool // ids that an earlier process has put into the queue or answered, and perhaps not noted

	mu    sync.Mutex
	state noted
}

// noted is state/discord.json.
type noted struct {
	At       time.Time         `json:"at"` // of the last change
	Channels map[string]seen   `json:"channels"`
	Open     map[string]string `json:"open,omitempty"` // messages whose answer is not shown yet: the channel of each

	// Unfinished are the bot's messages that show the answer to an open message, by that message.
	Unfinished map[string][]string `json:"unfinished,omitempty"`
}

// seen is which messages of a channel were handled: all up to one, and some after it.
type seen struct {
	UpTo  string   `json:"up_to"`
	After []string `json:"after,omitempty"` // ascending
}

// Limits of what is kept. Discord may deliver two messages of one moment in another order than that of their ids; after
// disorder, an id that is missing between others is that of a message that will not arrive.
const (
	disorder     = time.Minute
	mostAfter    = 1000
	mostChannels = 500
)

func loadHandled(dir paths.Dir, d store.Disk) (*handled, error) {
	state, err := store.ReadJSON[noted](d, dir.Discord())
	if state.Channels == nil {
		state.Channels = map[string]seen{}
	}
	if state.Open == nil {
		state.Open = map[string]string{}
	}
	if state.Unfinished == nil {
		state.Unfinished = map[string][]string{}
	}
	return &handled{path: dir.Discord(), now: d.Now, state: state}, err
}

// snowflake returns the number of an id of Discord's; 0 if it is none.
func snowflake(id string) uint64 {
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil || strings.HasPrefix(id, "0") {
		return 0
	}
	return n
}

func compareIDs(a, b string) int { return cmp.Compare(snowflake(a), snowflake(b)) }

// before returns the id of a message that would have been sent so much earlier.
func before(id string, d time.Duration) string {
	back := uint64(d.Milliseconds()) << 22 //nolint:gosec // it is positive
	return strconv.FormatUint(max(snowflake(id), back)-back, 10)
}

// has reports whether a message was handled.
func (h *handled) has(channel, id string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	s, known := h.state.Channels[channel]
	if !known {
		return false
	}
	_, found := slices.BinarySearchFunc(s.After, id, compareIDs)
	return found || compareIDs(id, s.UpTo) <= 0
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
		id = slices.MaxFunc(append([]string{id, s.UpTo}, s.After...), compareIDs)
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
	return h.change(func(s *noted) { s.Channels[channel] = seen{UpTo: id} })
}

// add notes a message as handled. With open its answer is still to be shown.
func (h *handled) add(channel, id string, open bool) error {
	return h.change(func(s *noted) {
		known, ok := s.Channels[channel]
		if !ok {
			known.UpTo = before(id, disorder)
		}
		if i, found := slices.BinarySearchFunc(known.After, id, compareIDs); !found {
			known.After = slices.Insert(slices.Clone(known.After), i, id)
		}
		s.Channels[channel] = known.shortened(id)
		if open {
			s.Open[id] = channel
		}
	})
}

// passed notes that there is nothing to handle up to a message.
func (h *handled) passed(channel, id string) error {
	return h.change(func(s *noted) { s.Channels[channel] = s.Channels[channel].shortened(id) })
}

// shortened forgets ids long before newest, and all but the newest of too many.
func (s seen) shortened(newest string) seen {
	if old := before(newest, disorder); compareIDs(old, s.UpTo) > 0 {
		s.UpTo = old
	}
	if n := len(s.After) - mostAfter; n > 0 && compareIDs(s.After[n-1], s.UpTo) > 0 {
		s.UpTo = s.After[n-1]
	}
	s.After = slices.DeleteFunc(slices.Clone(s.After), func(id string) bool { return compareIDs(id, s.UpTo) <= 0 })
	return s
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
		oldest := slices.MinFunc(slices.Collect(maps.Keys(h.state.Channels)), func(a, b string) int {
			return compareIDs(h.state.Channels[a].UpTo, h.state.Channels[b].UpTo)
		})
		delete(h.state.Channels, oldest)
	}
	return store.WriteJSON(h.path, h.state, store.Synced)
}
