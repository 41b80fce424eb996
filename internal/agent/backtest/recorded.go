package backtest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/engine/provider"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/request"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/transcript"
)

// recorded is a run as it is asked again.
type recorded struct {
	record  runlog.Record
	root    string               // the working directory
	sent    provider.Request     // the first request; its last message is the prompt
	history []transcript.Message // what the session said before
	prompt  string
	calls   []call     // what the tools answered, oldest first
	before  []Decision // what the agent decided
}

// call is a recorded use of a tool with its result.
type call struct {
	id, tool string
	input    []byte
	text     string
	failed   bool
}

// Reasons for which a run cannot be asked again.
var (
	errNoRequest = errors.New("its first request is not kept")
	errNoPrompt  = errors.New("its first request does not hold the prompt as it was recorded")
	errFiles     = errors.New("its prompt has files")
	errNoBody    = errors.New("its record does not say where the body is in the prompt: the run is from an earlier version")
)

// was returns what the recorded run used.
func (c recorded) was() Use {
	r := c.record
	u := Use{Cost: r.Cost, Usage: r.Usage}
	if r.Finished != nil {
		u.Seconds = r.Finished.Sub(r.Started).Seconds()
	}
	return u
}

// recorded reads a run, and puts in what is to change.
func (b *Backtest) recorded(v variant) (c recorded, err error) {
	if c.record, err = b.Runs.Load(v.run); err != nil {
		return c, err
	}
	c.root = cmp.Or(c.record.Root, string(b.Book.Home))
	if err := c.readEvents(b.Runs); err != nil {
		return c, err
	}
	text, err := store.Read(b.Book.Home.Run(v.run, "prompt.txt"))
	if err != nil {
		return c, fmt.Errorf("%w: %w", errNoPrompt, err)
	}
	c.prompt = string(text)
	if err := c.find(b.Asked); err != nil {
		return c, err
	}
	if v.baseline {
		return c, nil
	}
	if b.Model != "" {
		c.sent.Model = b.Model
	}
	if b.Thinking != "" {
		c.sent.Thinking = b.Thinking
	}
	if b.Body != nil {
		c.prompt, err = withBody(c.record, c.prompt, *b.Body)
	}
	return c, err
}

// readEvents reads what the agent decided, and what its tools answered.
func (c *recorded) readEvents(runs runlog.Book) error {
	open := map[string]int{} // index of the call by its id
	for e, err := range runs.Events(c.record.ID, nil) {
		switch {
		case err != nil:
			return err
		case e.Parent != "": // of a subagent, whose whole work is one result
		case e.Type == runlog.ToolUse:
			open[e.ToolID] = len(c.calls)
			c.calls = append(c.calls, call{id: e.ToolID, tool: e.Tool, input: e.Input})
			c.before = decide(c.before, c.root, e.Tool, e.Input)
		case e.Type == runlog.ToolResult:
			if i, found := open[e.ToolID]; found {
				c.calls[i].text, c.calls[i].failed = e.Text, e.IsError
				delete(open, e.ToolID)
			}
		}
	}
	unanswered := func(use call) bool { _, is := open[use.id]; return is }
	c.calls = slices.DeleteFunc(c.calls, unanswered)
	c.before = upToQuestion(c.before)
	if c.record.Foreground && c.record.Text != "" {
		c.before = append(c.before, Decision{Answered, "", c.record.Text})
	}
	return nil
}

// find finds the first request that ends with the prompt.
func (c *recorded) find(asked request.Book) error {
	for n := 1; ; n++ {
		body, _, err := asked.Read(c.record.ID, n)
		if errors.Is(err, request.ErrNone) && n == 1 {
			return errNoRequest
		}
		if err != nil {
			return fmt.Errorf("%w: %w", errNoPrompt, err)
		}
		sent, err := provider.Parse(body)
		if err != nil {
			continue // another program's request, such as one that counts tokens
		}
		last := len(sent.Messages) - 1
		said := sent.Messages[last]
		at := slices.IndexFunc(said.Content, func(b transcript.Block) bool {
			return b.Type == transcript.TextBlock && strings.TrimSpace(b.Text) == strings.TrimSpace(c.prompt)
		})
		switch {
		case said.Role != transcript.User || at < 0:
			continue
		case slices.ContainsFunc(said.Content, func(b transcript.Block) bool { return b.Source != nil }):
			return errFiles
		}
		c.sent, c.history = sent, sent.Messages[:last:last]
		c.sent.Messages = nil
		if before := (transcript.Message{Role: transcript.User, Content: said.Content[:at:at]}); strings.TrimSpace(before.Text()) != "" {
			c.history = append(c.history, before) // what the engine put before the prompt
		}
		return nil
	}
}

// withBody returns a prompt with another body.
func withBody(r runlog.Record, text, body string) (string, error) {
	payload := ""
	for _, p := range r.Parts {
		if p.At < 0 || p.Bytes < 0 || p.At+p.Bytes > len(text) {
			return "", errNoBody
		}
		part := text[p.At : p.At+p.Bytes]
		switch {
		case p.Kind == prompt.KindData && r.Kind == "webhook" && payload == "":
			payload = part
		case p.Kind == prompt.KindBody:
			if r.Kind == "webhook" {
				body = prompt.Refill(body, payload)
			}
			return text[:p.At] + body + text[p.At+p.Bytes:], nil
		}
	}
	return "", errNoBody
}
