package transcript

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
)

// Branch creates a transcript from the first messages of another. A negative number means all complete turns, without a
// turn that is in progress or was cut off at the end. If the summary that the source begins with holds a part of such a
// turn, Branch copies from the transcript before it. The parent in h becomes the source, which the branch does not
// continue. Errors as in Create, or the source's.
func (d Dir) Branch(source Transcript, after int, h Header) (Transcript, error) {
	var entries []Entry
	var err error
	if after < 0 {
		source, entries, err = d.complete(source)
	} else if entries, err = source.Load(nil); err == nil {
		entries = entries[:min(after, len(entries))]
	}
	if err != nil {
		return Transcript{}, err
	}
	h.ParentID, h.Compacted, h.MidTurn = source.ID, false, false
	return d.create(h, store.Synced, entries)
}

// errNoSummary is the error of a compaction without a summary.
var errNoSummary = errors.New("the summary is empty")

// Summed creates a transcript with a summary, as a message of the user, and the kept messages of another transcript,
// which h names as its parent. Errors as in Create.
func (d Dir) Summed(summary string, kept []Entry, h Header) (Transcript, error) {
	entries, err := Summarized(summary, kept, h.Timestamp)
	if err != nil {
		return Transcript{}, err
	}
	h.Compacted = true
	return d.create(h, store.Synced, entries)
}

// Summarized returns the entries of a compaction made at an instant. Results of tools whose call was not kept are
// omitted. The lengths of the messages in tokens are reset to unknown. Thoughts are omitted, because services bind them
// to the conversation before.
func Summarized(summary string, kept []Entry, at time.Time) ([]Entry, error) {
	if strings.TrimSpace(summary) == "" {
		return nil, errNoSummary
	}
	entries := []Entry{{Message: Said(User, summary), At: at}}
	begun := false // begun by an answer: results of tools are valid only after one
	for _, e := range kept {
		e.Tokens, e.Full, e.Prefix, e.Message = 0, 0, "", e.Message.Unthought()
		if begun = begun || e.Message.Role == Assistant; !begun {
			e.Message.Content = slices.DeleteFunc(e.Message.Content, func(b Block) bool { return b.Type == ToolResult })
		}
		if begun || len(e.Message.Content) > 0 {
			entries = append(entries, e)
		}
	}
	return entries, nil
}

// Cut returns the index of the first entry to keep so that about the last keep messages stay. It keeps more if a tool's
// result would lose its call or a multi-message answer its beginning.
func Cut(entries []Entry, keep int) int {
	calls := map[string]int{} // where each id was last used for a call
	needs := make([]int, len(entries))
	for i, e := range entries {
		needs[i] = i
		for _, b := range e.Message.Content {
			call, known := calls[b.ToolUseID]
			if b.Type == ToolResult && known {
				needs[i] = min(needs[i], call)
			}
			if b.Type == ToolUse {
				calls[b.ID] = i
			}
		}
		if i > 0 && e.Message.Role == Assistant && entries[i-1].Message.Role == Assistant {
			needs[i] = min(needs[i], i-1)
		}
	}
	cut := min(max(len(entries)-keep, 0), len(entries))
	for i := len(entries) - 1; i >= cut && i >= 0; i-- {
		cut = min(cut, needs[i])
	}
	return cut
}

// create creates a transcript with the header and entries. The file appears complete under its name, so that
// a file of a killed writer is never taken for a complete one; store.IsDraft recognizes the draft that is left.
func (d Dir) create(h Header, to store.Durability, entries []Entry) (Transcript, error) {
	if !plaintext.IsName(h.ID) {
		return Transcript{}, fmt.Errorf("session %.100q: %w", h.ID, ErrID)
	}
	h.Cwd = clean(h.Cwd)
	t := Transcript{Path: d.Place(h), Header: h}
	dir, name := filepath.Split(t.Path)
	if err := store.MkdirOwn(dir); err != nil {
		return Transcript{}, err
	}
	draft, err := os.CreateTemp(dir, "."+name+".tmp-*")
	if err != nil {
		return Transcript{}, &store.NotWritten{Path: t.Path, Err: err}
	}
	err = t.write(draft, to, entries)
	if closeErr := draft.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Link(draft.Name(), t.Path) // unlike a rename it replaces nothing
	}
	_ = os.Remove(draft.Name())
	if err == nil && to == store.Synced {
		err = store.SyncDir(t.Path)
	}
	if errors.Is(err, os.ErrExist) {
		return Transcript{}, fmt.Errorf("%s: %w", t.Path, os.ErrExist)
	}
	if err != nil {
		return Transcript{}, &store.NotWritten{Path: t.Path, Err: err}
	}
	return t, nil
}

func (t Transcript) write(f *os.File, d store.Durability, entries []Entry) error {
	line, err := marshal(headerLine{"session", t.Header})
	if err != nil {
		return err
	}
	if len(line) >= headBytes {
		return errors.New("the header is too long")
	}
	text, err := encode(entries)
	if err != nil {
		return err
	}
	_, err = f.Write(append(append(line, '\n'), text...))
	if err == nil && d == store.Synced {
		err = f.Sync()
	}
	return err
}
