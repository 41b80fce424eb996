package webhook

import (
	"encoding/base64"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/state/job"
)

// Headers of the first three schemes.
const (
	authorization   = "Authorization"
	idempotencyKey  = "Idempotency-Key"
	githubSignature = "X-Hub-Signature-256"
	githubDelivery  = "X-GitHub-Delivery"
	githubEvent     = "X-GitHub-Event"
	standardID      = "Webhook-Id"
	standardTime    = "Webhook-Timestamp"
	standardSign    = "Webhook-Signature"

	tolerance = 5 * time.Minute
)

const (
	githubSecret   = "It'saSecrettoEverybody0123456789"
	standardSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	bearerSecret   = "0123456789abcdef0123456789abcdef"
)

var signedAt = time.Unix(1614265330, 0) // of the examples below

// keysOf returns the keys of a named scheme.
func keysOf(t testing.TB, name string, secrets ...string) Keys {
	t.Helper()
	s, err := job.Named(name)
	if err != nil {
		t.Fatal(err)
	}
	return keysFor(t, s, secrets...)
}

func keysFor(t testing.TB, s job.Scheme, secrets ...string) Keys {
	t.Helper()
	keys, err := job.Hook{Signature: s}.Keys([]string{"default=" + strings.Join(secrets, " ")})
	if err != nil {
		t.Fatal(err)
	}
	return Keys{Scheme: s, Values: keys}
}

// sign returns the headers and the body of a request that the holder of the keys sends.
func (k Keys) sign(t testing.TB, id, body string, now time.Time) (http.Header, []byte) {
	t.Helper()
	h := http.Header{}
	sent, err := k.Sign(h, id, []byte(body), now)
	if err != nil {
		t.Fatal(err)
	}
	return h, sent
}

// TestVectors: the examples of the vendors' documentation.
func TestVectors(t *testing.T) {
	const standardExample = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	for _, c := range []struct {
		scheme, secret string
		at             int64
		headers        map[string]string
		body           string
		want           proof
	}{
		{
			"github", "It's a Secret to Everybody", signedAt.Unix(),
			map[string]string{githubSignature: "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"},
			"Hello, World!", proof{},
		},
		{
			"standard", standardSecret, 1614265330,
			map[string]string{standardID: "msg_p5jXN8AQM9LWM0D4loKWxJek", standardTime: "1614265330", standardSign: standardExample},
			`{"test": 2432232314}`, proof{"msg_p5jXN8AQM9LWM0D4loKWxJek", true},
		},
		{
			"svix", standardSecret, 1614265330,
			map[string]string{"svix-id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "svix-timestamp": "1614265330", "svix-signature": standardExample},
			`{"test": 2432232314}`, proof{"msg_p5jXN8AQM9LWM0D4loKWxJek", true},
		},
		{
			"slack", "8f742231b10e8888abcd99yyyzzz85a5", 1531420618,
			map[string]string{
				"X-Slack-Signature":         "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
				"X-Slack-Request-Timestamp": "1531420618",
			},
			"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar" +
				"&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=" +
				"&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN" +
				"&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c",
			proof{},
		},
	} {
		h := http.Header{}
		for name, value := range c.headers {
			h.Set(name, value)
		}
		k := keysOf(t, c.scheme, standardSecret)
		if c.secret != standardSecret {
			k.Values = [][]byte{[]byte(c.secret)}
		}
		got, err := k.verify(h, []byte(c.body), time.Unix(c.at, 0))
		if err != nil || got != c.want {
			t.Errorf("%s: %v, %v", c.scheme, got, err)
		}
	}
}

// TestVerify signs as each family does, changes one thing, and verifies.
func TestVerify(t *testing.T) {
	set := func(name, value string) func(http.Header) { return func(h http.Header) { h.Set(name, value) } }
	del := func(name string) func(http.Header) { return func(h http.Header) { h.Del(name) } }
	twice := func(name string) func(http.Header) { return func(h http.Header) { h.Add(name, h.Get(name)) } }
	shift := func(d time.Duration) func(http.Header) {
		return func(h http.Header) {
			signed, _ := keysOf(t, "standard", standardSecret).sign(t, "a", "{}", signedAt.Add(d))
			maps.Copy(h, signed)
		}
	}
	resign := func(stamp string) func(http.Header) { // a timestamp that others parse
		return func(h http.Header) {
			key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(standardSecret, "whsec_"))
			h.Set(standardTime, stamp)
			h.Set(standardSign, "v1,"+base64.StdEncoding.EncodeToString(sumOf(key, "a."+stamp+".{}")))
		}
	}
	long := strings.Repeat("a", longestID+1)
	for _, c := range []struct {
		family string
		what   string
		change func(http.Header)
		want   string // part of the error; "": it is valid
	}{
		{"bearer", "", nil, ""},
		{"bearer", "another token", set(authorization, "Bearer "+bearerSecret+"x"), "not the secret"},
		{"bearer", "a truncated token", set(authorization, "Bearer "+bearerSecret[:31]), "not the secret"},
		{"bearer", "no token", set(authorization, "Bearer "), "not the secret"},
		{"bearer", "no header", del(authorization), "no Authorization"},
		{"bearer", "a lower-case scheme", set(authorization, "bearer "+bearerSecret), ""},
		{"bearer", "another scheme", set(authorization, "Basic "+bearerSecret), "does not begin with"},
		{"bearer", "two headers", twice(authorization), "2 Authorization"},
		{"bearer", "two ids", twice(idempotencyKey), "2 Idempotency-Key"},
		{"bearer", "an id with a space", set(idempotencyKey, "a b"), "not a word"},

		{"github", "", nil, ""},
		{"github", "no header", del(githubSignature), "no X-Hub"},
		{"github", "an empty header", set(githubSignature, ""), "no X-Hub"},
		{"github", "two headers", twice(githubSignature), "2 X-Hub"},
		{"github", "no prefix", func(h http.Header) { h.Set(githubSignature, h.Get(githubSignature)[7:]) }, "64 hex"},
		{"github", "a truncated signature", func(h http.Header) { h.Set(githubSignature, h.Get(githubSignature)[:69]) }, "64 hex"},
		{"github", "a prefix alone", set(githubSignature, "sha256="), "64 hex"},
		{"github", "another signature", set(githubSignature, "sha256="+strings.Repeat("0", 64)), "not of this secret"},
		{"github", "capital digits", func(h http.Header) {
			h.Set(githubSignature, "sha256="+strings.ToUpper(h.Get(githubSignature)[7:]))
		}, ""},
		{"github", "no delivery", del(githubDelivery), ""},
		{"github", "a long delivery", set(githubDelivery, long), "not a word"},

		{"standard", "", nil, ""},
		{"standard", "no id", del(standardID), "no Webhook-Id"},
		{"standard", "no time", del(standardTime), "no Webhook-Timestamp"},
		{"standard", "no signature", del(standardSign), "no Webhook-Signature"},
		{"standard", "two ids", twice(standardID), "2 Webhook-Id"},
		{"standard", "two signature headers", twice(standardSign), "2 Webhook-Signature"},
		{"standard", "another id", set(standardID, "b"), "no v1"},
		{"standard", "five minutes ago", shift(-tolerance), ""},
		{"standard", "five minutes ahead", shift(tolerance), ""},
		{"standard", "older", shift(-tolerance - time.Second), "5m1s"},
		{"standard", "from the future", shift(tolerance + time.Second), "5m1s"},
		{"standard", "a signed +", resign("+1614265330"), "not a number"},
		{"standard", "a fraction", resign("1614265330.0"), "not a number"},
		{"standard", "a huge time", resign("99999999999999999999"), "not a number"},
		{"standard", "the largest time", resign(strconv.Itoa(1<<40 - 1)), "away from the clock"},
		{"standard", "another version", func(h http.Header) { h.Set(standardSign, "v2"+h.Get(standardSign)[2:]) }, "no v1"},
		{"standard", "no version", func(h http.Header) { h.Set(standardSign, h.Get(standardSign)[3:]) }, "no v1"},
		{"standard", "an empty signature", set(standardSign, "v1,"), "no v1"},
		{"standard", "a truncated one", func(h http.Header) { h.Set(standardSign, h.Get(standardSign)[:20]) }, "no v1"},
		{"standard", "several", func(h http.Header) {
			h.Set(standardSign, "v1a,c29tZXRoaW5n v1,!! v1,"+base64.StdEncoding.EncodeToString(make([]byte, 32))+"  "+h.Get(standardSign))
		}, ""},
	} {
		secret := map[string]string{"bearer": bearerSecret, "github": githubSecret, "standard": standardSecret}[c.family]
		k := keysOf(t, c.family, secret)
		h, _ := k.sign(t, "a", "{}", signedAt)
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
	old, now := keysOf(t, "standard", standardSecret), "whsec_"+base64.StdEncoding.EncodeToString([]byte(bearerSecret))
	both := keysOf(t, "standard", now, standardSecret)
	var h http.Header
	for _, sender := range []Keys{old, keysOf(t, "standard", now)} {
		h, _ = sender.sign(t, "a", "{}", signedAt)
		if _, err := both.verify(h, []byte("{}"), signedAt); err != nil {
			t.Error(err)
		}
	}
	if _, err := old.verify(h, []byte("{}"), signedAt); err == nil {
		t.Error("the other secret was accepted")
	}
}
