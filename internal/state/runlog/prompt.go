package runlog

import (
	"fmt"
	"strings"

	"github.com/ollim/ollim/internal/platform/store"
)

// Prompt is the text that is sent to an engine, in the sections from which it was made. Text puts an empty line between two of them.
type Prompt []Section

// Section is one paragraph or several of a prompt, which come from one source.
type Section struct {
	Kind string // such as body: package prompt has the kinds
	Head string // heading that ollim puts before Text; "" if there is none
	Text string
}

// Part is where prompt.txt has the Text of a Section.
type Part struct {
	Kind  string `json:"kind"`
	At    int    `json:"at"` // bytes before it
	Bytes int    `json:"bytes"`
}

const sectionSep = "\n\n"

// Text returns the whole prompt.
func (p Prompt) Text() string {
	texts := make([]string, len(p))
	for i, s := range p {
		texts[i] = s.Head + s.Text
	}
	return strings.Join(texts, sectionSep) + "\n"
}

// parts returns where Text has the sections.
func (p Prompt) parts() []Part {
	parts, at := make([]Part, len(p)), 0
	for i, s := range p {
		parts[i] = Part{s.Kind, at + len(s.Head), len(s.Text)}
		at += len(s.Head) + len(s.Text) + len(sectionSep)
	}
	return parts
}

// Prompt writes the text that is sent to the engine, with secrets replaced: prompt.txt, and prompt-2.txt when the run continued with an
// answer. The record has the parts of prompt.txt, unless a secret crosses the border of two. It does not keep the prompt of a private run.
func (r *Run) Prompt(p Prompt) error {
	if r.Private {
		return nil
	}
	shown, hidden := r.Hide(p.Text()), make(Prompt, len(p))
	for i, s := range p {
		hidden[i] = Section{s.Kind, r.Hide(s.Head), r.Hide(s.Text)}
	}
	name := "prompt.txt"
	if r.Continued > 0 {
		name = fmt.Sprintf("prompt-%d.txt", r.Continued+1)
	} else if r.Parts = nil; hidden.Text() == shown {
		r.Parts = hidden.parts()
	}
	return store.Write(r.book.Home.Run(r.ID, name), []byte(shown), store.Buffered)
}
