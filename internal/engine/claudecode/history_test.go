package claudecode

import (
	"os"
	"path/filepath"
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
