package gateway

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit"
)

// post sends a request to a port, with a header, and returns the status and the body of the answer.
func (w *world) post(path, name, value, body string) (int, string) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://service.example/base"+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set(name, value)
	resp, err := w.program.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// TestPort: on a port, a request needs a placeholder, in any header of a key, and the service gets the key in its place.
func TestPort(t *testing.T) {
	t.Parallel()
	asked := ""
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		asked += r.Header.Get("X-Api-Key") + r.Header.Get("Authorization") + r.Header.Get("X-Goog-Api-Key") + " " + r.URL.Path + "\n"
		streamed(rw, started, stopped)
	})
	w.g.Paths = []string{"/models/*:generate"}
	w.listenTCP()
	for _, c := range []struct {
		path, header, value string
		status              int
	}{
		{"/models/m:generate", "X-Goog-Api-Key", "placeholder", http.StatusOK},
		{"/models/m:generate", "Authorization", "Bearer placeholder", http.StatusOK},
		{"/models/m:generate", "X-Goog-Api-Key", "guessed", http.StatusUnauthorized},
		{"/models/m:generate", "Other", "placeholder", http.StatusUnauthorized},
		{"/models/a/b:generate", "X-Goog-Api-Key", "placeholder", http.StatusForbidden},
		{"/v1/messages", "X-Api-Key", "placeholder", http.StatusForbidden},
	} {
		if status, body := w.post(c.path, c.header, c.value, question); status != c.status {
			t.Errorf("%+v: %d %s", c, status, body)
		}
	}
	if want := "SECRET /base/models/m:generate\nBearer SECRET /base/models/m:generate\n"; asked != want {
		t.Errorf("the service was asked %q, want %q", asked, want)
	}
}

// TestStrict: a request to a model whose price is not known is refused if the limit is to hold, and so is one whose answer comes later.
func TestStrict(t *testing.T) {
	t.Parallel()
	asked := 0
	w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
		asked++
		streamed(rw, started, stopped)
	})
	w.g.Strict = true
	w.listenTCP()
	if status, body := w.post("/v1/messages", "X-Api-Key", "placeholder", question); status != http.StatusOK || w.g.Unpriced() != nil {
		t.Errorf("%d %s", status, body)
	}
	for body, want := range map[string]string{
		`{"model":"unknown-1"}`:                                          "the price of the model unknown-1 is unknown",
		`{"model":"claude-test-1","background":true}`:                    "in the background",
		`{"model":"claude-test-1","background":true,"Background":false}`: "in the background",
		`{"model":"unknown-1","Model":"claude-test-1"}`:                  "the price of the model unknown-1 is unknown",
	} {
		if status, got := w.post("/v1/messages", "X-Api-Key", "placeholder", body); status != http.StatusBadRequest || !strings.Contains(got, want) || asked != 1 {
			t.Errorf("%s: %d %s, and the service was asked %d times", body, status, got, asked)
		}
	}
	if err := w.g.Unpriced(); err == nil || !strings.Contains(err.Error(), "'unknown-1 in=USD out=USD'") {
		t.Errorf("got %v", err)
	}
	if usd, unreported := w.g.Spent(); unreported != 0 || usd == 0 {
		t.Errorf("%v USD, %d without a report", usd, unreported)
	}
}

// TestOtherUsers: a connection of another user's process is closed at once.
func TestOtherUsers(t *testing.T) {
	if !testkit.Unprivileged(t) {
		return
	}
	for uid, want := range map[int]bool{os.Getuid(): true, os.Getuid() + 1: false} {
		w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) { streamed(rw, started, stopped) })
		listener, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		w.g.serve(own{listener, uid})
		t.Cleanup(w.g.Close)
		resp, err := http.Head("http://" + listener.Addr().String())
		if err == nil {
			_ = resp.Body.Close()
		}
		if (err == nil) != want {
			t.Errorf("for user %d: %v", uid, err)
		}
	}
}
