package discordapi

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"
)

// world is who and what is there.
type world struct {
	channels map[string]*Channel
	messages map[string]*Message
	order    []string          // of messages, by age
	files    map[string][]byte // attachments, by path
	typing   map[string]int    // how often the bot was seen typing, by channel
	commands json.RawMessage   // what the bot registered
}

// Channel is a DM, a guild channel or a thread.
type Channel struct {
	ID     string
	Guild  string // "" is a DM
	User   string // whom the bot talks to in a DM
	Parent string // of a thread
}

// Message is a message as it is now.
type Message struct {
	ID          string          `json:"id"`
	Channel     string          `json:"channel_id"`
	Guild       string          `json:"guild_id,omitempty"`
	Type        int             `json:"type"` // 0, or 19 for a reply
	Author      user            `json:"author"`
	Content     string          `json:"content"`
	Embeds      []any           `json:"embeds"`
	Components  json.RawMessage `json:"components,omitempty"`
	Attachments []attachment    `json:"attachments"`
	Reference   *reference      `json:"message_reference,omitempty"`
	Flags       int             `json:"flags"`
	Timestamp   time.Time       `json:"timestamp"`
	Edited      *time.Time      `json:"edited_timestamp"`
	Nonce       string          `json:"nonce,omitempty"`

	Edits     int                 `json:"-"`
	Deleted   bool                `json:"-"`
	Reactions map[string][]string `json:"-"` // users by emoji
	Ephemeral bool                `json:"-"` // an interaction's answer that only its user sees
}

// reference is the message that a reply quotes.
type reference struct {
	Message string `json:"message_id"`
	Channel string `json:"channel_id,omitempty"`
	Guild   string `json:"guild_id,omitempty"`
}

// user is an account.
type user struct {
	ID            string `json:"id"`
	Username      string `json:"username"`
	Discriminator string `json:"discriminator"`
	Bot           bool   `json:"bot,omitempty"`
}

// attachment is a file of a message.
type attachment struct {
	ID          string `json:"id"`
	Filename    string `json:"filename"`
	ContentType string `json:"content_type,omitempty"`
	Size        int    `json:"size"`
	URL         string `json:"url"`
	Flags       int    `json:"flags,omitempty"` // 1<<13 on the message marks a voice note
}

func newWorld() world {
	return world{
		channels: map[string]*Channel{DM: {ID: DM, User: Owner}},
		messages: map[string]*Message{}, files: map[string][]byte{}, typing: map[string]int{},
	}
}

func userOf(id string) user {
	return user{ID: id, Username: "user-" + id, Discriminator: "0", Bot: id == Bot}
}

// File is a file that somebody attaches.
type File struct {
	Name string
	Type string // as Discord reports it; may lie
	Data []byte
}

// Post is what somebody says.
type Post struct {
	From    string // user id; "" is Owner
	Channel string // "" is DM
	Text    string
	Reply   string // id of the message that it answers
	Files   []File
	Raw     map[string]any // further keys of the event, such as unknown ones
}

// Open makes a channel that the bot can see, and returns its id. A guild channel has a Guild, a thread a Parent too.
func (s *Server) Open(c Channel) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.ID == "" {
		c.ID = s.id()
	}
	s.world.channels[c.ID] = &c
	if c.Parent != "" {
		s.dispatch("THREAD_CREATE", map[string]any{"id": c.ID, "guild_id": c.Guild, "parent_id": c.Parent, "type": 11, "name": "thread"}, 1<<0)
		s.note()
	}
	return c.ID
}

// Say posts a message as a user and returns its id. The bot gets the event if it is connected or resumes later.
func (s *Server) Say(p Post) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.From, p.Channel = cmp.Or(p.From, Owner), cmp.Or(p.Channel, DM)
	m := s.newMessage(p.Channel, p.From, p.Text)
	for _, f := range p.Files {
		m.Attachments = append(m.Attachments, s.attach(f))
	}
	if p.Reply != "" {
		m.Type, m.Reference = 19, &reference{Message: p.Reply, Channel: p.Channel, Guild: m.Guild}
	}
	s.dispatch("MESSAGE_CREATE", s.messageEvent(m, p.Raw), s.intentOf(p.Channel, 1<<12, 1<<9))
	s.note()
	return m.ID
}

// Edit changes a message as its author does. The bot gets the event.
func (s *Server) Edit(id, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now().UTC()
	m := s.world.messages[id]
	m.Content, m.Edited = text, &now
	s.dispatch("MESSAGE_UPDATE", s.messageEvent(m, nil), s.intentOf(m.Channel, 1<<12, 1<<9))
	s.note()
}

// Delete deletes a message as its author does. The bot gets the event.
func (s *Server) Delete(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.world.messages[id]
	m.Deleted = true
	s.dispatch("MESSAGE_DELETE", map[string]any{"id": id, "channel_id": m.Channel}, s.intentOf(m.Channel, 1<<12, 1<<9))
	s.note()
}

// newMessage adds a message to the world. The caller holds mu.
func (s *Server) newMessage(channel, author, text string) *Message {
	m := &Message{
		ID: s.id(), Channel: channel, Author: userOf(author), Content: text, Embeds: []any{}, Attachments: []attachment{},
		Timestamp: time.Now().UTC(), Reactions: map[string][]string{},
	}
	if c := s.world.channels[channel]; c != nil {
		m.Guild = c.Guild
	}
	s.world.messages[m.ID] = m
	s.world.order = append(s.world.order, m.ID)
	return m
}

// attach keeps a file. The caller holds mu.
func (s *Server) attach(f File) attachment {
	id := s.id()
	at := "/attachments/" + id + "/" + path.Base(f.Name)
	s.world.files[at] = f.Data
	return attachment{ID: id, Filename: f.Name, ContentType: f.Type, Size: len(f.Data), URL: s.URL() + at}
}

func (s *Server) download(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	data, ok := s.world.files[r.URL.Path]
	s.mu.Unlock()
	if !ok {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write(data)
}

// messageEvent is a message as the gateway sends it: with the quoted message, and without the content where the bot may not read
// it. The caller holds mu.
func (s *Server) messageEvent(m *Message, more map[string]any) map[string]any {
	var e map[string]any
	if err := json.Unmarshal(encode(m), &e); err != nil {
		panic(err)
	}
	if m.Reference != nil {
		if quoted := s.world.messages[m.Reference.Message]; quoted != nil && !quoted.Deleted {
			e["referenced_message"] = quoted
		}
	}
	if m.Guild != "" && !strings.Contains(m.Content, "<@"+Bot+">") && m.Author.ID != Bot {
		e["content"] = ""
	}
	maps.Copy(e, more)
	return e
}

// React adds a user's reaction to a message.
func (s *Server) React(user, message, emoji string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.world.messages[message]
	if m == nil {
		return
	}
	m.Reactions[emoji] = append(slices.DeleteFunc(m.Reactions[emoji], func(u string) bool { return u == user }), user)
	s.dispatch("MESSAGE_REACTION_ADD", map[string]any{
		"user_id": user, "channel_id": m.Channel, "message_id": m.ID, "guild_id": m.Guild, "emoji": map[string]any{"id": nil, "name": emoji},
	}, s.intentOf(m.Channel, 1<<13, 1<<10))
	s.note()
}

// Messages returns the messages of a channel by age, without those that were deleted.
func (s *Server) Messages(channel string) (list []Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range s.world.order {
		if m := s.world.messages[id]; m.Channel == channel && !m.Deleted {
			list = append(list, s.copy(m))
		}
	}
	return list
}

// Latest returns the newest message of a channel that was not deleted; the zero Message if there is none.
func (s *Server) Latest(channel string) Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range slices.Backward(s.world.order) {
		if m := s.world.messages[id]; m.Channel == channel && !m.Deleted {
			return s.copy(m)
		}
	}
	return Message{}
}

// Message returns one message, also a deleted one.
func (s *Server) Message(id string) Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.copy(s.world.messages[id])
}

func (s *Server) copy(m *Message) Message {
	c := *m
	c.Reactions = map[string][]string{}
	for emoji, users := range m.Reactions {
		c.Reactions[emoji] = slices.Clone(users)
	}
	return c
}

// Said returns the content of the bot's messages in a channel, by age.
func (s *Server) Said(channel string) (texts []string) {
	for _, m := range s.Messages(channel) {
		if m.Author.ID == Bot && !m.Ephemeral {
			texts = append(texts, m.Content)
		}
	}
	return texts
}

// Typed returns how often the bot was seen to begin or go on typing in a channel.
func (s *Server) Typed(channel string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.world.typing[channel]
}

// Commands returns the commands that the bot has registered, as it sent them.
func (s *Server) Commands() json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.world.commands)
}

// Button returns the custom id of the button with a label, anywhere in a message; "" if there is none or it is disabled.
func (m Message) Button(label string) string {
	var found string
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			if v["label"] == label && v["disabled"] != true {
				found, _ = v["custom_id"].(string)
			}
			for _, item := range v {
				walk(item)
			}
		}
	}
	var components any
	if len(m.Components) > 0 && json.Unmarshal(m.Components, &components) == nil {
		walk(components)
	}
	return found
}
