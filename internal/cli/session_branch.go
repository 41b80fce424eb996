package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/native"
	"github.com/ollim/ollim/internal/transcript"
)

func newSessionBranch(d *Deps) *cobra.Command {
	var after int
	cmd := &cobra.Command{
		Use:   "branch SESSION",
		Short: "Begin a session with the messages of another, or the first of them, and print its id",
		Long: "Branch copies messages into a new transcript, whose header names the one it came from; that one stays as it is. " +
			"Without --after it copies all complete turns: a turn that is under way, or that was cut off at the end, is left out. " +
			"ollim -r ID goes on with the new one. Only sessions of the native engine can be branched: other engines keep their own.",
		Example: "  ollim -r $(ollim session branch n-a1b2 --after 4) \"and if it rains?\"",
		Args:    checked(cobra.ExactArgs(1)),
		RunE:    works(func(_ *cobra.Command, args []string) error { return runSessionBranch(d, args[0], after) }),
	}
	cmd.Flags().IntVar(&after, "after", 0, "only the first so many messages, as search --json counts them; 0 is all complete turns")
	return cmd
}

func runSessionBranch(d *Deps, name string, after int) error {
	if after < 0 {
		return usage("--after %d: want 0 or more", after)
	}
	h, err := d.house()
	if err != nil {
		return err
	}
	if err := d.ownerHere(); err != nil {
		return err
	}
	c, err := d.conversation(h, name)
	if err != nil {
		return about(name, err)
	}
	if err := c.native(); err != nil {
		return err
	}
	if after > 0 {
		entries, err := d.load(c.file)
		if err != nil {
			return err
		}
		if after > len(entries) {
			return usage("--after %d: %s has %d messages", after, c.id, len(entries))
		}
	}
	header := c.file.Header
	if header.ID, err = native.NewID(d.Random); err != nil {
		return err
	}
	header.Timestamp = d.Now()
	if after == 0 {
		after = -1 // all complete turns
	}
	t, err := transcript.Branch(h.home.Sessions(), c.file, after, header)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(d.Out, t.ID)
	return err
}

// native refuses a conversation that is not the native engine's: nobody else takes a transcript for a session.
func (c conversation) native() error {
	if c.holder() == engine.Native {
		return c.readable()
	}
	return fmt.Errorf("only for sessions of the native engine: %w", engine.Foreign(c.id))
}
