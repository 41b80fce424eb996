package discordapi_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/bwmarrin/discordgo"

	"github.com/ollim/ollim/internal/testkit/discordapi"
)

// to sends every request to the server.
type to struct{ base *url.URL }

func (t to) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host = t.base.Scheme, t.base.Host
	return http.DefaultTransport.RoundTrip(r)
}

// client is discordgo, connected to the server: a client that was not written for it.
type client struct {
	*discordgo.Session
	mu   sync.Mutex
	said []string
}

func (c *client) heard() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.said)
}

func open(t *testing.T, s *discordapi.Server) *client {
	t.Helper()
	g, err := discordgo.New("Bot " + discordapi.Token)
	if err != nil {
		t.Fatal(err)
	}
	base, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	g.Client = &http.Client{Transport: to{base}}
	g.Identify.Intents = discordgo.IntentsDirectMessages
	g.SyncEvents, g.ShouldReconnectOnError = true, false
	c := &client{Session: g}
	g.AddHandler(func(_ *discordgo.Session, m *discordgo.MessageCreate) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.said = append(c.said, m.Author.ID+": "+m.Content)
	})
	g.AddHandler(func(g *discordgo.Session, i *discordgo.InteractionCreate) {
		answer := &discordgo.InteractionResponse{Type: discordgo.InteractionResponseChannelMessageWithSource, Data: &discordgo.InteractionResponseData{
			Content: "used " + i.Type.String(), AllowedMentions: &discordgo.MessageAllowedMentions{Parse: []discordgo.AllowedMentionType{}},
		}}
		if err := g.InteractionRespond(i.Interaction, answer); err != nil {
			t.Error(err)
		}
	})
	if err := g.Open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	return c
}

// send posts text in the DM.
func (c *client) send(t *testing.T, text string) string {
	t.Helper()
	m, err := c.ChannelMessageSendComplex(discordapi.DM, &discordgo.MessageSend{
		Content: text, AllowedMentions: &discordgo.MessageAllowedMentions{Parse: []discordgo.AllowedMentionType{}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return m.ID
}

func TestConversation(t *testing.T) {
	t.Parallel()
	s := discordapi.New(t, discordapi.Options{})
	c := open(t, s)
	s.Say(discordapi.Post{Text: "hello"})
	s.Wait("the event", func() bool { return slices.Contains(c.heard(), discordapi.Owner+": hello") })
	id := c.send(t, "hi")
	if _, err := c.ChannelMessageEdit(discordapi.DM, id, "hi there"); err == nil { // discordgo sends no allowed_mentions here
		if got := s.Message(id); got.Content != "hi there" || got.Edits != 1 {
			t.Errorf("the message is %+v", got)
		}
	}
	if len(s.Violations()) == 0 {
		t.Error("an edit whose text may mention everybody is no violation")
	}
	s.ClearViolations()
	if err := c.MessageReactionAdd(discordapi.DM, id, "👀"); err != nil || !slices.Equal(s.Message(id).Reactions["👀"], []string{discordapi.Bot}) {
		t.Errorf("the reactions are %v, %v", s.Message(id).Reactions, err)
	}
	if err := c.ChannelTyping(discordapi.DM); err != nil || s.Typed(discordapi.DM) != 1 {
		t.Errorf("typed %d times, %v", s.Typed(discordapi.DM), err)
	}
	_, err := c.ChannelMessageSendComplex(discordapi.DM, &discordgo.MessageSend{
		Content: strings.Repeat("x", 2001), AllowedMentions: &discordgo.MessageAllowedMentions{Parse: []discordgo.AllowedMentionType{}},
	})
	if err == nil || !strings.Contains(err.Error(), "50035") {
		t.Errorf("a long message: %v", err)
	}
	after, err := c.ChannelMessages(discordapi.DM, 10, "", "1", "")
	if err != nil || len(after) != 2 || after[0].ID != id {
		t.Errorf("the history is %v, %v", after, err)
	}
}

func TestInteractions(t *testing.T) {
	t.Parallel()
	s := discordapi.New(t, discordapi.Options{})
	open(t, s)
	i := s.Slash(discordapi.Owner, "status")
	s.Wait("the answer", func() bool { return s.Interaction(i.ID).Answer == 4 })
	if got := s.Message(s.Interaction(i.ID).Message).Content; got != "used ApplicationCommand" {
		t.Errorf("answered %q", got)
	}
}

// TestResume: what happened while the client was away arrives when it resumes, once.
func TestResume(t *testing.T) {
	t.Parallel()
	s := discordapi.New(t, discordapi.Options{})
	c := open(t, s)
	s.Lose(func() { s.Close(0) })
	s.Say(discordapi.Post{Text: "missed"})
	s.Wait("the client's new connection", func() bool { return c.Open() == nil }) // once it has noticed that it is closed
	s.Wait("the event", func() bool { return slices.Contains(c.heard(), discordapi.Owner+": missed") })
	if v := s.Visits(); v.Identified != 1 || v.Resumed != 1 {
		t.Errorf("%+v", v)
	}
}

// TestRateLimit: of six messages at once to one channel, the last is over the limit.
func TestRateLimit(t *testing.T) {
	t.Parallel()
	s := discordapi.New(t, discordapi.Options{Limits: true})
	for range 6 {
		body := strings.NewReader(`{"content": "x", "allowed_mentions": {"parse": []}}`)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"/api/v10/channels/"+discordapi.DM+"/messages", body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bot "+discordapi.Token)
		r.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
	}
	var statuses []int
	for _, call := range s.Calls("POST", "/messages") {
		statuses = append(statuses, call.Status)
	}
	if want := []int{200, 200, 200, 200, 200, 429}; !slices.Equal(statuses, want) || len(s.Said(discordapi.DM)) != 5 {
		t.Errorf("answered %v, want %v; %d messages", statuses, want, len(s.Said(discordapi.DM)))
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	s := discordapi.New(t, discordapi.Options{})
	s.Cut()
	answer, err := http.Get(s.URL() + "/api/v10/gateway")
	if err == nil {
		_ = answer.Body.Close()
		t.Error("the network is cut, and there is an answer")
	}
	s.Restore()
	answer, err = http.Get(s.URL() + "/api/v10/gateway")
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", answer, err)
	}
	_ = answer.Body.Close()
}
