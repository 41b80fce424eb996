package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/native"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/transcript"
)

func newSessionBranch(d *deps) *cobra.Command {
	var after int
	cmd := command(agentNever(refused), "branch SESSION", "Start a new session from the messages of another, and print its id",
		func(_ *cobra.Command, args []string) error { return runSessionBranch(d, args[0], after) })
	cmd.Flags().IntVar(&after, "after", 0, "copy only this many messages, as search --json counts them; 0 means all complete "+
		"turns")
	return cmd
}

func runSessionBranch(d *deps, name string, after int) error {
	if after < 0 {
		return usage("--after %d: want 0 or more", after)
	}
	h, err := d.Home()
	if err != nil {
		return err
	}
	c, err := h.Conversation(name)
	if err != nil {
		return about(name, err)
	}
	if err := heldBy(c, "the native engine and of claude-code", engine.Native, engine.ClaudeCode); err != nil {
		return err
	}
	header := c.File.Header
	if header.ID, err = native.NewID(d.Random); err != nil {
		return err
	}
	header.Timestamp = d.Now()
	if c.File.Form == engine.ClaudeCode {
		return d.branchOfClaude(h, c, after, header)
	}
	source, entries := c.File, []transcript.Entry(nil)
	if after > 0 {
		entries, err = d.load(h, source)
	} else {
		source, entries, err = h.Transcripts().Complete(source)
	}
	if err != nil {
		return err
	}
	if after > len(entries) {
		return usage("--after %d: %s has %s", after, c.ID, plaintext.Count(len(entries), "message"))
	}
	if after > 0 {
		entries = entries[:after]
	}
	header.ParentID, header.Compacted, header.MidTurn = source.ID, false, false
	t, err := h.Transcripts().Create(header, entries...)
	return d.answer(t.ID, err)
}

// branchOfClaude begins a transcript of the native engine with what was said in a session of the claude command, which is only
// read. It ends with a whole answer. Thoughts are omitted: services bind them to their own conversation.
func (d *deps) branchOfClaude(h app.Home, c app.Conversation, after int, header transcript.Header) error {
	entries, err := d.load(h, c.File)
	if err == nil && after == 0 { // else entries are counted as search --json counts them
		entries, err = h.ClaudeArchive().Load(c.File, true, new(int))
	}
	switch {
	case err != nil:
		return err
	case after > len(entries):
		return usage("--after %d: %s has %s", after, c.ID, plaintext.Count(len(entries), "message"))
	case after > 0:
		entries = entries[:after]
	}
	for len(entries) > 0 && after == 0 && !isAnswer(entries[len(entries)-1].Message) {
		entries = entries[:len(entries)-1] // a turn that is in progress, or was cut off
	}
	for i := range entries {
		entries[i].Message = entries[i].Message.Unthought()
	}
	header.ParentID, header.Provider = c.ID, config.Anthropic
	t, err := h.Transcripts().Create(header, entries...)
	return d.answer(t.ID, err)
}

func isAnswer(m transcript.Message) bool {
	return m.Role == transcript.Assistant && !slices.ContainsFunc(m.Content, func(b transcript.Block) bool { return b.Type == transcript.ToolUse })
}

// heldBy returns an error unless one of the engines keeps a conversation: no other engine uses a transcript as its session.
func heldBy(c app.Conversation, names string, engines ...string) error {
	if slices.Contains(engines, c.Holder()) {
		return readable(c)
	}
	return fmt.Errorf("only for sessions of %s: %w", names, engine.Foreign(c.ID))
}
