package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/plaintext"
)

// newProcess returns an App over an empty data directory, and what it warned of.
func newProcess(t *testing.T) (a *App, write func(text string), warnings func() []string) {
	t.Helper()
	dir := t.TempDir()
	var mu sync.Mutex
	var said []string
	a = &App{
		DataDir: dir,
		Machine: Machine{
			Now: time.Now,
			Lookup: func(name string) (string, bool) {
				value, ok := map[string]string{"TZ": "UTC"}[name]
				return value, ok
			},
			Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		},
		Warn: func(message string) {
			mu.Lock()
			defer mu.Unlock()
			said = append(said, message)
		},
	}
	path := filepath.Join(dir, "config.yaml")
	write = func(text string) {
		t.Helper()
		if err := errors.Join(os.WriteFile(path+".new", []byte(text), 0o600), os.Rename(path+".new", path)); err != nil {
			t.Fatal(err)
		}
	}
	return a, write, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string{}, said...)
	}
}

func zoneOf(t *testing.T, a *App) string {
	t.Helper()
	c, err := a.Config()
	if err != nil {
		t.Fatal(err)
	}
	return c.Timezone
}

func TestConfigIsReadAgainWhenItsFileChanges(t *testing.T) {
	a, write, warnings := newProcess(t)
	if got := zoneOf(t, a); got != "UTC" {
		t.Errorf("without a file: %s", got)
	}
	write("timezone: Europe/Paris\n")
	if got := zoneOf(t, a); got != "Europe/Paris" {
		t.Errorf("with a file: %s", got)
	}
	first, err := a.settings()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := a.settings(); err != nil || again != first {
		t.Errorf("read again without a change, %v", err)
	}
	path := filepath.Join(a.DataDir, "config.yaml")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	write("timezone: Europe/Minsk\n") // of the same size
	if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if got := zoneOf(t, a); got != "Europe/Minsk" {
		t.Errorf("after a replacement of the same size and time: %s", got)
	}
	if err := os.WriteFile(path, []byte("timezone: Asia/Kolkata\n"), 0o600); err != nil { // in place
		t.Fatal(err)
	}
	if err := os.Chtimes(path, info.ModTime().Add(time.Second), info.ModTime().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if got := zoneOf(t, a); got != "Asia/Kolkata" || len(warnings()) > 0 {
		t.Errorf("after a change in place: %s, %q", got, warnings())
	}
}

// A file that cannot be used is reported once; the settings that were read before it stay in force until it can be.
func TestConfigThatCannotBeUsedAnyMore(t *testing.T) {
	a, write, warnings := newProcess(t)
	write("timezone: Europe/Paris\n")
	zoneOf(t, a)
	write("timezone: Nowhere/At/All\n")
	for range 3 {
		if got := zoneOf(t, a); got != "Europe/Paris" {
			t.Errorf("beside a broken file: %s", got)
		}
	}
	if got := warnings(); len(got) != 1 || !strings.Contains(got[0], "Nowhere") {
		t.Errorf("warnings %q", got)
	}
	if err := os.Remove(filepath.Join(a.DataDir, "config.yaml")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if h, err := a.Home(); err != nil || h.Config.Timezone != "Europe/Paris" {
			t.Errorf("without the file: %s, %v", h.Config.Timezone, err)
		}
	}
	if got := warnings(); len(got) != 2 || !strings.Contains(got[1], "no configuration") {
		t.Errorf("warnings %q", got)
	}
	write("timezone: Asia/Tokyo\n")
	if got := zoneOf(t, a); got != "Asia/Tokyo" || len(warnings()) != 2 {
		t.Errorf("after the repair: %s, %q", got, warnings())
	}
}

func TestConfigThatNeverWorked(t *testing.T) {
	a, write, _ := newProcess(t)
	if _, err := a.Home(); !errors.Is(err, ErrNoConfig) {
		t.Errorf("without a file: %v", err)
	}
	write("timezon: UTC\n")
	if _, err := a.Home(); !errors.As(err, new(*ConfigFault)) {
		t.Errorf("with a broken file: %v", err)
	}
	h, err := a.AnyHome()
	if err != nil || h.Config.Timezone != "UTC" {
		t.Errorf("with the defaults: %s, %v", h.Config.Timezone, err)
	}
	if _, err := a.Home(); !errors.Is(err, ErrNoConfig) { // the defaults stay in force
		t.Errorf("after the defaults: %v", err)
	}
	write("timezone: Asia/Tokyo\n")
	if h, err := a.Home(); err != nil || h.Config.Timezone != "Asia/Tokyo" {
		t.Errorf("after the repair: %v", err)
	}
}

func TestConfigFromSeveralGoroutines(t *testing.T) {
	a, write, _ := newProcess(t)
	write("timezone: Europe/Paris\n")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				if c, err := a.Config(); err != nil || c.Timezone != "Europe/Paris" && c.Timezone != "Asia/Tokyo" {
					t.Errorf("%q, %v", c.Timezone, err)
				}
			}
		})
	}
	for range 20 {
		write("timezone: Asia/Tokyo\n")
		write("timezone: Europe/Paris\n")
	}
	all.Wait()
}

func TestSessionNames(t *testing.T) {
	a, write, _ := newProcess(t)
	write("timezone: UTC\n")
	h, err := a.Home()
	if err != nil {
		t.Fatal(err)
	}
	routine := "---\nid: \"c44e97cf\"\ncron: \"0 9 * * *\"\nbackground: true\nsession: persistent\n---\nLook.\n"
	path := filepath.Join(a.DataDir, "routines", "daily-market.md")
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(routine), 0o600)); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]struct {
		name  SessionName
		found bool
		bad   bool
	}{
		"main":                 {NameOf(""), true, false},
		"routine:c44e97cf":     {NameOf("c44e97cf"), true, false},
		"routine:daily-market": {NameOf("c44e97cf"), true, false},
		"routine:gone":         {NameOf("gone"), true, false},
		"routine:":             {SessionName{}, true, true},
		"n-a1b2":               {SessionName{}, false, false},
		"sessions/x.jsonl":     {SessionName{}, false, false},
	} {
		n, found, err := h.SessionName(text)
		if n != want.name || found != want.found || errors.As(err, new(*BadArgument)) != want.bad {
			t.Errorf("%q: %+v, %v, %v", text, n, found, err)
		}
	}
	if _, err := h.Conversation("main"); !errors.Is(err, ErrNoSession) {
		t.Errorf("main: %v", err)
	}
	if _, err := h.Conversation("n-a1b2"); !errors.As(err, new(*plaintext.Unknown)) {
		t.Errorf("an unknown id: %v", err)
	}
}
