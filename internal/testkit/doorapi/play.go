package doorapi

import (
	"cmp"
	"slices"
	"time"
)

// Say lets the owner write a message, or somebody else if raw says so, and returns its id.
func (s *Server) Say(text string, raw map[string]any) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := &Message{ID: s.next(), Text: text, raw: raw}
	s.list = append(s.list, m)
	s.tell(m)
	return m.ID
}

// Repeat delivers some messages again, whether they are taken or not.
func (s *Server) Repeat(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.list[max(0, len(s.list)-n):] {
		if taken := m.Taken; !m.Own {
			m.Taken = false
			s.tell(m)
			m.Taken = taken
		}
	}
}

// Edit lets the author of a message replace its text.
func (s *Server) Edit(id, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.find(id); m != nil {
		m.Text = text
		s.changes("edited", m)
	}
}

// Delete lets the author of a message delete it.
func (s *Server) Delete(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.find(id); m != nil {
		s.list = slices.DeleteFunc(s.list, func(o *Message) bool { return o == m })
		s.changes("deleted", m)
	}
}

// changes writes a line about a message that was changed.
func (s *Server) changes(kind string, m *Message) {
	s.note("%s %s", kind, m.ID)
	if s.on != nil {
		line := m.line()
		line["type"] = kind
		s.on.write(line)
	}
}

// Line lets the door write any line.
func (s *Server) Line(o map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.on != nil {
		s.on.write(o)
	}
}

// Text lets the door write what need not be JSON.
func (s *Server) Text(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.on != nil {
		s.on.written++
		_, _ = s.on.Write([]byte(text + "\n"))
	}
}

// Fail lets the next requests fail, instead of those that an earlier call names.
func (s *Server) Fail(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.Times = cmp.Or(f.Times, 1)
	s.faults = []Fault{f}
}

// Doors returns how many doors have been connected.
func (s *Server) Doors() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.doors
}

// Count returns how many requests of a type there were, or with "pressed ID" how often a press was received.
func (s *Server) Count(kind string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[kind]
}

// Messages returns the messages as they are.
func (s *Server) Messages() (list []Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.list {
		list = append(list, *m)
	}
	return list
}

// Latest returns the newest message.
func (s *Server) Latest() Message {
	all := s.Messages()
	if len(all) == 0 {
		return Message{}
	}
	return all[len(all)-1]
}

// patience bounds the wait for an event that must come, on a busy machine too.
const patience = 5 * time.Minute

// Wait waits until something holds, and fails the test if that takes too long.
func (s *Server) Wait(what string, holds func() bool) {
	s.t.Helper()
	for began := time.Now(); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > patience {
			s.t.Fatalf("not in %s: %s: %+v", patience, what, s.Messages())
		}
	}
}
