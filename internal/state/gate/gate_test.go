package gate

import (
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/ledger"
)

func at(t *testing.T, dir string) Book {
	return Book{ledger.New(paths.Dir(dir), store.Disk{Now: time.Now, Warn: func(m string) { t.Error(m) }}, Facts())}
}

// TestAudits: each third fire that the gate closes is an audit. One that did not come to its end is done again, one that told something
// turns the gate off, and another text of the gate is on.
func TestAudits(t *testing.T) {
	dir := t.TempDir()
	steps := []struct {
		digest, run, told string
		passed            bool // the run of an audit came to its end
		audits            bool
		off               string
		others            int // runs that end and audit nothing
	}{
		{digest: "a", run: "r1"},
		{digest: "a", run: "r2"},
		{digest: "a", run: "r3", audits: true},
		{digest: "a", run: "r4", audits: true, passed: true, others: 1},
		{digest: "a", run: "r5"},
		{digest: "a", run: "r6"},
		{digest: "a", run: "r7", audits: true, told: "pinged", off: "r7"},
		{digest: "b", run: "r8"},
		{digest: "a", run: "r9"}, // it was changed back
	}
	for _, s := range steps {
		b := at(t, dir) // another process
		audits, err := b.Close(t.Context(), "job", s.digest, s.run, 3)
		if err != nil || audits != s.audits {
			t.Fatalf("%s: audits %v, %v", s.run, audits, err)
		}
		for range s.others {
			if err := b.End(t.Context(), "job", "other", "pinged", true); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // the second changes nothing
			if err := b.End(t.Context(), "job", s.run, s.told, s.passed); err != nil {
				t.Fatal(err)
			}
		}
		g, err := at(t, dir).Of("job", s.digest)
		if err != nil || g.Off != s.off || g.Told != s.told || g.Audit != "" || (g.Off != "") == g.OffAt.IsZero() {
			t.Errorf("%s: %+v, %v", s.run, g, err)
		}
	}
	n := 0
	for line, err := range at(t, dir).Ledger.Lines(time.Time{}, "gate.off") {
		if n++; err != nil {
			t.Error(line, err)
		}
	}
	if n != 1 {
		t.Errorf("%d facts that the gate is off", n)
	}
}
