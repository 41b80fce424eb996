package app

import (
	"cmp"
	"strings"

	"github.com/ollim/ollim/internal/engine/claudecode"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/transcript"
)

// answered reports whether the model has answered anything in a run, which may have been killed. An answer that the engine kept
// after the kill, or just before it, is in the session and not in the events.
func (h Home) answered(id string) bool {
	did, err := h.Runs().Standing(id)
	if err != nil || did.Started {
		return err == nil
	}
	r, err := h.Runs().At(id)
	if err != nil {
		return false
	}
	t, err := h.FindTranscript(cmp.Or(did.Session, r.SessionAfter, r.SessionBefore))
	if err != nil {
		return false
	}
	answered := false
	if (claudecode.Archive{}).Holds(t) {
		answered, err = h.claudeAnswered(t, r)
	} else {
		answered, err = t.Answered(id)
	}
	return err == nil && answered
}

// claudeAnswered is answered for a session of the claude command, which does not know the runs: a run's prompt is found by its
// text.
func (h Home) claudeAnswered(t transcript.Transcript, r *runlog.Run) (bool, error) {
	prompt, err := store.Read(h.Dir.Run(r.ID, "prompt.txt"))
	if err != nil {
		return false, err
	}
	want := strings.TrimSpace(string(prompt))
	return h.ClaudeArchive().Answered(t, func(text string) bool { return strings.TrimSpace(r.Hide(text)) == want })
}
