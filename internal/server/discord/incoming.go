package discord

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"github.com/ollim/ollim/internal/agent/turn"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/media"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/server/discord/api"
)

// Limits of what is received.
const (
	maxAttachment  = 50 << 20 // bytes of one file
	maxAttachments = 10
	maxSpoken      = 64 << 10 // bytes of the text of a voice note
	transcribeTime = 2 * time.Minute
	maxName        = 80 // characters of a file's name
)

// said is what a message says to the agent.
type said struct {
	turn.Message

	notes []string // what the sender is to be told about it
}

// read returns what a message says, with its files. A file that cannot be downloaded is named, with the reason.
func (l *listener) read(ctx context.Context, h Home, m *discordgo.Message) (s said) {
	texts := []string{strings.ToValidUTF8(m.Content, "\ufffd")}
	for _, shot := range m.MessageSnapshots {
		if shot.Message != nil {
			texts = append(texts, "Forwarded message:\n"+strings.ToValidUTF8(quoteAny(shot.Message), "\ufffd"))
			m.Attachments = append(m.Attachments, shot.Message.Attachments...)
		}
	}
	texts = append(texts, unwritten(m)...)
	for i, a := range m.Attachments {
		if a == nil || i >= maxAttachments {
			continue
		}
		name := plaintext.Line(a.Filename)
		data, err := l.download(ctx, a)
		if err == nil && isVoice(m, a) {
			var text string
			if text, err = transcribe(ctx, h, data); err == nil {
				texts = append(texts, text)
				continue
			}
			s.notes = append(s.notes, "The voice note could not be transcribed: "+err.Error())
		}
		if data == nil {
			s.notes = append(s.notes, fmt.Sprintf("The file %s could not be downloaded: %v", name, err))
			texts = append(texts, fmt.Sprintf("[file %s of %d bytes: it could not be downloaded]", name, a.Size))
			continue
		}
		attached, text, err := l.keep(h, a, data)
		if err != nil {
			s.notes = append(s.notes, fmt.Sprintf("The file %s could not be saved: %v", name, err))
		}
		if attached.Path != "" {
			s.Attachments = append(s.Attachments, attached)
		}
		texts = append(texts, text)
	}
	texts = slices.DeleteFunc(texts, func(text string) bool { return strings.TrimSpace(text) == "" })
	s.Text = strings.TrimSpace(strings.Join(texts, "\n\n"))
	if s.Text == "" && len(s.Attachments) == 0 {
		s.Text = "[a message without text]"
	}
	return s
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

func quoteAny(m *discordgo.Message) string {
	if m.Author == nil {
		m.Author = &discordgo.User{}
	}
	return quoteOf(m)
}

// download returns the content of an attachment. It is tried for a while.
func (l *listener) download(ctx context.Context, a *discordgo.MessageAttachment) (data []byte, err error) {
	if a.Size > maxAttachment {
		return nil, fmt.Errorf("it has %d MiB, and the limit is %d MiB", a.Size>>20, maxAttachment>>20)
	}
	for range 3 {
		data, err = l.API.Download(ctx, a.URL, maxAttachment)
		if err == nil || api.Permanent(err) || process.Sleep(ctx, firstPause) != nil {
			break
		}
	}
	if err == nil && data == nil {
		data = []byte{}
	}
	return data, err
}

func isVoice(m *discordgo.Message, a *discordgo.MessageAttachment) bool {
	return m.Flags&(1<<13) != 0 || strings.HasPrefix(a.ContentType, "audio/")
}

// transcribe has the owner's command turn audio into text.
func transcribe(ctx context.Context, h Home, audio []byte) (string, error) {
	if len(h.Transcribe) == 0 {
		return "", errors.New("the setting transcribe is empty")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, transcribeTime, fmt.Errorf("no end within %s", transcribeTime))
	defer cancel()
	r, err := process.Run(ctx, process.Call{
		Argv: h.Transcribe, Env: h.Env, Dir: h.Dir.Path(), Stdin: audio, Limit: maxSpoken, Tied: true, Grace: firstPause,
	})
	if err == nil {
		err = r.Failure()
	}
	text := strings.TrimSpace(strings.ToValidUTF8(string(r.Out), "\ufffd"))
	if err == nil && text == "" {
		err = errors.New("the command wrote no text")
	}
	return text, err
}

// keep stores a file in downloads/. A file that the model can see, or a text that fits a prompt, is attached; any other one is named
// in the text.
func (*listener) keep(h Home, a *discordgo.MessageAttachment, data []byte) (attached engine.Attachment, text string, err error) {
	name := a.ID + "-" + safeName(a.Filename)
	if snowflake(a.ID) == 0 {
		return attached, "", errors.New("its id is not one of Discord's")
	}
	path := h.Dir.Path("downloads", name)
	if err := store.Write(path, data, store.Synced); err != nil {
		return attached, "", err
	}
	kind := media.Type(data)
	if media.IsSeen(kind) || media.IsText(kind) && len(data) <= engine.MaxText {
		if attached, err = engine.Attach(plaintext.Line(a.Filename), path); err == nil {
			return attached, "", nil
		}
	}
	return engine.Attachment{}, fmt.Sprintf("[file downloads/%s: %s, %d bytes]", name, kind, len(data)), err
}

// safeName returns the name of a file as one that is safe in a path, in a shell and in a listing.
func safeName(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			return r
		}
		return '-'
	}, filepath.Base(name))
	if len(name) > maxName {
		name = name[len(name)-maxName:]
	}
	if name = strings.Trim(name, ".-"); name == "" {
		return "file"
	}
	return name
}
