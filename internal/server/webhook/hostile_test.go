package webhook

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestHostileBodies: whatever is in a signed body, the answer says what is wrong, and where.
func TestHostileBodies(t *testing.T) {
	t.Parallel()
	w := serve(t)
	for what, c := range map[string]struct{ body, want string }{
		"not UTF-8":            {"{\"title\":\"a\xffb\"}", "UTF-8"},
		"UTF-16":               {"\xff\xfe{\x00}\x00", "UTF-8"},
		"a byte order mark":    {"\ufeff{}", "JSON"},
		"deep nesting":         {`{"title":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + "}", "depth"},
		"deep, not selected":   {`{"other":` + strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000) + "}", "depth"},
		"not closed":           {strings.Repeat(`{"a":`, 1000), "JSON"},
		"two keys":             {`{"title":"a","title":"b"}`, "/title"},
		"two documents":        {`{"title":"a"}{"title":"b"}`, "JSON"},
		"a list":               {`[]`, "object"},
		"a word":               {`null`, "object"},
		"a huge number":        {`{"title":1e999999999}`, "/title"},
		"a number of a MB":     {`{"title":` + strings.Repeat("9", 1_000_000) + "}", "/title"},
		"half a surrogate":     {`{"title":"\ud800"}`, ""}, // becomes the replacement character
		"a NUL":                {"{\"title\":\"\x00\"}", "JSON"},
		"an escaped NUL":       {`{"title":"\u0000"}`, ""},
		"a string of a MB":     {`{"title":"` + strings.Repeat("é", 500_000) + `"}`, ""}, // is cut
		"a hundred thousand":   {`{` + strings.Repeat(`"x":1,`, 100_000) + `"title":"a"}`, ""},
		"a million of nothing": {strings.Repeat(" ", 1_000_000) + "{}", ""},
	} {
		got := w.post("standard", strings.ReplaceAll(what, " ", "-"), c.body)
		if c.want == "" {
			w.wants(what, got, 202, "accepted")
			if err := w.clear(); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if w.wants(what, got, 400, c.want); len(got.body) > 1000 {
			t.Errorf("%s: an answer of %d bytes", what, len(got.body))
		}
	}
}

// clear removes what waits in the inbox, which is small.
func (w *site) clear() error {
	all, err := w.book.Contents()
	for _, e := range all {
		if err := os.RemoveAll(filepath.Join(w.book.Home.Inbox(), e.Hook)); err != nil {
			return err
		}
	}
	return err
}

// TestHostileRequests: what is no HTTP, or tries to be read in two ways, is refused before it reaches a webhook.
func TestHostileRequests(t *testing.T) {
	t.Parallel()
	w := serve(t)
	signed := w.wire("standard", "a", "{}")
	head, _, _ := strings.Cut(signed, "\r\n\r\n")
	for _, c := range []struct {
		what, request string
		codes         []int
	}{
		{"no HTTP", "\x16\x03\x01\x02\x00\r\n\r\n", []int{400}},
		{"a large header", head + "\r\nX: " + strings.Repeat("x", 32<<10) + "\r\n\r\n{}", []int{431}},
		{"many headers", head + "\r\n" + strings.Repeat("X: x\r\n", 8<<10) + "\r\n{}", []int{431}},
		{"two lengths", strings.Replace(signed, "Content-Length: 2\r\n", "Content-Length: 2\r\nContent-Length: 3\r\n", 1), []int{400}},
		{"a negative length", strings.Replace(signed, "Content-Length: 2", "Content-Length: -2", 1), []int{400}},
		{"a huge length", strings.Replace(signed, "Content-Length: 2", "Content-Length: 9223372036854775807", 1), []int{413}},
		{"a line that is continued", head + "\r\n X: y\r\n\r\n{}", []int{400, 401}},
		{"another coding", strings.Replace(signed, "Content-Length: 2", "Transfer-Encoding: gzip, chunked", 1), []int{501}},
		{"bad chunks", strings.Replace(head, "Content-Length: 2", "Transfer-Encoding: chunked", 1) + "\r\n\r\nzz\r\n{}\r\n0\r\n\r\n", []int{400}},
		{"a forged second signature", head + "\r\nWebhook-Signature: v1,AAAA\r\n\r\n{}", []int{401}},
		{"a second id", head + "\r\nWebhook-Id: b\r\n\r\n{}", []int{401}},
		{"a second type", head + "\r\nContent-Type: text/plain\r\n\r\n{}", []int{415}},
		{"HTTP/1.0 without a host", "POST /hook/standard HTTP/1.0\r\n\r\n", []int{415}},
		{"OPTIONS *", "OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", []int{404}},
		{"CONNECT", "CONNECT a:1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", []int{404}},
	} {
		response, err := http.ReadResponse(bufio.NewReader(w.dial(c.request)), nil)
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		_ = response.Body.Close()
		ok := false
		for _, code := range c.codes {
			ok = ok || response.StatusCode == code
		}
		if !ok {
			t.Errorf("%s: %s, want %d", c.what, response.Status, c.codes)
		}
	}
	if all, err := w.book.Contents(); len(all) > 0 || err != nil {
		t.Errorf("accepted: %v, %v", all, err)
	}
	w.wants("then", w.post("standard", "a", "{}"), 202, "accepted")
}

// TestChunked: a body without a length is as good as any.
func TestChunked(t *testing.T) {
	w := serve(t)
	r := w.request("standard", "a", `{"title":"a"}`)
	r.ContentLength = -1
	w.wants("chunked", w.send(r), 202, "accepted")
	r = w.request("standard", "b", `{"title":"a"}`)
	r.Header.Set("Expect", "100-continue")
	w.wants("after a 100", w.send(r), 202, "accepted")
}

// TestSlowSenders: a hundred connections that send nothing, half a header, or all but the end of a body hold up nobody: at the limit
// the one that has waited longest is closed.
func TestSlowSenders(t *testing.T) {
	t.Parallel()
	w := serve(t, func(s *server, _ *http.Server) { s.connections.most = 20 })
	signed := w.wire("standard", "slow", "{}")
	var slow []net.Conn
	for i := range 100 {
		slow = append(slow, w.dial(signed[:[]int{0, 20, len(signed) - 1}[i%3]]))
	}
	for i := range 3 {
		w.wants("while they wait", w.post("standard", fmt.Sprint(i), "{}"), 202, "accepted")
	}
	for i, c := range slow[:50] {
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Errorf("connection %d was answered", i)
		}
	}
}

// TestTooSlow: a header that does not arrive in time ends the connection, a body is answered 408.
func TestTooSlow(t *testing.T) {
	w := serve(t, func(_ *server, h *http.Server) { h.ReadHeaderTimeout = 50 * time.Millisecond })
	signed := w.wire("standard", "a", "{}")
	if _, err := io.Copy(io.Discard, w.dial(signed[:20])); err != nil { // it ends, perhaps after a 400 of net/http's
		t.Errorf("half a header: %v", err)
	}
	w = serve(t, func(_ *server, h *http.Server) { h.ReadHeaderTimeout, h.ReadTimeout = time.Minute, 50*time.Millisecond })
	signed = w.wire("standard", "a", "{}")
	w.wants("half a body", w.answer(w.dial(signed[:len(signed)-1])), 408, "in time")
	w = serve(t)
	signed = w.wire("standard", "a", "{}")
	half := w.dial(signed[:len(signed)-1])
	if err := half.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	w.wants("a body that ends early", w.answer(half), 400, "completely")
}

// TestEarlyAnswer: a sender that wants the connection to be closed gets the answer to a request that is refused before its body has
// arrived: the rest of the body is read.
func TestEarlyAnswer(t *testing.T) {
	w := serve(t)
	const pieces, piece = 16, 4096
	c := w.dial(fmt.Sprintf("POST /hook/bearer HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n", pieces*piece))
	w.wants("a type that is not JSON", w.answer(c), 415, "application/json")
	for i := range pieces {
		if _, err := c.Write(make([]byte, piece)); err != nil {
			t.Fatalf("piece %d of the body: %v", i, err)
		}
	}
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("after the body: %v", err)
	}
}

// TestMemoryOfBodies: bodies that never end fill a bounded part of the memory; then the oldest of them is closed, and a whole one is
// accepted.
func TestMemoryOfBodies(t *testing.T) {
	const limit = 4 << 20
	w := serve(t, func(s *server, _ *http.Server) { s.connections.mostBytes = limit })
	large := w.wire("bearer", "a", strings.Repeat(" ", 1<<20-2)+"{}")
	before := heap()
	for range 40 {
		go func() { // its connection may be closed while it writes
			c, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
			if err != nil {
				return
			}
			_, _ = io.Copy(c, io.LimitReader(strings.NewReader(large), int64(len(large)-1)))
			<-t.Context().Done()
			_ = c.Close()
		}()
	}
	for w.s.connections.held() < limit/2 {
		time.Sleep(time.Millisecond)
	}
	for i := range 3 {
		w.wants("while they wait", w.post("standard", fmt.Sprint(i), "{}"), 202, "accepted")
	}
	if held := w.s.connections.held(); held > limit {
		t.Errorf("%d bytes of bodies are held", held)
	}
	for heap() > before+4*limit { // the handlers of the connections that were closed end on their own
		time.Sleep(time.Millisecond)
	}
}

func (all *connections) held() int64 {
	all.mu.Lock()
	defer all.mu.Unlock()
	return all.bytes
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestConnectionsAreForgotten: nothing is kept of a connection that has ended.
func TestConnectionsAreForgotten(t *testing.T) {
	w := serve(t)
	client := &http.Client{Transport: &http.Transport{}}
	for range 3 { // on one connection
		response, err := client.Do(w.request("standard", "a", "{}"))
		if err != nil {
			t.Fatal(err)
		}
		w.wants("kept alive", w.read(response), 202, "accepted")
	}
	for range 10 {
		w.post("bearer", "a", "x")
	}
	client.CloseIdleConnections()
	all := w.s.connections
	for {
		all.mu.Lock()
		open, fresh, bytes, waiting := all.open, all.fresh, all.bytes, all.waiting.Len()
		all.mu.Unlock()
		if open == 0 {
			if fresh != 0 || bytes != 0 || waiting != 0 {
				t.Errorf("%d without a request, %d bytes, %d waiting", fresh, bytes, waiting)
			}
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// FuzzBody: whatever arrives as a body, it is accepted, or the sender's fault.
func FuzzBody(f *testing.F) {
	f.Add([]byte(`{"title":"a"}`))
	f.Add([]byte("\x1f\x8b"))
	f.Fuzz(func(t *testing.T, body []byte) {
		w := serve(t)
		r := w.request("standard", "a", string(body))
		r.Body = io.NopCloser(bytes.NewReader(body))
		if got := w.send(r); got.code != 202 && got.code != 400 {
			t.Errorf("%q: %v", body, got)
		}
	})
}
