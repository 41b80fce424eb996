package discord

import (
	"slices"
	"strings"

	"github.com/bwmarrin/discordgo"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/server/discord/api"
	"github.com/ollim/ollim/internal/server/listener/messenger"
	"github.com/ollim/ollim/internal/state/outbox"
)

// received returns a message as the listener takes it.
func (b *bot) received(m *discordgo.Message) *messenger.Message {
	r := &messenger.Message{
		ID: m.ID, Channel: m.ChannelID, Own: b.wrote(m), Direct: m.GuildID == "", Addressed: b.addressed(m), Text: m.Content,
	}
	if isAnswered(m) {
		r.User, r.Name = m.Author.ID, m.Author.Username
	}
	if to := m.MessageReference; to != nil && m.Type == discordgo.MessageTypeReply {
		r.ReplyTo = to.MessageID
	}
	if q := m.ReferencedMessage; q != nil {
		r.Quoted = &messenger.Quoted{Text: quoteOf(q), Own: b.wrote(q)}
	}
	if at, known := b.places.get(m.ChannelID); known {
		r.Placed, r.Parent = true, at.parent
	}
	b.addContent(r, m)
	return r
}

// addContent adds what a message has besides text of its own: what it forwards, files, stickers and a poll.
func (b *bot) addContent(r *messenger.Message, m *discordgo.Message) {
	texts, files := []string{m.Content}, m.Attachments
	for _, shot := range m.MessageSnapshots {
		if shot.Message != nil {
			texts = append(texts, "Forwarded message:\n"+textOf(shot.Message))
			files = append(files[:len(files):len(files)], shot.Message.Attachments...)
		}
	}
	texts = slices.DeleteFunc(append(texts, unwritten(m)...), func(text string) bool { return strings.TrimSpace(text) == "" })
	r.Text = strings.Join(texts, "\n\n")
	for _, f := range files {
		if f == nil {
			continue
		}
		file := messenger.Received{Name: f.Filename, Size: int64(f.Size), Address: f.URL}
		file.Voice = m.Flags&discordgo.MessageFlagsIsVoiceMessage != 0 || strings.HasPrefix(f.ContentType, "audio/")
		if api.Snowflake(f.ID) != 0 {
			file.ID = f.ID
		}
		r.Files = append(r.Files, file)
	}
}

// isAnswered reports whether a message is one of a person, with ids of Discord's.
func isAnswered(m *discordgo.Message) bool {
	switch {
	case m.Author == nil, m.Author.Bot, m.WebhookID != "":
		return false
	case api.Snowflake(m.ID) == 0, api.Snowflake(m.ChannelID) == 0, api.Snowflake(m.Author.ID) == 0:
		return false
	}
	return m.Type == discordgo.MessageTypeDefault || m.Type == discordgo.MessageTypeReply
}

func (b *bot) wrote(m *discordgo.Message) bool { return m.Author != nil && m.Author.ID == b.self }

// addressed reports whether a message in a server is for the bot: it mentions the bot, or replies to the bot and can be read.
func (b *bot) addressed(m *discordgo.Message) bool {
	if slices.ContainsFunc(m.Mentions, func(u *discordgo.User) bool { return u != nil && u.ID == b.self }) {
		return true
	}
	if strings.Contains(m.Content, "<@"+b.self+">") || strings.Contains(m.Content, "<@!"+b.self+">") {
		return true
	}
	return m.ReferencedMessage != nil && b.wrote(m.ReferencedMessage) && m.Content != ""
}

// unwritten names what a message has in place of text.
func unwritten(m *discordgo.Message) (texts []string) {
	for _, sticker := range m.StickerItems {
		if sticker != nil {
			texts = append(texts, "[sticker: "+plaintext.Line(sticker.Name)+"]")
		}
	}
	if m.Poll != nil {
		choices := []string{"[poll: " + plaintext.Line(m.Poll.Question.Text) + "]"}
		for _, answer := range m.Poll.Answers {
			if answer.Media != nil {
				choices = append(choices, "- "+plaintext.Line(answer.Media.Text))
			}
		}
		texts = append(texts, strings.Join(choices, "\n"))
	}
	return texts
}

// quoteOf is what a message says: its text, or the parts of its first embed.
func quoteOf(m *discordgo.Message) string {
	if m == nil || m.Author == nil {
		return ""
	}
	return textOf(m)
}

// textOf is quoteOf a message that may have no author.
func textOf(m *discordgo.Message) string {
	if m.Content != "" || len(m.Embeds) == 0 || m.Embeds[0] == nil {
		return m.Content
	}
	e := outbox.Embed{Title: m.Embeds[0].Title, Description: m.Embeds[0].Description}
	for _, f := range m.Embeds[0].Fields {
		if f != nil {
			e.Fields = append(e.Fields, outbox.Field{Name: f.Name, Value: f.Value})
		}
	}
	return e.Text()
}
