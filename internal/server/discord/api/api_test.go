package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bwmarrin/discordgo"

	"github.com/ollim/ollim/internal/server/listener/messenger"
	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/testkit/discordapi"
)

// client returns a client of a server, whose waits take no time and are recorded.
func client(t *testing.T, s *discordapi.Server) (*Client, *clock) {
	t.Helper()
	c := &clock{now: time.Now()}
	return New(Options{Base: s.URL(), Token: discordapi.Token, Now: c.time, Sleep: c.sleep}), c
}

// clock is a clock that waits move.
type clock struct {
	mu    sync.Mutex
	now   time.Time
	waits []time.Duration
}

func (c *clock) time() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waits, c.now = append(c.waits, d), c.now.Add(d)
	return ctx.Err()
}

// total is how long all waits were.
func (c *clock) total() (sum time.Duration) {
	for _, d := range c.waits {
		sum += d
	}
	return sum
}

func TestSendOnce(t *testing.T) {
	s := discordapi.New(t, discordapi.Options{})
	c, _ := client(t, s)
	channel, err := c.OpenDM(t.Context(), discordapi.Owner)
	if err != nil || channel != discordapi.DM {
		t.Fatal(channel, err)
	}
	quoted := s.Say(discordapi.Post{Text: "hello"})
	o := messenger.Outgoing{
		Text: "hello @everyone", Nonce: "a", ReplyTo: quoted, Silent: true,
		Embed:   &outbox.Embed{Title: "T", Fields: []outbox.Field{{Name: "n", Value: "v"}}},
		Files:   []messenger.File{{Name: "a\"b.txt", Data: []byte("data")}},
		Buttons: []outbox.Button{{Label: "OK", ID: "x"}},
	}
	first, err := c.Send(t.Context(), channel, o)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := c.Send(t.Context(), channel, o); err != nil || again.ID != first.ID {
		t.Errorf("%v, %v", again, err)
	}
	m := s.Message(first.ID)
	if m.Content != o.Text || m.Flags != 1<<12 || m.Reference.Message != quoted || len(m.Embeds) != 1 || len(m.Attachments) != 1 || m.Button("OK") != "x" {
		t.Errorf("%+v", m)
	}
	for _, call := range s.Calls("POST", "/messages") {
		if strings.Contains(string(call.Body), "null") || call.Files[0].Name != `a"b.txt` {
			t.Errorf("%s, %+v", call.Body, call.Files)
		}
	}
	if n := len(s.Said(channel)); n != 1 {
		t.Errorf("%d messages", n)
	}
}

// TestEdit changes a message by parts.
func TestEdit(t *testing.T) {
	s := discordapi.New(t, discordapi.Options{})
	c, _ := client(t, s)
	m, err := c.Send(t.Context(), discordapi.DM, messenger.Outgoing{Text: "one", Buttons: []outbox.Button{{Label: "OK", ID: "x"}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		edit   messenger.Outgoing
		text   string
		button string
	}{
		{messenger.Outgoing{Text: "two"}, "two", "x"},
		{messenger.Outgoing{Buttons: []outbox.Button{}}, "two", ""},
	} {
		if err := c.Edit(t.Context(), discordapi.DM, m.ID, tc.edit); err != nil {
			t.Fatal(err)
		}
		if now := s.Message(m.ID); now.Content != tc.text || now.Button("OK") != tc.button {
			t.Errorf("%+v", now)
		}
	}
	for range 2 {
		err := errors.Join(c.React(t.Context(), discordapi.DM, m.ID, "👀"), c.Typing(t.Context(), discordapi.DM))
		if err != nil || len(s.Message(m.ID).Reactions["👀"]) != 1 {
			t.Error(err, s.Message(m.ID).Reactions)
		}
	}
	if err := c.Unreact(t.Context(), discordapi.DM, m.ID, "👀"); err != nil || len(s.Message(m.ID).Reactions) != 0 {
		t.Error(err)
	}
	for range 2 {
		if err := c.Delete(t.Context(), discordapi.DM, m.ID); err != nil || !s.Message(m.ID).Deleted {
			t.Error(err)
		}
	}
	if err := c.Edit(t.Context(), discordapi.DM, m.ID, messenger.Outgoing{Text: "x"}); !hasCode(err, unknownMessage) || !messenger.IsPermanent(err) {
		t.Error(err)
	}
}

// TestFaults sends a message through the faults of a bad day: it is there once.
func TestFaults(t *testing.T) {
	for name, tc := range map[string]struct {
		faults []discordapi.Fault
		wait   time.Duration // at least
	}{
		"429":               {[]discordapi.Fault{{Status: 429, After: 2 * time.Second}}, 2 * time.Second},
		"global 429":        {[]discordapi.Fault{{Status: 429, After: 3 * time.Second, Global: true}}, 3 * time.Second},
		"429 thrice":        {[]discordapi.Fault{{Status: 429, After: time.Second, Times: 3}}, 3 * time.Second},
		"503 burst":         {[]discordapi.Fault{{Status: 503, Times: 4}}, 3 * time.Second},
		"502, but stored":   {[]discordapi.Fault{{Status: 502, Applied: true}}, 0},
		"cut":               {[]discordapi.Fault{{Times: 2}}, 0},
		"cut, but stored":   {[]discordapi.Fault{{Applied: true, Times: 2}}, 0},
		"everything in row": {[]discordapi.Fault{{Applied: true}, {Status: 500}, {Status: 429, After: time.Second}, {Status: 504, Applied: true}}, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s := discordapi.New(t, discordapi.Options{})
			c, clock := client(t, s)
			s.Fail(tc.faults...)
			m, err := c.Send(t.Context(), discordapi.DM, messenger.Outgoing{Text: "hello"})
			if err != nil || m.Text != "hello" || len(s.Said(discordapi.DM)) != 1 {
				t.Errorf("%v, %v, %q", m, err, s.Said(discordapi.DM))
			}
			if clock.total() < tc.wait {
				t.Errorf("waited %v", clock.waits)
			}
		})
	}
}

// TestGivesUp ends the attempts without a message that is there twice.
func TestGivesUp(t *testing.T) {
	for name, tc := range map[string]struct {
		fault discordapi.Fault
		want  string
		calls int
	}{
		"503":      {discordapi.Fault{Status: 503, Times: 99}, "Discord has a problem: status 503: a fault of the test", maxTries},
		"cut":      {discordapi.Fault{Times: 99}, "no connection to Discord: EOF", maxTries},
		"long 429": {discordapi.Fault{Status: 429, After: time.Hour, Times: 99}, "Discord asks to wait for 1h0m0s", 1},
	} {
		s := discordapi.New(t, discordapi.Options{})
		c, _ := client(t, s)
		s.Fail(tc.fault)
		_, err := c.Send(t.Context(), discordapi.DM, messenger.Outgoing{Text: "hello"})
		if err == nil || err.Error() != tc.want || messenger.IsPermanent(err) || len(s.Calls("", "/messages")) != tc.calls {
			t.Errorf("%s: %v after %d calls", name, err, len(s.Calls("", "/messages")))
		}
	}
}

// TestContextEndsWaits ends a request whose rate limit lasts longer than its context, and one that waits.
func TestContextEndsWaits(t *testing.T) {
	s := discordapi.New(t, discordapi.Options{})
	c, clock := client(t, s)
	s.Fail(discordapi.Fault{Status: 429, After: 30 * time.Second, Times: 9})
	ctx, cancel := context.WithDeadline(t.Context(), clock.time().Add(10*time.Second))
	defer cancel()
	for range 2 { // the second is not even made
		if _, err := c.Send(ctx, discordapi.DM, messenger.Outgoing{Text: "x"}); err == nil || messenger.IsPermanent(err) || len(clock.waits) != 0 {
			t.Errorf("%v, waited %v", err, clock.waits)
		}
	}
	if n := len(s.Calls("POST", "/messages")); n != 1 {
		t.Errorf("%d calls", n)
	}
	ended, stop := context.WithCancelCause(t.Context())
	c.o.Sleep = func(context.Context, time.Duration) error { stop(errors.New("closing down")); return ended.Err() }
	if _, err := c.Send(ended, discordapi.DM, messenger.Outgoing{Text: "x"}); err == nil || !strings.Contains(err.Error(), "closing down") {
		t.Error(err)
	}
}

// TestLimits waits ahead, so that Discord has nothing to refuse; other routes do not wait.
func TestLimits(t *testing.T) {
	s := discordapi.New(t, discordapi.Options{Limits: true})
	sleep := func(_ context.Context, d time.Duration) error { time.Sleep(d); return nil }
	c := New(Options{Base: s.URL(), Token: discordapi.Token, Now: time.Now, Sleep: sleep})
	m, err := c.Send(t.Context(), discordapi.DM, messenger.Outgoing{Text: "x"})
	if err != nil {
		t.Fatal(err)
	}
	for _, emoji := range []string{"👀", "✅", "❌"} { // one in a quarter of a second
		if err := c.React(t.Context(), discordapi.DM, m.ID, emoji); err != nil {
			t.Error(err)
		}
	}
	for _, call := range s.Calls("", "") {
		if call.Status == 429 {
			t.Errorf("%s %s was refused", call.Method, call.Path)
		}
	}
	var l limits
	l.routes = map[string]*route{}
	now := time.Now()
	reserve := func(name string) time.Duration { _, wait := l.reserve("POST", name, now); return wait }
	first, wait := l.reserve("POST", "a", now)
	if wait != 0 || reserve("a") != crowded { // until the first answer says how many may follow
		t.Errorf("a new route waits %v", wait)
	}
	l.note(first, "POST", "a", http.Header{"X-Ratelimit-Limit": {"2"}, "X-Ratelimit-Remaining": {"1"}, "X-Ratelimit-Reset-After": {"2"}}, now)
	if reserve("a") != 0 {
		t.Error("a route waits with a request left")
	}
	if wait := reserve("a"); wait < time.Second { // the one on its way takes the last
		t.Errorf("waits %v", wait)
	}
	if reserve("b") != 0 {
		t.Error("another route waits")
	}
	l.refused("POST", "b", &Error{After: time.Second, global: true}, now)
	if reserve("c") != time.Second || reserve("") != 0 {
		t.Error("a global limit is not one")
	}
	for i := range 2 * maxRoutes {
		l.route("POST", strings.Repeat("x", i), now)
	}
	if len(l.routes) > maxRoutes+2 {
		t.Errorf("%d routes are remembered", len(l.routes))
	}
}

// TestCrowd: after each reset no more requests are made than the limit has, however many wait, and adding and removing reactions
// count together.
func TestCrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := discordapi.New(t, discordapi.Options{Limits: true, Memory: true})
		sleep := func(_ context.Context, d time.Duration) error { time.Sleep(d); return nil }
		c := New(Options{Base: s.URL(), Token: discordapi.Token, Now: time.Now, Sleep: sleep, HTTP: s.Transport()})
		m, err := c.Send(t.Context(), discordapi.DM, messenger.Outgoing{Text: "x"})
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				change := c.React
				if i%2 == 0 {
					change = c.Unreact
				}
				if err := change(t.Context(), discordapi.DM, m.ID, "👀"); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		refused := slices.DeleteFunc(s.Calls("", ""), func(call discordapi.Call) bool { return call.Status != http.StatusTooManyRequests })
		if len(refused) > 1 { // that both share a limit is known after the first answers only
			t.Errorf("%d requests were refused", len(refused))
		}
	})
}

// TestErrors classifies answers. None of them repeats the token.
func TestErrors(t *testing.T) {
	for _, tc := range []struct {
		status int
		body   string
		kind   error
		want   string
	}{
		{401, `{"message":"401: Unauthorized","code":0}`, ErrToken, "the bot's token is not accepted by Discord"},
		{403, `{"message":"Cannot send messages to this user","code":50007}`, ErrClosed, "no direct message may be sent: the owner does not accept them: in a server that both share, allow direct messages in its privacy settings"},
		{400, `{"message":"no mutual guilds","code":50278}`, ErrClosed, "no direct message may be sent: the bot and the owner share no server: invite the bot to one of the owner's servers"},
		{400, `{"message":"Invalid\nForm Body","code":50035,"errors":{"content":1}}`, ErrRefused, `refused by Discord: Invalid Form Body: {"content":1} (code 50035)`},
		{404, `{"message":"404: Not Found","code":0}`, ErrRefused, "refused by Discord: 404: Not Found"},
		{403, `<html>blocked</html>`, nil, "Discord has a problem: status 403: Forbidden"},
		{302, ``, nil, "Discord has a problem: status 302: Found"},
		{429, `error code: 1015`, nil, "Discord asks to wait for 100ms"},
		{500, `{"message":"500: Internal Server Error","code":0}`, nil, "Discord has a problem: status 500: 500: Internal Server Error"},
		{200, `<html>sign in</html>`, nil, "unreadable answer from Discord: invalid character '<' looking for beginning of value"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(tc.status)
			_, _ = w.Write([]byte(tc.body))
		}))
		clock := &clock{now: time.Now()}
		c := New(Options{Base: server.URL, Token: "the-token", Now: clock.time, Sleep: clock.sleep})
		_, err := c.Application(t.Context())
		server.Close()
		if err == nil || err.Error() != tc.want || messenger.IsPermanent(err) != (tc.kind != nil) || tc.kind != nil && !errors.Is(err, tc.kind) {
			t.Errorf("%d %s: %v", tc.status, tc.body, err)
		}
		if _, err := c.Send(t.Context(), "1", messenger.Outgoing{Text: "x"}); err == nil || strings.Contains(err.Error(), "the-token") || strings.Contains(err.Error(), server.URL) {
			t.Errorf("after the end of the server: %v", err)
		}
	}
}

// TestHistory lists messages oldest first, also those with components that nobody knows.
func TestHistory(t *testing.T) {
	s := discordapi.New(t, discordapi.Options{})
	c, _ := client(t, s)
	first := s.Say(discordapi.Post{Text: "one"})
	s.Say(discordapi.Post{Text: "two"})
	s.Say(discordapi.Post{Text: "three"})
	for after, want := range map[string]string{"": "two three", first: "two three"} {
		list, err := c.History(t.Context(), discordapi.DM, after, 2)
		var texts []string
		for _, m := range list {
			texts = append(texts, m.Content)
		}
		if got := strings.Join(texts, " "); err != nil || got != want {
			t.Errorf("after %q: %s, %v", after, got, err)
		}
	}
	strange := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `[{"id":"9","content":["new"]},{"id":"8","content":"eight"}]`)
	}))
	t.Cleanup(strange.Close)
	c = New(Options{Base: strange.URL, Now: time.Now})
	if list, err := c.History(t.Context(), discordapi.DM, first, 2); err != nil || len(list) != 2 || list[0].Content != "eight" || list[1].ID != "9" {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestDecode leaves out components if discordgo does not know one of them.
func TestDecode(t *testing.T) {
	m, err := Decode[discordgo.Message]([]byte(`{"id":"1","content":"x","components":[{"type":99}],"referenced_message":{"id":"2","components":[{"type":98}]},"message_snapshots":[{"message":{"content":"y","components":[{"type":97}]}}],"unknown":{}}`))
	if err != nil || m.Content != "x" || m.ReferencedMessage.ID != "2" || m.MessageSnapshots[0].Message.Content != "y" {
		t.Errorf("%+v, %v", m, err)
	}
	m, err = Decode[discordgo.Message]([]byte(`{"content": "x", "components": [{"type": 1, "components": [{"type": 2, "label": "b", "custom_id": "c"}]}]}`))
	if err != nil || len(m.Components) != 1 {
		t.Errorf("%+v, %v", m, err)
	}
	m, err = Decode[discordgo.Message]([]byte(`{"id":"1","content":"x","flags":"new","timestamp":"later","embeds":5,"components":[{"type":99}]}`))
	if err != nil || m.ID != "1" || m.Content != "x" {
		t.Errorf("%+v, %v", m, err)
	}
	for _, wrong := range []string{`[]`, `{"id": 1}`, `{"id": 1, "components": []}`, `{"id": "1", "guild_id": 5}`, `{"id": "1", "author": "x"}`} {
		if _, err := Decode[discordgo.Message]([]byte(wrong)); err == nil {
			t.Errorf("%s is a message", wrong)
		}
	}
}

// TestDownload takes files only from Discord, without giving it the token.
func TestDownload(t *testing.T) {
	s := discordapi.New(t, discordapi.Options{})
	c, _ := client(t, s)
	m := s.Message(s.Say(discordapi.Post{Text: "look", Files: []discordapi.File{{Name: "a.txt", Data: []byte("12345")}}}))
	at := m.Attachments[0].URL
	if data, err := c.Download(t.Context(), at, 5); err != nil || string(data) != "12345" {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := c.Download(t.Context(), at, 4); !errors.Is(err, errTooLarge) {
		t.Error(err)
	}
	if _, err := c.Download(t.Context(), at+"x", 9); !errors.Is(err, ErrRefused) {
		t.Error(err)
	}
	real := New(Options{Token: "x"})
	for _, address := range []string{"http://cdn.discordapp.com/a", "https://cdn.discordapp.com.evil/a", "https://cdn.discordapp.com@evil/a", "file:///etc/passwd", "http://169.254.169.254/", s.URL() + "/a", "://"} {
		if _, err := real.Download(t.Context(), address, 9); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", address, err)
		}
	}
	var sent http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent = r.Header
		http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
	}))
	defer server.Close()
	if _, err := New(Options{Base: server.URL, Token: "the-token"}).Download(t.Context(), server.URL+"/a", 9); err == nil || sent.Get("Authorization") != "" {
		t.Errorf("%v, Authorization %q", err, sent.Get("Authorization"))
	}
}

// TestInteractions answers in each form, and twice nowhere.
func TestInteractions(t *testing.T) {
	s := discordapi.New(t, discordapi.Options{})
	c, _ := client(t, s)
	use := func() (*discordapi.Interaction, *discordgo.Interaction) {
		i := s.Slash(discordapi.Owner, "status")
		return i, &discordgo.Interaction{ID: i.ID, Token: i.Token, AppID: discordapi.Application, GuildID: discordapi.Guild}
	}
	i, asked := use()
	s.Fail(discordapi.Fault{Applied: true, Path: "/callback"})
	if err := c.Respond(t.Context(), asked, discordgo.InteractionResponseChannelMessageWithSource, messenger.Outgoing{Text: "fine"}); err != nil {
		t.Fatal(err)
	}
	if m := s.Message(s.Interaction(i.ID).Message); m.Content != "fine" || !m.Ephemeral {
		t.Errorf("%+v", m)
	}
	if err := c.Respond(t.Context(), asked, discordgo.InteractionResponseChannelMessageWithSource, messenger.Outgoing{Text: "again"}); !errors.Is(err, ErrRefused) {
		t.Error(err)
	}
	i, asked = use()
	if err := c.Respond(t.Context(), asked, discordgo.InteractionResponseDeferredChannelMessageWithSource, messenger.Outgoing{}); err != nil {
		t.Fatal(err)
	}
	m, err := c.EditResponse(t.Context(), asked, messenger.Outgoing{Text: "later"})
	if err != nil || m.ID != s.Interaction(i.ID).Message || s.Message(m.ID).Content != "later" {
		t.Errorf("%v, %v", m, err)
	}
	s.Fail(discordapi.Fault{Applied: true, Path: "/webhooks/"})
	before := len(s.Messages(discordapi.DM))
	if _, err := c.FollowUp(t.Context(), asked, messenger.Outgoing{Text: "more"}); err == nil || len(s.Messages(discordapi.DM)) != before+1 {
		t.Errorf("%v, %d messages more", err, len(s.Messages(discordapi.DM))-before)
	}
	i, asked = use()
	if err := c.Complete(t.Context(), asked, nil); err != nil || string(s.Interaction(i.ID).Data) != `{"choices":[]}` {
		t.Errorf("%v, %s", err, s.Interaction(i.ID).Data)
	}
}

func TestApplication(t *testing.T) {
	s := discordapi.New(t, discordapi.Options{Team: []string{"1200000000000000001", discordapi.Owner}})
	c, _ := client(t, s)
	a, err := c.Application(t.Context())
	if err != nil || a.ID != discordapi.Application || strings.Join(a.Owners, " ") != "1200000000000000001 "+discordapi.Owner {
		t.Errorf("%+v, %v", a, err)
	}
	if skew, known := c.Skew(); !known || skew.Abs() > time.Hour {
		t.Errorf("%v, %v", skew, known)
	}
	if g, err := c.Gateway(t.Context()); err != nil || g.Starts.Total != 1000 {
		t.Errorf("%+v, %v", g, err)
	}
	commands := []*discordgo.ApplicationCommand{{Name: "status", Description: "Show it"}, {
		Name: "model", Description: "Set it", Options: []*discordgo.ApplicationCommandOption{{Type: 3, Name: "name", Description: "its name"}},
	}}
	if err := c.SetCommands(t.Context(), a.ID, commands); err != nil || strings.Contains(string(s.Commands()), "null") {
		t.Errorf("%v, %s", err, s.Commands())
	}
	var list []*discordgo.ApplicationCommand
	if err := json.Unmarshal(s.Commands(), &list); err != nil || len(list) != 2 || list[1].Options[0].Name != "name" {
		t.Errorf("%+v, %v", list, err)
	}
	if err := c.SetCommands(t.Context(), a.ID, nil); err != nil || !json.Valid(s.Commands()) || string(s.Commands()) != "[]" {
		t.Errorf("%v, %s", err, s.Commands())
	}
}
