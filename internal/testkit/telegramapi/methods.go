package telegramapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// Limits of the documentation.
const (
	maxText    = 4096 // UTF-16 units
	maxCaption = 1024
	maxData    = 64 // bytes
)

func refuse(format string, args ...any) Object {
	return Object{"ok": false, "error_code": 400, "description": "Bad Request: " + fmt.Sprintf(format, args...)}
}

func done(result any) Object { return Object{"ok": true, "result": result} }

// call carries out a method.
func (s *Server) call(method string, in Object) Object {
	switch method {
	case "getMe":
		return done(Object{"id": Bot, "is_bot": true, "first_name": "ollim", "username": "ollimbot"})
	case "sendMessage":
		return s.send(in, "", "text", "entities", maxText)
	case "sendDocument", "sendPhoto", "sendVoice":
		return s.send(in, strings.ToLower(strings.TrimPrefix(method, "send")), "caption", "caption_entities", maxCaption)
	case "editMessageText":
		return s.edit(in, true)
	case "editMessageReplyMarkup":
		return s.edit(in, false)
	case "deleteMessage":
		id := key(in)
		if s.Messages[id] == nil {
			return refuse("message to delete not found")
		}
		delete(s.Messages, id)
		return done(true)
	case "setMessageReaction":
		return s.react(in)
	case "sendChatAction":
		if in["action"] != "typing" {
			return refuse("wrong parameter action in request")
		}
		return done(true)
	case "getFile":
		id, _ := in["file_id"].(string)
		if _, known := s.Files[id]; !known {
			return refuse("wrong file_id or the file is temporarily unavailable")
		}
		return done(Object{"file_id": id, "file_unique_id": "u" + id, "file_size": len(s.Files[id]), "file_path": "files/" + id})
	case "answerCallbackQuery":
		id, _ := in["callback_query_id"].(string)
		if s.answered[id] {
			return refuse("query is too old and response timeout expired or query ID is invalid")
		}
		s.answered[id] = true
		s.Answers = append(s.Answers, id)
		return done(true)
	}
	return Object{"ok": false, "error_code": 404, "description": "Not Found"}
}

func key(in Object) string {
	return strconv.Itoa(number(in["chat_id"])) + "." + strconv.Itoa(number(in["message_id"]))
}

func units(text string) int { return len(utf16.Encode([]rune(text))) }

// check returns why a text, its entities or its buttons are not allowed.
func check(text string, entities []any, most int, markup any) (keyboard []any, fault Object) {
	if units(text) > most {
		return nil, refuse("message is too long")
	}
	for _, e := range entities {
		e, _ := e.(Object)
		if at, n := number(e["offset"]), number(e["length"]); at < 0 || n <= 0 || at+n > units(text) {
			return nil, refuse("entity beyond the end of the text: %v", e)
		}
	}
	m, _ := markup.(Object)
	keyboard, _ = m["inline_keyboard"].([]any)
	for _, row := range keyboard {
		row, _ := row.([]any)
		for _, b := range row {
			b, _ := b.(Object)
			data, _ := b["callback_data"].(string)
			label, _ := b["text"].(string)
			style, _ := b["style"].(string)
			switch {
			case data == "" || len(data) > maxData:
				return nil, refuse("BUTTON_DATA_INVALID")
			case label == "":
				return nil, refuse("button text is empty")
			case !slices.Contains([]string{"", "danger", "success", "primary"}, style):
				return nil, refuse("wrong style of a button: %s", style)
			}
		}
	}
	return keyboard, nil
}

// send creates a message.
func (s *Server) send(in Object, kind, field, entities string, most int) Object {
	s.message++
	m := &Message{Chat: number(in["chat_id"]), ID: s.message, Thread: number(in["message_thread_id"]), Kind: kind}
	m.Text, _ = in[field].(string)
	m.Entities, _ = in[entities].([]any)
	m.Silent, _ = in["disable_notification"].(bool)
	if reply, ok := in["reply_parameters"].(Object); ok {
		m.ReplyTo = number(reply["message_id"])
	}
	if m.Chat == 0 {
		return refuse("chat not found")
	}
	var fault Object
	if m.Keyboard, fault = check(m.Text, m.Entities, most, in["reply_markup"]); fault != nil {
		return fault
	}
	switch {
	case kind == "" && strings.TrimSpace(m.Text) == "":
		return refuse("message text is empty")
	case kind != "":
		var sent bool
		if m.File, sent = in[kind].(string); !sent {
			return refuse("there is no %s in the request", kind)
		}
		if kind == "photo" && !strings.HasPrefix(m.File, "\x89PNG") && !strings.HasPrefix(m.File, "\xff\xd8") {
			return refuse("IMAGE_PROCESS_FAILED")
		}
		m.Name, _ = in["name"].(string)
	}
	s.Messages[fmt.Sprintf("%d.%d", m.Chat, m.ID)] = m
	return done(Object{"message_id": m.ID, "date": 1, "chat": Object{"id": m.Chat, "type": "private"}, "text": m.Text})
}

// edit changes a message. One that is edited without a keyboard loses it.
func (s *Server) edit(in Object, text bool) Object {
	m := s.Messages[key(in)]
	if m == nil {
		return refuse("message to edit not found")
	}
	if m.Kind != "" && text {
		return refuse("there is no text in the message to edit")
	}
	next, entities := m.Text, m.Entities
	if text {
		next, _ = in["text"].(string)
		entities, _ = in["entities"].([]any)
		if strings.TrimSpace(next) == "" {
			return refuse("message text is empty")
		}
	}
	keyboard, fault := check(next, entities, maxText, in["reply_markup"])
	if fault != nil {
		return fault
	}
	before, _ := json.Marshal([]any{m.Text, m.Entities, m.Keyboard})
	after, _ := json.Marshal([]any{next, entities, keyboard})
	if string(before) == string(after) {
		return refuse("message is not modified: specified new message content and reply markup are exactly the same")
	}
	m.Text, m.Entities, m.Keyboard = next, entities, keyboard
	return done(Object{"message_id": m.ID, "date": 1, "chat": Object{"id": m.Chat, "type": "private"}, "text": m.Text})
}

// react sets the reaction of the bot: some of those that the documentation lists.
func (s *Server) react(in Object) Object {
	list, _ := in["reaction"].([]any)
	emoji := ""
	if len(list) > 1 {
		return refuse("REACTIONS_TOO_MANY")
	}
	if len(list) == 1 {
		one, _ := list[0].(Object)
		if emoji, _ = one["emoji"].(string); !slices.Contains([]string{"👍", "👎", "❤", "🔥", "🤔", "👀", "🎉", "✍", "😴"}, emoji) {
			return refuse("REACTION_INVALID")
		}
	}
	id := key(in)
	if s.Messages[id] == nil {
		s.Messages[id] = &Message{} // a user's
	}
	s.Messages[id].Reaction = emoji
	return done(true)
}
