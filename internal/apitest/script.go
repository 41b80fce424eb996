package apitest

import (
	"fmt"
	"slices"
)

type route struct {
	match  func(Request) bool
	answer func(Request) Reply
}

// Reply puts replies at the end of the queue.
func (s *Server) Reply(r ...Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, r...)
}

// Handle sets what answers when the queue is empty.
func (s *Server) Handle(f func(Request) Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handler = f
}

// On lets f answer every request that matches, before the queue is asked: for side requests, which come when they like.
func (s *Server) On(match func(Request) bool, f func(Request) Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.routes = append(s.routes, route{match, f})
}

// CompactReply sets the answer to claude's requests for a summary, from now on.
func (s *Server) CompactReply(r Reply) { s.On(Request.IsCompaction, func(Request) Reply { return r }) }

// Left is the number of replies in the queue that nobody has taken.
func (s *Server) Left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)
}

// next is what answers q. The functions run without the lock, so that they may wait and may ask the server.
func (s *Server) next(q Request) Reply {
	s.mu.Lock()
	routes, handler := slices.Clone(s.routes), s.handler
	s.mu.Unlock()
	for _, r := range slices.Backward(routes) {
		if r.match(q) {
			return r.answer(q)
		}
	}
	s.mu.Lock()
	if len(s.queue) > 0 {
		defer s.mu.Unlock()
		r := s.queue[0]
		s.queue = s.queue[1:]
		return r
	}
	s.mu.Unlock()
	if handler != nil {
		return handler(q)
	}
	return Reply{Text: "ok"}
}

// named gives the tool uses without an id theirs. Ids are unique in a conversation, and a resumed one may have begun on
// another server, so numbers that it holds already are left out.
func (s *Server) named(r Reply, q Request) Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.ToolUses = slices.Clone(r.ToolUses)
	for i := range r.ToolUses {
		for r.ToolUses[i].ID == "" {
			s.issued++
			if id := fmt.Sprintf("toolu_%d", s.issued); !q.uses(id) {
				r.ToolUses[i].ID = id
			}
		}
	}
	return r
}
