package listener

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/agent/turn"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/media"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/server/listener/messenger"
)

// Limits of what is received.
const (
	maxAttachment  = 50 << 20 // bytes of one file
	maxAttachments = 10
	maxSpoken      = 64 << 10 // bytes of the text of a voice note
	transcribeTime = 2 * time.Minute
	maxName        = 80 // characters of a file's name
)

// sayAgain is what the agent reads before a message that was delivered before, and has no id that tells whether it was answered.
const sayAgain = "[This message was delivered again after a restart: you may have answered it already.]"

// said is what a message says to the agent.
type said struct {
	turn.Message

	notes []string                 // what the sender is to be told about it
	as    func(text string) string // what it would say if the sender had written another text
}

// read returns what a message says, with its files. A file that cannot be downloaded is named, with the reason.
func (l *Listener) read(ctx context.Context, h Home, m *messenger.Message) (s said) {
	var texts []string // of the files
	for _, a := range m.Files[:min(len(m.Files), maxAttachments)] {
		name := plaintext.Line(a.Name)
		data, err := l.download(ctx, a)
		if err == nil && a.Voice {
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
	again, alone := "", len(s.Attachments) == 0
	if m.Again {
		again = sayAgain
	}
	s.as = func(text string) string {
		all := append([]string{again, strings.ToValidUTF8(text, "\ufffd")}, texts...)
		all = slices.DeleteFunc(all, func(text string) bool { return strings.TrimSpace(text) == "" })
		if len(all) == 0 && alone {
			return "[a message without text]"
		}
		return strings.TrimSpace(strings.Join(all, "\n\n"))
	}
	s.Text = s.as(m.Text)
	return s
}

// download returns the content of an attachment. It is tried for a while.
func (l *Listener) download(ctx context.Context, a messenger.Received) (data []byte, err error) {
	if a.Size > maxAttachment {
		return nil, fmt.Errorf("it has %d MiB, and the limit is %d MiB", a.Size>>20, maxAttachment>>20)
	}
	for range 3 {
		data, err = l.Messenger.Download(ctx, a.Address, maxAttachment)
		if err == nil || messenger.IsPermanent(err) || process.Sleep(ctx, firstPause) != nil {
			break
		}
	}
	if err == nil && data == nil {
		data = []byte{}
	}
	return data, err
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
func (*Listener) keep(h Home, a messenger.Received, data []byte) (attached engine.Attachment, text string, err error) {
	name := a.ID + "-" + safeName(a.Name)
	if a.ID == "" {
		return attached, "", errors.New("it has no id")
	}
	path := h.Dir.Path("downloads", name)
	if err := store.Write(path, data, store.Synced); err != nil {
		return attached, "", err
	}
	kind := media.Type(data)
	if media.IsSeen(kind) || media.IsText(kind) && len(data) <= engine.MaxText {
		if attached, err = engine.Attach(plaintext.Line(a.Name), path); err == nil {
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
