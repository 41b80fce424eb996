package conversation

import (
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/state/runlog"
)

func TestMeter(t *testing.T) {
	m := meter{most: 1000}
	text := runlog.Event{Type: runlog.Text, Text: strings.Repeat("x", 300)}
	for range 2 {
		if err := m.take(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.take(runlog.Event{Type: runlog.ToolUse, Input: []byte(text.Text)}); err == nil {
		t.Error("more than the bound was taken")
	}
	if err := m.take(runlog.Event{Type: runlog.UsageEvent, Cost: 1}); err != nil {
		t.Errorf("a cost was refused: %v", err)
	}
}
