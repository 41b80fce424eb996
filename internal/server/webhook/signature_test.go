package webhook

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/state/job"
)

const (
	githubSecret   = "It'saSecrettoEverybody0123456789"
	standardSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	bearerSecret   = "0123456789abcdef0123456789abcdef"
)

var signedAt = time.Unix(1614265330, 0) // of the examples below

func keysOf(t testing.TB, family job.Signature, secrets ...string) Keys {
	t.Helper()
	keys, err := job.Hook{Signature: family}.Keys([]string{"default=" + strings.Join(secrets, " ")})
	if err != nil {
		t.Fatal(err)
	}
	return Keys{family, keys}
}

// TestVectors: signatures that others made.
func TestVectors(t *testing.T) {
	github := http.Header{}
	github.Set(githubSignature, "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17")
	if _, err := (Keys{job.GitHub, [][]byte{[]byte("It's a Secret to Everybody")}}).verify(github, []byte("Hello, World!"), signedAt); err != nil {
		t.Error("the example of GitHub's documentation:", err)
	}
	standard := http.Header{}
	standard.Set(standardID, "msg_p5jXN8AQM9LWM0D4loKWxJek")
	standard.Set(standardTime, "1614265330")
	standard.Set(standardSign, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
	got, err := keysOf(t, job.Standard, standardSecret).verify(standard, []byte(`{"test": 2432232314}`), signedAt)
	if err != nil || got != (proof{"msg_p5jXN8AQM9LWM0D4loKWxJek", true}) {
		t.Error("the example of the Standard Webhooks libraries:", got, err)
	}
}

// TestVerify signs as each family does, changes one thing, and verifies.
func TestVerify(t *testing.T) {
	set := func(name, value string) func(http.Header) { return func(h http.Header) { h.Set(name, value) } }
	del := func(name string) func(http.Header) { return func(h http.Header) { h.Del(name) } }
	twice := func(name string) func(http.Header) { return func(h http.Header) { h.Add(name, h.Get(name)) } }
	shift := func(d time.Duration) func(http.Header) {
		return func(h http.Header) {
			keysOf(t, job.Standard, standardSecret).Sign(h, "a", []byte("{}"), signedAt.Add(d))
		}
	}
	resign := func(stamp string) func(http.Header) { // a timestamp that others parse
		return func(h http.Header) {
			key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(standardSecret, "whsec_"))
			h.Set(standardTime, stamp)
			h.Set(standardSign, "v1,"+base64.StdEncoding.EncodeToString(sum(key, []byte("a."+stamp+".{}"))))
		}
	}
	long := strings.Repeat("a", longestID+1)
	for _, c := range []struct {
		family job.Signature
		what   string
		change func(http.Header)
		want   string // part of the error; "": it is valid
	}{
		{job.Bearer, "", nil, ""},
		{job.Bearer, "another token", set(authorization, "Bearer "+bearerSecret+"x"), "not the secret"},
		{job.Bearer, "a truncated token", set(authorization, "Bearer "+bearerSecret[:31]), "not the secret"},
		{job.Bearer, "no token", set(authorization, "Bearer "), "not the secret"},
		{job.Bearer, "no header", del(authorization), "no Authorization"},
		{job.Bearer, "a lower-case scheme", set(authorization, "bearer "+bearerSecret), ""},
		{job.Bearer, "another scheme", set(authorization, "Basic "+bearerSecret), "scheme"},
		{job.Bearer, "two headers", twice(authorization), "2 Authorization"},
		{job.Bearer, "two ids", twice(idempotencyKey), "2 Idempotency-Key"},
		{job.Bearer, "an id with a space", set(idempotencyKey, "a b"), "not a word"},

		{job.GitHub, "", nil, ""},
		{job.GitHub, "no header", del(githubSignature), "no X-Hub"},
		{job.GitHub, "an empty header", set(githubSignature, ""), "no X-Hub"},
		{job.GitHub, "two headers", twice(githubSignature), "2 X-Hub"},
		{job.GitHub, "no prefix", func(h http.Header) { h.Set(githubSignature, h.Get(githubSignature)[7:]) }, "64 hex"},
		{job.GitHub, "a truncated signature", func(h http.Header) { h.Set(githubSignature, h.Get(githubSignature)[:69]) }, "64 hex"},
		{job.GitHub, "a prefix alone", set(githubSignature, "sha256="), "64 hex"},
		{job.GitHub, "another signature", set(githubSignature, "sha256="+strings.Repeat("0", 64)), "not of this secret"},
		{job.GitHub, "capital digits", func(h http.Header) {
			h.Set(githubSignature, "sha256="+strings.ToUpper(h.Get(githubSignature)[7:]))
		}, ""},
		{job.GitHub, "no delivery", del(githubDelivery), ""},
		{job.GitHub, "a long delivery", set(githubDelivery, long), "not a word"},

		{job.Standard, "", nil, ""},
		{job.Standard, "no id", del(standardID), "no Webhook-Id"},
		{job.Standard, "no time", del(standardTime), "no Webhook-Timestamp"},
		{job.Standard, "no signature", del(standardSign), "no Webhook-Signature"},
		{job.Standard, "two ids", twice(standardID), "2 Webhook-Id"},
		{job.Standard, "two signature headers", twice(standardSign), "2 Webhook-Signature"},
		{job.Standard, "another id", set(standardID, "b"), "no v1"},
		{job.Standard, "five minutes ago", shift(-tolerance), ""},
		{job.Standard, "five minutes ahead", shift(tolerance), ""},
		{job.Standard, "older", shift(-tolerance - time.Second), "5m1s"},
		{job.Standard, "from the future", shift(tolerance + time.Second), "5m1s"},
		{job.Standard, "a signed +", resign("+1614265330"), "not a number"},
		{job.Standard, "a fraction", resign("1614265330.0"), "not a number"},
		{job.Standard, "a huge time", resign("99999999999999999999"), "not a number"},
		{job.Standard, "the largest time", resign(strconv.Itoa(1<<40 - 1)), "away from the clock"},
		{job.Standard, "another version", func(h http.Header) { h.Set(standardSign, "v2"+h.Get(standardSign)[2:]) }, "no v1"},
		{job.Standard, "no version", func(h http.Header) { h.Set(standardSign, h.Get(standardSign)[3:]) }, "no v1"},
		{job.Standard, "an empty signature", set(standardSign, "v1,"), "no v1"},
		{job.Standard, "a truncated one", func(h http.Header) { h.Set(standardSign, h.Get(standardSign)[:20]) }, "no v1"},
		{job.Standard, "several", func(h http.Header) {
			h.Set(standardSign, "v1a,c29tZXRoaW5n v1,!! v1,"+base64.StdEncoding.EncodeToString(make([]byte, 32))+"  "+h.Get(standardSign))
		}, ""},
	} {
		secret := map[job.Signature]string{job.Bearer: bearerSecret, job.GitHub: githubSecret, job.Standard: standardSecret}[c.family]
		k, h := keysOf(t, c.family, secret), http.Header{}
		k.Sign(h, "a", []byte("{}"), signedAt)
		if c.change != nil {
			c.change(h)
		}
		_, err := k.verify(h, []byte("{}"), signedAt)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %s: %v, want %q", c.family, c.what, err, c.want)
		}
	}
}

// TestRotation: each of two secrets is valid while one is being changed, and a secret that is gone is not.
func TestRotation(t *testing.T) {
	old, now := keysOf(t, job.Standard, standardSecret), "whsec_"+base64.StdEncoding.EncodeToString([]byte(bearerSecret))
	both := keysOf(t, job.Standard, now, standardSecret)
	h := http.Header{}
	for _, sender := range []Keys{old, keysOf(t, job.Standard, now)} {
		sender.Sign(h, "a", []byte("{}"), signedAt)
		if _, err := both.verify(h, []byte("{}"), signedAt); err != nil {
			t.Error(err)
		}
	}
	if _, err := old.verify(h, []byte("{}"), signedAt); err == nil {
		t.Error("the other secret was accepted")
	}
}

// TestOtherFamilies: what one family signs is no proof for another, with the same secret.
func TestOtherFamilies(t *testing.T) {
	families := []job.Signature{job.Bearer, job.GitHub, job.Standard}
	for _, signer := range families {
		for _, verifier := range families {
			h := http.Header{}
			keysOf(t, signer, standardSecret).Sign(h, "a", []byte("{}"), signedAt)
			if _, err := keysOf(t, verifier, standardSecret).verify(h, []byte("{}"), signedAt); (err == nil) != (signer == verifier) {
				t.Errorf("signed as %s, verified as %s: %v", signer, verifier, err)
			}
		}
	}
	h := http.Header{}
	for _, family := range families { // the identity is that of the family, whatever else is there
		keysOf(t, family, standardSecret).Sign(h, string(family), []byte("{}"), signedAt)
	}
	for _, family := range families {
		if p, err := keysOf(t, family, standardSecret).verify(h, []byte("{}"), signedAt); err != nil || p.Delivery != string(family) {
			t.Errorf("%s: %v, %v", family, p, err)
		}
	}
}

// TestNoKey: a webhook without a key accepts nothing, not even what was signed with an empty one.
func TestNoKey(t *testing.T) {
	for _, family := range []job.Signature{job.Bearer, job.GitHub, job.Standard} {
		h := http.Header{}
		Keys{family, [][]byte{{}}}.Sign(h, "a", []byte("{}"), signedAt)
		if _, err := (Keys{Family: family}).verify(h, []byte("{}"), signedAt); err == nil {
			t.Errorf("%s: a signature without a key was accepted", family)
		}
	}
}

// FuzzVerify: no headers of others are accepted, and none end the server.
func FuzzVerify(f *testing.F) {
	f.Add("sha256=00", "a", "1614265330", "v1,AA==", "Bearer x", []byte("{}"))
	f.Fuzz(func(t *testing.T, github, id, stamp, signatures, bearer string, body []byte) {
		h := http.Header{}
		h.Set(githubSignature, github)
		h.Set(githubDelivery, id)
		h.Set(standardID, id)
		h.Set(standardTime, stamp)
		h.Set(standardSign, signatures)
		h.Set(authorization, bearer)
		for _, family := range []job.Signature{job.Bearer, job.GitHub, job.Standard} {
			if p, err := keysOf(t, family, standardSecret).verify(h, body, signedAt); err == nil {
				t.Errorf("%s accepts %v: %v", family, h, p)
			}
		}
	})
}
