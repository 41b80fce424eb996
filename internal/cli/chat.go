package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/agent/runner"
	"github.com/ollim/ollim/internal/app"
)

func newChat(d *Deps) *cobra.Command {
	var model string
	var of channelOptions
	cmd := &cobra.Command{
		Annotations: agentNever(nested),
		Use:         "chat [TEXT...]",
		Short:       "Take a turn in the main conversation, which begins with the pending updates",
		Long: "Chat is one turn of the main conversation or, on a terminal without TEXT, a series of turns. Standard input, " +
			"if it is a pipe, is added to the message. A turn waits for one that is in progress. A terminal shows the text " +
			"as it arrives; a pipe or file receives the final text only.\n\n" + channelHelp,
		Example: "  ollim chat \"what did I miss?\"\n  ollim chat --channel telegram --chat-id 987 \"hello\"",
		RunE: works(func(cmd *cobra.Command, args []string) error {
			if of.given(cmd.Flags()) {
				return runChatChannel(cmd.Context(), d, strings.Join(args, " "), model, of)
			}
			return runChat(cmd.Context(), d, strings.Join(args, " "), model)
		}),
	}
	cmd.Flags().StringVar(&model, "model", "", "use this model")
	of.flags(cmd.Flags())
	return cmd
}

func runChat(ctx context.Context, d *Deps, text, model string) error {
	outlivePipe()
	h, err := d.Home()
	if err != nil {
		return err
	}
	if isTerminal(d.In) {
		if text == "" {
			return d.chatLoop(ctx, h, model)
		}
		return d.chatTurn(ctx, h, text, "", model)
	}
	input, err := readInput(d.In)
	if err != nil {
		return err
	}
	if text == "" {
		text, input = strings.TrimSpace(input), ""
	}
	if text == "" {
		return usage("no message: give a TEXT, or pipe one in")
	}
	return d.chatTurn(ctx, h, text, input, model)
}

func (d *Deps) chatLoop(ctx context.Context, h app.Home, model string) error {
	lines := make(chan string)
	go func() { // a read of the terminal cannot be interrupted, but left
		defer close(lines)
		in := bufio.NewReader(d.In)
		for {
			line, err := in.ReadString('\n')
			if line != "" {
				lines <- line
			}
			if err != nil {
				return
			}
		}
	}()
	for {
		_, _ = fmt.Fprint(d.Stderr, "> ")
		var text string
		select {
		case <-ctx.Done():
			return ctx.Err()
		case line, open := <-lines:
			if !open {
				_, _ = fmt.Fprintln(d.Stderr)
				return nil
			}
			if text = strings.TrimSpace(line); text == "" {
				continue
			}
		}
		if err := d.chatTurn(ctx, h, text, "", model); err != nil {
			if ctx.Err() != nil {
				return err
			}
			d.fail("chat", "", err)
		}
	}
}

// chatTurn writes the agent's text as it comes.
func (d *Deps) chatTurn(ctx context.Context, h app.Home, text, input, model string) error {
	v := &voice{d: d, format: "text", stop: func(error) {}} // the turn goes on without a listener
	r, err := h.Runner(d.atShell()).Chat(ctx, runner.Message{Text: text}, runner.Options{
		Model: model, Input: input, Owner: d.atShell(), Observe: runner.Observer{Event: d.chatEvent(v), Text: v.delta()},
	})
	if r.ID == "" {
		return explain(err)
	}
	v.end(h, r, err)
	return errors.Join((&fireOptions{}).verdict(d, r, err), v.err)
}
