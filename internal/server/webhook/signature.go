package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/state/job"
)

// The headers of the families. Those of one family mean nothing to another.
const (
	authorization   = "Authorization"
	idempotencyKey  = "Idempotency-Key" // of a bearer's request; optional
	githubSignature = "X-Hub-Signature-256"
	githubDelivery  = "X-GitHub-Delivery"
	githubEvent     = "X-GitHub-Event"
	standardID      = "Webhook-Id"
	standardTime    = "Webhook-Timestamp"
	standardSign    = "Webhook-Signature"
)

const (
	// tolerance is how far a timestamp may be from the clock, in both directions.
	tolerance = 5 * time.Minute
	// longestID bounds the identity of a delivery, in bytes. GitHub's have 36.
	longestID = 256
)

// Keys is how requests to one hook are signed: the family, and one key or, while the secret is being changed, several. Without a key
// no signature is valid.
type Keys struct {
	Family job.Signature
	Values [][]byte
}

// proof is what a valid signature says about a request.
type proof struct {
	Delivery string // the identity of the delivery, the same when the sender sends it again; "" if the sender gives none
	Signed   bool   // others than the holder of the key cannot send the request again under another Delivery, or without one
}

// verify returns the proof of a request with this header and body. The error says what is wrong; it is for the owner, not for the
// sender. Headers are taken only if they occur once.
func (k Keys) verify(h http.Header, body []byte, now time.Time) (proof, error) {
	switch k.Family {
	case job.GitHub:
		return k.verifyGitHub(h, body)
	case job.Standard:
		return k.verifyStandard(h, body, now)
	default:
		return k.verifyBearer(h)
	}
}

func (k Keys) verifyBearer(h http.Header) (proof, error) {
	value, err := single(h, authorization)
	if err != nil {
		return proof{}, err
	}
	scheme, token, _ := strings.Cut(value, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return proof{}, errors.New("the Authorization header has another scheme than Bearer")
	}
	given := sha256.Sum256([]byte(token)) // comparing hashes hides the length of the secret
	valid := 0
	for _, key := range k.Values {
		want := sha256.Sum256(key)
		valid |= subtle.ConstantTimeCompare(given[:], want[:])
	}
	if valid == 0 {
		return proof{}, errors.New("the token is not the secret")
	}
	id, err := optional(h, idempotencyKey)
	return proof{Delivery: id, Signed: true}, err
}

func (k Keys) verifyGitHub(h http.Header, body []byte) (proof, error) {
	value, err := single(h, githubSignature)
	if err != nil {
		return proof{}, err
	}
	digits, _ := strings.CutPrefix(value, "sha256=")
	given, err := hex.DecodeString(digits)
	if err != nil || len(given) != sha256.Size || digits == value {
		return proof{}, errors.New(githubSignature + " is not sha256= and 64 hexadecimal digits")
	}
	if !among(k.sums(body), given) {
		return proof{}, errors.New(githubSignature + " is not of this secret and body")
	}
	id, err := optional(h, githubDelivery) // others who sign as GitHub does have none
	return proof{Delivery: id}, err
}

func (k Keys) verifyStandard(h http.Header, body []byte, now time.Time) (proof, error) {
	id, err := identity(h, standardID)
	if err != nil {
		return proof{}, err
	}
	stamp, err := single(h, standardTime)
	if err != nil {
		return proof{}, err
	}
	signatures, err := single(h, standardSign)
	if err != nil {
		return proof{}, err
	}
	seconds, err := strconv.ParseUint(stamp, 10, 40)
	if err != nil {
		return proof{}, errors.New(standardTime + " is not a number of seconds")
	}
	if away := now.Sub(time.Unix(int64(seconds), 0)); away.Abs() > tolerance {
		return proof{}, fmt.Errorf("%s is %s away from the clock: want at most %s", standardTime, away.Abs().Round(time.Second), tolerance)
	}
	wanted := k.sums([]byte(id+"."+stamp+"."), body) // once, however many signatures there are
	for signature := range strings.FieldsSeq(signatures) {
		version, text, _ := strings.Cut(signature, ",")
		given, err := base64.StdEncoding.DecodeString(text)
		if version == "v1" && err == nil && among(wanted, given) {
			return proof{Delivery: id, Signed: true}, nil
		}
	}
	return proof{}, errors.New(standardSign + " has no v1 signature of this secret and message")
}

// sums returns the signature of the parts by each key.
func (k Keys) sums(parts ...[]byte) (list [][]byte) {
	for _, key := range k.Values {
		list = append(list, sum(key, parts...))
	}
	return list
}

// among reports whether a signature is one of a list.
func among(list [][]byte, signature []byte) bool {
	found := false
	for _, s := range list {
		found = hmac.Equal(s, signature) || found
	}
	return found
}

func sum(key []byte, parts ...[]byte) []byte {
	mac := hmac.New(sha256.New, key)
	for _, part := range parts {
		mac.Write(part)
	}
	return mac.Sum(nil)
}

// Sign sets the headers with which a sender of the family would send a body, with the first of the keys.
func (k Keys) Sign(h http.Header, id string, body []byte, now time.Time) {
	key := k.Values[0]
	switch k.Family {
	case job.GitHub:
		h.Set(githubDelivery, id)
		h.Set(githubSignature, "sha256="+hex.EncodeToString(sum(key, body)))
	case job.Standard:
		stamp := strconv.FormatInt(now.Unix(), 10)
		h.Set(standardID, id)
		h.Set(standardTime, stamp)
		h.Set(standardSign, "v1,"+base64.StdEncoding.EncodeToString(sum(key, []byte(id+"."+stamp+"."), body)))
	default:
		h.Set(idempotencyKey, id)
		h.Set(authorization, "Bearer "+string(key))
	}
}

// single returns the value of a header that must occur once.
func single(h http.Header, name string) (string, error) {
	switch values := h.Values(name); {
	case len(values) == 0 || values[0] == "":
		return "", fmt.Errorf("no %s header", name)
	case len(values) > 1:
		return "", fmt.Errorf("%d %s headers", len(values), name)
	default:
		return values[0], nil
	}
}

// optional is identity, "" without the header.
func optional(h http.Header, name string) (string, error) {
	if len(h.Values(name)) == 0 {
		return "", nil
	}
	return identity(h, name)
}

// identity returns the value of the header that identifies a delivery.
func identity(h http.Header, name string) (string, error) {
	id, err := single(h, name)
	if err != nil {
		return "", err
	}
	if len(id) > longestID || strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("%s is not a word of at most %d ASCII characters", name, longestID)
	}
	return id, nil
}
