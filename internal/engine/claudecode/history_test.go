package claudecode

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestHistoryOfACircle: a transcript whose records are each other's parents is read to an end.
func TestHistoryOfACircle(t *testing.T) {
	home := t.TempDir()
	dir := filepath.Join(home, ".claude", "projects", "-x")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	const id = "5e0c3c06-9f0a-4b9e-8a51-0f4d3f6f2a11"
	text := `{"type":"user","uuid":"a","parentUuid":"b","message":{"content":"go"}}
{"type":"assistant","uuid":"b","parentUuid":"a","message":{"model":"m","content":[{"type":"text","text":"well"}]}}
`
	if err := os.WriteFile(filepath.Join(dir, id+".jsonl"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	e := &Engine{Env: []string{"HOME=" + home}}
	if len(e.transcripts(id)) != 1 {
		t.Fatal("the transcript is not found")
	}
	h, err := e.history(id)
	if err != nil || h.end != "" || h.unanswered {
		t.Errorf("%+v, %v", h, err)
	}
}

// TestHistoryAfterACompaction: the answer that a compaction has kept ends the last complete turn, for versions in which it can be named
// without losing the summary. What the session has cost is that of its last process.
func TestHistoryAfterACompaction(t *testing.T) {
	home := t.TempDir()
	dir := filepath.Join(home, ".claude", "projects", "-x")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	const id = "5e0c3c06-9f0a-4b9e-8a51-0f4d3f6f2a11"
	text := `{"type":"user","uuid":"a","message":{"content":"go"}}
{"type":"assistant","uuid":"b","parentUuid":"a","message":{"model":"m","stop_reason":"end_turn","content":[{"type":"text","text":"well"}]}}
{"type":"cost-state","totalCostUSD":0.25,"modelUsage":{"m":{"inputTokens":7,"costUSD":0.25}}}
{"type":"system","subtype":"compact_boundary","uuid":"c","logicalParentUuid":"b","compactMetadata":{"preservedMessages":{"uuids":["b"]}}}
{"type":"user","uuid":"d","parentUuid":"c","isCompactSummary":true,"message":{"content":"all of it"}}
{"type":"user","uuid":"e","parentUuid":"b","message":{"content":"<local-command-stdout>Compacted</local-command-stdout>"}}
{"type":"cost-state","totalCostUSD":0.5,"modelUsage":{"m":{"inputTokens":9,"costUSD":0.5}}}
{"type":"user","uuid":"f","parentUuid":"e","message":{"content":"a request that failed"}}
`
	path := filepath.Join(dir, id+".jsonl")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	e := &Engine{Env: []string{"HOME=" + home}}
	h, err := e.history(id)
	if err != nil || h.end != "b" || !h.summed || !h.merges || h.unanswered || h.spent.Cost != 0.5 || h.spent.Models["m"].In != 9 {
		t.Errorf("%+v, %v", h, err)
	}
	for version, want := range map[string]bool{"2.1.197": false, "2.1.330": true, "2.2.0": true, "": false} {
		from, err := e.resume(Known{Version: version}, id, id, false)
		if err != nil || slices.Contains(from.args, "--resume-session-at") != want {
			t.Errorf("%s: %q, %v", version, from.args, err)
		}
	}
}
