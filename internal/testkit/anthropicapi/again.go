package anthropicapi

import (
	"net/http"
	"strings"
	"sync"

	"github.com/ollim/ollim/internal/testkit/apiserver"
)

// refusals are the latest request of claude that a reply of the test has refused with 400, and that reply. The command (2.1.330) repeats such
// a request with fewer betas, several times; the service refuses what it does not accept each time.
type refusals struct {
	mu   sync.Mutex
	said string
	with Reply
}

// find returns the reply to a request that was refused before.
func (r *refusals) find(q Request) (Reply, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.with, r.said != "" && r.said == conversation(q)
}

func (r *refusals) keep(q Request, with Reply) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.said = ""; with.Status == http.StatusBadRequest && strings.HasPrefix(q.Header.Get("User-Agent"), "claude-cli/") {
		r.said, r.with = conversation(q), with
	}
}

// conversation is what the user and the model have said in one session of claude.
func conversation(q Request) string {
	messages := []Message{{Role: q.Header.Get("X-Claude-Code-Session-Id")}}
	for _, m := range q.Messages {
		if m.Role != "system" {
			messages = append(messages, m)
		}
	}
	return string(apiserver.Encode(messages))
}
