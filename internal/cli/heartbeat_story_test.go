package cli

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/state/heartbeat"
)

// monitor is a server that is called by heartbeats.
type monitor struct {
	*httptest.Server

	mu     sync.Mutex
	called []string // paths
	down   bool
}

func newMonitor(t *testing.T) *monitor {
	t.Helper()
	m := &monitor{}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.called = append(m.called, r.URL.RequestURI())
		if m.down {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(m.Close)
	return m
}

// calls returns the calls since the last time, and says how the next ones are answered.
func (m *monitor) calls(down bool) (called []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	called, m.called, m.down = m.called, nil, down
	return called
}

func (m *monitor) wants(t *testing.T, down bool, want ...string) {
	t.Helper()
	if got := m.calls(down); !slices.Equal(got, want) {
		t.Errorf("called %q, want %q", got, want)
	}
}

// A run that ended ok calls the URL of its job; no other run does.
func TestHeartbeatOfAJob(t *testing.T) {
	t.Parallel()
	w, m := newWorld(t), newMonitor(t)
	w.must("routine", "add", "daily", "--cron", "0 9 * * *", "--background", "--isolated", "--heartbeat", m.URL+"/a?b=c", "Go.")
	w.script("turns:\n  - - text: done\n")
	w.must("fire", "daily")
	m.wants(t, false, "/a?b=c")
	w.script("turns:\n  - - error: broken\n")
	w.run("fire", "daily")
	w.must("pause")
	w.cron = true
	w.run("fire", "daily")
	m.wants(t, false)
	if len(w.owed()) > 0 {
		t.Error("a call is owed")
	}
}

// A reminder's run calls too, although its file is gone by then.
func TestHeartbeatOfAReminder(t *testing.T) {
	t.Parallel()
	w, m := newWorld(t), newMonitor(t)
	w.script("turns:\n  - - text: done\n")
	w.must("reminder", "add", "--in", "1m", "--id", "once", "--heartbeat", m.URL+"/r", "Go.")
	m.calls(true)
	w.pass(2 * time.Minute)
	w.must("fire", "once")
	m.wants(t, false, "/r")
	w.pass(time.Minute)
	w.must("tick")
	m.wants(t, false, "/r")
	w.must("tick")
	m.wants(t, false)
}

// A call that fails changes nothing of the run. It is a warning once a day, and tick calls again, for an hour.
func TestHeartbeatIsTriedAgain(t *testing.T) {
	t.Parallel()
	w, m := newWorld(t), newMonitor(t)
	w.script("turns:\n  - - text: done\n")
	w.must("routine", "add", "daily", "--id", "d1", "--cron", "0 0 1 1 *", "--background", "--isolated", "--heartbeat", m.URL+"/a", "Go.")
	m.calls(true)
	r := w.run("fire", "daily")
	if r.status != 0 || w.last()["outcome"] != "ok" || strings.Count(r.errOut, "warning: heartbeat of d1: ") != 1 || strings.Contains(r.errOut, "/a") {
		t.Errorf("%+v", r)
	}
	w.pass(time.Minute)
	if r := w.run("tick"); r.status != 0 || r.errOut != "" {
		t.Errorf("the second warning of the day: %+v", r)
	}
	m.wants(t, false, "/a", "/a")
	w.must("tick")
	w.must("tick")
	m.wants(t, true, "/a")
	w.must("fire", "daily")
	w.pass(2 * time.Hour)
	m.calls(false)
	w.must("tick")
	m.wants(t, false)
	if got := w.owed(); len(got) > 0 {
		t.Errorf("still owed: %v", got)
	}
}

// owed returns the calls that are owed.
func (w *world) owed() heartbeat.Calls {
	w.t.Helper()
	all, err := w.facts().Heartbeats.List()
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// A call that a killed process owes is made only if its run was ok.
func TestHeartbeatOfAKilledRun(t *testing.T) {
	t.Parallel()
	w, m := newWorld(t), newMonitor(t)
	w.must("routine", "add", "daily", "--id", "d1", "--cron", "0 0 1 1 *", "--background", "--isolated", "Go.")
	for script, want := range map[string][]string{"turns:\n  - - text: done\n": {"/a"}, "turns:\n  - - error: broken\n": nil} {
		w.script(script)
		w.run("fire", "daily")
		if err := w.facts().Heartbeats.Owe(t.Context(), "d1", w.last()["id"].(string), m.URL+"/a"); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Minute)
		w.must("tick")
		m.wants(t, false, want...)
		if got := w.owed(); len(got) > 0 {
			t.Errorf("still owed: %v", got)
		}
	}
}

// Every tick whose work went well calls the URL of the settings; a failure of the call is none of the tick's.
func TestHeartbeatOfTick(t *testing.T) {
	t.Parallel()
	w, m := newWorld(t), newMonitor(t)
	w.must("config", "set", "heartbeat", m.URL+"/tick")
	w.must("tick")
	w.must("pause")
	w.must("tick")
	w.must("tick", "--dry-run")
	m.wants(t, true, "/tick", "/tick")
	first, second := w.run("tick"), w.run("tick")
	if first.status != 0 || second.status != 0 || !strings.Contains(first.errOut, "warning: heartbeat of tick: ") || second.errOut != "" {
		t.Errorf("%+v, %+v", first, second)
	}
	m.calls(false)
	if err := os.RemoveAll(filepath.Join(w.dir, "state/questions")); err != nil {
		t.Fatal(err)
	}
	w.write("state/questions", "no directory\n")
	if r := w.run("tick"); r.status == 0 {
		t.Errorf("%+v", r)
	}
	m.wants(t, false)
	if r := w.run("config", "set", "heartbeat", "hc-ping.com/x"); r.status == 0 || !strings.Contains(r.errOut, "is not a URL") {
		t.Errorf("%+v", r)
	}
}
