package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/testkit"
)

// newSmallCommand is newCommand with a data directory on a file system of its own, of so many bytes.
func newSmallCommand(t *testing.T, size int) *command {
	t.Helper()
	c := &command{t: t, path: program, data: t.TempDir()}
	err := syscall.Mount("tmpfs", c.data, "tmpfs", 0, fmt.Sprintf("size=%d,mode=700", size))
	if err != nil {
		testkit.Missing(t, "a small file system cannot be mounted: run the tests as root: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(c.data, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	c.ok("init", "--timezone", "America/New_York")
	return c
}

// fillDisk takes all that is left of the file system, until free is called.
func (c *command) fillDisk() (free func()) {
	c.t.Helper()
	path := filepath.Join(c.data, "filler")
	f, err := os.Create(path)
	if err != nil {
		c.t.Fatal(err)
	}
	_, err = io.Copy(f, zeros{})
	if err == nil || !strings.Contains(err.Error(), "no space left") {
		c.t.Error(err)
	}
	_ = f.Close()
	return func() {
		if err := os.Remove(path); err != nil {
			c.t.Error(err)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

const hookSecret = "a secret of more than 24 bytes"

// flood is a server that is killed, and its senders.
type flood struct {
	*command
	address  string
	server   *exec.Cmd
	errOut   *bytes.Buffer
	accepted atomic.Int32
	full     atomic.Int32 // answers that the event could not be stored
}

func newFlood(c *command) *flood {
	c.t.Helper()
	address := freeAddress(c.t, "127.0.0.3")
	c.ok("config", "set", "webhook.listen", address)
	c.ok("config", "set", "webhook.jobs", "3")
	path := filepath.Join(c.data, ".config/ollim/secrets.env")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("webhook.default="+strings.ReplaceAll(hookSecret, " ", "-")+"\n"), 0o600); err != nil {
		c.t.Fatal(err)
	}
	f := &flood{command: c, address: address}
	c.t.Cleanup(func() {
		if f.server != nil {
			f.kill()
		}
	})
	return f
}

// serve starts the server, which ends with the test.
func (f *flood) serve() {
	f.t.Helper()
	f.errOut = &bytes.Buffer{}
	f.server = f.cmd("webhook", "serve")
	f.server.Stderr = f.errOut
	if err := f.server.Start(); err != nil {
		f.t.Fatal(err)
	}
}

// kill kills the server.
func (f *flood) kill() {
	f.t.Helper()
	_ = f.server.Process.Kill()
	_ = f.server.Wait()
	if strings.Contains(f.errOut.String(), "panic") {
		f.t.Error(f.errOut.String())
	}
}

// send sends the events from one to another to a webhook, each after the one before was accepted and again and again until it is,
// and returns their runs.
func (f *flood) send(hook string, from, to int) (runs []string) {
	client := &http.Client{Timeout: 10 * time.Second}
	defer client.CloseIdleConnections()
	for i := from; i < to; i++ {
		run, deadline := "", time.Now().Add(patience)
		for ; run == ""; run = f.post(client, hook, i) {
			if time.Now().After(deadline) {
				f.t.Errorf("%s: event %d was not accepted in %s", hook, i, patience)
				return runs
			}
		}
		f.accepted.Add(1)
		runs = append(runs, run)
	}
	return runs
}

// post sends an event once, and returns its run, "" if it was not accepted.
func (f *flood) post(client *http.Client, hook string, n int) (run string) {
	request, err := http.NewRequestWithContext(f.t.Context(), http.MethodPost, "http://"+f.address+"/hook/"+hook, strings.NewReader(fmt.Sprintf(`{"n": %d}`, n)))
	if err != nil {
		f.t.Error(err)
		return ""
	}
	request.Header.Set("Authorization", "Bearer "+strings.ReplaceAll(hookSecret, " ", "-"))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", fmt.Sprint(n))
	response, err := client.Do(request)
	if err != nil {
		time.Sleep(20 * time.Millisecond) // it is being started
		return ""
	}
	defer func() { _ = response.Body.Close() }()
	var body struct{ Run, Error string }
	err = json.NewDecoder(response.Body).Decode(&body)
	switch {
	case err != nil: // it was killed
	case response.StatusCode == http.StatusAccepted && body.Run != "":
		return body.Run
	case response.StatusCode == http.StatusServiceUnavailable && strings.Contains(body.Error, "stored"):
		f.full.Add(1)
		time.Sleep(20 * time.Millisecond)
	default:
		f.t.Errorf("%s: event %d: %s: %+v", hook, n, response.Status, body)
	}
	return ""
}

// awaits waits until so many events were accepted.
func (f *flood) awaits(n int) {
	f.t.Helper()
	eventually(f.t, fmt.Sprintf("%d events are accepted", n), func() bool { return int(f.accepted.Load()) >= n })
}

// TestFloodOfEvents: the server is killed again and again while events arrive, and the disk is full for a while. Each event that was
// accepted is run once, in the order of its webhook.
func TestFloodOfEvents(t *testing.T) {
	t.Parallel()
	events := rounds(t, 4) * 10
	kills := min(10, events/10)
	f := newFlood(newSmallCommand(t, 64<<20+events*50_000))
	f.serve()
	hooks := f.hooks(4)
	accepted := map[string][]string{}
	var mu sync.Mutex
	var senders sync.WaitGroup
	share := func(k int) int { return k * events / kills / len(hooks) }
	for k := range kills {
		free := func() {}
		if k == kills/2 {
			free = f.fillDisk()
		}
		for _, hook := range hooks {
			senders.Go(func() {
				runs := f.send(hook, share(k), share(k+1))
				mu.Lock()
				defer mu.Unlock()
				accepted[hook] = append(accepted[hook], runs...)
			})
		}
		if k == kills/2 {
			eventually(t, "the disk is full", func() bool { return f.full.Load() > 40 })
			free()
		}
		f.awaits((share(k) + share(k+1)) / 2 * len(hooks))
		f.kill()
		f.serve()
		senders.Wait()
	}
	for n := f.waiting(); n > 0; n = f.waiting() {
		eventually(t, fmt.Sprintf("fewer than %d events wait", n), func() bool { return f.waiting() < n })
	}
	eventually(t, "all runs have ended", func() bool { return len(process.Carrying("OLLIM_DATA_DIR="+f.data)) == 1 })
	f.kill()
	f.ok("tick") // ends the records of the dead
	t.Logf("%d events, the server was killed %d times, %d answers that the disk is full", f.accepted.Load(), kills, f.full.Load())
	f.ranOnce(accepted, "ok", "interrupted", "failed")
}
