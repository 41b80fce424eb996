package runlog

import (
	"errors"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"
)

// Whatever other processes do to the file between two reads, what is known is what a reader finds that knows nothing.
func TestKnownEventsAreThoseOfTheFile(t *testing.T) {
	path, k := filepath.Join(t.TempDir(), "events.jsonl"), &known{}
	random := rand.New(rand.NewSource(1))
	at := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	line := func() string {
		at = at.Add(time.Millisecond)
		return fmt.Sprintf(`{"at":%q,"type":"ping","text":"hi"}`, at.Format(time.RFC3339Nano))
	}
	write := func(text []byte) {
		at = at.Add(time.Millisecond) // a system's clock may show the same time for some milliseconds
		if err := errors.Join(os.WriteFile(path, text, 0o600), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 2000 {
		text, _ := os.ReadFile(path) // it may be missing
		switch random.Intn(8) {
		case 0, 1, 2:
			write(append(text, line()+"\n"+line()+"\n"...))
		case 3: // torn, or only without its line break
			whole := line()
			write(append(text, whole[:1+random.Intn(len(whole))]...))
		case 4:
			write(append(text, "\nnonsense\n\n"...))
		case 5: // a failed write is taken back, and another of the same length is in its place
			write(append(text[:max(0, len(text)-len(line())-1)], line()+"\n"...))
		case 6:
			write(text[:random.Intn(len(text)+1)])
		default:
			_ = os.Remove(path) // it may be missing
		}
		got, err := k.read(path)
		want, wantErr := (&known{}).read(path)
		if err != nil || wantErr != nil || len(got) != len(want) || len(got) > 0 && !reflect.DeepEqual(got, want) {
			t.Fatalf("step %d: %d events, %v; the file has %d, %v", i, len(got), err, len(want), wantErr)
		}
	}
}

// The events are not read again when nothing was appended: each question about the run would read them all.
func TestKnownEventsAreReadOnce(t *testing.T) {
	d := newDesk(t)
	r := d.open(Record{})
	other, err := d.At(r.ID)
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= 3; n++ {
		if err := other.Event(t.Context(), Event{Type: Ping, Text: "of another process"}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if s, err := r.Standing(); err != nil || s.Pings != n {
				t.Errorf("%d pings, %v; want %d", s.Pings, err, n)
			}
		}
	}
	last := &r.known.events[2]
	if _, err := r.Standing(); err != nil || &r.known.events[2] != last || len(r.known.events) != 3 {
		t.Errorf("%d events are known, %v", len(r.known.events), err)
	}
}
