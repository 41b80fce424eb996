package job

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Scheme is the way in which a sender proves that it knows the secret. It is data: one verifier serves all schemes.
type Scheme struct {
	Name string // in the table of schemes; "" for a scheme that a file describes
	Kind SchemeKind
	Place

	Hash   Hash   // of HMAC
	Signed string // of HMAC: what is signed, with the placeholders below

	Timestamp Source
	Unit      Unit          // of the timestamp, which is the time since 1970
	Tolerance time.Duration // how far the timestamp may be from the clock, in both directions

	ID       Source // the identity of the delivery, the same when the sender sends it again
	Secret   SecretForm
	Setup    Setup
	Accepted int // the HTTP status of the answer to an event that was accepted; 0 is 202
}

// Place says where a token or a signature is.
type Place struct {
	Header    string
	Separator string // between the parts of the header of an HMAC; "" if it has one part
	Prefix    string // of the token, or of each part that holds a signature; its case is ignored
	Encoding  Encoding
}

// Source says where a value of a request is; at most one of the fields is set.
type Source struct {
	Header string
	Part   string // prefix of a part of the signature's header
	Body   string // JSON pointer into the body
}

// SecretForm says what the secret of a scheme looks like.
type SecretForm struct {
	Prefix   string   // of the text; it is not a part of the key if the rest is in base64
	Encoding Encoding // Base64, or "": the whole text is the key
	Issued   bool     // the sender makes the secret, and the owner copies it from there
}

// Setup describes the signed requests with which a sender tests the address. They are not events.
type Setup struct {
	PingHeader, PingValue string // a header of such a request; the answer is empty
	Challenge             string // the value of /type in the body of such a request; the answer is its /challenge
}

// SchemeKind says what proves that a sender knows the secret.
type SchemeKind string

// The kinds of schemes.
const (
	Token SchemeKind = "token" // a header has the secret itself
	HMAC  SchemeKind = "hmac"  // a header has an HMAC of the message
)

// Hash is the hash function of an HMAC.
type Hash string

// The hash functions. SHA-1 is not one of them.
const (
	SHA256 Hash = "sha256"
	SHA512 Hash = "sha512"
)

// Encoding is how bytes are written as text.
type Encoding string

// The encodings.
const (
	Hex    Encoding = "hex"
	Base64 Encoding = "base64"
)

// Unit is the unit of a timestamp.
type Unit string

// The units of timestamps.
const (
	Seconds      Unit = "s"
	Milliseconds Unit = "ms"
)

// The placeholders of Scheme.Signed.
const (
	TimestampPlace = "{timestamp}"
	IDPlace        = "{id}"
	BodyPlace      = "{body}"
)

// Names of schemes that the program itself uses.
const (
	bearer   = "bearer" // the default
	standard = "standard"
)

// normalTolerance is the tolerance of a scheme that gives none.
const normalTolerance = 5 * time.Minute

// Schemes returns the named schemes, in the order of ollim-webhook(5).
func Schemes() []Scheme {
	const whsec = "whsec_"
	bodyHMAC := func(name, header string, encoding Encoding, id Source) Scheme {
		return Scheme{Name: name, Kind: HMAC, Place: Place{Header: header, Encoding: encoding}, Hash: SHA256, Signed: BodyPlace, ID: id}
	}
	github := bodyHMAC("github", "X-Hub-Signature-256", Hex, Source{Header: "X-GitHub-Delivery"})
	github.Prefix, github.Setup = "sha256=", Setup{PingHeader: "X-GitHub-Event", PingValue: "ping"}
	linear := issued(bodyHMAC("linear", "Linear-Signature", Hex, Source{Header: "Linear-Delivery"}))
	linear.Timestamp, linear.Unit, linear.Tolerance = Source{Body: "/webhookTimestamp"}, Milliseconds, time.Minute
	linear.Accepted = 200 // it sends an event again after any other status
	pagerduty := issued(bodyHMAC("pagerduty", "X-PagerDuty-Signature", Hex, Source{Body: "/event/id"}))
	pagerduty.Separator, pagerduty.Prefix = ",", "v1="
	return []Scheme{
		{Name: bearer, Kind: Token, Place: Place{Header: "Authorization", Prefix: "Bearer "}, ID: Source{Header: "Idempotency-Key"}},
		github,
		standardWebhooks(standard, "Webhook-"),
		issued(Scheme{
			Name: "stripe", Kind: HMAC, Place: Place{"Stripe-Signature", ",", "v1=", Hex}, Hash: SHA256, Signed: "{timestamp}.{body}",
			Timestamp: Source{Part: "t="}, Unit: Seconds, Tolerance: normalTolerance, ID: Source{Body: "/id"}, Secret: SecretForm{Prefix: whsec},
		}),
		issued(Scheme{
			Name: "slack", Kind: HMAC, Place: Place{"X-Slack-Signature", "", "v0=", Hex}, Hash: SHA256, Signed: "v0:{timestamp}:{body}",
			Timestamp: Source{Header: "X-Slack-Request-Timestamp"}, Unit: Seconds, Tolerance: normalTolerance, ID: Source{Body: "/event_id"},
			Setup: Setup{Challenge: "url_verification"},
		}),
		{Name: "gitlab", Kind: Token, Place: Place{Header: "X-Gitlab-Token"}, ID: Source{Header: "Idempotency-Key"}},
		linear,
		issued(bodyHMAC("shopify", "X-Shopify-Hmac-Sha256", Base64, Source{Header: "X-Shopify-Webhook-Id"})),
		issued(bodyHMAC("sentry", "Sentry-Hook-Signature", Hex, Source{Header: "Request-ID"})),
		{Name: "telegram", Kind: Token, Place: Place{Header: "X-Telegram-Bot-Api-Secret-Token"}, ID: Source{Body: "/update_id"}},
		issued(standardWebhooks("svix", "Svix-")),
		pagerduty,
	}
}

// issued returns a scheme whose secrets the sender makes.
func issued(s Scheme) Scheme { s.Secret.Issued = true; return s }

// standardWebhooks returns the scheme of Standard Webhooks, whose headers begin with a prefix.
func standardWebhooks(name, prefix string) Scheme {
	return Scheme{
		Name: name, Kind: HMAC, Place: Place{prefix + "Signature", " ", "v1,", Base64}, Hash: SHA256, Signed: "{id}.{timestamp}.{body}",
		Timestamp: Source{Header: prefix + "Timestamp"}, Unit: Seconds, Tolerance: normalTolerance, ID: Source{Header: prefix + "Id"},
		Secret: SecretForm{Prefix: "whsec_", Encoding: Base64},
	}
}

// SchemeNames returns the names of the named schemes.
func SchemeNames() (names []string) {
	for _, s := range Schemes() {
		names = append(names, s.Name)
	}
	return names
}

// Named returns the scheme with a name.
func Named(name string) (Scheme, error) {
	if err := oneOf(SchemeNames()...)(name); err != nil {
		return Scheme{}, err
	}
	all := Schemes()
	return all[slices.IndexFunc(all, func(s Scheme) bool { return s.Name == name })], nil
}

// Label returns the scheme's name, or the kind of a scheme without a name.
func (s Scheme) Label() string { return cmp.Or(s.Name, string(s.Kind)) }

// Fills reports whether a placeholder is in what is signed.
func (s Scheme) Fills(place string) bool { return strings.Contains(s.Signed, place) }

// key returns the key that a secret stands for.
func (s Scheme) key(secret string) (key []byte, err error) {
	key = []byte(secret)
	if s.Secret.Encoding == Base64 {
		if key, err = base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, s.Secret.Prefix)); err != nil {
			return nil, errors.New("the secret is not " + strings.TrimPrefix(s.Secret.Prefix+" and base64", " and "))
		}
	}
	if len(key) < minSecret {
		return nil, fmt.Errorf("the secret has %d bytes, fewer than %d", len(key), minSecret)
	}
	return key, nil
}

// NewSecret makes a secret of 32 random bytes in the form that senders with this scheme expect.
func (s Scheme) NewSecret(random []byte) string {
	if s.Secret.Encoding == Base64 {
		return s.Secret.Prefix + base64.StdEncoding.EncodeToString(random)
	}
	return s.Secret.Prefix + fmt.Sprintf("%x", random)
}
