package main

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
)

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// messageID returns the id of a message: Telegram's are unique in their chat only.
func messageID(chat, id int64) string { return decimal(chat) + "." + decimal(id) }

// channelOf returns the channel of a message: CHAT, or CHAT.TOPIC.
func channelOf(m *message) string {
	if m.InTopic {
		return messageID(m.Chat.ID, m.Thread)
	}
	return decimal(m.Chat.ID)
}

// split returns the two numbers of the id of a message or a topic. The second one of a chat is 0.
func split(id string) (chat, second int64, err error) {
	before, after, both := strings.Cut(id, ".")
	if chat, err = strconv.ParseInt(before, 10, 64); err == nil && both {
		second, err = strconv.ParseInt(after, 10, 64)
	}
	if err != nil {
		return 0, 0, &failure{Code: 400, Description: fmt.Sprintf("%q is not an id of Telegram: want CHAT or CHAT.NUMBER", id)}
	}
	return chat, second, nil
}

// incoming returns the line of a message.
func (d *door) incoming(m *message) incoming {
	line := incoming{
		Type: "message", ID: messageID(m.Chat.ID, m.ID), Channel: channelOf(m), Direct: m.Chat.Type == "private",
		Text: textOf(m), Files: filesOf(m),
	}
	if m.InTopic {
		line.Parent = decimal(m.Chat.ID)
	}
	if m.From != nil && !m.From.Bot && m.SenderChat == nil { // else a channel, an anonymous administrator or a bot
		line.User, line.Name = decimal(m.From.ID), strings.TrimSpace(m.From.First+" "+m.From.Last)
	}
	line.Addressed = line.Direct || d.mentioned(m.Text, m.Entities) || d.mentioned(m.Caption, m.CaptionEntities)
	if r := m.ReplyTo; r != nil && (!m.InTopic || r.ID != m.Thread) { // every message of a topic replies to its first one
		own := r.From != nil && r.From.ID == d.me.ID
		line.Addressed = line.Addressed || own
		line.ReplyTo = messageID(m.Chat.ID, r.ID)
		line.Quoted = &quoted{Text: textOf(r), Own: own}
		if m.Quote != nil && m.Quote.Text != "" {
			line.Quoted.Text = m.Quote.Text
		}
	}
	return line
}

// mentioned reports whether entities of a text mention the bot.
func (d *door) mentioned(text string, entities []entity) bool {
	units := utf16.Encode([]rune(text))
	for _, e := range entities {
		if e.Type == "text_mention" && e.User != nil && e.User.ID == d.me.ID {
			return true
		}
		if e.Offset < 0 || e.Length < 0 || e.Offset+e.Length > len(units) {
			continue
		}
		part := string(utf16.Decode(units[e.Offset : e.Offset+e.Length]))
		if at := strings.IndexByte(part, '@'); at >= 0 && (e.Type == "mention" || e.Type == "bot_command") &&
			strings.EqualFold(part[at+1:], d.me.Username) {
			return true
		}
	}
	return false
}

// textOf returns what a message says.
func textOf(m *message) string {
	switch {
	case m.Text != "":
		return m.Text
	case m.Caption != "":
		return m.Caption
	case m.Sticker != nil:
		return "[sticker " + m.Sticker.Emoji + "]"
	case m.Contact != nil:
		return fmt.Sprintf("[contact %s: %s]", strings.TrimSpace(m.Contact.First+" "+m.Contact.Last), m.Contact.Phone)
	case m.Location != nil:
		return fmt.Sprintf("[location %g, %g]", m.Location.Latitude, m.Location.Longitude)
	}
	return ""
}

// filesOf returns the file of a message.
func filesOf(m *message) []received {
	one := func(f *media, name string, voice bool) []received {
		if f.Name != "" {
			name = f.Name
		}
		return []received{{ID: f.Unique, Name: name, Size: f.Size, Address: f.ID, Voice: voice}}
	}
	switch {
	case m.Animation != nil: // it is a document too
		return one(m.Animation, "animation.mp4", false)
	case m.Document != nil:
		return one(m.Document, "file", false)
	case len(m.Photo) > 0:
		return one(&m.Photo[len(m.Photo)-1], "photo.jpg", false)
	case m.Voice != nil:
		return one(m.Voice, "voice.ogg", true)
	case m.Audio != nil:
		return one(m.Audio, "audio.mp3", false)
	case m.Video != nil:
		return one(m.Video, "video.mp4", false)
	case m.VideoNote != nil:
		return one(m.VideoNote, "video.mp4", false)
	}
	return nil
}
