package toolbox

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/ollim/ollim/internal/deliver"
	"github.com/ollim/ollim/internal/store"
	"github.com/ollim/ollim/internal/toolpolicy"
	"github.com/ollim/ollim/internal/update"
)

//go:embed send_file.md
var sendFileText string

func sendFile() tool {
	return tool{
		name:        "send_file",
		description: sendFileText,
		schema: `{"type":"object","properties":{"path":{"type":"string","minLength":1},"message":{"type":"string"},"critical":{"type":"boolean"}},` +
			`"required":["path"],"additionalProperties":false}`,
		may:  pings,
		call: callSendFile,
	}
}

func callSendFile(ctx context.Context, b *Box, input json.RawMessage) (string, error) {
	var in struct {
		Path     string `json:"path"`
		Message  string `json:"message"`
		Critical bool   `json:"critical"`
	}
	if err := decode(input, &in); err != nil {
		return "", err
	}
	kept, err := b.keepFile(in.Path)
	if err != nil {
		return "", err
	}
	text := update.Clean(in.Message)
	if text == "" {
		text = filepath.Base(in.Path)
	}
	return b.reach(ctx, deliver.Message{Text: text, File: kept, Critical: in.Critical})
}

// maxFile is what Discord takes without a subscription, in bytes.
const maxFile = 10 << 20

// keepFile copies a file that the run may read into its record, so that what is sent later is what was meant now.
func (b *Box) keepFile(path string) (string, error) {
	if !filepath.IsAbs(path) {
		path = b.Home.Path(path)
	}
	if err := b.mayRead(path); err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a file")
	}
	if err != nil {
		return "", err
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return "", err
	}
	if len(data) > maxFile {
		return "", fmt.Errorf("%s is larger than %d MiB", filepath.Base(path), maxFile>>20)
	}
	kept := b.Home.Run(b.Run.ID, "sent", filepath.Base(path))
	return kept, store.Replace(kept, data)
}

// mayRead allows every file of the run's folders that is not protected: it goes to the owner, not to the agent.
func (b *Box) mayRead(path string) error {
	p := b.policy()
	p.Allow = nil
	for _, root := range p.Roots {
		p.Allow = append(p.Allow, parse([]string{"Read(" + filepath.Join(root.Dir, "**") + ")"})...)
	}
	p.Allow = append(p.Allow, parse([]string{"Read(./**)"})...)
	input, err := json.Marshal(map[string]string{"file_path": path})
	if err != nil {
		return err
	}
	if v := (toolpolicy.Policy{Allow: p.Allow, Roots: p.Roots, Protected: p.Protected}).Decide("Read", input); !v.Allow {
		return &Refused{v.Reason}
	}
	return nil
}
