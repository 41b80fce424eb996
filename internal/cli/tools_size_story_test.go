package cli

import (
	"encoding/json"
	"testing"
)

// TestToolsOfAnIsolatedRun: every fire pays for its tools, so they are few and their descriptions short.
func TestToolsOfAnIsolatedRun(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	w.must("routine", "add", "look", "--cron", "0 9 * * *", "--background", "--isolated", "Look.")
	w.must("fire", "look")
	var body struct{ Tools json.RawMessage }
	if err := json.Unmarshal(lastOf(api).Raw, &body); err != nil {
		t.Fatal(err)
	}
	if n := len(body.Tools); n > 6000 || n < 3000 {
		t.Errorf("the tools of an isolated run have %d bytes, not at most 6000", n)
	}
}
