package webhook

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/state/job"
)

// Sign sets the headers with which a sender would send a body, with the first of the keys. It returns the body, which has the timestamp
// and, if it had none, the id if the scheme has them there. The error says why they cannot be there.
func (k Keys) Sign(h http.Header, id string, body []byte, now time.Time) ([]byte, error) {
	s, stamp := k.Scheme, strconv.FormatInt(now.Unix(), 10)
	if s.Unit == job.Milliseconds {
		stamp = strconv.FormatInt(now.UnixMilli(), 10)
	}
	var err error
	if s.Timestamp.Body != "" && !has(body, s.Timestamp.Body, stamp) {
		if body, err = put(body, s.Timestamp.Body, json.RawMessage(stamp)); err != nil {
			return nil, err
		}
	}
	if s.ID.Body != "" && !has(body, s.ID.Body, "") {
		text, _ := json.Marshal(id) // text: it cannot fail
		if body, err = put(body, s.ID.Body, text); err != nil {
			return nil, err
		}
	}
	parts := []string{k.proof(body, id, stamp)}
	for _, value := range []struct {
		job.Source
		text string
	}{{s.ID, id}, {s.Timestamp, stamp}} {
		if value.Header != "" {
			h.Set(value.Header, value.text)
		}
		if value.Part != "" {
			parts = append([]string{value.Part + value.text}, parts...)
		}
	}
	h.Set(s.Header, strings.Join(parts, s.Separator))
	return body, nil
}

// has reports whether a body has a text at a pointer; any text or number if the wanted one is "".
func has(body []byte, pointer, want string) bool {
	text, err := inBody(body, pointer)
	return err == nil && text != "" && (want == "" || text == want)
}

// proof returns the text that proves that the sender knows the first key.
func (k Keys) proof(body []byte, id, stamp string) string {
	s, key := k.Scheme, k.Values[0]
	if s.Kind == job.Token {
		return s.Prefix + string(key)
	}
	v := verification{Keys: k, body: body, sums: map[job.Hash]int{}}
	sum := v.sum(s.Hash, key, around(s.Signed, id, stamp))
	if s.Encoding == job.Base64 {
		return s.Prefix + base64.StdEncoding.EncodeToString(sum)
	}
	return s.Prefix + hex.EncodeToString(sum)
}

// put returns a JSON object with a value at a pointer. Only the objects on the way are written anew.
func put(body []byte, pointer string, value json.RawMessage) ([]byte, error) {
	part, rest, deeper := strings.Cut(pointer[1:], "/")
	key := strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
	object := map[string]json.RawMessage{}
	if err := json.Unmarshal(body, &object); err != nil || object == nil {
		return nil, fmt.Errorf("the payload is not a JSON object, which has %s for this signature", pointer)
	}
	if deeper {
		below := object[key]
		if len(below) == 0 {
			below = []byte("{}")
		}
		var err error
		if value, err = put(below, "/"+rest, value); err != nil {
			return nil, err
		}
	}
	object[key] = value
	return json.Marshal(object)
}
