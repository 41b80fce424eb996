// Package telegramapi is a Bot API server of Telegram for tests, made from https://core.telegram.org/bots/api: updates stay until a call
// with a later offset, a chat that is written to too fast is refused with 429, and what the documentation does not allow with 400.
package telegramapi

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Token is the token of the bot, and Bot its id. Its name is @ollimbot.
const (
	Token = "123456:TEST-token"
	Bot   = 123456
)

// Object is an object of the API.
type Object = map[string]any

// Server is the server. Its fields are for reading with Do.
type Server struct {
	URL string

	mu       sync.Mutex
	changed  chan struct{} // closed at each change
	updates  []Object
	next     int
	message  int
	answered map[string]bool

	Messages map[string]*Message // by CHAT.ID
	Calls    []string            // methods, in order, without getUpdates
	Polls    []int               // offsets of getUpdates
	Answers  []string            // presses that were answered
	Files    map[string]string   // contents, by file_id
	Floods   map[string]int      // how many calls of a method are still to be refused with 429
	Broken   map[string]int      // how many are still to be refused with 502 after they were carried out
	Revoked  bool                // the token is no longer valid
}

// Message is a message of the bot, as it is.
type Message struct {
	Chat, ID int
	Thread   int
	Text     string
	Entities []any
	Keyboard []any
	ReplyTo  int
	Kind     string // document, photo or voice; "" for a text
	File     string // its content
	Name     string // of the file
	Reaction string // of the bot
	Silent   bool
}

// Start starts a server, which ends with the test.
func Start(t testing.TB) *Server {
	s := &Server{
		changed: make(chan struct{}), next: 1000, message: 1, answered: map[string]bool{}, Messages: map[string]*Message{},
		Files: map[string]string{}, Floods: map[string]int{}, Broken: map[string]int{},
	}
	server := httptest.NewServer(s)
	s.URL = server.URL
	t.Cleanup(server.Close)
	return s
}

// Do is alone with the server. Who waits for a change is woken.
func (s *Server) Do(what func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	what()
	close(s.changed)
	s.changed = make(chan struct{})
}

// Wait waits until a condition holds.
func (s *Server) Wait(t testing.TB, what string, until func() bool) {
	t.Helper()
	late := time.After(5 * time.Minute) // a busy machine is slow
	for {
		s.mu.Lock()
		ok, changed := until(), s.changed
		s.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-late:
			t.Fatal("not within five minutes:", what)
		}
	}
}

// Say adds an update with a message of a user in private, or in the chat of fields. It returns the id of the message.
func (s *Server) Say(user int, fields Object) (id int) {
	s.Do(func() {
		s.message++
		id = s.message
		m := Object{
			"message_id": id, "date": 1, "from": Object{"id": user, "is_bot": false, "first_name": "Ann"},
			"chat": Object{"id": user, "type": "private"},
		}
		for k, v := range fields {
			m[k] = v
		}
		s.add("message", m)
	})
	return id
}

// Edit adds an update with the new form of a message of a user in private.
func (s *Server) Edit(user, id int, fields Object) {
	s.Do(func() {
		m := Object{
			"message_id": id, "date": 1, "edit_date": 2, "from": Object{"id": user, "is_bot": false, "first_name": "Ann"},
			"chat": Object{"id": user, "type": "private"},
		}
		for k, v := range fields {
			m[k] = v
		}
		s.add("edited_message", m)
	})
}

// Press adds an update with the press of a button.
func (s *Server) Press(user int, message, data, id string) {
	s.Do(func() {
		m := s.Messages[message]
		s.add("callback_query", Object{
			"id": id, "from": Object{"id": user, "is_bot": false, "first_name": "Ann"}, "chat_instance": "1", "data": data,
			"message": Object{
				"message_id": m.ID, "date": 1, "text": m.Text, "chat": Object{"id": m.Chat, "type": "private"},
				"reply_markup": Object{"inline_keyboard": m.Keyboard},
			},
		})
	})
}

func (s *Server) add(kind string, what Object) {
	s.next++
	s.updates = append(s.updates, Object{"update_id": s.next, kind: what})
}

// Open returns how many updates are not confirmed.
func (s *Server) Open() int { return len(s.updates) }

// ServeHTTP answers a call.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if path, ok := strings.CutPrefix(r.URL.Path, "/file/bot"+Token+"/files/"); ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		_, _ = io.WriteString(w, s.Files[path])
		return
	}
	method, ok := strings.CutPrefix(r.URL.Path, "/bot"+Token+"/")
	s.mu.Lock()
	revoked := s.Revoked
	s.mu.Unlock()
	if !ok || revoked {
		answer(w, Object{"ok": false, "error_code": 401, "description": "Unauthorized"})
		return
	}
	in, err := read(r)
	if err != nil {
		answer(w, refuse("%v", err))
		return
	}
	if method == "getUpdates" {
		answer(w, s.poll(r, in))
		return
	}
	var out Object
	broken := false
	s.Do(func() {
		s.Calls = append(s.Calls, method)
		if s.Floods[method] > 0 {
			s.Floods[method]--
			out = Object{
				"ok": false, "error_code": 429, "description": "Too Many Requests: retry after 1", "parameters": Object{"retry_after": 1},
			}
			return
		}
		out = s.call(method, in)
		if broken = s.Broken[method] > 0; broken {
			s.Broken[method]--
		}
	})
	if broken {
		http.Error(w, "<html>502 Bad Gateway</html>", http.StatusBadGateway)
		return
	}
	answer(w, out)
}

// read returns the parameters of a call. The content of a file is under its field, its name under "name".
func read(r *http.Request) (in Object, err error) {
	in = Object{}
	if r.Header.Get("Content-Type") == "application/json" {
		decoder := json.NewDecoder(r.Body)
		decoder.UseNumber()
		if err = decoder.Decode(&in); err == io.EOF { //nolint:errorlint // Decode returns it as it is
			err = nil
		}
		return in, err
	}
	form, err := r.MultipartReader()
	if err != nil {
		return nil, err
	}
	for {
		part, err := form.NextPart()
		if err == io.EOF { //nolint:errorlint // NextPart returns it as it is
			return in, nil
		}
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(part)
		if err != nil {
			return nil, err
		}
		var value any
		switch decoder := json.NewDecoder(strings.NewReader(string(text))); {
		case part.FileName() != "":
			in["name"] = part.FileName()
			value = string(text)
		default:
			decoder.UseNumber()
			if decoder.Decode(&value) != nil {
				value = string(text)
			}
		}
		in[part.FormName()] = value
	}
}

func answer(w http.ResponseWriter, out Object) {
	w.Header().Set("Content-Type", "application/json")
	if code, failed := out["error_code"].(int); failed {
		w.WriteHeader(code)
	}
	_ = json.NewEncoder(w).Encode(out)
}

// poll is getUpdates: an update before the offset is confirmed and forgotten.
func (s *Server) poll(r *http.Request, in Object) Object {
	offset, timeout := number(in["offset"]), number(in["timeout"])
	s.Do(func() {
		s.Polls = append(s.Polls, offset)
		s.updates = slices.DeleteFunc(s.updates, func(u Object) bool { return u["update_id"].(int) < offset })
	})
	late := time.After(time.Duration(timeout) * time.Second)
	for {
		s.mu.Lock()
		list, changed := slices.Clone(s.updates[:min(len(s.updates), 100)]), s.changed
		s.mu.Unlock()
		if len(list) > 0 {
			return Object{"ok": true, "result": list}
		}
		select {
		case <-changed:
		case <-late:
			return Object{"ok": true, "result": []any{}}
		case <-r.Context().Done():
			return Object{"ok": true, "result": []any{}}
		}
	}
}

func number(v any) int {
	switch v := v.(type) {
	case json.Number:
		n, _ := strconv.Atoi(v.String())
		return n
	case string:
		n, _ := strconv.Atoi(v)
		return n
	}
	return 0
}
