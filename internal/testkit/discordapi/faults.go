package discordapi

import (
	"slices"
	"time"
)

// Emit sends an event of any name, with any content, to the bot, whatever intents it has.
func (s *Server) Emit(name string, d any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dispatch(name, d, 0)
	s.note()
}

// Meet sets what the next connections of the bot meet, one each; then they are welcome again.
func (s *Server) Meet(greetings ...Greeting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gate.next = append(s.gate.next, greetings...)
}

// Close closes the bot's connection with a code of Discord's; 0 ends it without a word. Codes that end the session make it unknown.
func (s *Server) Close(code int) {
	s.mu.Lock()
	c := s.here()
	if c != nil && (code == 4004 || code == 4007 || code == 4009 || code >= 4010 && code <= 4014) {
		c.session.ended = true
	}
	s.mu.Unlock()
	if c != nil {
		_ = c.closeWith(code)
	}
}

// here is the connection of the current session, nil if there is none. The caller holds mu.
func (s *Server) here() *conn {
	if s.gate.current == nil {
		return nil
	}
	return s.gate.current.conn
}

// Op sends an opcode without an event: 7 asks the bot to reconnect, 9 with d makes its session invalid, 1 asks for a heartbeat.
func (s *Server) Op(op int, d any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.here()
	if c == nil {
		return
	}
	if op == 9 && d == false {
		c.session.ended = true
	}
	c.sendOp(op, d)
}

// Lose plays a fault that ends the bot's connection, and waits for that end. The bot may have another connection by then.
func (s *Server) Lose(fault func()) {
	s.t.Helper()
	s.mu.Lock()
	c := s.here()
	s.mu.Unlock()
	fault()
	s.Wait("the end of the connection", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return !s.gate.conns[c]
	})
}

// Repeat sends the last events of the session again, with their old numbers.
func (s *Server) Repeat(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.here()
	if c == nil {
		return
	}
	events := c.session.events
	for _, data := range events[max(0, len(events)-n):] {
		c.send(data)
	}
}

// Silence makes the gateway accept everything and answer nothing, while its connections stay open. Events are kept for a resume. The
// end of the silence is for new connections: a bot that stays on an old one hears nothing more.
func (s *Server) Silence(silent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gate.silent = silent
	for c := range s.gate.conns {
		c.silent = c.silent || silent
	}
}

// Limit sets what Discord says of the sessions that may still begin, and when there are more.
func (s *Server) Limit(remaining int, reset time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gate.left = &startLimit{remaining, reset}
}

// Forget makes the bot's session unknown, as after a long absence.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, old := range s.gate.sessions {
		old.ended = true
	}
}

// Connected reports whether the bot has a session and is there.
func (s *Server) Connected() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.here()
	return c != nil && !c.silent
}

// Visits says how the bot used the gateway.
type Visits struct {
	Identified, Resumed, Heartbeats int
	Closes                          []int    // the codes with which the bot closed; 1006 is without one
	Paths                           []string // of the connections; a session is resumed at /ws/resume
}

// Visits returns how the bot has used the gateway so far.
func (s *Server) Visits() Visits {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Visits{s.gate.identified, s.gate.resumed, s.gate.heartbeats, slices.Clone(s.gate.closes), slices.Clone(s.gate.paths)}
}

// socket is the address of the gateway.
func (s *Server) socket(path string) string { return "ws" + s.http.URL[len("http"):] + path }
