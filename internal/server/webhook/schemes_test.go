package webhook

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/state/job"
)

// sumOf returns the HMAC-SHA256 of a text.
func sumOf(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// secretFor returns a secret in the form of a scheme.
func secretFor(s job.Scheme, seed string) string {
	sum := sha256.Sum256([]byte(seed))
	return s.NewSecret(sum[:])
}

// bodyFor is a body that has the ids of all schemes whose senders put them there.
const bodyFor = `{"id":"evt_1","event_id":"Ev1","update_id":10000,"event":{"id":"01BZ"},"webhookTimestamp":1614265330000,"title":"a"}`

// TestEverySchemeAccepts: a request as the sender makes it is accepted, with its id; and the id counts as signed only if others cannot
// change it.
func TestEverySchemeAccepts(t *testing.T) {
	want := map[string]proof{
		"bearer": {"d-1", true}, "github": {"d-1", false}, "standard": {"d-1", true}, "stripe": {"evt_1", true}, "slack": {"Ev1", true},
		"gitlab": {"d-1", true}, "linear": {"d-1", false}, "shopify": {"d-1", false}, "sentry": {"d-1", false}, "telegram": {"10000", true},
		"svix": {"d-1", true}, "pagerduty": {"01BZ", true},
	}
	for _, s := range job.Schemes() {
		k := keysFor(t, s, secretFor(s, "a"))
		h, body := k.sign(t, "d-1", bodyFor, signedAt)
		if p, err := k.verify(h, body, signedAt); err != nil || p != want[s.Name] {
			t.Errorf("%s: %v, %v, want %v", s.Name, p, err, want[s.Name])
		}
		if h, body = k.sign(t, "d-2", `{}`, signedAt); s.ID.Body != "" && !strings.Contains(string(body), "d-2") {
			t.Errorf("%s: no id in %s", s.Name, body)
		}
		if p, err := k.verify(h, body, signedAt); err != nil || p.Delivery != "d-2" {
			t.Errorf("%s without an id in the body: %v, %v", s.Name, p, err)
		}
	}
	if len(want) != len(job.Schemes()) {
		t.Errorf("%d schemes, want %d", len(job.Schemes()), len(want))
	}
}

// TestEverySchemeRefuses: each scheme refuses a body that was changed, a truncated signature, an old one, one with another secret, one
// whose header occurs twice, and none. All refusals compute the same number of signatures.
func TestEverySchemeRefuses(t *testing.T) {
	for _, s := range job.Schemes() {
		k := keysFor(t, s, secretFor(s, "a"))
		for what, change := range map[string]func(h http.Header, body []byte) (http.Header, []byte){
			"another body": func(h http.Header, body []byte) (http.Header, []byte) {
				if s.Kind == job.Token { // which does not sign the body
					h.Set(s.Header, "x"+h.Get(s.Header))
				}
				return h, append(body, ' ')
			},
			"truncated": func(h http.Header, body []byte) (http.Header, []byte) {
				h.Set(s.Header, h.Get(s.Header)[:len(h.Get(s.Header))-1])
				return h, body
			},
			"half": func(h http.Header, body []byte) (http.Header, []byte) {
				h.Set(s.Header, h.Get(s.Header)[:len(h.Get(s.Header))/2])
				return h, body
			},
			"another secret": func(http.Header, []byte) (http.Header, []byte) {
				return keysFor(t, s, secretFor(s, "b")).sign(t, "d-1", bodyFor, signedAt)
			},
			"twice": func(h http.Header, body []byte) (http.Header, []byte) {
				h.Add(s.Header, h.Get(s.Header))
				return h, body
			},
			"none": func(_ http.Header, body []byte) (http.Header, []byte) { return http.Header{}, body },
			"old": func(h http.Header, body []byte) (http.Header, []byte) {
				if s.Tolerance == 0 {
					h.Del(s.Header)
					return h, body
				}
				return k.sign(t, "d-1", bodyFor, signedAt.Add(-s.Tolerance-time.Second))
			},
			"early": func(h http.Header, body []byte) (http.Header, []byte) {
				if s.Tolerance == 0 {
					h.Del(s.Header)
					return h, body
				}
				return k.sign(t, "d-1", bodyFor, signedAt.Add(s.Tolerance+time.Second))
			},
		} {
			for _, long := range []bool{false, true} {
				v := verification{Keys: k, now: signedAt, sums: map[job.Hash]int{}}
				v.long = long
				v.header, v.body = change(k.sign(t, "d-1", bodyFor, signedAt))
				if p, err := v.result(); err == nil {
					t.Errorf("%s, %s: accepted as %v", s.Name, what, p)
				}
				if n := v.sums[job.SHA512]; v.sums[job.SHA256] != job.MaxSecrets || n != map[bool]int{true: job.MaxSecrets}[long || s.Hash == job.SHA512] {
					t.Errorf("%s, %s, long %v: %v signatures", s.Name, what, long, v.sums)
				}
			}
		}
		h, body := k.sign(t, "d-1", bodyFor, signedAt.Add(-s.Tolerance))
		if _, err := k.verify(h, body, signedAt); err != nil {
			t.Errorf("%s, just in time: %v", s.Name, err)
		}
	}
}

// TestOtherSchemes: what one scheme signs is no proof for another with the same secret, except for svix and standard, which are the same
// scheme with other headers; and the identity is that of the scheme, whatever other headers there are.
func TestOtherSchemes(t *testing.T) {
	all := http.Header{}
	body := []byte(bodyFor)
	for _, signer := range job.Schemes() {
		h, _ := keysFor(t, signer, standardSecret).sign(t, signer.Name, bodyFor, signedAt)
		for _, verifier := range job.Schemes() {
			if _, err := keysFor(t, verifier, standardSecret).verify(h, body, signedAt); (err == nil) != (signer.Name == verifier.Name) {
				t.Errorf("signed as %s, verified as %s: %v", signer.Name, verifier.Name, err)
			}
		}
		maps.Copy(all, h)
	}
	all.Set(idempotencyKey, "of two")
	all.Set(idempotencyKey, "bearer")
	for _, s := range job.Schemes() {
		want := map[string]string{"gitlab": "bearer", "stripe": "evt_1", "slack": "Ev1", "telegram": "10000", "pagerduty": "01BZ"}[s.Name]
		if p, err := keysFor(t, s, standardSecret).verify(all, body, signedAt); err != nil || p.Delivery != cmp.Or(want, s.Name) {
			t.Errorf("%s: %v, %v", s.Name, p, err)
		}
	}
}

// TestNoKey: a webhook without a key accepts nothing, not even what was signed with an empty one.
func TestNoKey(t *testing.T) {
	for _, s := range job.Schemes() {
		h, body := Keys{Scheme: s, Values: [][]byte{{}}}.sign(t, "a", "{}", signedAt)
		if _, err := (Keys{Scheme: s}).verify(h, body, signedAt); err == nil {
			t.Errorf("%s: a signature without a key was accepted", s.Name)
		}
	}
}

// TestSeveralSignatures: a sender that changes its secret sends several signatures, of which one right one is enough.
func TestSeveralSignatures(t *testing.T) {
	for _, s := range job.Schemes() {
		if s.Separator == "" {
			continue
		}
		k := keysFor(t, s, secretFor(s, "a"))
		right, body := k.sign(t, "d-1", bodyFor, signedAt)
		other, _ := keysFor(t, s, secretFor(s, "b")).sign(t, "d-1", bodyFor, signedAt)
		signature := func(h http.Header) string {
			parts := strings.Split(h.Get(s.Header), s.Separator)
			return parts[len(parts)-1]
		}
		for what, c := range map[string]struct {
			header string
			valid  bool
		}{
			"the other first": {strings.Replace(right.Get(s.Header), s.Prefix, signature(other)+s.Separator+s.Prefix, 1), true},
			"the other last":  {right.Get(s.Header) + s.Separator + signature(other), true},
			"with a space":    {right.Get(s.Header) + s.Separator + " " + signature(other), true},
			"the other twice": {other.Get(s.Header) + s.Separator + signature(other), false},
			"another version": {strings.Replace(right.Get(s.Header), s.Prefix, "v9"+s.Prefix[2:], 1), false},
		} {
			right.Set(s.Header, c.header)
			if _, err := k.verify(right, body, signedAt); (err == nil) != c.valid {
				t.Errorf("%s, %s: %v", s.Name, what, err)
			}
			right, _ = k.sign(t, "d-1", bodyFor, signedAt)
		}
	}
}

// TestOnePass: an id that looks like a placeholder is signed as it is. If placeholders were filled in one after the other, the signature
// of the delivery {timestamp} would be that of the delivery with the digits of the timestamp, which could then be replayed.
func TestOnePass(t *testing.T) {
	for _, signed := range []string{"{id}.{timestamp}.{body}", "{timestamp}.{id}.{body}", "{body}.{id}.{timestamp}"} {
		s, err := job.Named("standard")
		if err != nil {
			t.Fatal(err)
		}
		s.Name, s.Signed = "", signed
		k := keysFor(t, s, standardSecret)
		for _, id := range []string{"{timestamp}", "{body}", "{id}"} {
			h, body := k.sign(t, id, "{}", signedAt)
			if p, err := k.verify(h, body, signedAt); err != nil || p.Delivery != id {
				t.Errorf("%s, id %s: %v, %v", signed, id, p, err)
			}
			for _, replay := range []string{"1614265330", "{}", id + "."} {
				h.Set(standardID, replay)
				if p, err := k.verify(h, body, signedAt); err == nil {
					t.Errorf("%s, id %s: accepted again as %v", signed, id, p)
				}
			}
		}
	}
}

// TestOwnScheme: a scheme that a file describes is verified by its values: SHA-512, parts of the header, and what is signed after the body.
func TestOwnScheme(t *testing.T) {
	s := job.Scheme{
		Kind: job.HMAC, Place: job.Place{Header: "X-Acme", Separator: ";", Prefix: "sig=", Encoding: job.Base64}, Hash: job.SHA512,
		Signed: "{body}\n{timestamp}/{id}", Timestamp: job.Source{Part: "time="}, Unit: job.Milliseconds, Tolerance: time.Minute,
		ID: job.Source{Part: "id="},
	}
	s.Signed = strings.ReplaceAll(s.Signed, "\n", "|")
	k := keysFor(t, s, bearerSecret)
	mac := hmac.New(sha512.New, []byte(bearerSecret))
	mac.Write([]byte("[]|1614265330000/a.b"))
	signature := base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for header, want := range map[string]string{
		"time=1614265330000; id=a.b; sig=" + signature:                     "",
		"sig=" + signature + ";id=a.b;time=1614265330000":                  "",
		"time=1614265330000;id=a.c;sig=" + signature:                       "has no sig=",
		"time=1614265330001;id=a.b;sig=" + signature:                       "has no sig=",
		"time=1614265200000;id=a.b;sig=" + signature:                       "time= of X-Acme is 2m10s away",
		"time=1614265330000;time=1614265330000;id=a.b;sig=" + signature:    "X-Acme has 2 parts time=, want one",
		"id=a.b;sig=" + signature:                                          "X-Acme has 0 parts time=",
		"time=1614265330000;sig=" + signature:                              "X-Acme has 0 parts id=",
		"time=1614265330000;id=a.b;sig=" + signature[:len(signature)/2]:    "has no sig=",
		"time=soon;id=a.b;sig=" + signature:                                "is not a number of milliseconds",
		"time=1614265330000;id=a b;sig=" + signature:                       "id= of X-Acme is not a word",
		"time=1614265330000;id=" + strings.Repeat("a", 257) + ";sig=" + "": "id= of X-Acme is not a word",
	} {
		p, err := k.verify(http.Header{"X-Acme": {header}}, []byte("[]"), signedAt)
		if want == "" && (err != nil || p != (proof{"a.b", true})) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, %v, want %q", header, p, err, want)
		}
	}
}

// TestBodyTimestamp: a timestamp in the body must be there, and be a number.
func TestBodyTimestamp(t *testing.T) {
	k := keysOf(t, "linear", bearerSecret)
	for body, want := range map[string]string{
		`{"webhookTimestamp":1614265330000}`:                      "",
		`{"webhookTimestamp":"1614265330000"}`:                    "",
		`{"webhookTimestamp":1614265269000}`:                      "/webhookTimestamp is 1m1s away",
		`{"webhookTimestamp":1614265330}`:                         "away from the clock",
		`{}`:                                                      "/webhookTimestamp is not a number of milliseconds",
		`{"webhookTimestamp":null}`:                               "not a number",
		`{"webhookTimestamp":[1]}`:                                "neither text nor a number",
		`{"webhookTimestamp":1.6e12}`:                             "not a number",
		`{"webhookTimestamp":1614265330000,"webhookTimestamp":1}`: "given twice",
		`[1614265330000]`:                                         "not a number",
		`x`:                                                       "not JSON",
	} {
		h := http.Header{"Linear-Signature": {hex.EncodeToString(sumOf([]byte(bearerSecret), body))}}
		if _, err := k.verify(h, []byte(body), signedAt); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}
	if _, err := k.Sign(http.Header{}, "a", []byte("[]"), signedAt); err == nil || !strings.Contains(err.Error(), "not a JSON object") {
		t.Errorf("a list without a place for the timestamp: %v", err)
	}
	got, err := keysOf(t, "pagerduty", bearerSecret).Sign(http.Header{}, "a", []byte(`{"event":{"data":1},"z":2}`), signedAt)
	if err != nil || string(got) != `{"event":{"data":1,"id":"a"},"z":2}` {
		t.Errorf("%s, %v", got, err)
	}
}

// FuzzVerify: no headers of others are accepted, and none end the server; what is signed is accepted, and not under another id or body.
func FuzzVerify(f *testing.F) {
	f.Add("sha256=00", "a", "1614265330", []byte("{}"))
	f.Add("t=1614265330,v1=00,v1=", "{timestamp}", "v1,AA==", []byte(`{"id":"a","webhookTimestamp":1}`))
	f.Add("Bearer x", "{body}", "", []byte("[]"))
	f.Fuzz(func(t *testing.T, value, id, stamp string, body []byte) {
		for _, s := range job.Schemes() {
			k := keysFor(t, s, secretFor(s, "a"))
			h := http.Header{s.Header: {value}}
			for _, name := range []string{s.ID.Header, s.Timestamp.Header} {
				h.Set(cmp.Or(name, "X-Other"), cmp.Or(map[bool]string{true: id, false: stamp}[name == s.ID.Header], "x"))
			}
			if p, err := k.verify(h, body, signedAt); err == nil {
				t.Errorf("%s accepts %v: %v", s.Name, h, p)
			}
			h = http.Header{}
			sent, err := k.Sign(h, id, body, signedAt)
			if err != nil {
				continue
			}
			p, err := k.verify(h, sent, signedAt)
			if err != nil { // the id is not a word, or the body not JSON
				continue
			}
			if s.Kind == job.HMAC {
				if _, err := k.verify(h, append(slices.Clip(sent), ' '), signedAt); err == nil {
					t.Errorf("%s accepts another body", s.Name)
				}
			}
			if s.Fills(job.IDPlace) {
				for _, other := range []string{p.Delivery + "x", "1614265330"} {
					if h.Set(s.ID.Header, other); other == p.Delivery {
						continue
					}
					if q, err := k.verify(h, sent, signedAt); err == nil {
						t.Errorf("%s accepts %v as %v", s.Name, p, q)
					}
				}
			}
		}
	})
}
