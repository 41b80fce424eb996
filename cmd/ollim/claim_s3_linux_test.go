package main

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit"
)

// objectStore is an S3 server of a test: versitygw, which keeps objects as files.
type objectStore struct {
	t       *testing.T
	program string
	address string
	dir     string
	running *exec.Cmd
	ended   chan error
}

func newObjectStore(t *testing.T) *objectStore {
	t.Helper()
	s := &objectStore{t: t, program: filepath.Join(testkit.Installed(t, "S3 server", "OLLIM_TEST_S3", "s3", "versitygw"), "versitygw"), dir: t.TempDir()}
	s.address = freeAddress(t, "127.0.0.2") // it has no other way to choose a port
	for _, dir := range []string{"data/bucket", "about"} {
		if err := os.MkdirAll(filepath.Join(s.dir, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if s.running != nil {
			s.server("stop")
		}
	})
	s.server("start")
	return s
}

// server starts the server and waits until it answers, or kills it.
func (s *objectStore) server(do string) {
	s.t.Helper()
	if do == "stop" {
		_ = s.running.Process.Kill()
		<-s.ended
		s.running = nil
		return
	}
	// Without a place for what it knows about objects it would give each slot to everybody.
	cmd := exec.Command(s.program, "--quiet", "--port", s.address, "posix", "--sidecar", filepath.Join(s.dir, "about"), filepath.Join(s.dir, "data"))
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + s.dir, "ROOT_ACCESS_KEY=ID", "ROOT_SECRET_KEY=SECRET"}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.running, s.ended = cmd, make(chan error, 1)
	go func() { s.ended <- cmd.Wait() }()
	for {
		if c, err := new(net.Dialer).DialContext(s.t.Context(), "tcp", s.address); err == nil {
			_ = c.Close()
			return
		}
		select {
		case err := <-s.ended:
			s.t.Fatalf("%s: %v: %s", s.program, err, said.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (s *objectStore) env(key string) []string {
	return []string{"S3_BUCKET=http://" + s.address + "/bucket", "S3_REGION=us-east-1", "S3_KEY=" + key}
}

// TestClaimS3: each slot has one owner in an S3 server that checks signatures, and a wrong key gets none.
func TestClaimS3(t *testing.T) {
	t.Parallel()
	testkit.OnlyInCI(t, "contested slots of an S3 server that fails")
	testkit.Program(t, "curl", "curl")
	s := newObjectStore(t)
	c := contest{store: "s3", env: s.env("ID:SECRET"), slots: 24, machines: 6, outages: 8, server: s.server}
	c.owner = func(slot string) string {
		text, err := os.ReadFile(filepath.Join(s.dir, "data/bucket/ollim/job", strings.ReplaceAll(slot, ":", "")))
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	c.run(t)
	if got, said := claimOnce("s3", s.env("ID:OTHER"), "2027-01-01T00:00:00Z", "laptop", 0); got != 1 || !strings.Contains(said, ": status 403") {
		t.Errorf("a wrong key: status %d: %s", got, said)
	}
}

// TestClaimObjectStore: the claim command for object stores, with a stand-in for S3 that has the faults that the real server of TestClaimS3 does not show.
func TestClaimObjectStore(t *testing.T) {
	t.Parallel()
	testkit.Program(t, "curl", "curl")
	var mu sync.Mutex
	objects, broken := map[string]string{}, 0
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		body, _ := io.ReadAll(r.Body)
		held, there := objects[r.URL.Path]
		switch {
		case !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=ID/"):
			w.WriteHeader(http.StatusForbidden)
		case r.Header.Get("x-amz-content-sha256") != "UNSIGNED-PAYLOAD":
			w.WriteHeader(http.StatusBadRequest)
		case broken > 0:
			w.WriteHeader(broken)
		case r.Method == http.MethodGet && there:
			_, _ = io.WriteString(w, held)
		case r.Method != http.MethodPut || r.Header.Get("If-None-Match") != "*":
			w.WriteHeader(http.StatusNotFound)
		case there:
			w.WriteHeader(http.StatusPreconditionFailed)
		default:
			objects[r.URL.Path] = string(body)
		}
	}))
	defer store.Close()
	claim := func(key, slot, machine string, want int) {
		t.Helper()
		env := []string{"S3_BUCKET=" + store.URL, "S3_REGION=eu-west-1", "S3_KEY=" + key}
		if got, said := claimOnce("s3", env, slot, machine, 0); got != want {
			t.Errorf("%s for %s: status %d, want %d: %s", slot, machine, got, want, said)
		}
	}
	const key, nine, ten = "ID:SECRET", "2026-03-07T09:00:00Z", "2026-03-07T10:00:00Z"
	claim(key, nine, "laptop", 0)
	claim(key, nine, "server", 75)
	claim(key, nine, "laptop", 0) // it was killed before it knew
	broken = http.StatusConflict  // another PUT is in progress
	claim(key, ten, "server", 1)
	broken = 0
	claim("OTHER:SECRET", ten, "server", 1)
	claim(key, ten, "server", 0)
	claim(key, ten, "laptop", 75)
	store.Close()
	claim(key, ten, "laptop", 1)
}
