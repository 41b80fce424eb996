package builtin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/shell"
)

const (
	bashTimeout = 2 * time.Minute
	bashLongest = 10 * time.Minute
	bashGrace   = 2 * time.Second
	bashBytes   = 4 << 20 // bytes of standard output that are kept
	bashChars   = 30000   // characters of them that are shown
)

func callBash(ctx context.Context, b *Box, in struct {
	Command string `json:"command"`
	Timeout count  `json:"timeout"`
}) (string, error) {
	words, err := shell.Words(in.Command)
	if err != nil {
		return "", fmt.Errorf("the command: %w", err)
	}
	g, err := b.ground()
	if err != nil {
		return "", err
	}
	limit := bashTimeout
	if in.Timeout > 0 {
		limit = min(time.Duration(in.Timeout)*time.Millisecond, bashLongest)
	}
	late := fmt.Errorf("stopped after %s", limit)
	ctx, stop := context.WithTimeoutCause(ctx, limit, late)
	defer stop()
	r, err := process.Run(ctx, process.Call{Argv: words, Env: b.Env, Dir: g.Dir(), Files: b.Hold, Limit: bashBytes, Grace: bashGrace, Tied: true, Seal: b.Seal})
	text := b.output(r)
	if b.Hints != nil {
		text = engine.WithHints(text, b.Hints(in.Command, text, err != nil || r.Status != 0))
	}
	switch {
	case errors.Is(err, process.ErrNotFound):
		return "", fmt.Errorf("%s: %w", words[0], process.ErrNotFound) // the error omits the directories
	case err != nil:
		return text, err
	case r.Status != 0:
		return text, errors.New(r.End)
	case text == "":
		return "(no output)", nil
	}
	return text, nil
}

// output returns what a program wrote, with standard error last. Secrets are replaced before the text is cut.
func (b *Box) output(r process.Result) string {
	text := strings.TrimRight(b.Secrets.HideCut(string(r.Out), false, r.Cut), "\n")
	if r.Cut {
		text += fmt.Sprintf("\n(cut at %d MiB)", bashBytes>>20)
	}
	text = middle(text, bashChars)
	cut := len(r.Stderr) >= process.StderrLimit
	if said := strings.TrimRight(b.Secrets.HideCut(r.Stderr, cut, false), "\n"); said != "" {
		if cut {
			said = "… " + said
		}
		if text != "" {
			text += "\n"
		}
		text += "stderr: " + said
	}
	return text
}

// middle cuts the middle out of a long text.
func middle(s string, most int) string {
	n := utf8.RuneCountInString(s)
	if n <= most {
		return s
	}
	left, _ := plaintext.First(s, most/2)
	right := len(s)
	for range most / 2 {
		_, size := utf8.DecodeLastRuneInString(s[:right])
		right -= size
	}
	return fmt.Sprintf("%s\n… (%d characters omitted) …\n%s", left, n-2*(most/2), s[right:])
}
