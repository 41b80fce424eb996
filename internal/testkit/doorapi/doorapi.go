// Package doorapi is a scripted messenger behind a door, for tests. The door is a program that passes lines on between its standard streams
// and the messenger, so it can be killed at any time; the messenger stays.
package doorapi

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Variable is the environment variable that makes a test program the door of the messenger whose socket it names.
const Variable = "OLLIM_TEST_DOOR"

// Pipe is for TestMain: in a door it passes lines on until one side ends, and does not return.
func Pipe() {
	socket := os.Getenv(Variable)
	if socket == "" {
		return
	}
	c, err := net.Dial("unix", socket)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	go func() { _, _ = io.Copy(os.Stdout, c); os.Exit(0) }()
	_, _ = io.Copy(c, os.Stdin)
	os.Exit(0)
}

// Owner and Channel are the owner and the channel of his direct messages.
const (
	Owner   = "ann@example.org"
	Channel = "dm-1"
)

// Options say what the messenger is like.
type Options struct {
	NoIDs    bool           // messages that are received have no ids
	Able     map[string]any // in place of what it can do
	Disorder bool           // answers to requests come in any order

	// Answer returns another answer to a request of a type, nil for none; may be nil.
	Answer func(kind string, r, answer map[string]any) map[string]any
}

// Message is a message as it is.
type Message struct {
	ID, Text, ReplyTo string
	Own               bool // the bot's
	Buttons           []Button
	Reactions         []string
	Edits             int
	Taken             bool

	told bool // to a door
	raw  map[string]any
}

// Button is a button of a message.
type Button struct {
	ID       string `json:"id"`
	Label    string `json:"label"`
	Disabled bool   `json:"disabled"`
}

// Fault lets requests fail.
type Fault struct {
	Times   int
	Type    string // of the requests; "": all
	Applied bool   // it is carried out all the same
	Retry   float64
	Refused bool
}

// Server is a messenger.
type Server struct {
	t       testing.TB
	o       Options
	path    string
	mu      sync.Mutex
	changed *sync.Cond
	list    []*Message
	nonces  map[string]*Message
	faults  []Fault
	counts  map[string]int // requests by type
	on      *line
	doors   int
	last    int // the number of the newest message
	trace   strings.Builder
}

// line is the connection with one door.
type line struct {
	net.Conn

	written int
	told    map[int]*Message // by the number of the line
}

// New returns a messenger, which ends with the test.
func New(t testing.TB, o Options) *Server {
	t.Helper()
	dir, err := os.MkdirTemp("", "d") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{t: t, o: o, path: filepath.Join(dir, "s"), nonces: map[string]*Message{}, counts: map[string]int{}}
	s.changed = sync.NewCond(&s.mu)
	l, err := net.Listen("unix", s.path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close(); _ = os.RemoveAll(dir) })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go s.serve(&line{Conn: c, told: map[int]*Message{}})
		}
	}()
	return s
}

// Options returns what the messenger is like.
func (s *Server) Options() Options { return s.o }

// Env returns the variable that makes a test program the door.
func (s *Server) Env() string { return Variable + "=" + s.path }

func (s *Server) serve(l *line) {
	in := bufio.NewScanner(l)
	in.Buffer(nil, 2<<20)
	for in.Scan() {
		var r map[string]any
		if err := json.Unmarshal(in.Bytes(), &r); err != nil {
			s.t.Errorf("a line that is no JSON: %q", in.Text())
			continue
		}
		s.mu.Lock()
		s.hear(l, r)
		s.changed.Broadcast()
		s.mu.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note("end of a door")
	if s.on == l {
		s.on = nil
	}
	_ = l.Close()
}

// hear handles a line of ollim's.
func (s *Server) hear(l *line, r map[string]any) {
	ref, isRequest := r["ref"]
	switch kind := fmt.Sprint(r["type"]); {
	case kind != "start" && s.on != l: // a door that was killed, and whose last lines arrive after those of the next one
	case kind == "start":
		able := map[string]any{
			"text": 2000, "edits": 5, "span": 0.1, "typing": true, "reactions": true, "buttons": true, "nonces": true,
		}
		for key, value := range s.o.Able {
			able[key] = value
		}
		l.write(map[string]any{"type": "hello", "version": 1, "able": able, "owners": []string{Owner}, "direct": Channel, "new": []int{1}})
		s.on = l
		s.doors++
		s.note("door %d", s.doors)
		for _, m := range s.list {
			s.tell(m)
		}
	case kind == "taken":
		if number, ok := r["line"].(float64); ok && l.told[int(number)] != nil {
			m := l.told[int(number)]
			m.Taken = true
			s.note("taken %s", m.ID)
			if id, _ := r["id"].(string); !s.o.NoIDs && id != m.ID {
				s.t.Errorf("taken is %q of line %v, which has %q", id, number, m.ID)
			}
		}
	case kind == "pressed":
		s.counts["pressed "+fmt.Sprint(r["id"])]++
	case isRequest:
		s.counts[kind]++
		answer := s.answer(kind, r)
		answer["ref"] = ref
		if s.o.Answer != nil {
			if answer = s.o.Answer(kind, r, answer); answer == nil {
				return
			}
		}
		if !s.o.Disorder {
			l.write(answer)
			return
		}
		go func() {
			time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond) //nolint:gosec // any order
			s.mu.Lock()
			defer s.mu.Unlock()
			l.write(answer)
		}()
	}
}

func (l *line) write(o map[string]any) {
	text, _ := json.Marshal(o) //nolint:errchkjson // of what a test has made
	l.written++
	_ = l.SetWriteDeadline(time.Now().Add(time.Minute))
	_, _ = l.Write(append(text, '\n'))
}

// answer carries out a request.
func (s *Server) answer(kind string, r map[string]any) map[string]any {
	for i := range s.faults {
		f := &s.faults[i]
		if f.Times == 0 || f.Type != "" && f.Type != kind {
			continue
		}
		f.Times--
		if f.Applied {
			s.carryOut(kind, r)
		}
		return map[string]any{"type": "failed", "error": "a fault", "retry_after": f.Retry, "permanent": f.Refused, "refused": f.Refused}
	}
	return s.carryOut(kind, r)
}

func (s *Server) carryOut(kind string, r map[string]any) map[string]any {
	id, _ := r["id"].(string)
	m := s.find(id)
	done := map[string]any{"type": "done"}
	refused := func(why string) map[string]any {
		return map[string]any{"type": "failed", "error": why, "permanent": true, "refused": true}
	}
	known := []string{"send", "edit", "delete", "react", "typing", "fetch", "history", "quote", "ping"}
	switch channel, named := r["channel"]; {
	case !slices.Contains(known, kind):
		return refused("unknown request")
	case named && channel != Channel:
		return refused("there is no such channel")
	case kind == "fetch" && r["address"] == "no-such-file":
		return refused("there is no such file")
	case kind == "send":
		nonce, _ := r["nonce"].(string)
		if before := s.nonces[nonce]; before != nil && s.able("nonces") {
			return map[string]any{"type": "done", "id": before.ID, "text": before.Text}
		}
		m = &Message{ID: s.next(), Own: true, Taken: true}
		m.change(r)
		m.ReplyTo, _ = r["reply_to"].(string)
		s.list = append(s.list, m)
		s.nonces[nonce] = m
		done["id"] = m.ID
	case slices.Contains([]string{"edit", "react"}, kind) && m == nil:
		return refused("there is no message " + id)
	case kind == "edit":
		m.Edits++
		m.change(r)
	case kind == "delete":
		s.list = slices.DeleteFunc(s.list, func(o *Message) bool { return o == m })
	case kind == "react":
		emoji, _ := r["emoji"].(string)
		m.Reactions = slices.DeleteFunc(m.Reactions, func(e string) bool { return e == emoji })
		if remove, _ := r["remove"].(bool); !remove {
			m.Reactions = append(m.Reactions, emoji)
		}
	case kind == "history":
		after, _ := r["after"].(string)
		limit, _ := r["limit"].(float64)
		done["messages"] = s.history(after, int(limit))
	case kind == "quote" && m != nil:
		done["text"] = m.Text
	case kind == "fetch":
		path, _ := r["path"].(string)
		if err := os.WriteFile(path, []byte("content of "+fmt.Sprint(r["address"])), 0o600); err != nil {
			return map[string]any{"type": "failed", "error": err.Error()}
		}
	}
	return done
}

// note keeps what happens for Trace.
func (s *Server) note(format string, args ...any) { fmt.Fprintf(&s.trace, format+"\n", args...) }

// Trace returns what the doors were told, for a test that has failed.
func (s *Server) Trace() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.trace.String()
}

func (s *Server) next() string {
	s.last++
	return fmt.Sprint(s.last)
}

// history returns the oldest messages after one.
func (s *Server) history(after string, limit int) (list []map[string]any) {
	begin := 0
	for i, m := range s.list {
		if m.ID == after {
			begin = i + 1
		}
	}
	if after == "" {
		begin = max(0, len(s.list)-limit)
	}
	for _, m := range s.list[begin:] {
		if len(list) < limit {
			list = append(list, m.line())
		}
	}
	return list
}

// line returns a message as a door writes it.
func (m *Message) line() map[string]any {
	l := map[string]any{"type": "message", "id": m.ID, "channel": Channel, "direct": true, "text": m.Text, "unknown": map[string]any{"a": 1}}
	if m.Own {
		l["own"] = true
	} else {
		l["user"], l["name"] = Owner, "Ann"
	}
	if m.ReplyTo != "" {
		l["reply_to"] = m.ReplyTo
	}
	for key, value := range m.raw {
		l[key] = value
	}
	return l
}

func (s *Server) able(what string) bool {
	value, given := s.o.Able[what]
	return !given || value == true
}

// change changes a message as a request says.
func (m *Message) change(r map[string]any) {
	if text, ok := r["text"].(string); ok {
		m.Text = text
	}
	if list, ok := r["buttons"]; ok {
		text, _ := json.Marshal(list) //nolint:errchkjson // it was JSON
		m.Buttons = nil
		_ = json.Unmarshal(text, &m.Buttons)
	}
}

func (s *Server) find(id string) *Message {
	for _, m := range s.list {
		if m.ID == id {
			return m
		}
	}
	return nil
}

// tell delivers a message, if a door is there and it is not taken.
func (s *Server) tell(m *Message) {
	if s.on == nil || m.Taken {
		return
	}
	s.note("told %s", m.ID)
	raw := m.line()
	if s.o.NoIDs {
		delete(raw, "id")
		raw["again"] = m.told
	}
	s.on.write(raw)
	s.on.told[s.on.written] = m
	m.told = true
}
