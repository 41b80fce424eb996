package webhook

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/inbox"
	"github.com/ollim/ollim/internal/state/job"
)

// site is a server on a port of this machine, with an inbox in a directory of its own, and a sender of each family's requests.
type site struct {
	*testing.T

	url   string
	book  inbox.Book
	keys  map[string]Keys // by hook
	s     *server
	stop  context.CancelFunc
	ended chan error

	mu    sync.Mutex
	lines []Access
	added int
	later time.Duration // how far the clock of the inbox is ahead
}

// serve starts a server. change may change its limits.
func serve(t *testing.T, change ...func(*server, *http.Server)) *site {
	t.Helper()
	w := &site{T: t, ended: make(chan error, 1), keys: map[string]Keys{
		"bearer": keysOf(t, "bearer", bearerSecret), "github": keysOf(t, "github", githubSecret), "standard": keysOf(t, "standard", standardSecret),
		"slack": keysOf(t, "slack", bearerSecret),
	}}
	runs := 0
	w.book = inbox.Book{
		Home: paths.Dir(t.TempDir()), Zone: time.UTC, Limits: inbox.LimitsOf(6, 1),
		Disk:   store.Disk{Now: w.now, Warn: func(m string) { t.Error(m) }, Locks: &lock.Table{}},
		NewRun: func() (string, error) { runs++; return fmt.Sprintf("run-%d", runs), nil },
		Runs:   func(time.Time) ([]string, error) { return nil, nil },
	}
	for id, keys := range w.keys {
		w.define(id, keys.Scheme.Name)
	}
	receiver, err := w.book.Receive()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.url = "http://" + l.Addr().String()
	w.s = newServer(Options{
		Files: &Files{
			Jobs: job.Library{Home: w.book.Home, Zone: time.UTC}, Now: time.Now,
			Keys: func(h job.Hook) ([][]byte, error) { return w.keys[h.Signature.Name].Values, nil },
		},
		Inbox: receiver, Added: w.wasAdded, MaxBody: 1 << 20, Now: time.Now, Log: w.log, Warn: func(m string) { t.Log(m) },
		Grace: 10 * time.Second,
	})
	h := w.s.http()
	for _, c := range change {
		c(w.s, h)
	}
	ctx, stop := context.WithCancel(t.Context())
	w.stop = stop
	go func() { w.ended <- w.s.run(ctx, h, l) }()
	t.Cleanup(func() {
		w.stop()
		if err := <-w.ended; err != nil {
			t.Error(err)
		}
		receiver.Close()
	})
	return w
}

// define writes the file of a webhook that tells the agent what is in title.
func (w *site) define(id string, family string) {
	w.Helper()
	dir := w.book.Home.Webhooks()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		w.Fatal(err)
	}
	text := fmt.Sprintf("---\nid: %s\nsignature: %s\nfields: {properties: {title: {type: string}}}\n---\nLook at it.\n", id, family)
	if err := os.WriteFile(filepath.Join(dir, id+".md"), []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}
}

func (w *site) wasAdded() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.added++
}

func (w *site) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.later)
}

// pass advances the clock of the inbox.
func (w *site) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.later += d
}

func (w *site) log(a Access) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, a)
}

// logged waits for so many lines of the log, and returns them.
func (w *site) logged(n int) []Access {
	w.Helper()
	for {
		w.mu.Lock()
		lines := w.lines
		w.mu.Unlock()
		if len(lines) >= n {
			return lines
		}
		time.Sleep(time.Millisecond) // the line follows the answer; the deadline of the test bounds the wait
	}
}

// request makes a signed request to a hook.
func (w *site) request(hook, id, body string) *http.Request {
	w.Helper()
	r, err := http.NewRequestWithContext(w.Context(), http.MethodPost, w.url+"/hook/"+hook, strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	sent, err := w.keys[hook].Sign(r.Header, id, []byte(body), time.Now())
	if err != nil {
		w.Fatal(err)
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(sent)), int64(len(sent))
	return r
}

// reply is what a sender was told.
type reply struct {
	code   int
	header http.Header
	body   string
}

func (w *site) send(r *http.Request) reply {
	w.Helper()
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		w.Fatal(err)
	}
	return w.read(response)
}

func (w *site) read(response *http.Response) reply {
	w.Helper()
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		w.Fatal(err)
	}
	return reply{response.StatusCode, response.Header, strings.TrimSuffix(string(body), "\n")}
}

func (w *site) post(hook, id, body string) reply {
	w.Helper()
	return w.send(w.request(hook, id, body))
}

func (w *site) wants(what string, got reply, code int, body string) {
	w.Helper()
	if got.code != code || !strings.Contains(got.body, body) {
		w.Errorf("%s: %d %s, want %d %s", what, got.code, got.body, code, body)
	}
	if !json.Valid([]byte(got.body)) || got.header.Get("Content-Type") != "application/json" {
		w.Errorf("%s: %q is not a JSON answer", what, got.body)
	}
}

// TestAccepted: an event of each family is in the inbox, with what its signature says, and the log does not have its content.
func TestAccepted(t *testing.T) {
	w := serve(t)
	for i, family := range []string{"bearer", "github", "standard"} {
		got := w.post(family, "id-"+family, `{"title":"xyzzy"}`)
		w.wants(family, got, 202, fmt.Sprintf(`{"status":"accepted","run":"run-%d"}`, i+1))
		e, err := w.book.Find(fmt.Sprintf("run-%d", i+1))
		if err != nil || e.Hook != family || e.Delivery != "id-"+family || e.Signed != (family != "github") || len(e.Data) != 1 ||
			string(e.Data[0].Value) != `"xyzzy"` {
			t.Errorf("%s: %+v, %v", family, e, err)
		}
	}
	for i, line := range w.logged(3) {
		text, _ := json.Marshal(line)
		if strings.Contains(string(text), "xyzzy") || line.Run != fmt.Sprintf("run-%d", i+1) || line.Status != 202 || line.Method != "POST" ||
			line.Bytes != 17 || line.Delivery != "id-"+strings.TrimPrefix(line.Path, "/hook/") || line.Remote == "" || line.Reason != "" {
			t.Errorf("logged %s", text)
		}
	}
	if w.added != 3 {
		t.Errorf("%d events were announced", w.added)
	}
}

// TestAnswers: every answer that does not depend on the state of the server.
func TestAnswers(t *testing.T) {
	t.Parallel()
	w := serve(t)
	set := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	large, bomb := strings.Repeat(" ", 1<<20-2)+"{}", gzipped(t)
	for _, c := range []struct {
		what   string
		hook   string
		body   string
		change func(*http.Request)
		code   int
		want   string
		why    string // in the log
	}{
		{"GitHub's ping", "github", `{"zen":"x"}`, set(githubEvent, "ping"), 200, `{"status":"ok"}`, ""},
		{"a forged ping", "github", `{}`, func(r *http.Request) { r.Header.Set(githubEvent, "ping"); r.Header.Del(githubSignature) }, 401, "signature", "no X-Hub"},
		{"a ping of another family", "bearer", `{"title":"ping"}`, set(githubEvent, "ping"), 202, "accepted", ""},
		{"Slack's challenge", "slack", `{"type":"url_verification","challenge":"3eZbrw"}`, nil, 200, `{"status":"ok","challenge":"3eZbrw"}`, ""},
		{"Slack's challenge, forged", "slack", `{"type":"url_verification","challenge":"3eZbrw"}`, func(r *http.Request) {
			r.Header.Set("X-Slack-Signature", "v0="+strings.Repeat("0", 64))
		}, 401, `{"status":"error","error":"the signature is missing or not valid"}`, "not of this secret"},
		{"Slack's challenge, not signed", "slack", `{"type":"url_verification","challenge":"3eZbrw"}`, func(r *http.Request) {
			r.Header.Del("X-Slack-Signature")
		}, 401, `{"status":"error","error":"the signature is missing or not valid"}`, "no X-Slack-Signature"},
		{"a challenge of another scheme", "github", `{"type":"url_verification","challenge":"3eZbrw"}`, nil, 202, "accepted", ""},
		{"an event of Slack's", "slack", `{"type":"event_callback","challenge":"3eZbrw"}`, nil, 202, "accepted", ""},
		{"no JSON", "bearer", `{"title":`, nil, 400, "JSON", "JSON"},
		{"nothing", "bearer", ``, nil, 400, "JSON", "JSON"},
		{"a forged signature", "github", `{}`, set(githubSignature, "sha256="+strings.Repeat("0", 64)), 401, "the signature is missing or not valid", "not of this secret"},
		{"no signature", "github", `{}`, func(r *http.Request) { r.Header.Del(githubSignature) }, 401, "the signature is missing or not valid", "no X-Hub"},
		{"another path", "bearer", `{}`, func(r *http.Request) { r.URL.Path = "/" }, 404, "want /hook/ID", ""},
		{"a longer path", "bearer", `{}`, func(r *http.Request) { r.URL.Path += "/x" }, 404, "want /hook/ID", ""},
		{"no id", "bearer", `{}`, func(r *http.Request) { r.URL.Path = "/hook/" }, 404, "want /hook/ID", ""},
		{"GET", "bearer", ``, func(r *http.Request) { r.Method = "GET" }, 405, "want POST", ""},
		{"a method of 300 letters", "bearer", `{}`, func(r *http.Request) { r.Method = strings.Repeat("X", 300) }, 405, "want POST", ""},
		{"the largest body", "bearer", large, nil, 202, "accepted", ""},
		{"a larger body", "bearer", large + " ", nil, 413, "larger", ""},
		{"a larger body, chunked", "bearer", large + " ", func(r *http.Request) { r.ContentLength = -1 }, 413, "larger", ""},
		{"a form", "bearer", `payload={}`, set("Content-Type", "application/x-www-form-urlencoded"), 415, "at GitHub, edit the webhook", ""},
		{"no type", "bearer", `{}`, func(r *http.Request) { r.Header.Del("Content-Type") }, 415, "application/json", ""},
		{"two types", "bearer", `{}`, func(r *http.Request) { r.Header.Add("Content-Type", "application/json") }, 415, "application/json", ""},
		{"another charset", "bearer", `{}`, set("Content-Type", "application/json; charset=utf-16"), 415, "utf-8", ""},
		{"a JSON type", "bearer", `{"title":"a"}`, set("Content-Type", "application/cloudevents+json; charset=UTF-8"), 202, "accepted", ""},
		{"gzip", "bearer", bomb, set("Content-Encoding", "gzip"), 415, "Content-Encoding", ""},
		{"two encodings", "bearer", bomb, func(r *http.Request) { r.Header["Content-Encoding"] = []string{"", "gzip"} }, 415, "Content-Encoding", ""},
		{"gzip without a word of it", "bearer", bomb, nil, 400, "UTF-8", ""},
	} {
		r := w.request(c.hook, c.what, c.body)
		r.Header.Del(idempotencyKey) // not all of these names are words
		if c.hook == "github" {
			r.Header.Set(githubDelivery, "a")
		}
		if c.change != nil {
			c.change(r)
		}
		before := len(w.logged(0))
		w.wants(c.what, w.send(r), c.code, c.want)
		line := w.logged(before + 1)[before]
		if line.Status != c.code || !strings.Contains(line.Reason, c.why) || len(line.Method) > 250 {
			t.Errorf("%s: logged %+v", c.what, line)
		}
	}
}

// gzipped is a body that would have 64 MiB.
func gzipped(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	for range 64 {
		if _, err := z.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestUnknownHook: a webhook that does not exist is answered like a wrong signature, header by header.
func TestUnknownHook(t *testing.T) {
	w := serve(t)
	forged := w.request("bearer", "a", "")
	forged.Header.Set(authorization, "Bearer x")
	unknown := w.request("bearer", "a", "")
	unknown.URL.Path = "/hook/other"
	a, b := w.send(forged), w.send(unknown)
	a.header.Del("Date")
	b.header.Del("Date")
	if a.code != 401 || fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("\n%v\n%v", a, b)
	}
	if lines := w.logged(2); lines[1].Reason != "no webhook has this id" {
		t.Errorf("logged %+v", lines[1])
	}
	for _, id := range []string{"..", "%2e%2e%2fx", "a%00b", "%ff", strings.Repeat("a", 4000)} { // no more than a name
		unknown.URL.Opaque = w.url + "/hook/" + id
		if got := w.send(unknown); got.code != 401 && got.code != 404 {
			t.Errorf("%s: %v", id, got)
		}
	}
	for _, line := range w.logged(7) {
		if len(line.Path) > 2*maxLogged {
			t.Errorf("logged %+v", line)
		}
	}
}

// TestAgain: an event that is sent again has the run of the first time; with the same id and another body it is a conflict. GitHub
// does not sign its delivery id, so there the same body is the same event.
func TestAgain(t *testing.T) {
	w := serve(t)
	first := w.post("standard", "a", `{"title":"a"}`)
	w.wants("again", w.post("standard", "a", `{"title":"a"}`), 202, first.body)
	w.wants("another body", w.post("standard", "a", `{"title":"b"}`), 409, "another body")
	if got := w.post("standard", "b", `{"title":"a"}`); got.code != 202 || got.body == first.body {
		t.Errorf("another id, signed: %v", got)
	}
	first = w.post("github", "a", `{"title":"a"}`)
	w.wants("replayed", w.post("github", "b", `{"title":"a"}`), 202, first.body)
	w.wants("another body", w.post("github", "a", `{"title":"b"}`), 409, "another body")
}

// TestDoorbell: a bearer without an id sends the same body on purpose. Within a minute it is the same event, and the answer and the
// log say so.
func TestDoorbell(t *testing.T) {
	w := serve(t)
	ring := func() reply {
		r := w.request("bearer", "", `{"msg":"doorbell"}`)
		r.Header.Del(idempotencyKey)
		return w.send(r)
	}
	w.wants("first", ring(), 202, `{"status":"accepted","run":"run-1"}`)
	w.wants("at once", ring(), 202, `{"status":"duplicate","run":"run-1"}`)
	w.pass(time.Minute)
	w.wants("a minute later", ring(), 202, `{"status":"accepted","run":"run-2"}`)
	w.pass(time.Hour)
	w.wants("an hour later", ring(), 202, `{"status":"accepted","run":"run-3"}`)
	for i, line := range w.logged(4) {
		if (line.Reason == "duplicate") != (i == 1) {
			t.Errorf("logged %+v", line)
		}
	}
}

// TestFull: 429 when the webhook has its share of the inbox, 503 when all of it is taken.
func TestFull(t *testing.T) {
	w := serve(t) // six in all, three for each
	for i := range 3 {
		w.wants("github", w.post("github", fmt.Sprint(i), fmt.Sprintf(`{"n":%d}`, i)), 202, "accepted")
	}
	got := w.post("github", "3", `{"n":3}`)
	if w.wants("github", got, 429, "too many"); got.header.Get("Retry-After") != "60" {
		t.Errorf("header %v", got.header)
	}
	for i := range 3 {
		w.wants("standard", w.post("standard", fmt.Sprint(i), "{}"), 202, "accepted")
	}
	got = w.post("bearer", "a", "{}")
	if w.wants("bearer", got, 503, "too many"); got.header.Get("Retry-After") != "60" {
		t.Errorf("header %v", got.header)
	}
	w.wants("known", w.post("github", "0", `{"n":0}`), 202, `"run-1"`)
}

// TestUnwritten: an event that cannot be stored is not accepted; the sender tries again.
func TestUnwritten(t *testing.T) {
	w := serve(t)
	if err := os.MkdirAll(w.book.Home.State(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(w.book.Home.Inbox()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.book.Home.Inbox(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	got := w.post("standard", "a", "{}")
	if w.wants("unwritten", got, 503, "could not be stored"); got.header.Get("Retry-After") != "60" || strings.Contains(got.body, "inbox") {
		t.Errorf("%v", got)
	}
	if line := w.logged(1)[0]; !strings.Contains(line.Reason, "inbox") {
		t.Errorf("logged %+v", line)
	}
	if err := os.Remove(w.book.Home.Inbox()); err != nil {
		t.Fatal(err)
	}
	w.wants("later", w.post("standard", "a", "{}"), 202, "accepted")
}

// dial opens a connection and writes to it.
func (w *site) dial(text string) net.Conn {
	w.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = c.Close() })
	if _, err := io.WriteString(c, text); err != nil {
		w.Fatal(err)
	}
	return c
}

// answer reads an answer from a connection.
func (w *site) answer(c net.Conn) reply {
	w.Helper()
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		w.Fatal(err)
	}
	return w.read(response)
}

// wire returns a signed request as it is sent.
func (w *site) wire(hook, id, body string) string {
	w.Helper()
	var b bytes.Buffer
	if err := w.request(hook, id, body).Write(&b); err != nil {
		w.Fatal(err)
	}
	return b.String()
}

// TestHealth: /healthz answers while the server accepts events.
func TestHealth(t *testing.T) {
	w := serve(t)
	get := func(method string) reply {
		r, err := http.NewRequestWithContext(t.Context(), method, w.url+"/healthz", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		return w.send(r)
	}
	w.wants("GET", get("GET"), 200, `{"status":"ok"}`)
	if got := get("HEAD"); got.code != 200 || got.body != "" {
		t.Errorf("HEAD: %v", got)
	}
	if got := get("POST"); got.code != 405 || got.header.Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: %v", got)
	}
}

// TestClosing: a request that is arriving when the server is stopped is accepted, because its sender may not send it again; no new one
// reaches it, and one that is too late is told to come back.
func TestClosing(t *testing.T) {
	w := serve(t)
	request := w.wire("standard", "a", "{}")
	half := w.dial(request[:20])
	body := w.dial(w.wire("standard", "b", "{}")[:len(request)-1]) // all but a byte
	for !w.arriving(2) {
		time.Sleep(time.Millisecond)
	}
	w.stop()
	for !w.s.stopping.Load() {
		time.Sleep(time.Millisecond)
	}
	if _, err := io.WriteString(half, request[20:]); err != nil {
		t.Fatal(err)
	}
	w.wants("a request whose header was arriving", w.answer(half), 202, "accepted")
	if _, err := io.WriteString(body, "}"); err != nil {
		t.Fatal(err)
	}
	w.wants("a request whose body was arriving", w.answer(body), 202, "accepted")
	if err := <-w.ended; err != nil {
		t.Error(err)
	}
	w.ended <- nil
	if c, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://")); err == nil {
		_ = c.Close()
		t.Error("the server still listens")
	}
}

// TestTooLate: what begins when the server has closed its idle connections is told to come back.
func TestTooLate(t *testing.T) {
	w := serve(t)
	w.s.stopping.Store(true)
	health, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+"/healthz", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	w.wants("/healthz", w.send(health), 503, "closing")
	w.wants("before", w.post("standard", "a", "{}"), 202, "accepted")
	w.s.closing.Store(true)
	got := w.post("standard", "b", "{}")
	if w.wants("after", got, 503, "closing"); got.header.Get("Retry-After") != "5" {
		t.Errorf("%v", got.header)
	}
}

// arriving reports whether so many connections wait for the rest of a request, one of them with a body that has begun.
func (w *site) arriving(n int) bool {
	all := w.s.connections
	all.mu.Lock()
	defer all.mu.Unlock()
	return all.waiting.Len() == n && all.bytes > 0
}
