package api

import (
	"context"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit/discordapi"
)

// client returns a client of a server, whose waits take no time but move the clock.
func client(t *testing.T, s *discordapi.Server) (*Client, *clock) {
	t.Helper()
	c := &clock{}
	return New(Options{Base: s.URL(), Token: discordapi.Token, Version: "test", Now: time.Now, Sleep: c.sleep}), c
}

// clock records waits.
type clock struct{ waits []time.Duration }

func (c *clock) sleep(ctx context.Context, d time.Duration) error {
	c.waits = append(c.waits, d)
	return ctx.Err()
}

func TestSend(t *testing.T) {
	s := discordapi.New(t, discordapi.Options{})
	c, _ := client(t, s)
	channel, err := c.DM(t.Context(), discordapi.Owner)
	if err != nil || channel != discordapi.DM {
		t.Fatal(channel, err)
	}
	for range 2 {
		if _, err := c.Send(t.Context(), channel, Outgoing{Text: "hello @everyone", Nonce: Nonce("a", 0)}); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.Said(channel); len(got) != 1 || got[0] != "hello @everyone" {
		t.Errorf("%q", got)
	}
}
