package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/payload"
)

// longestID bounds the identity of a delivery, in bytes. GitHub's have 36.
const longestID = 256

// Keys is how requests to one hook are signed: the scheme, and one key or, while the secret is being changed, several. Without a key no
// signature is valid.
type Keys struct {
	Scheme job.Scheme
	Values [][]byte

	long bool // a webhook of the server signs with SHA-512, so every refusal takes as long as one of its own
}

// proof is what a valid signature says about a request.
type proof struct {
	Delivery string // the identity of the delivery, the same when the sender sends it again; "" if the sender gives none
	Signed   bool   // others than the holder of the key cannot send the request again under another Delivery, or without one
}

// verify returns the proof of a request with this header and body. The error says what is wrong; it is for the owner, not for the
// sender. Headers are taken only if they occur once. The body is not parsed before its signature is valid.
func (k Keys) verify(h http.Header, body []byte, now time.Time) (proof, error) {
	v := verification{Keys: k, header: h, body: body, now: now, sums: map[job.Hash]int{}}
	return v.result()
}

// verification is the check of one request.
type verification struct {
	Keys

	header http.Header
	body   []byte
	now    time.Time
	sums   map[job.Hash]int // how many signatures of the body were computed
}

func (v *verification) result() (proof, error) {
	p, err := v.run()
	if err != nil {
		v.level()
	}
	return p, err
}

// level computes signatures until their number is the one of every other refusal, so that the time of a refusal tells neither the scheme
// of the webhook nor what is wrong, nor whether there is such a webhook.
func (v *verification) level() {
	functions := []job.Hash{job.SHA256}
	if v.long || v.Scheme.Hash == job.SHA512 {
		functions = append(functions, job.SHA512)
	}
	for _, function := range functions {
		for v.sums[function] < job.MaxSecrets {
			v.sum(function, nil, []string{"", ""})
		}
	}
}

func (v *verification) run() (proof, error) {
	s := v.Scheme
	value, err := single(v.header, s.Header)
	if err != nil {
		return proof{}, err
	}
	if s.Kind == job.Token {
		if err := v.token(value); err != nil {
			return proof{}, err
		}
		id, err := v.id(nil)
		return proof{Delivery: id, Signed: true}, err
	}
	parts := split(value, s.Separator)
	stamp, err := v.stamp(parts)
	if err != nil {
		return proof{}, err
	}
	id, inHeader := "", s.ID.Body == ""
	if inHeader {
		if id, err = v.id(parts); err != nil {
			return proof{}, err
		}
	}
	if err := v.signature(parts, around(s.Signed, id, stamp)); err != nil {
		return proof{}, err
	}
	if s.Timestamp.Body != "" {
		if stamp, err = inBody(v.body, s.Timestamp.Body); err == nil {
			err = v.fresh(stamp)
		}
		if err != nil {
			return proof{}, err
		}
	}
	if !inHeader {
		id, err = v.id(nil)
	}
	return proof{Delivery: id, Signed: id != "" && (!inHeader || s.Fills(job.IDPlace))}, err
}

// token compares the secret that a header has. It compares hashes, which hides the length of the secret.
func (v *verification) token(value string) error {
	token, ok := after(value, v.Scheme.Prefix)
	if !ok {
		return fmt.Errorf("%s does not begin with %q", v.Scheme.Header, v.Scheme.Prefix)
	}
	given := sha256.Sum256([]byte(token))
	valid := 0
	for _, key := range v.Values {
		want := sha256.Sum256(key)
		valid |= subtle.ConstantTimeCompare(given[:], want[:])
	}
	if valid == 0 {
		return errors.New("the token is not the secret")
	}
	return nil
}

// signature checks the signatures of a header, of which one valid one is enough. around is what is signed before and after the body.
func (v *verification) signature(parts, around []string) error {
	s := v.Scheme
	wanted := make([][]byte, 0, job.MaxSecrets)
	for _, key := range v.Values { // once, however many signatures there are
		wanted = append(wanted, v.sum(s.Hash, key, around))
	}
	size := hasher(s.Hash)().Size()
	valid, readable := false, false
	for _, part := range parts {
		text, ok := after(part, s.Prefix)
		if !ok {
			continue
		}
		given, err := decode(s.Encoding, text)
		if err != nil || len(given) != size {
			continue
		}
		readable = true
		for _, want := range wanted {
			valid = hmac.Equal(want, given) || valid
		}
	}
	switch {
	case valid:
		return nil
	case s.Separator != "":
		return fmt.Errorf("%s has no %s… signature of this secret and message", s.Header, s.Prefix)
	case !readable && s.Encoding == job.Hex:
		return fmt.Errorf("%s is not %s%d hexadecimal digits", s.Header, with(s.Prefix), hex.EncodedLen(size))
	case !readable:
		return fmt.Errorf("%s is not %s%d bytes in base64", s.Header, with(s.Prefix), size)
	}
	return errors.New(s.Header + " is not of this secret and body")
}

func with(prefix string) string {
	if prefix == "" {
		return ""
	}
	return prefix + " and "
}

// stamp returns the timestamp that is in a header. It is near the clock.
func (v *verification) stamp(parts []string) (string, error) {
	from := v.Scheme.Timestamp
	if from.Header == "" && from.Part == "" {
		return "", nil
	}
	stamp, err := v.from(from, parts)
	if err != nil {
		return "", err
	}
	return stamp, v.fresh(stamp)
}

// fresh returns an error if a timestamp is too far from the clock.
func (v *verification) fresh(stamp string) error {
	s := v.Scheme
	name := where(s.Header, s.Timestamp)
	const bits = 50 // so that the time fits into an int64 in either unit
	n, err := strconv.ParseUint(stamp, 10, bits)
	if err != nil {
		return fmt.Errorf("%s is not a number of %s", name, map[job.Unit]string{job.Seconds: "seconds", job.Milliseconds: "milliseconds"}[s.Unit])
	}
	at := time.Unix(int64(n), 0)
	if s.Unit == job.Milliseconds {
		at = time.UnixMilli(int64(n))
	}
	if away := v.now.Sub(at); away.Abs() > s.Tolerance {
		return fmt.Errorf("%s is %s away from the clock: want at most %s", name, away.Abs().Round(time.Second), s.Tolerance)
	}
	return nil
}

// id returns the identity of the delivery; "" if the sender gives none, which is an error if it is signed. What is not an id in a body
// counts as none: the body is checked later, by the fields of the webhook.
func (v *verification) id(parts []string) (id string, err error) {
	s := v.Scheme
	switch from := s.ID; {
	case from == job.Source{}:
		return "", nil
	case from.Body != "":
		if id, err = inBody(v.body, from.Body); err != nil || !isID(id) {
			id = ""
		}
		return id, nil
	case from.Header != "" && len(v.header.Values(from.Header)) == 0 && !s.Fills(job.IDPlace):
		return "", nil
	default:
		id, err = v.from(from, parts)
	}
	if err == nil && !isID(id) {
		err = fmt.Errorf("%s is not a word of at most %d ASCII characters", where(s.Header, s.ID), longestID)
	}
	return id, err
}

func isID(text string) bool {
	return len(text) <= longestID && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

// from returns the value of a header, or of a part of the signature's header, that must occur once.
func (v *verification) from(s job.Source, parts []string) (string, error) {
	if s.Header != "" {
		return single(v.header, s.Header)
	}
	var found []string
	for _, part := range parts {
		if value, ok := after(part, s.Part); ok {
			found = append(found, value)
		}
	}
	if len(found) != 1 || found[0] == "" {
		return "", fmt.Errorf("%s has %d parts %s, want one", v.Scheme.Header, len(found), s.Part)
	}
	return found[0], nil
}

// where names a source for the owner.
func where(header string, s job.Source) string {
	if s.Part != "" {
		return s.Part + " of " + header
	}
	return s.Header + s.Body
}

// inBody returns the text or the number at a pointer into a body, "" if there is none.
func inBody(body []byte, pointer string) (string, error) {
	value, found, err := payload.At(body, pointer)
	switch v := value.(type) {
	case string:
		return v, err
	case json.Number:
		return v.String(), err
	}
	if err == nil && found && value != nil {
		err = errors.New(pointer + " is neither text nor a number")
	}
	return "", err
}

// around fills in what is signed, except for the body, and returns the text before and after it. All placeholders are filled in one
// pass: a value that looks like a placeholder stays as it is.
func around(signed, id, stamp string) []string {
	before, after, _ := strings.Cut(signed, job.BodyPlace)
	values := strings.NewReplacer(job.IDPlace, id, job.TimestampPlace, stamp)
	return []string{values.Replace(before), values.Replace(after)}
}

// sum returns the signature of the body, and of what is around it.
func (v *verification) sum(function job.Hash, key []byte, around []string) []byte {
	v.sums[function]++
	mac := hmac.New(hasher(function), key)
	mac.Write([]byte(around[0]))
	mac.Write(v.body)
	mac.Write([]byte(around[1]))
	return mac.Sum(nil)
}

func hasher(function job.Hash) func() hash.Hash {
	if function == job.SHA512 {
		return sha512.New
	}
	return sha256.New
}

func decode(encoding job.Encoding, text string) ([]byte, error) {
	if encoding == job.Base64 {
		return base64.StdEncoding.DecodeString(text)
	}
	return hex.DecodeString(text)
}

// split returns the parts of a header.
func split(value, separator string) (parts []string) {
	if separator == "" {
		return []string{value}
	}
	for part := range strings.SplitSeq(value, separator) {
		parts = append(parts, strings.TrimSpace(part))
	}
	return parts
}

// after returns the text after a prefix, whose case is ignored, and reports whether it is there.
func after(text, prefix string) (string, bool) {
	if len(text) < len(prefix) || !strings.EqualFold(text[:len(prefix)], prefix) {
		return text, false
	}
	return text[len(prefix):], true
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
