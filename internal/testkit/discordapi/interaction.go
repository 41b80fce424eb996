package discordapi

import (
	"encoding/json"
	"net/http"
	"time"
)

// Interaction is one use of a command, a button or a select, and how the bot answered it.
type Interaction struct {
	ID      string
	Token   string
	User    string
	Channel string
	Answer  int             // type of the first answer; 0: none yet
	Data    json.RawMessage // of the first answer
	Message string          // id of the message that is the answer; "" before
	Source  string          // the message whose component was used
	Event   json.RawMessage // INTERACTION_CREATE
	At      time.Time
	Took    time.Duration // until the first answer
}

// Option is one argument of a command.
type Option struct {
	Name    string `json:"name"`
	Type    int    `json:"type"` // 3 string, 4 integer, 5 boolean; 0 is 3
	Value   any    `json:"value"`
	Focused bool   `json:"focused,omitempty"`
}

// Slash uses a command in the DM with the bot.
func (s *Server) Slash(user, name string, options ...Option) *Interaction {
	return s.interact(user, DM, 2, commandData(name, options), "")
}

// Complete asks for completions of the option that has Focused.
func (s *Server) Complete(user, name string, options ...Option) *Interaction {
	return s.interact(user, DM, 4, commandData(name, options), "")
}

func commandData(name string, options []Option) map[string]any {
	for i := range options {
		if options[i].Type == 0 {
			options[i].Type = 3
		}
	}
	return map[string]any{"id": "1", "name": name, "type": 1, "options": options}
}

// Click uses the button with a custom id in a message.
func (s *Server) Click(user, message, customID string) *Interaction {
	return s.interact(user, "", 3, map[string]any{"custom_id": customID, "component_type": 2}, message)
}

func (s *Server) interact(user, channel string, kind int, data any, message string) *Interaction {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := &Interaction{ID: s.id(), User: user, Channel: channel, Source: message, At: time.Now()}
	i.Token = "interaction-" + i.ID
	e := map[string]any{"id": i.ID, "application_id": Application, "type": kind, "data": data, "token": i.Token, "version": 1, "locale": "en-US"}
	if m := s.world.messages[message]; m != nil {
		i.Channel = m.Channel
		e["message"] = s.messageEvent(m, nil)
	}
	e["channel_id"] = i.Channel
	if c := s.world.channels[i.Channel]; c != nil && c.Guild != "" {
		e["guild_id"], e["member"] = c.Guild, map[string]any{"user": userOf(user), "roles": []string{}}
	} else {
		e["user"] = userOf(user)
	}
	i.Event = encode(e)
	s.rest.interactions[i.ID], s.rest.interactions[i.Token] = i, i
	s.dispatch("INTERACTION_CREATE", e, 0)
	s.note()
	return i
}

// Interaction returns an interaction as it is now.
func (s *Server) Interaction(id string) Interaction {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *s.rest.interactions[id]
}

// callback serves POST /interactions/ID/TOKEN/callback.
func (x *exchange) callback(parts []string) {
	i := x.rest.interactions[parts[0]]
	switch {
	case i == nil || len(parts) != 3 || parts[1] != i.Token:
		x.fail(http.StatusNotFound, 10062, "Unknown interaction")
		return
	case i.Answer == 0 && x.call.At.Sub(i.At) > x.options.SlashTime:
		x.violate("interaction %s was answered after %v", i.ID, x.call.At.Sub(i.At))
		x.fail(http.StatusNotFound, 10062, "Unknown interaction")
		return
	case i.Answer != 0:
		x.fail(http.StatusBadRequest, 40060, "Interaction has already been acknowledged.")
		return
	}
	var answer struct {
		Type int             `json:"type"`
		Data json.RawMessage `json:"data"`
	}
	_ = json.Unmarshal(x.call.Body, &answer)
	x.in = nil
	if len(answer.Data) > 0 {
		_ = json.Unmarshal(answer.Data, &x.in)
	}
	switch answer.Type {
	case 4: // a message
		if !x.fits("") {
			return
		}
		i.Message = x.answerMessage(i)
	case 5: // later a message
		i.Message = x.answerMessage(i)
	case 7: // the message of the component changes
		if m := x.world.messages[i.Source]; m != nil && x.fits(m.Content) {
			x.apply(m)
			m.Edits++
		}
	case 6, 8, 9:
	default:
		x.violate("interaction callback of type %d", answer.Type)
	}
	i.Answer, i.Data, i.Took = answer.Type, answer.Data, x.call.At.Sub(i.At)
	x.answer(http.StatusNoContent, nil)
}

func (x *exchange) answerMessage(i *Interaction) string {
	m := x.newMessage(i.Channel, Bot, "")
	x.apply(m)
	m.Ephemeral = m.Flags&(1<<6) != 0
	return m.ID
}

// followUp serves /webhooks/APPLICATION/TOKEN…: the answer of an interaction and messages after it.
func (x *exchange) followUp(parts []string) {
	if len(parts) < 2 {
		x.fail(http.StatusNotFound, 0, "404: Not Found")
		return
	}
	i := x.rest.interactions[parts[1]]
	if i == nil || i.Answer == 0 || x.call.At.Sub(i.At) > 15*time.Minute {
		x.fail(http.StatusNotFound, 10015, "Unknown Webhook")
		return
	}
	if len(parts) == 2 && x.call.Method == http.MethodPost {
		if x.fits("") {
			x.answer(http.StatusOK, x.world.messages[x.answerMessage(i)])
		}
		return
	}
	id := i.Message
	if i.Answer == 6 || i.Answer == 7 {
		id = i.Source
	}
	if len(parts) > 3 && parts[3] != "@original" {
		id = parts[3]
	}
	x.message([]string{id})
}
