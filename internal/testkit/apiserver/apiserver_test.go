package apiserver

import (
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// echo is a server whose requests are their paths, and whose replies are ways to get them back, one letter at a time.
func echo(t *testing.T) *Server[string, Way] {
	t.Helper()
	return New(t, "echo", func(x Exchange[string, Way], r *http.Request) {
		q := r.URL.Path
		x.Record(q)
		if w := x.Next(q); !x.Begin(w) {
			x.Stream(Stream{Events: strings.Split(q, ""), Endless: 1, Malformed: "?", Error: "!"}, w)
		}
	}, func(string) Way { return Way{} })
}

func get(t *testing.T, s *Server[string, Way], path string) io.ReadCloser {
	t.Helper()
	resp, err := http.Get(s.URL() + path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp.Body
}

func TestWays(t *testing.T) {
	s := echo(t)
	for _, tc := range []struct {
		way  Way
		want string
	}{
		{Way{}, "/abc"},
		{Way{Fault: Short, After: 2}, "/a"},
		{Way{Fault: Malformed, After: 1}, "/?abc"},
		{Way{Fault: ErrorEvent, After: 9}, "/abc!"},
	} {
		s.Reply(tc.way)
		got, err := io.ReadAll(get(t, s, "/abc"))
		if err != nil || string(got) != tc.want {
			t.Errorf("%+v: %s %v", tc.way, got, err)
		}
	}
	if got := s.WaitRequests(4, time.Second); !slices.Equal(got, []string{"/abc", "/abc", "/abc", "/abc"}) || s.Left() != 0 {
		t.Errorf("%q, %d left", got, s.Left())
	}
}

// A client that goes away lets go of an endless reply.
func TestClientGoesAway(t *testing.T) {
	s := echo(t)
	s.Reply(Way{Fault: Endless})
	_ = get(t, s, "/abc").Close()
	done := make(chan struct{})
	go func() { s.http.Close(); close(done) }()
	select {
	case <-done:
	case <-time.After(5 * time.Minute):
		t.Error("the server still talks to a client that has gone")
	}
}

func TestPieces(t *testing.T) {
	for n := range 200 {
		text := strings.Repeat("ä", n%17) + strings.Repeat("🦊x", rand.IntN(40))
		parts := Pieces(text)
		if strings.Join(parts, "") != text || len(parts) > MaxPieces || len([]rune(text)) > 1 && len(parts) < 2 {
			t.Errorf("%q in %q", text, parts)
		}
	}
}
