package outbox

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ollim/ollim/internal/platform/plaintext"
)

// Embed is a message in parts, with Discord's names and limits.
type Embed struct {
	Title       string   `json:"title"`
	Description string   `json:"description,omitempty"`
	URL         string   `json:"url,omitempty"`
	Color       string   `json:"color,omitempty"` // #rrggbb
	Fields      []Field  `json:"fields,omitempty"`
	Footer      string   `json:"footer,omitempty"`
	Actions     []action `json:"buttons,omitempty"`
}

// action is a button as the sender of an Embed describes it.
type action struct {
	Label  string `json:"label"`
	Action string `json:"action"`          // task_done:NUMBER, task_del:NUMBER or agent:PROMPT
	Style  string `json:"style,omitempty"` // of a Button
}

// Limits of actions.
const (
	maxActions = 5
	maxLabel   = 80
	maxPrompt  = 2000
)

// Clean returns the action without control characters, or an error if it is invalid.
func (a action) Clean() (action, error) {
	a.Label, a.Action = plaintext.Line(a.Label), plaintext.Lines(a.Action)
	verb, arg, _ := strings.Cut(a.Action, ":")
	digits := arg != "" && len(arg) < 10 && strings.Trim(arg, "0123456789") == ""
	switch {
	case strings.TrimSpace(a.Label) == "" || utf8.RuneCountInString(a.Label) > maxLabel:
		return a, fmt.Errorf("the label of a button has 1 to %d characters, not %q", maxLabel, a.Label)
	case !slices.Contains([]string{"", "primary", "success", "danger"}, a.Style):
		return a, fmt.Errorf("button %q: unknown style %q: want primary, success or danger", a.Label, a.Style)
	case (verb == ButtonTaskDone || verb == ButtonTaskDel) && digits:
		return a, nil
	case verb == ButtonAgent && strings.TrimSpace(arg) != "" && utf8.RuneCountInString(arg) <= maxPrompt:
		return a, nil
	}
	return a, fmt.Errorf("button %q: the action must be task_done:NUMBER, task_del:NUMBER or agent:PROMPT", a.Label)
}

// Field is a line of an Embed.
type Field struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Inline bool   `json:"inline,omitempty"`
}

// maxEmbed is the maximum number of characters of an embed, maxFields that of its fields.
const (
	maxEmbed  = 6000
	maxFields = 25
)

// Clean returns the embed without control characters, or an error if it is invalid.
func (e Embed) Clean() (Embed, error) {
	e.Fields = append([]Field{}, e.Fields...)
	total := 0
	part := func(name string, s *string, most int, clean func(string) string) error {
		*s = strings.TrimSpace(clean(*s))
		n := utf8.RuneCountInString(*s)
		if total += n; n > most {
			return fmt.Errorf("%s has %d characters, the most is %d", name, n, most)
		}
		return nil
	}
	err := errors.Join(part("title", &e.Title, 256, plaintext.Line), part("description", &e.Description, 4096, plaintext.Lines),
		part("url", &e.URL, 2048, plaintext.Line), part("footer", &e.Footer, 2048, plaintext.Line))
	for i := range e.Fields {
		f := &e.Fields[i]
		err = errors.Join(err, part("the name of a field", &f.Name, 256, plaintext.Line), part("the value of "+f.Name, &f.Value, 1024, plaintext.Lines))
		if f.Name == "" || f.Value == "" {
			err = errors.Join(err, errors.New("a field has no name or no value"))
		}
	}
	e.Actions = slices.Clone(e.Actions)
	for i, a := range e.Actions {
		var wrong error
		e.Actions[i], wrong = a.Clean()
		if wrong == nil && slices.ContainsFunc(e.Actions[:i], func(b action) bool { return b.Action == e.Actions[i].Action }) {
			wrong = fmt.Errorf("button %q: another one has the same action", a.Label)
		}
		err = errors.Join(err, wrong)
	}
	switch {
	case err != nil:
		return e, err
	case len(e.Actions) > maxActions:
		return e, fmt.Errorf("%d buttons, the most is %d", len(e.Actions), maxActions)
	case e.Title == "":
		return e, errors.New("title is empty")
	case len(e.Fields) > maxFields:
		return e, fmt.Errorf("%d fields, the most is %d", len(e.Fields), maxFields)
	case total > maxEmbed:
		return e, fmt.Errorf("%d characters in all, the most is %d", total, maxEmbed)
	case e.URL != "" && !strings.HasPrefix(e.URL, "https://") && !strings.HasPrefix(e.URL, "http://"):
		return e, errors.New("url must begin with https://")
	case e.Color != "" && (len(e.Color) != 7 || e.Color[0] != '#' || strings.Trim(e.Color[1:], "0123456789abcdefABCDEF") != ""):
		return e, fmt.Errorf("color %q: write one like #2e8b57", e.Color)
	}
	return e, nil
}

// Text returns the embed as plain text.
func (e Embed) Text() string {
	lines := []string{e.Title}
	if e.URL != "" {
		lines = append(lines, e.URL)
	}
	if e.Description != "" {
		lines = append(lines, "", e.Description)
	}
	if len(e.Fields) > 0 {
		lines = append(lines, "")
	}
	for _, f := range e.Fields {
		separator := " "
		if strings.Contains(f.Value, "\n") {
			separator = "\n"
		}
		lines = append(lines, f.Name+":"+separator+f.Value)
	}
	if e.Footer != "" {
		lines = append(lines, "", e.Footer)
	}
	return strings.Join(lines, "\n")
}
