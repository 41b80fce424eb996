package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/server/webhook"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/testkit"
)

// hooks is a webhook server that runs in this process.
type hooks struct {
	w    *world
	url  string
	log  *safeBuffer
	stop func() // ends it, and waits for that
}

// serveHooks starts a server on a free port. Automatic runs are paused, so that it starts none.
func (w *world) serveHooks() *hooks {
	w.t.Helper()
	w.real = true
	w.must("pause")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	s := &hooks{w: w, url: "http://" + l.Addr().String() + "/hook/", log: &safeBuffer{}}
	errOut := &safeBuffer{}
	d := w.deps(strings.NewReader(""), s.log, errOut)
	d.Out, d.Warn, d.json = s.log, d.warn, true
	h := homeOf(w.t, d)
	ctx, stop := context.WithCancel(w.t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- d.serveWebhooks(ctx, h, func() ([]net.Listener, error) { return []net.Listener{l}, nil })
	}()
	s.stop = func() {
		stop()
		if err, first := <-ended; first {
			close(ended)
			if err != nil {
				w.t.Error(err)
			}
		}
	}
	w.t.Cleanup(func() {
		s.stop()
		if text := errOut.String(); w.t.Failed() && text != "" {
			w.t.Log(text)
		}
	})
	return s
}

// hook writes the file of a webhook.
func (w *world) hook(id, head, fields, body string) {
	w.t.Helper()
	w.write("webhooks/"+id+".md", fmt.Sprintf("---\nid: %s\n%s\nfields:\n%s\n---\n%s\n", id, head, fields, body))
}

// senderCall is one webhook that a vendor's library sends, see testdata/senders.mjs.
type senderCall struct {
	Family   string            `json:"family"`
	Secrets  []string          `json:"secrets"`
	ID       string            `json:"id"`
	Event    string            `json:"event,omitempty"`
	Body     string            `json:"body"`
	Sent     string            `json:"sent,omitempty"`  // in place of the body that was signed
	Shift    int               `json:"shift,omitempty"` // of the clock, in seconds
	Truncate int               `json:"truncate,omitempty"`
	URL      string            `json:"url"`
	Verify   map[string]string `json:"verify,omitempty"` // headers
}

type senderAnswer struct {
	Status int    `json:"status"`
	Text   string `json:"text"`
}

// senders is the directory of the vendors' packages.
func senders(t *testing.T) string {
	t.Helper()
	testkit.Program(t, "node", "nodejs")
	return testkit.Installed(t, "vendors' libraries", "OLLIM_TEST_WEBHOOKS", "webhooks/node_modules", "@linear/sdk")
}

// send lets the vendors' libraries send webhooks, one after the other.
func send(t *testing.T, calls []senderCall) (answers []senderAnswer) {
	t.Helper()
	input, err := json.Marshal(calls)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", filepath.Join("testdata", "senders.mjs"), senders(t))
	cmd.Stdin = bytes.NewReader(input)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &answers); err != nil || len(answers) != len(calls) {
		t.Fatalf("%d answers to %d calls: %v", len(answers), len(calls), err)
	}
	return answers
}

const (
	hookSecret    = "0123456789abcdef0123456789abcdef"
	standardOne   = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	standardTwo   = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
	anyTitle      = "  properties: {title: {type: string}}"
	githubHead    = "signature: github\nsecret: gh"
	standardHead  = "signature: standard\nsecret: std"
	senderSecrets = "webhook.gh=" + hookSecret + "\nwebhook.std=" + standardOne + "\nwebhook.both=" + standardTwo + " " + standardOne + "\nwebhook.empty=\nwebhook.none=whsec_\n"
)

// TestVendorsSend: what the vendors' libraries sign is accepted, also while a secret is being changed; what is sent again is one run;
// what is forged, truncated, too old, without a key or of another family is not accepted.
func TestVendorsSend(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.secrets(senderSecrets)
	w.hook("gh", githubHead, anyTitle, "Look.")
	w.hook("std", standardHead, anyTitle, "Look.")
	w.hook("both", "signature: standard\nsecret: both", anyTitle, "Look.")
	w.hook("empty", "signature: github\nsecret: empty", anyTitle, "Look.")
	w.hook("none", "signature: standard\nsecret: none", anyTitle, "Look.")
	s := w.serveHooks()
	const body = `{"title":"Ünïcödé \ud83d\ude00","n":1}`
	gh := senderCall{Family: "github", Secrets: []string{hookSecret}, ID: "gh-1", Body: body, URL: s.url + "gh"}
	std := senderCall{Family: "standard", Secrets: []string{standardOne}, ID: "msg_1", Body: body, URL: s.url + "std"}
	with := func(c senderCall, change func(*senderCall)) senderCall { change(&c); return c }
	cases := []struct {
		what string
		call senderCall
		want int
	}{
		{"GitHub", gh, 202},
		{"GitHub, replayed under another id", with(gh, func(c *senderCall) { c.ID = "gh-2" }), 202},
		{"GitHub, the same id with another body", with(gh, func(c *senderCall) { c.Body = `{"title":"b"}` }), 409},
		{"GitHub's ping", with(gh, func(c *senderCall) { c.Event, c.ID = "ping", "gh-3" }), 200},
		{"GitHub, forged", with(gh, func(c *senderCall) { c.Sent = `{"title":"c"}` }), 401},
		{"GitHub, another secret", with(gh, func(c *senderCall) { c.Secrets = []string{standardOne} }), 401},
		{"GitHub, truncated", with(gh, func(c *senderCall) { c.Truncate = 2 }), 401},
		{"GitHub, with an empty key", with(gh, func(c *senderCall) { c.Secrets = []string{""} }), 401},
		{"GitHub, to a webhook with an empty secret", with(gh, func(c *senderCall) { c.Secrets, c.URL = []string{""}, s.url+"empty" }), 401},
		{"GitHub, to a webhook of Standard Webhooks", with(gh, func(c *senderCall) { c.Secrets, c.URL = []string{standardOne}, s.url+"std" }), 401},
		{"GitHub, to no webhook", with(gh, func(c *senderCall) { c.URL = s.url + "nobody" }), 401},

		{"Standard", std, 202},
		{"Standard, sent again", std, 202},
		{"Standard, another event with the same body", with(std, func(c *senderCall) { c.ID = "msg_2" }), 202},
		{"Standard, the same id with another body", with(std, func(c *senderCall) { c.Body = `{"title":"b"}` }), 409},
		{"Standard, four minutes old", with(std, func(c *senderCall) { c.ID, c.Shift = "msg_3", -240 }), 202},
		{"Standard, four minutes ahead", with(std, func(c *senderCall) { c.ID, c.Shift = "msg_4", 240 }), 202},
		{"Standard, replayed after six minutes", with(std, func(c *senderCall) { c.Shift = -360 }), 401},
		{"Standard, six minutes ahead", with(std, func(c *senderCall) { c.Shift = 360 }), 401},
		{"Standard, forged", with(std, func(c *senderCall) { c.Sent = `{"title":"c"}` }), 401},
		{"Standard, truncated", with(std, func(c *senderCall) { c.Truncate = 4 }), 401},
		{"Standard, with an empty key", with(std, func(c *senderCall) { c.Secrets = []string{""} }), 401},
		{"Standard, to a webhook whose secret is whsec_", with(std, func(c *senderCall) { c.Secrets, c.URL = []string{""}, s.url+"none" }), 401},
		{"Standard, to a webhook of GitHub's", with(std, func(c *senderCall) { c.URL = s.url + "gh" }), 401},
		{"the sender signs with two secrets", with(std, func(c *senderCall) { c.ID, c.Secrets = "msg_5", []string{standardTwo, standardOne} }), 202},
		{"the sender signs with the next secret", with(std, func(c *senderCall) { c.Secrets = []string{standardTwo} }), 401},
		{"the webhook knows two, the old one signs", with(std, func(c *senderCall) { c.URL = s.url + "both" }), 202},
		{"the webhook knows two, the new one signs", with(std, func(c *senderCall) {
			c.ID, c.URL, c.Secrets = "msg_2", s.url+"both", []string{standardTwo}
		}), 202},
	}
	var calls []senderCall
	for _, c := range cases {
		calls = append(calls, c.call)
	}
	answers := send(t, calls)
	same := map[string]string{} // the first answer by webhook and body, or id
	for i, c := range cases {
		if answers[i].Status != c.want {
			t.Errorf("%s: %d %s, want %d", c.what, answers[i].Status, answers[i].Text, c.want)
		}
		key := c.call.URL + c.call.ID
		if c.call.Family == "github" {
			key = c.call.URL + c.call.Body
		}
		if first := same[key]; c.want == 202 && first != "" && first != answers[i].Text {
			t.Errorf("%s: %s, and the first time %s", c.what, answers[i].Text, first)
		}
		if c.want == 202 {
			same[key] = answers[i].Text
		}
	}
	if n := len(slices.Compact(slices.Sorted(maps.Values(same)))); n != 8 {
		t.Errorf("%d runs, want 8", n)
	}
	for _, secret := range []string{hookSecret, standardOne[6:], standardTwo[6:], "Ünïcödé"} {
		if strings.Contains(s.log.String(), secret) {
			t.Errorf("the log has %q", secret)
		}
	}
}

// vendorSecret returns a secret in the form of a scheme.
func vendorSecret(scheme job.Scheme, seed byte) string {
	return scheme.NewSecret(bytes.Repeat([]byte{seed}, 32))
}

// vendorBody is a payload that has the delivery ids of the senders that put them there, except the timestamp of Linear's.
func vendorBody(id string) string {
	return fmt.Sprintf(`{"title":"Ünïcödé \ud83d\ude00","id":%[1]q,"event_id":%[1]q,"update_id":%[1]q,"event":{"id":%[1]q}}`, id)
}

// TestEverySender: of each sender that is known by name the right request is accepted, and is one run if it is sent again; one that is
// forged, truncated, old, signed with another secret or for another webhook is not accepted.
func TestEverySender(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var lines strings.Builder
	for _, s := range job.Schemes() {
		fmt.Fprintf(&lines, "webhook.%s=%s\n", s.Name, vendorSecret(s, 1))
		w.hook(s.Name, "signature: "+s.Name+"\nsecret: "+s.Name, anyTitle, "Look.")
	}
	w.secrets(lines.String())
	server := w.serveHooks()
	var calls []senderCall
	var what []string
	var want []int
	add := func(text string, status int, c senderCall) {
		calls, what, want = append(calls, c), append(what, c.Family+", "+text), append(want, status)
	}
	for i, s := range job.Schemes() {
		right := senderCall{Family: s.Name, Secrets: []string{vendorSecret(s, 1)}, ID: "d-1", Body: vendorBody("d-1"), URL: server.url + s.Name}
		with := func(change func(*senderCall)) senderCall {
			c := right
			c.ID, c.Body = "d-2", vendorBody("d-2")
			change(&c)
			return c
		}
		accepted := cmp.Or(s.Accepted, 202)
		add("right", accepted, right)
		if s.Timestamp.Body == "" { // else the script makes another body
			add("sent again", accepted, right)
		}
		add("another event", accepted, with(func(*senderCall) {}))
		if s.Kind == job.HMAC {
			add("forged", 401, with(func(c *senderCall) { c.Sent = vendorBody("d-3") }))
		}
		if s.Tolerance > 0 {
			seconds := int(s.Tolerance / time.Second)
			add("old", 401, with(func(c *senderCall) { c.Shift = -seconds - 30 }))
			add("ahead", 401, with(func(c *senderCall) { c.Shift = seconds + 30 }))
		}
		if s.Separator != "" {
			add("with two secrets", accepted, with(func(c *senderCall) { c.Secrets = []string{vendorSecret(s, 2), vendorSecret(s, 1)} }))
		}
		other := job.Schemes()[(i+1)%len(job.Schemes())].Name
		add("truncated", 401, with(func(c *senderCall) { c.Truncate = 4 }))
		add("another secret", 401, with(func(c *senderCall) { c.Secrets = []string{vendorSecret(s, 2)} }))
		add("to a webhook of "+other, 401, with(func(c *senderCall) { c.URL = server.url + other }))
		add("to no webhook", 401, with(func(c *senderCall) { c.URL = server.url + "nobody" }))
	}
	runs := map[string]string{}
	for i, a := range send(t, calls) {
		if a.Status != want[i] {
			t.Errorf("%s: %d %s, want %d", what[i], a.Status, a.Text, want[i])
		}
		key := calls[i].URL + calls[i].ID
		if first := runs[key]; want[i] < 300 && first != "" && first != a.Text {
			t.Errorf("%s: %s, and the first time %s", what[i], a.Text, first)
		}
		if want[i] < 300 {
			runs[key] = a.Text
		}
	}
	if n := len(slices.Compact(slices.Sorted(maps.Values(runs)))); n != 2*len(job.Schemes()) {
		t.Errorf("%d runs, want 2 for each sender", n)
	}
}

// TestVendorsVerify: the vendors' libraries accept what webhook call signs.
func TestVendorsVerify(t *testing.T) {
	t.Parallel()
	const body = `{"title":"Ünïcödé"}`
	var calls []senderCall
	for _, family := range []string{"github", "standard", "stripe", "slack", "linear", "svix"} {
		scheme, err := job.Named(family)
		if err != nil {
			t.Fatal(err)
		}
		secret := vendorSecret(scheme, 1)
		keys, err := job.Hook{Signature: scheme}.Keys([]string{"default=" + secret})
		if err != nil {
			t.Fatal(err)
		}
		h := http.Header{}
		sent, err := webhook.Keys{Scheme: scheme, Values: keys}.Sign(h, "msg_1", []byte(body), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		headers := map[string]string{}
		for name := range h {
			headers[name] = h.Get(name)
		}
		calls = append(calls, senderCall{Family: family, Secrets: []string{secret}, Body: string(sent), Verify: headers},
			senderCall{Family: family, Secrets: []string{secret}, Body: string(sent) + " ", Verify: headers})
	}
	for i, a := range send(t, calls) {
		if want := []int{200, 401}[i%2]; a.Status != want {
			t.Errorf("%+v: %+v, want %d", calls[i], a, want)
		}
	}
}
