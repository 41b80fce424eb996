package request

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/ollim/ollim/internal/platform/store"
)

// Sent is a request by the parts that a service caches: the tools, the parts of the system prompt, and the messages, in this order.
type Sent struct {
	Exchange

	Model    string // the model that was asked
	Thinking string // how much it was asked to think, as JSON; "" if the request does not say it

	parts []string // names of the parts' contents; parts with the same content have the same name
	last  int      // bytes of the last part
}

// Sent returns the requests of a run. It omits those whose objects cannot be read.
func (b Book) Sent(run string) (list []Sent, err error) {
	exchanges, err := b.Exchanges(run)
	if err != nil {
		return nil, err
	}
	n := 0
	for e, err := range store.Lines[line](b.Home.Requests(run), nil) {
		if err != nil {
			return nil, err
		}
		if e.Job || n == len(exchanges) {
			continue
		}
		s := Sent{Exchange: exchanges[n]}
		if n++; e.Whole == "" && s.read(e, b.Objects.Get) == nil {
			list = append(list, s)
		}
	}
	return list, nil
}

func (s *Sent) read(e line, get func(hash string) ([]byte, error)) error {
	var head struct {
		Model    string          `json:"model"`
		Thinking json.RawMessage `json:"thinking"`
	}
	if err := json.Unmarshal(e.Body, &head); err != nil {
		return err
	}
	s.Model, s.Thinking = head.Model, string(head.Thinking)
	refs, err := sequence(e.Body, func(r ref) ([]ref, error) { return r.expanded(get) })
	for _, r := range refs {
		s.parts = append(s.parts, r.name())
	}
	if err == nil && len(refs) > 0 {
		var content []byte
		content, err = refs[len(refs)-1].content(get)
		s.last = len(content)
	}
	return err
}

// name returns a text that is the same for references to the same content. It ignores marks of the cache.
func (r ref) name() string {
	name := r.Object
	for _, i := range r.Insert {
		if i.Base64 != "" {
			name += "+" + i.Base64
		}
	}
	return name
}

// fewTokens is the length of a beginning, in tokens, below which some services do not cache it.
const fewTokens = 4096

// PaidAgain returns how many tokens of the beginning of a request were not read from the service's cache, although an earlier request had
// put them there and the cache's life had not passed: 0 if at least half of them were read, or they are few. Two requests have the same
// beginning if they differ only after the earlier one's last message, or only in that message and after it.
func (s Sent) PaidAgain(earlier Sent, life time.Duration, bytesPerToken int) int {
	before, now := earlier.Answer, s.Answer
	if before == nil || now == nil || before.Usage == nil || now.Usage == nil || s.Model != earlier.Model {
		return 0
	}
	if since := s.At.Sub(earlier.At.Add(time.Duration(before.First) * time.Millisecond)); since < 0 || since >= life {
		return 0
	}
	cached, shared := before.Usage.CacheRead+before.Usage.CacheWrite, len(earlier.parts)
	if shared > 0 && !s.begins(earlier.parts) {
		shared, cached = shared-1, cached-earlier.last/bytesPerToken
	}
	if shared < 2 || !s.begins(earlier.parts[:shared]) || cached < fewTokens || now.Usage.CacheRead >= cached/2 {
		return 0
	}
	return cached - now.Usage.CacheRead
}

func (s Sent) begins(parts []string) bool {
	return len(s.parts) >= len(parts) && slices.Equal(s.parts[:len(parts)], parts)
}
