package cli

import (
	"cmp"
	"strings"

	"github.com/ollim/ollim/internal/engine/claudecode"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/transcript"
	"github.com/ollim/ollim/internal/state/update"
)

func (d *Deps) updates(h house) update.Box {
	return update.Box{Home: h.home, Disk: h.disk, Zone: h.config.Zone, Started: func(id string) bool { return d.answered(h, id) }}
}

// answered reports whether the model has answered anything in a run, which may have been killed. An answer that the engine kept
// after the kill, or just before it, is in the session and not in the events.
func (d *Deps) answered(h house, id string) bool {
	did, err := h.runs().Standing(id)
	if err != nil || did.Started {
		return err == nil
	}
	r, err := h.runs().At(id)
	if err != nil {
		return false
	}
	t, err := d.findTranscript(h, cmp.Or(did.Session, r.SessionAfter, r.SessionBefore))
	if err != nil {
		return false
	}
	answered := false
	if (claudecode.Archive{}).Holds(t) {
		answered, err = d.claudeAnswered(h, t, r)
	} else {
		answered, err = t.Answered(id)
	}
	return err == nil && answered
}

// claudeAnswered is answered for a session of the claude command, which does not know our runs: the prompt of a run is found by its
// text.
func (d *Deps) claudeAnswered(h house, t transcript.Transcript, r *runlog.Run) (bool, error) {
	prompt, err := store.Read(h.home.Run(r.ID, "prompt.txt"))
	if err != nil {
		return false, err
	}
	want := strings.TrimSpace(string(prompt))
	return d.claudeArchive(h).Answered(t, func(text string) bool { return strings.TrimSpace(r.Hide(text)) == want })
}
