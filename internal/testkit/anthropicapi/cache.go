package anthropicapi

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"sync"
	"time"
)

// Cache counts the tokens of requests as a service with a prompt cache does: a prefix that an earlier request has marked and that has not
// expired is read, the rest up to the last mark is written, and what follows that is neither. Messages are read only if the model is to
// think as the earlier request said. Times are those of Now.
type Cache struct {
	Now func() time.Time

	mu      sync.Mutex
	expires map[[sha256.Size]byte]time.Time // of prefixes
}

// lookback is how many blocks before a mark the service looks for an earlier one.
const lookback = 20

// segment is a part of a request that a prefix may end with.
type segment struct {
	tokens int               // of the prefix
	hash   [sha256.Size]byte // of the prefix
	life   time.Duration     // of the mark at its end; 0: there is none
}

// Usage returns what a request uses, with an answer of so many tokens.
func (c *Cache) Usage(q Request, out int) Usage {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.expires == nil {
		c.expires = map[[sha256.Size]byte]time.Time{}
	}
	now, all := c.Now(), segments(q)
	read, marked := 0, 0
	for i, s := range all {
		if s.life == 0 {
			continue
		}
		marked = s.tokens
		for j := i; j >= max(0, i-lookback); j-- {
			if c.expires[all[j].hash].After(now) {
				read = max(read, all[j].tokens)
				break
			}
		}
	}
	for _, s := range all {
		if s.life > 0 {
			c.expires[s.hash] = now.Add(s.life)
		}
	}
	total := 1
	if len(all) > 0 {
		total = max(1, all[len(all)-1].tokens)
	}
	return Usage{In: total - max(marked, read), CacheRead: read, CacheWrite: max(0, marked-read), Out: out}
}

// segments returns the prefixes of a request that end with a tool, a part of the system prompt, or a block of a message.
func segments(q Request) (all []segment) {
	var body struct {
		Tools    []json.RawMessage `json:"tools"`
		System   []json.RawMessage `json:"system"`
		Thinking json.RawMessage   `json:"thinking"`
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if json.Unmarshal(q.Raw, &body) != nil {
		return nil
	}
	hash, size := sha256.New(), 0
	add := func(role string, block json.RawMessage) {
		block, life := unmarked(block)
		_, _ = hash.Write([]byte(role))
		_, _ = hash.Write(block)
		size += len(block)
		s := segment{tokens: size / bytesPerToken, life: life}
		hash.Sum(s.hash[:0])
		all = append(all, s)
	}
	for _, block := range body.Tools {
		add("tool", block)
	}
	for _, block := range body.System {
		add("system", block)
	}
	_, _ = hash.Write(body.Thinking)
	for _, m := range body.Messages {
		var blocks []json.RawMessage
		if json.Unmarshal(m.Content, &blocks) != nil {
			blocks = []json.RawMessage{m.Content}
		}
		for _, block := range blocks {
			add(m.Role, block)
		}
	}
	return all
}

// unmarked returns a block without its mark, and how long what ends with it is kept.
func unmarked(block json.RawMessage) (json.RawMessage, time.Duration) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(block, &fields) != nil {
		return block, 0
	}
	life := time.Duration(0)
	switch mark := fields["cache_control"]; {
	case bytes.Contains(mark, []byte(`"1h"`)):
		life = time.Hour
	case mark != nil:
		life = 5 * time.Minute
	}
	delete(fields, "cache_control")
	plain, _ := json.Marshal(fields)
	return plain, life
}
