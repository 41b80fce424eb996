package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/ollim/ollim/internal/engine/native/builtin"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/state/update"
)

func callSendFile(ctx context.Context, b *Set, in struct {
	Path     string `json:"path"`
	Message  string `json:"message"`
	Critical bool   `json:"critical"`
}) (string, error) {
	path, err := b.fileToSend(in.Path)
	if err != nil {
		return "", err
	}
	text := update.Clean(in.Message)
	if text == "" {
		text = plaintext.Line(filepath.Base(path))
	}
	return b.reach(ctx, outbox.Message{Text: text, File: path, Critical: in.Critical})
}

// fileToSend is the path of a file that the run may send, in full.
func (b *Set) fileToSend(path string) (string, error) {
	if !filepath.IsAbs(path) {
		path = b.Home.Path(path)
	}
	if err := b.mayRead(path); err != nil {
		return "", err
	}
	if err := outbox.CheckFile(path); err != nil {
		return "", fmt.Errorf("bad arguments: %w", err)
	}
	return path, nil
}

// keepFile copies a file into the run's record, so that what is sent later is what was meant now. message is the id of the
// message that it goes with: another one of that name must not take its place.
func (b *Set) keepFile(path, message string) (string, error) {
	f, err := b.OpenFile(path) // it may have become another one since it was judged
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, outbox.MaxFile+1))
	if err != nil {
		return "", err
	}
	if len(data) > outbox.MaxFile {
		return "", outbox.TooLarge(path)
	}
	kept := b.Home.Run(b.Run.ID, "sent", message, filepath.Base(path))
	return kept, store.Write(kept, data, store.Synced)
}

// OpenFile opens a file that the run may read. A path that begins elsewhere than at / begins in the data directory.
func (b *Set) OpenFile(path string) (*os.File, error) {
	if err := b.mayRead(path); err != nil {
		return nil, err
	}
	p := b.reading()
	return (&builtin.Box{Roots: p.Roots, Allow: p.Allow, Protected: p.Protected}).OpenFile(path)
}

// reading allows every file of the run's directories that is not protected.
func (b *Set) reading() policy.Policy {
	all := b.policy()
	p := policy.Policy{Roots: all.Roots, Protected: all.Protected, Allow: parse([]string{"Read(./**)"})}
	for _, root := range p.Roots {
		p.Allow = append(p.Allow, parse([]string{"Read(" + filepath.Join(root.Dir, "**") + ")"})...)
	}
	return p
}

// mayRead returns a *Refused if the run may not read a file.
func (b *Set) mayRead(path string) error {
	input, err := json.Marshal(map[string]string{"file_path": path})
	if err != nil {
		return err
	}
	if v := b.reading().Decide("Read", input); !v.Allow {
		return &Refused{v.Reason}
	}
	return nil
}
