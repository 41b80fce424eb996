package api_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/server/discord/api"
	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/testkit"
	"github.com/ollim/ollim/internal/testkit/discordapi"
)

// TestMain makes this program a process that delivers and is killed.
func TestMain(m *testing.M) {
	testkit.Main(m, map[string]func([]string) error{
		"flush": func(args []string) error {
			o := at(args[0], args[1])
			o.now = time.Now()
			_, err := o.Flush(context.Background())
			return err
		},
	})
}

var start = time.Date(2026, 2, 24, 22, 30, 0, 0, time.UTC)

// office is the outbox of a data directory whose carrier is Discord, with a clock that waits move.
type office struct {
	outbox.Post
	now    time.Time
	warned []string
	ids    []string // that a reply may quote
}

func at(dir, base string) *office {
	o := &office{now: start}
	disk := store.Disk{Now: func() time.Time { return o.now }, Warn: func(m string) { o.warned = append(o.warned, m) }}
	client := api.New(api.Options{Base: base, Token: discordapi.Token, Now: disk.Now, Sleep: func(ctx context.Context, d time.Duration) error {
		o.now = o.now.Add(d)
		return ctx.Err()
	}})
	o.Post = outbox.Post{
		Home: paths.Dir(dir), Disk: disk, Timeout: time.Minute,
		Carriers: []outbox.Carrier{api.Carrier{Client: client, Home: paths.Dir(dir), Disk: disk, Bot: base}},
		Received: func(_ context.Context, _ string, ids ...string) error { o.ids = append(o.ids, ids...); return nil },
	}
	return o
}

func newOffice(t *testing.T, options discordapi.Options) (*office, *discordapi.Server) {
	t.Helper()
	s := discordapi.New(t, options)
	return at(t.TempDir(), s.URL()), s
}

func message(n int, text string) outbox.Message {
	return outbox.Message{ID: fmt.Sprintf("r.%d", n), Run: "r", Kind: outbox.Ping, Text: text, Created: start.Add(time.Duration(n) * time.Second)}
}

func (o *office) send(t *testing.T, m outbox.Message, want outbox.Fate) outbox.Receipt {
	t.Helper()
	r, err := o.Send(t.Context(), m)
	if err != nil || r.Fate != want {
		t.Fatalf("%s: %+v, %v, want %s", m.ID, r, err, want)
	}
	return r
}

func (o *office) flush(t *testing.T, want outbox.Report) {
	t.Helper()
	if r, err := o.Flush(t.Context()); err != nil || r != want {
		t.Fatalf("%+v, %v, want %+v", r, err, want)
	}
}

// long is a text of n parts; each says which.
func long(n int) string {
	var parts []string
	for i := range n {
		parts = append(parts, fmt.Sprintf("part %d ", i)+strings.Repeat("x", 1500))
	}
	return strings.Join(parts, "\n\n")
}

// labels returns what the bot's messages begin with.
func labels(s *discordapi.Server) string {
	var list []string
	for _, text := range s.Said(discordapi.DM) {
		word, _, _ := strings.Cut(text, " x")
		list = append(list, word)
	}
	return strings.Join(list, ",")
}

func TestKinds(t *testing.T) {
	o, s := newOffice(t, discordapi.Options{})
	file := filepath.Join(t.TempDir(), "report.txt")
	if err := os.WriteFile(file, []byte("data"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, m := range []outbox.Message{
		{Text: "plain"},
		{Text: "as text", Embed: &outbox.Embed{Title: "Oil", Description: "It rose.", Color: "#2e8b57", Fields: []outbox.Field{{Name: "Price", Value: "75"}}, Footer: "feed"}},
		{Text: "look", File: file},
		{Text: "look again", File: file + ".gone"},
		{Text: "the answer", Kind: outbox.Text},
	} {
		m.ID, m.Created = fmt.Sprintf("r.%d", i), start
		r := o.send(t, m, outbox.Sent)
		if len(r.Outside) != 1 || o.ids[len(o.ids)-1] != r.Outside[0] {
			t.Errorf("%s: %q", m.ID, r.Outside)
		}
	}
	list := s.Messages(discordapi.DM)
	if len(list) != 5 || list[0].Content != "plain" || list[4].Content != "the answer" {
		t.Fatalf("%v", list)
	}
	e := list[1].Embeds[0].(map[string]any)
	if e["title"] != "Oil" || e["color"] != float64(0x2e8b57) || list[1].Content != "" {
		t.Errorf("%+v", list[1])
	}
	if a := list[2].Attachments; len(a) != 1 || a[0].Filename != "report.txt" || a[0].Size != 4 {
		t.Errorf("%+v", a)
	}
	if !strings.Contains(list[3].Content, "look again\n-# The file could not be sent") {
		t.Errorf("%q", list[3].Content)
	}
	if n := len(s.Calls("", "/users/@me/channels")) + len(s.Calls("", "/oauth2")); n != 2 {
		t.Errorf("%d requests to find the channel", n)
	}
	if names, err := filepath.Glob(o.Home.Outbox() + "/*"); err != nil || len(names) != 0 {
		t.Errorf("left in the outbox: %q", names)
	}
}

// TestRemainingParts cuts the network in the middle of a message: what remains is sent, in order, once.
func TestRemainingParts(t *testing.T) {
	for done := range 4 {
		o, s := newOffice(t, discordapi.Options{})
		o.send(t, message(0, "first"), outbox.Sent) // finds the channel
		cut := &cutter{Server: s, left: done}
		cut.arm()
		r := o.sendCut(t, cut, message(1, long(4)))
		if r.Fate != outbox.Queued || len(r.Outside) != done {
			t.Fatalf("after %d parts: %+v", done, r)
		}
		s.Restore()
		o.now = o.now.Add(time.Hour)
		o.flush(t, outbox.Report{Sent: 1})
		if got := labels(s); got != "first,part 0,part 1,part 2,part 3" || len(o.ids) != 5 {
			t.Errorf("after %d parts: %s, %d ids", done, got, len(o.ids))
		}
	}
}

// cutter cuts the network after so many messages.
type cutter struct {
	*discordapi.Server
	left int
}

func (c *cutter) arm() {
	if c.left == 0 {
		c.Cut()
	}
}

// sendCut sends a message through a carrier that counts.
func (o *office) sendCut(t *testing.T, c *cutter, m outbox.Message) outbox.Receipt {
	t.Helper()
	inner := o.Carriers[0]
	defer func() { o.Carriers[0] = inner }()
	o.Carriers[0] = counted{inner, c}
	r, err := o.Send(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

type counted struct {
	outbox.Carrier
	c *cutter
}

func (k counted) Carry(ctx context.Context, m outbox.Message, done []string, delivered func(string)) (outbox.Fate, error) {
	return k.Carrier.Carry(ctx, m, done, func(id string) {
		delivered(id)
		k.c.left--
		k.c.arm()
	})
}

// TestFates tells what is refused from what waits.
func TestFates(t *testing.T) {
	for name, tc := range map[string]struct {
		options discordapi.Options
		fault   discordapi.Fault
		want    outbox.Fate
		reason  string
	}{
		"closed":      {discordapi.Options{Closed: 50007}, discordapi.Fault{Path: "/none"}, outbox.Refused, "allow direct messages"},
		"no server":   {discordapi.Options{Closed: 50278}, discordapi.Fault{Path: "/none"}, outbox.Refused, "invite the bot"},
		"bad form":    {discordapi.Options{}, discordapi.Fault{Path: "/messages", Status: 400, Code: 50035}, outbox.Refused, "code 50035"},
		"bad token":   {discordapi.Options{}, discordapi.Fault{Status: 401}, outbox.Queued, "token"},
		"outage":      {discordapi.Options{}, discordapi.Fault{Status: 503, Times: 9}, outbox.Queued, "status 503"},
		"stored, cut": {discordapi.Options{}, discordapi.Fault{Path: "/messages", Applied: true, Times: 9}, outbox.Queued, "no connection"},
	} {
		t.Run(name, func(t *testing.T) {
			o, s := newOffice(t, tc.options)
			s.Fail(tc.fault)
			r := o.send(t, message(1, "hello"), tc.want)
			if r.Reason == nil || !strings.Contains(r.Reason.Error(), tc.reason) || strings.Contains(fmt.Sprint(r.Reason, o.warned), discordapi.Token) {
				t.Errorf("%v", r.Reason)
			}
			if (tc.want == outbox.Refused) != (len(o.warned) == 1) {
				t.Errorf("%q", o.warned)
			}
			if tc.want == outbox.Queued {
				for i := 0; labels(s) != "hello" || len(o.ids) == 0; i++ {
					if o.now = o.now.Add(time.Hour); i == 9 {
						t.Fatalf("%q, %q", labels(s), o.ids)
					}
					if _, err := o.Flush(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
}

// TestChannelIsAskedAgain forgets a channel that is gone.
func TestChannelIsAskedAgain(t *testing.T) {
	o, s := newOffice(t, discordapi.Options{})
	o.send(t, message(0, "m0"), outbox.Sent)
	s.Fail(discordapi.Fault{Path: "/messages", Status: 404, Code: 10003})
	o.send(t, message(1, "m1"), outbox.Sent)
	s.Fail(discordapi.Fault{Path: "/messages", Status: 404, Code: 10003, Times: 2})
	o.send(t, message(2, "m2"), outbox.Refused)
	if got := labels(s); got != "m0,m1" {
		t.Errorf("%s", got)
	}
}

// TestBoth delivers by the command and by Discord. Each gets the message once, whichever fails.
func TestBoth(t *testing.T) {
	o, s := newOffice(t, discordapi.Options{})
	script := filepath.Join(string(o.Home), "send.sh")
	text := "#!/bin/sh\necho \"$OLLIM_MESSAGE_ID\" >> sent\n[ ! -e broken ]\n"
	if err := testkit.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	o.Command, o.Env = []string{script}, []string{"PATH=/usr/bin:/bin"}
	broken := o.Home.Path("broken")
	o.send(t, message(1, "both"), outbox.Sent)
	s.Cut()
	o.send(t, message(2, "command first"), outbox.Queued)
	s.Restore()
	if err := os.WriteFile(broken, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o.now = o.now.Add(time.Hour)
	o.flush(t, outbox.Report{Sent: 1})
	o.send(t, message(3, "Discord first"), outbox.Queued)
	if err := os.Remove(broken); err != nil {
		t.Fatal(err)
	}
	o.now = o.now.Add(time.Hour)
	o.flush(t, outbox.Report{Sent: 1})
	sent, err := os.ReadFile(o.Home.Path("sent"))
	if got := strings.Fields(string(sent)); err != nil || strings.Join(got, " ") != "r.1 r.2 r.3 r.3" {
		t.Errorf("%q, %v", got, err) // r.3 failed once
	}
	if got := labels(s); got != "both,command first,Discord first" {
		t.Errorf("%s", got)
	}
}

// TestKilled kills processes that deliver at random moments: every part arrives once, in order.
func TestKilled(t *testing.T) {
	t.Parallel()
	o, s := newOffice(t, discordapi.Options{})
	s.Cut()
	want := []string{}
	for i := range 3 {
		o.send(t, message(i, strings.ReplaceAll(long(4), "part", fmt.Sprintf("m%d", i))), outbox.Queued)
		for part := range 4 {
			want = append(want, fmt.Sprintf("m%d %d", i, part))
		}
	}
	s.Restore()
	for round := 0; len(s.Said(discordapi.DM)) < len(want); round++ {
		if round == 40 {
			t.Fatalf("%s", labels(s))
		}
		seen := len(s.Calls("", ""))
		cmd := testkit.Child(t, "flush", string(o.Home), s.URL())
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { defer close(ended); _ = cmd.Wait() }()
		s.Wait("a request", func() bool {
			select {
			case <-ended:
				return true
			default:
				return len(s.Calls("", "")) > seen+round%3
			}
		})
		_ = cmd.Process.Kill()
		<-ended
	}
	o.now = time.Now()
	if _, err := o.Flush(t.Context()); err != nil {
		t.Error(err)
	}
	if left, err := o.Pending(); err != nil || len(left) != 0 {
		t.Errorf("left: %+v, %v", left, err)
	}
	if got := labels(s); got != strings.Join(want, ",") {
		t.Errorf("%s", got)
	}
}
