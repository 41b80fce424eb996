package discordapi

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// route carries out a request. The caller holds mu.
func (x *exchange) route() {
	switch f := x.fault(); {
	case f != nil && f.Applied:
		w := x.w
		x.w = discard{}
		x.dispatchPath()
		x.w = w
		fallthrough
	case f != nil:
		x.play(*f)
	case !x.limited():
		x.dispatchPath()
	}
}

// discard is an answer that is lost.
type discard struct{}

func (discard) Header() http.Header            { return http.Header{} }
func (discard) Write(data []byte) (int, error) { return len(data), nil }
func (discard) WriteHeader(int)                {}

func (x *exchange) dispatchPath() {
	parts := strings.Split(strings.Trim(x.call.Path, "/"), "/")
	switch parts[0] {
	case "gateway":
		left := startLimit{1000 - x.gate.identified, 24 * time.Hour}
		if x.gate.left != nil {
			left = *x.gate.left
		}
		x.answer(http.StatusOK, map[string]any{
			"url": x.socket("/ws"), "shards": 1,
			"session_start_limit": map[string]any{"total": 1000, "remaining": left.remaining, "reset_after": left.reset.Milliseconds(), "max_concurrency": 1},
		})
	case "users":
		x.users(parts[1:])
	case "applications", "oauth2":
		x.application(parts)
	case "channels":
		x.channel(parts[1:])
	case "interactions":
		x.callback(parts[1:])
	case "webhooks":
		x.followUp(parts[1:])
	default:
		x.fail(http.StatusNotFound, 0, "404: Not Found")
	}
}

func (x *exchange) users(parts []string) {
	switch {
	case len(parts) == 1:
		x.answer(http.StatusOK, userOf(strings.Replace(parts[0], "@me", Bot, 1)))
	case len(parts) == 2 && parts[1] == "channels" && x.call.Method == http.MethodPost:
		var to string
		_ = json.Unmarshal(x.in["recipient_id"], &to)
		if x.options.Closed == 50278 {
			x.fail(http.StatusBadRequest, 50278, "Cannot send messages to this user due to having no mutual guilds")
			return
		}
		if x.world.channels[to] != nil {
			x.fail(http.StatusBadRequest, 50033, "Invalid Recipient(s)")
			return
		}
		for _, c := range x.world.channels {
			if c.User == to {
				x.answer(http.StatusOK, channelObject(c))
				return
			}
		}
		c := &Channel{ID: x.id(), User: to}
		x.world.channels[c.ID] = c
		x.answer(http.StatusOK, channelObject(c))
	default:
		x.fail(http.StatusNotFound, 0, "404: Not Found")
	}
}

func (x *exchange) application(parts []string) {
	switch {
	case slices.Contains(parts, "@me"):
		app := map[string]any{"id": Application, "name": "ollim", "description": "", "owner": userOf(Owner), "team": nil, "flags": 0}
		if len(x.options.Team) > 0 {
			var members []any
			for _, id := range x.options.Team {
				members = append(members, map[string]any{"membership_state": 2, "team_id": "1", "user": userOf(id)})
			}
			app["owner"] = user{ID: "1", Username: "team1", Discriminator: "0000"}
			app["team"] = map[string]any{"id": "1", "name": "team", "owner_user_id": x.options.Team[0], "members": members}
		}
		x.answer(http.StatusOK, app)
	case parts[len(parts)-1] == "commands" && x.call.Method == http.MethodPut:
		x.checkCommands()
		x.world.commands = x.call.Body
		x.answer(http.StatusOK, x.call.Body)
	default:
		x.fail(http.StatusNotFound, 0, "404: Not Found")
	}
}

// checkCommands checks the names and sizes of commands.
func (x *exchange) checkCommands() {
	var list []struct {
		Name        string            `json:"name"`
		Description string            `json:"description"`
		Type        int               `json:"type"`
		Options     []json.RawMessage `json:"options"`
	}
	if err := json.Unmarshal(x.call.Body, &list); err != nil {
		x.violate("commands: %v", err)
	}
	for _, c := range list {
		if c.Name == "" || len(c.Name) > 32 || strings.ToLower(c.Name) != c.Name || c.Type <= 1 && (c.Description == "" || len(c.Description) > 100) || len(c.Options) > 25 {
			x.violate("command %q: name, description or options are not as Discord wants them", c.Name)
		}
	}
}

// channel serves /channels/ID…
func (x *exchange) channel(parts []string) {
	c := x.world.channels[parts[0]]
	if c == nil {
		x.fail(http.StatusNotFound, 10003, "Unknown Channel")
		return
	}
	method := x.call.Method
	switch {
	case len(parts) == 1:
		x.answer(http.StatusOK, channelObject(c))
	case parts[1] == "typing" && method == http.MethodPost && c.User != "" && x.options.Closed != 0:
		x.fail(http.StatusForbidden, x.options.Closed, "Cannot send messages to this user")
	case parts[1] == "typing" && method == http.MethodPost:
		x.world.typing[c.ID]++
		x.answer(http.StatusNoContent, nil)
	case parts[1] != "messages":
		x.fail(http.StatusNotFound, 0, "404: Not Found")
	case len(parts) == 2 && method == http.MethodGet:
		x.history(c)
	case len(parts) == 2 && method == http.MethodPost:
		x.post(c)
	default:
		x.message(parts[2:])
	}
}

func channelObject(c *Channel) map[string]any {
	object := map[string]any{"id": c.ID, "type": 1}
	switch {
	case c.Parent != "":
		object["type"], object["guild_id"], object["parent_id"] = 11, c.Guild, c.Parent
	case c.Guild != "":
		object["type"], object["guild_id"] = 0, c.Guild
	default:
		object["recipients"] = []user{userOf(c.User)}
	}
	return object
}

// history lists messages, newest first; with after, the oldest of them are chosen.
func (x *exchange) history(c *Channel) {
	limit := 50
	if n, err := strconv.Atoi(x.call.Query.Get("limit")); err == nil && n >= 1 && n <= 100 {
		limit = n
	}
	after := x.call.Query.Get("after")
	list := []*Message{}
	for _, id := range x.world.order {
		m := x.world.messages[id]
		if m.Channel == c.ID && !m.Deleted && !m.Ephemeral && (after == "" || number(id) > number(after)) {
			list = append(list, m)
		}
	}
	if after != "" && len(list) > limit {
		list = list[:limit]
	} else if len(list) > limit {
		list = list[len(list)-limit:]
	}
	slices.Reverse(list)
	x.answer(http.StatusOK, list)
}

func number(id string) uint64 {
	n, _ := strconv.ParseUint(id, 10, 64)
	return n
}

// message serves /channels/ID/messages/ID…
func (x *exchange) message(parts []string) {
	m := x.world.messages[parts[0]]
	if m == nil || m.Deleted {
		x.fail(http.StatusNotFound, 10008, "Unknown Message")
		return
	}
	if len(parts) > 2 && parts[1] == "reactions" {
		x.reaction(m, parts[2:])
		return
	}
	switch x.call.Method {
	case http.MethodGet:
		x.answer(http.StatusOK, m)
	case http.MethodDelete:
		m.Deleted = true
		x.answer(http.StatusNoContent, nil)
	case http.MethodPatch:
		if m.Author.ID != Bot {
			x.fail(http.StatusForbidden, 50005, "Cannot edit a message authored by another user")
			return
		}
		x.edit(m)
	default:
		x.fail(http.StatusMethodNotAllowed, 0, "405: Method Not Allowed")
	}
}

func (x *exchange) edit(m *Message) {
	if !x.fits(m.Content) {
		return
	}
	x.apply(m)
	now := x.call.At.UTC()
	m.Edited, m.Edits = &now, m.Edits+1
	x.answer(http.StatusOK, m)
}

func (x *exchange) reaction(m *Message, parts []string) {
	emoji, err := url.PathUnescape(parts[0])
	if err != nil || len(parts) != 2 || parts[1] != "@me" {
		x.fail(http.StatusBadRequest, 10014, "Unknown Emoji")
		return
	}
	switch x.call.Method {
	case http.MethodPut:
		m.Reactions[emoji] = append(slices.DeleteFunc(m.Reactions[emoji], func(u string) bool { return u == Bot }), Bot)
	case http.MethodDelete:
		m.Reactions[emoji] = slices.DeleteFunc(m.Reactions[emoji], func(u string) bool { return u == Bot })
	}
	if len(m.Reactions[emoji]) == 0 {
		delete(m.Reactions, emoji)
	}
	x.answer(http.StatusNoContent, nil)
}

// post creates a message. A nonce that is enforced makes the same message again the first one, unless that was deleted: tests delete a
// message that they want not to have been posted.
func (x *exchange) post(c *Channel) {
	if c.User != "" && x.options.Closed != 0 {
		x.fail(http.StatusForbidden, x.options.Closed, "Cannot send messages to this user")
		return
	}
	if !x.fits("") {
		return
	}
	nonce := c.ID + " " + text(x.in["nonce"])
	first := x.world.messages[x.rest.nonces[nonce]]
	if first != nil && !first.Deleted && string(x.in["enforce_nonce"]) == "true" && text(x.in["nonce"]) != "" {
		x.answer(http.StatusOK, first)
		return
	}
	m := x.newMessage(c.ID, Bot, "")
	x.apply(m)
	m.Nonce = text(x.in["nonce"])
	x.rest.nonces[nonce] = m.ID
	for _, f := range x.call.Files {
		m.Attachments = append(m.Attachments, x.attach(f))
	}
	x.dispatch("MESSAGE_CREATE", x.messageEvent(m, nil), x.intentOf(c.ID, 1<<12, 1<<9))
	x.answer(http.StatusOK, m)
}

// apply sets what the body has.
func (x *exchange) apply(m *Message) {
	set(x.in, "content", &m.Content)
	set(x.in, "embeds", &m.Embeds)
	set(x.in, "flags", &m.Flags)
	set(x.in, "message_reference", &m.Reference)
	if components, ok := x.in["components"]; ok {
		m.Components = components
	}
	if m.Reference != nil {
		m.Type = 19
	}
}

func set(in map[string]json.RawMessage, key string, into any) {
	if value, ok := in[key]; ok && string(value) != "null" {
		_ = json.Unmarshal(value, into)
	}
}

func text(raw json.RawMessage) (s string) {
	if json.Unmarshal(raw, &s) != nil {
		s = string(raw) // a number
	}
	return s
}

// slashTime is how long Discord waits for the first answer to an interaction.
const slashTime = 3 * time.Second
