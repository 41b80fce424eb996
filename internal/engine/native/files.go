package native

import (
	"context"
	"errors"
	"fmt"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/media"
	"github.com/ollim/ollim/internal/state/transcript"
)

// objects stores the files that models saw, by the hash of their content.
type objects interface {
	Put(ctx context.Context, content []byte) (hash string, err error)
	Get(hash string) ([]byte, error)
}

// limits returns the limits for the files of a question.
func (t *turn) limits() media.Limits {
	if t.e.Service.Name == anthropic {
		return media.Anthropic(t.how.model.Window)
	}
	return media.OpenAI()
}

// shown returns the attachments of the request as blocks of the prompt. The error wraps engine.ErrAttachment.
func (t *turn) shown() ([]transcript.Block, error) {
	blocks, err := t.request.Input.Shown(t.limits())
	for _, b := range blocks {
		if b.Type == transcript.DocumentBlock && t.e.Service.NoPDF != "" {
			return nil, fmt.Errorf("%w: %s: %s takes no PDF files: pipe its text in, such as with pdftotext %s -",
				engine.ErrAttachment, b.Source.Name, t.e.Service.NoPDF, b.Source.Name)
		}
	}
	return blocks, err
}

// put stores the files of an entry that are not stored yet.
func (e *Engine) put(said transcript.Entry) error {
	for _, b := range said.Message.Content {
		if b.Source == nil || b.Source.SHA256 != "" || b.Source.Content == nil || e.Objects == nil {
			continue
		}
		hash, err := e.Objects.Put(context.Background(), b.Source.Content)
		if err != nil {
			return err
		}
		b.Source.SHA256 = hash
	}
	return nil
}

// withFiles loads the files that messages name. A label replaces a file that no longer exists, and the oldest files if a question with
// all of them would exceed the service's limits, because the service would reject every further question. If the service has rejected
// one, labels replace all files except those of the prompt.
func (t *turn) withFiles(messages []transcript.Message) []transcript.Message {
	load := media.Load{Limits: t.limits()}
	prompt := t.talk.prompt(t.talk.entries)
	t.how.earlier = false
	for i := len(messages) - 1; i >= 0; i-- {
		messages[i] = messages[i].Relabelled(func(s *transcript.Source) string {
			if t.how.without && i != prompt {
				return s.Label() + " (left out: the service refused the files of this conversation)"
			}
			if err := t.load(s); err != nil {
				return s.Label() + " (" + err.Error() + ")"
			}
			if load.Add(s.MediaType, s.Size, s.Facts) != nil {
				return s.Label() + " (left out: the service takes no more files)"
			}
			t.how.earlier = t.how.earlier || i != prompt
			return ""
		})
	}
	return messages
}

func (t *turn) load(s *transcript.Source) (err error) {
	switch {
	case s.Content != nil:
	case t.e.Objects == nil:
		err = errors.New("the file is not kept")
	default:
		s.Content, err = t.e.Objects.Get(s.SHA256)
	}
	return err
}

// labelled returns messages with labels in place of files.
func labelled(messages []transcript.Message) []transcript.Message {
	for i, m := range messages {
		messages[i] = m.Relabelled((*transcript.Source).Label)
	}
	return messages
}
