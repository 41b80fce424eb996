package backtest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/engine/provider"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/request"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/transcript"
)

// recorded is a run as it is asked again.
type recorded struct {
	History

	sent    provider.Request     // the first request; its last message is the prompt
	history []transcript.Message // what the session said before
	prompt  string
}

// History is what a recorded run did.
type History struct {
	Record    runlog.Record
	Root      string         // the working directory
	Calls     []RecordedCall // what the tools answered, oldest first
	Decisions []Decision     // what the agent decided
}

// RecordedCall is a use of a tool with its result.
type RecordedCall struct {
	ID, Tool string
	Input    []byte // JSON
	Text     string // the result
	Failed   bool
}

// ReadHistory reads what a run did. home is the data directory, in which a run works unless its record names another directory.
func ReadHistory(runs runlog.Book, home paths.Dir, run string) (h History, err error) {
	if h.Record, err = runs.Load(run); err != nil {
		return h, err
	}
	h.Root = cmp.Or(h.Record.Root, string(home))
	return h, h.read(runs)
}

// Reasons for which a run cannot be asked again.
var (
	errNoRequest = errors.New("its first request is not kept")
	errNoPrompt  = errors.New("no request of it has the prompt as it was recorded")
	errFiles     = errors.New("its prompt has files")
	errNoBody    = errors.New("its record does not say where the body is in the prompt: the run is from an earlier version")
)

// was returns what the recorded run used.
func (c recorded) was() Use {
	r := c.Record
	u := Use{Cost: r.Cost, Usage: r.Usage}
	if r.Finished != nil {
		u.Seconds = r.Finished.Sub(r.Started).Seconds()
	}
	return u
}

// recorded reads a run, and puts in what is to change.
func (b *Backtest) recorded(v variant) (c recorded, err error) {
	if c.History, err = ReadHistory(b.Runs, b.Book.Home, v.run); err != nil {
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
		c.prompt, err = withBody(c.Record, c.prompt, *b.Body)
	}
	return c, err
}

// read reads what the agent decided, and what its tools answered.
func (c *History) read(runs runlog.Book) error {
	open := map[string]int{} // index of the call by its id
	for e, err := range runs.Events(c.Record.ID, nil) {
		switch {
		case err != nil:
			return err
		case e.Parent != "": // of a subagent, whose whole work is one result
		case e.Type == runlog.ToolUse:
			open[e.ToolID] = len(c.Calls)
			c.Calls = append(c.Calls, RecordedCall{ID: e.ToolID, Tool: e.Tool, Input: e.Input})
			c.Decisions = decide(c.Decisions, c.Root, e.Tool, e.Input)
		case e.Type == runlog.ToolResult:
			if i, found := open[e.ToolID]; found {
				c.Calls[i].Text, c.Calls[i].Failed = e.Text, e.IsError
				delete(open, e.ToolID)
			}
		}
	}
	unanswered := func(use RecordedCall) bool { _, is := open[use.ID]; return is }
	c.Calls = slices.DeleteFunc(c.Calls, unanswered)
	c.Decisions = upToQuestion(c.Decisions)
	if c.Record.Foreground && c.Record.Text != "" {
		c.Decisions = append(c.Decisions, Decision{Answered, "", c.Record.Text})
	}
	return nil
}

// find finds the first request that ends with the prompt.
func (c *recorded) find(asked request.Book) error {
	f, err := First(asked, c.Record.ID, c.prompt)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(f.Sent.Messages[len(f.Sent.Messages)-1].Content, func(b transcript.Block) bool { return b.Source != nil }) {
		return errFiles
	}
	c.sent, c.history = f.Sent, f.History
	c.sent.Messages = nil
	return nil
}

// Found is the first request of a run that ends with its prompt.
type Found struct {
	Number  int // from 1
	Sent    provider.Request
	At      int                  // the block of the last message that is the prompt
	History []transcript.Message // what the session said before, with what the engine put before the prompt
}

// First finds the first request of a run that ends with its prompt.
func First(asked request.Book, run, prompt string) (Found, error) {
	for n := 1; ; n++ {
		body, _, err := asked.Read(run, n)
		if errors.Is(err, request.ErrNone) && n == 1 {
			return Found{}, errNoRequest
		}
		if errors.Is(err, request.ErrNone) {
			return Found{}, errNoPrompt
		}
		if err != nil {
			return Found{}, fmt.Errorf("request %d: %w", n, err)
		}
		sent, err := provider.Parse(body)
		if err != nil {
			continue // another program's request, such as one that counts tokens
		}
		last := len(sent.Messages) - 1
		said := sent.Messages[last]
		at := slices.IndexFunc(said.Content, func(b transcript.Block) bool {
			return b.Type == transcript.TextBlock && strings.TrimSpace(b.Text) == strings.TrimSpace(prompt)
		})
		if said.Role != transcript.User || at < 0 {
			continue
		}
		f := Found{n, sent, at, sent.Messages[:last:last]}
		if before := (transcript.Message{Role: transcript.User, Content: said.Content[:at:at]}); strings.TrimSpace(before.Text()) != "" {
			f.History = append(f.History, before)
		}
		return f, nil
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
