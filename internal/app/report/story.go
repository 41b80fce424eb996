package report

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/runlog"
)

// The space for what runs did, in bytes of the page, and for the texts of one run, in characters.
const (
	allStories  = 1400 << 10
	oneStory    = 24 << 10
	leastStory  = 1 << 10 // that a run counts as, because its files are read
	promptText  = 2000
	spokenText  = 4000
	resultText  = 1500
	messageText = 1000
)

// readStories reads what runs did: those with a problem first, then the newest, as long as there is space. Of others it reads what they
// told the owner, the newest first.
func (p *Page) readStories(ctx context.Context, h app.Home) error {
	said, left := prompt.Said(), allStories
	for _, problem := range []bool{true, false} {
		for i := range p.runs {
			r := &p.runs[i]
			if r.problem != problem || ctx.Err() != nil {
				continue
			}
			var err error
			switch {
			case left >= oneStory:
				s := story{page: p, run: r.id, note: r.note, out: out{secrets: p.secrets}}
				r.story, err = s.read(h, said, r.private)
				left -= max(len(r.story), leastStory)
			case r.reached && len(p.told) < mostHeard:
				err = p.events(h, r.id, func(runlog.Event) {})
			}
			if err != nil {
				p.fault("run %s: %v", r.id, err)
			}
		}
	}
	return nil
}

// events reads the events of a run, and what they say about messages to the owner.
func (p *Page) events(h app.Home, run string, see func(runlog.Event)) (err error) {
	bad := 0
	var said []runlog.Saying
	for e, eventErr := range h.Runs.Events(run, &bad) {
		if eventErr != nil {
			err = errors.Join(err, eventErr)
			continue
		}
		said = runlog.Say(said, 0, e)
		see(e)
	}
	p.tell(run, said)
	if bad > 0 {
		err = errors.Join(err, fmt.Errorf("omitted %s that cannot be read", plaintext.Count(bad, "event")))
	}
	return err
}

// story writes what one run did.
type story struct {
	out
	page   *Page
	run    string
	note   string // the error of the run
	spoken string // the last text of the agent
	over   bool   // the space of the run is used up
	more   int    // steps that were left out
}

// read returns what a run did, as HTML. With an error it returns what could be read.
func (s *story) read(h app.Home, said func(string) string, private bool) (string, error) {
	var text bytes.Buffer
	s.to = &text
	data, err := store.Read(h.Dir.Run(s.run, "prompt.txt"))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if len(data) > 0 {
		s.part("Prompt", "", said(string(data)), promptText)
	} else if private {
		s.part("Prompt and answer", runlog.NotKept, "", 0)
	}
	err = errors.Join(err, s.page.events(h, s.run, s.event))
	if s.more > 0 {
		s.add("<p class=cut>{} left out. <code>ollim run log {}</code> prints all of it.</p>\n", plaintext.Count(s.more, "more step"), s.run)
	}
	return text.String(), err
}

// part writes one step: what it is, more about that, and a text.
func (s *story) part(what, about, text string, most int) {
	if s.over = s.over || s.size > oneStory-most; s.over {
		s.more++
		return
	}
	s.add("<p class=step><b>{}</b> {}</p>\n", what, about)
	if strings.TrimSpace(text) != "" {
		s.text(text, most, s.run)
	}
}

// event writes a step of the run. Events that only count something, and the thoughts of a model, are omitted.
func (s *story) event(e runlog.Event) {
	failed := func(good, bad string) string {
		if e.IsError {
			return bad
		}
		return good
	}
	switch e.Type {
	case runlog.Text:
		s.spoken = e.Text
		s.part("Answer", "", e.Text, spokenText)
	case runlog.Result: // usually the last text once more
		if strings.TrimSpace(e.Text) != strings.TrimSpace(s.spoken) {
			s.part("Answer", "", e.Text, spokenText)
		}
	case runlog.ToolUse:
		s.part("Tool", e.Tool, arguments(e.Input), resultText)
	case runlog.ToolResult:
		s.part(failed("Result", "Error"), e.Tool, e.Text, resultText)
	case runlog.Verdict:
		if e.IsError {
			s.part("Denied", e.Tool, e.Text, messageText)
		}
	case runlog.Ping:
		s.part("Told the owner", "", e.Text, messageText)
	case runlog.PingRefused:
		s.part("Not sent", "", e.Text, messageText)
	case runlog.Report:
		s.part("Update", "", e.Text, messageText)
	case runlog.Verified:
		s.part(failed("Verified", "Not verified"), e.Tool, e.Text, messageText)
	case runlog.ErrorEvent, runlog.Refusal:
		if e.Text != s.note { // the page shows the run's error above
			s.part("Error", "", e.Text, messageText)
		}
	case runlog.Retry:
		s.part("Tried again", "", e.Text, messageText)
	case runlog.FellBack:
		s.part("Fallback", e.Model, e.Text, messageText)
	case runlog.ServerFailed:
		s.part("Server failed", e.Tool, e.Text, messageText)
	case runlog.Compacted:
		s.part("Compacted", fmt.Sprintf("%s to %s tokens", thousands(e.Before), thousands(e.After)), e.Text, messageText)
	case runlog.Answered:
		s.part("The owner answered", "", e.Text, messageText)
	}
}

// arguments returns the input of a tool: a line for each key, with texts as they are.
func arguments(input json.RawMessage) string {
	var object map[string]json.RawMessage
	if json.Unmarshal(input, &object) != nil {
		return string(input)
	}
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(object)) {
		var text string
		if json.Unmarshal(object[key], &text) != nil {
			text = string(object[key])
		}
		lines = append(lines, key+": "+text)
	}
	return strings.Join(lines, "\n")
}
