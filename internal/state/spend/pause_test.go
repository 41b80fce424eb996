package spend

import (
	"errors"
	"os"
	"testing"
	"time"
)

func (d *desk) paused(want bool, until time.Time) {
	d.t.Helper()
	if got, u, err := d.Paused(); got != want || !u.Equal(until) || err != nil {
		d.t.Errorf("Paused = %v, %v, %v, want %v, %v", got, u, err, want, until)
	}
}

func TestPause(t *testing.T) {
	d := newDesk(t, defaults)
	var never time.Time
	d.paused(false, never)
	if err := d.Resume(ctx); err != nil {
		t.Error(err)
	}
	if err := d.Pause(ctx, never); err != nil {
		t.Error(err)
	}
	d.paused(true, never)
	until := d.now.Add(time.Hour)
	if err := d.Pause(ctx, until.UTC()); err != nil {
		t.Error(err)
	}
	d.paused(true, until)
	d.now = until.Add(-time.Nanosecond)
	d.paused(true, until)
	d.now = until
	d.paused(false, never)
	if err := d.Pause(ctx, until); err == nil || err.Error() != "2026-02-24T13:00:00+01:00 is not in the future" {
		t.Error(err)
	}
	d.paused(false, never)
	d.now = until.Add(-time.Second)
	d.paused(true, until)
	for range 2 {
		if err := d.Resume(ctx); err != nil {
			t.Error(err)
		}
		d.paused(false, never)
	}
	if _, err := os.Stat(d.pausePath()); !errors.Is(err, os.ErrNotExist) {
		t.Error("pause.json is left:", err)
	}
}

// The file is for people, too.
func TestPauseFile(t *testing.T) {
	d := newDesk(t, defaults)
	for _, until := range []time.Time{{}, d.now.Add(time.Hour).UTC()} {
		if err := d.Pause(ctx, until); err != nil {
			t.Error(err)
		}
		data, err := os.ReadFile(d.pausePath())
		want := "{\n  \"since\": \"2026-02-24T12:00:00+01:00\"\n}\n"
		if !until.IsZero() {
			want = "{\n  \"until\": \"2026-02-24T13:00:00+01:00\",\n  \"since\": \"2026-02-24T12:00:00+01:00\"\n}\n"
		}
		if string(data) != want || err != nil {
			t.Errorf("%s, %v", data, err)
		}
	}
	for _, content := range []string{"{}", "null", `{"reason":"holiday"}`, `{"until":null}`, `{"until":"2026-02-24T12:00:01+01:00"}`} {
		d.put(d.pausePath(), content)
		if paused, _, err := d.Paused(); !paused || err != nil {
			t.Errorf("%s: %v, %v", content, paused, err)
		}
	}
}

// An invalid file stops everything until it is replaced.
func TestCorruptPause(t *testing.T) {
	for _, content := range []string{"", "{", "[]", `{"until":"tomorrow"}`, `{"until":5}`, "{}x"} {
		for _, act := range []string{"pause", "resume"} {
			d := newDesk(t, defaults)
			d.put(d.pausePath(), content)
			paused, until, err := d.Paused()
			if !paused || !until.IsZero() || err == nil {
				t.Errorf("%q: %v, %v, %v", content, paused, until, err)
			}
			if err := d.Pause(ctx, d.now.Add(-time.Hour)); err == nil {
				t.Error("paused in the past")
			}
			if paused, _, _ := d.Paused(); !paused {
				t.Errorf("%q: not paused after a mistaken command", content)
			}
			if act == "pause" {
				err = d.Pause(ctx, time.Time{})
			} else {
				err = d.Resume(ctx)
			}
			if err != nil || asides(d.pausePath()) != 1 || len(d.warned) != 1 {
				t.Errorf("%q, %s: %v, kept as %d, warned %q", content, act, err, asides(d.pausePath()), d.warned)
			}
			d.paused(act == "pause", time.Time{})
		}
	}
}

func TestPauseUnreadable(t *testing.T) {
	d := newDesk(t, defaults)
	if err := os.MkdirAll(d.pausePath(), 0o700); err != nil {
		t.Fatal(err)
	}
	if paused, _, err := d.Paused(); !paused || err == nil {
		t.Error(paused, err)
	}
	if err := d.Pause(ctx, time.Time{}); err == nil {
		t.Error("Pause")
	}
	if err := d.Resume(ctx); err == nil {
		t.Error("Resume")
	}
}
