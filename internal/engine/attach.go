package engine

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ollim/ollim/internal/platform/media"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/transcript"
)

const (
	// MaxText is the longest text file that becomes part of a prompt, in bytes.
	MaxText = 256 << 10
	// maxFile is the largest file that any service takes, in bytes.
	maxFile = 50 << 20
)

// ErrAttachment is the error of a file that cannot come with a prompt.
var ErrAttachment = errors.New("the file cannot be attached")

func unfit(name, format string, args ...any) error {
	return fmt.Errorf("%w: %s: %s", ErrAttachment, plaintext.Line(name), fmt.Sprintf(format, args...))
}

// Attach returns the attachment of a regular file: its type by its content, and an absolute path. The error wraps
// ErrAttachment.
func Attach(name, path string) (Attachment, error) {
	a := Attachment{Name: name}
	var err error
	if a.Path, err = filepath.Abs(path); err == nil {
		a.Path, err = filepath.EvalSymlinks(a.Path)
	}
	if err != nil {
		return a, unfit(name, "%s", store.Cause(err))
	}
	content, size, err := a.read(MaxText + 1)
	if err != nil {
		return a, err
	}
	if a.Type = media.Type(content); media.IsText(a.Type) && size > MaxText {
		return a, unfit(name, "a text of %d bytes, and a prompt takes %d of a file: give the part that matters, such as with head -c %d", size, MaxText, MaxText)
	}
	return a, nil
}

// Text returns the content of a text file, and the size of any file.
func (a Attachment) Text() (text string, size int, err error) {
	content, size, err := a.read(MaxText)
	if err != nil || !media.IsText(a.Type) {
		return "", size, err
	}
	return string(content), size, nil
}

// read reads the first most bytes of a file.
func (a Attachment) read(most int) (content []byte, size int, err error) {
	f, err := store.Open(a.Path, os.O_RDONLY)
	if errors.Is(err, store.ErrNoFile) {
		return nil, 0, unfit(a.Name, "not a regular file")
	}
	if err != nil {
		return nil, 0, unfit(a.Name, "%s", store.Cause(err))
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err == nil {
		content, err = io.ReadAll(io.LimitReader(f, int64(most)))
	}
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
		err = pe.Err
	}
	if err != nil {
		return nil, 0, unfit(a.Name, "%v", err)
	}
	return content, int(info.Size()), nil
}

// Source returns an image or a PDF as a model sees it. The error wraps ErrAttachment.
func Source(name string, content []byte) (*transcript.Source, error) {
	s := &transcript.Source{MediaType: media.Type(content), Name: name, Size: len(content), Content: content}
	if !media.IsSeen(s.MediaType) {
		return nil, unfit(name, "%s is neither an image nor a PDF", s.MediaType)
	}
	var err error
	if s.Facts, err = media.Look(s.MediaType, content); err != nil {
		return nil, unfit(name, "%v", err)
	}
	return s, nil
}

// Shown reads the attachments, in their order, within the limits of a service. The error wraps ErrAttachment.
func (in Input) Shown(limits media.Limits) (blocks []transcript.Block, err error) {
	load := media.Load{Limits: limits}
	for _, a := range in.Attachments {
		content, size, err := a.read(maxFile)
		if err == nil && size > maxFile {
			err = unfit(a.Name, "the file has %d bytes; services take %d at most", size, maxFile)
		}
		if err != nil {
			return nil, err
		}
		s, err := Source(a.Name, content)
		if err != nil {
			return nil, err
		}
		if err := load.Add(s.MediaType, s.Size, s.Facts); err != nil {
			return nil, unfit(a.Name, "%v", err)
		}
		blocks = append(blocks, s.Block())
	}
	return blocks, nil
}
