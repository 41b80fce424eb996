package question

import (
	"errors"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
)

func promptBook(t *testing.T) (Book, *time.Time) {
	t.Helper()
	now := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	return Book{Home: paths.Dir(t.TempDir()), Disk: store.Disk{
		Now: func() time.Time { return now }, Warn: func(m string) { t.Log(m) }, Locks: new(lock.Table),
	}}, &now
}

// Of many who press at once, one gets the prompt; the others learn that it was used.
func TestPromptIsUsedOnce(t *testing.T) {
	b, _ := promptBook(t)
	id, err := b.KeepPrompt(t.Context(), "Prepare the meeting")
	if err != nil {
		t.Fatal(err)
	}
	other, err := b.KeepPrompt(t.Context(), "Prepare the trip")
	if err != nil || other == id {
		t.Fatal(other, err)
	}
	var won, lost atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			switch prompt, err := b.UsePrompt(t.Context(), id); {
			case err == nil && prompt == "Prepare the meeting":
				won.Add(1)
			case errors.Is(err, errUsed) && prompt == "":
				lost.Add(1)
			}
		})
	}
	all.Wait()
	if won.Load() != 1 || lost.Load() != 7 {
		t.Errorf("%d got it, %d did not", won.Load(), lost.Load())
	}
	if prompt, err := b.UsePrompt(t.Context(), other); prompt != "Prepare the trip" || err != nil {
		t.Error(prompt, err)
	}
}

func TestPromptOfSevenDays(t *testing.T) {
	b, now := promptBook(t)
	keep := func(text string) string {
		id, err := b.KeepPrompt(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	first := keep("first")
	*now = now.Add(promptLife)
	if prompt, err := b.UsePrompt(t.Context(), first); prompt != "first" || err != nil {
		t.Error(prompt, err)
	}
	second := keep("second")
	*now = now.Add(promptLife + time.Second)
	if _, err := b.UsePrompt(t.Context(), second); !errors.Is(err, errOld) {
		t.Error(err)
	}
	keep("third")
	text, err := os.ReadFile(b.Home.State("inquiries.json"))
	if err != nil || strings.Contains(string(text), "second") || !strings.Contains(string(text), `"prompt": "third"`) {
		t.Errorf("%s %v", text, err)
	}
}
