package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/ollim/ollim/internal/platform/store"
)

// maxInput is how much is read from standard input for a prompt, in bytes.
const maxInput = 256 << 10

// readInput reads standard input as text, up to maxInput.
func readInput(in io.Reader) (string, error) {
	data, err := io.ReadAll(io.LimitReader(in, maxInput+1))
	if err != nil {
		return "", &withStatus{fmt.Errorf("standard input: %s", store.Cause(err)), statusData}
	}
	if len(data) > maxInput {
		return "", hint(fmt.Errorf("standard input: %w: more than %d KiB", errTooLong, maxInput>>10), "shorten it with head -c %d", maxInput)
	}
	return string(bytes.ToValidUTF8(data, []byte("\ufffd"))), nil
}

// wordsOrInput returns the words of a command line as a text, or standard input where they are a single -.
func wordsOrInput(d *Deps, words []string) (string, error) {
	if text := strings.Join(words, " "); text != "-" {
		return text, nil
	}
	return readInput(d.In)
}

// readGiven reads a file that a command line names, up to one byte more than so many. It may be a pipe, as the shell's <(COMMAND)
// is: one that nobody writes to is empty, and ctx ends the wait for the other end.
func readGiven(ctx context.Context, file string, most int64) ([]byte, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	defer context.AfterFunc(ctx, func() { _ = f.Close() })()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return data, err
}
