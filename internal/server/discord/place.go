package discord

import (
	"cmp"
	"context"
	"sync"

	"github.com/ollim/ollim/internal/server/discord/api"
	"github.com/ollim/ollim/internal/server/discord/gateway"
)

// place is where a channel is.
type place struct {
	guild  string // "": direct messages
	parent string // of a thread: its channel; "" if it is none
}

// places remembers where channels are.
type places struct {
	mu    sync.Mutex
	known map[string]place
}

const mostPlaces = 1000

// find returns where a channel is. It asks Discord once.
func (p *places) find(ctx context.Context, c *api.Client, id string) (place, error) {
	at, ok := p.get(id)
	if ok {
		return at, nil
	}
	found, err := c.Channel(ctx, id)
	if err != nil {
		return place{}, err
	}
	at.guild = found.Guild
	if found.Thread() {
		at.parent = found.Parent
	}
	p.note(id, at)
	return at, nil
}

// learn notes the threads that an event names.
func (p *places) learn(e gateway.Event) {
	type thread struct {
		ID     string `json:"id"`
		Guild  string `json:"guild_id"`
		Parent string `json:"parent_id"`
	}
	about, err := api.Decode[struct { // of a server, or a thread itself
		thread

		Threads []thread `json:"threads"`
	}](e.Data)
	if err != nil {
		return
	}
	if e.Type == "THREAD_CREATE" {
		p.note(about.ID, place{about.Guild, about.Parent})
	}
	for _, t := range about.Threads {
		p.note(t.ID, place{cmp.Or(t.Guild, about.Guild, about.ID), t.Parent})
	}
}

func (p *places) note(id string, at place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil || len(p.known) >= mostPlaces {
		p.known = map[string]place{}
	}
	p.known[id] = at
}

func (p *places) get(id string) (place, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, ok := p.known[id]
	return at, ok
}
