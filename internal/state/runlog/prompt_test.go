package runlog

import (
	"os"
	"testing"

	"github.com/ollim/ollim/internal/platform/plaintext"
)

// The record marks each section of the prompt, without its heading, in the text as it is stored.
func TestPromptParts(t *testing.T) {
	d := newDesk(t)
	d.Secrets = func() plaintext.Secrets { return plaintext.NewSecrets("hunter-2000") }
	p := Prompt{{Kind: "opening", Text: "hunter-2000 at ten"}, {Kind: "body", Head: "TASK:\n", Text: "Look.\n\nThen say hunter-2000."}, {Kind: "data", Text: "ä"}}
	want := []string{"[secret] at ten", "Look.\n\nThen say [secret].", "ä"}
	r := d.open(Record{})
	if err := r.Prompt(p); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(d.Home.Run(r.ID, "prompt.txt"))
	if err != nil || string(text) != "[secret] at ten\n\nTASK:\nLook.\n\nThen say [secret].\n\nä\n" {
		t.Fatalf("%q, %v", text, err)
	}
	for i, part := range r.Parts {
		if got := string(text[part.At : part.At+part.Bytes]); part.Kind != p[i].Kind || got != want[i] {
			t.Errorf("part %d: %q at %+v, want %q", i, got, part, want[i])
		}
	}
	if len(r.Parts) != len(p) {
		t.Errorf("%d parts", len(r.Parts))
	}

	d.Secrets = func() plaintext.Secrets { return plaintext.NewSecrets("ten\n\nTASK:") }
	if r = d.open(Record{}); r.Prompt(p) != nil || r.Parts != nil {
		t.Errorf("a secret across a border: %+v", r.Parts)
	}
}
