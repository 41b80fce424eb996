package discordapi

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// gateway is the connections of the bot.
type gateway struct {
	sessions map[string]*session
	current  *session // that events go to: the one that was begun last; nil before the first
	conns    map[*conn]bool
	next     []Greeting // what the next connections meet
	silent   bool

	identified, resumed, heartbeats int
	closes                          []int    // codes with which the bot closed; 1006 is without a code
	paths                           []string // of the connections
	left                            *startLimit
}

// startLimit is what Discord says of the sessions that may still begin.
type startLimit struct {
	remaining int
	reset     time.Duration
}

// session is what a bot can resume.
type session struct {
	id     string
	events []json.RawMessage // whole frames, all since the beginning; their numbers begin at 1
	conn   *conn             // nil while the bot is away
	intent int
	ended  bool
}

// frame is one message of the gateway.
type frame struct {
	Op   int             `json:"op"`
	Data json.RawMessage `json:"d"`
}

// Greeting is what a connection meets.
type Greeting int

// The greetings. The fault happens at the connection, or in answer to IDENTIFY or RESUME.
const (
	welcome      Greeting = iota
	Refused               // 503 instead of a websocket
	Mute                  // the connection is accepted and nothing is said
	AskReconnect          // op 7 in answer to IDENTIFY or RESUME
	Invalid               // op 9, not resumable, in answer
	InvalidTrue           // op 9, resumable, in answer
)

// conn is one websocket. Frames are written by one goroutine at a time.
type conn struct {
	*websocket.Conn

	write    sync.Mutex
	greeting Greeting
	session  *session
	silent   bool        // it lives through a silence, and is never heard again
	sent     []time.Time // when the bot sent its last frames
}

func (c *conn) send(data []byte) {
	c.write.Lock()
	defer c.write.Unlock()
	_ = c.SetWriteDeadline(time.Now().Add(5 * time.Second))
	_ = c.WriteMessage(websocket.TextMessage, data)
}

func (c *conn) sendOp(op int, d any) {
	c.send(encode(map[string]any{"op": op, "d": d, "s": nil, "t": nil}))
}

// closeWith closes with a code; 0 ends the connection without a word. It returns false: the connection does not go on.
func (c *conn) closeWith(code int) bool {
	if code == 0 {
		reset(c.NetConn())
		return false
	}
	c.write.Lock()
	_ = c.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, "test"), time.Now().Add(time.Second))
	c.write.Unlock()
	time.AfterFunc(2*time.Second, func() { _ = c.Close() }) // the bot closes first, if it is well
	return false
}

func (g *gateway) closeAll(s *Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range g.conns {
		_ = c.Close()
	}
}

// connect serves a websocket.
func (s *Server) connect(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.gate.paths = append(s.gate.paths, r.URL.Path)
	greeting := welcome
	if len(s.gate.next) > 0 {
		greeting, s.gate.next = s.gate.next[0], s.gate.next[1:]
	}
	s.mu.Unlock()
	if greeting == Refused {
		http.Error(w, "no gateway", http.StatusServiceUnavailable)
		return
	}
	up := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
	ws, err := up.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	c := &conn{Conn: ws, greeting: greeting}
	s.mu.Lock()
	s.gate.conns[c] = true
	c.silent = s.gate.silent
	s.mu.Unlock()
	defer func() { s.leave(c); _ = ws.Close() }()
	if greeting != Mute {
		c.sendOp(10, map[string]any{"heartbeat_interval": s.options.Heartbeat.Milliseconds(), "_trace": []string{}})
	}
	for s.read(c) {
	}
}

// leave forgets a connection that has ended.
func (s *Server) leave(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.gate.conns, c)
	if c.session != nil && c.session.conn == c {
		c.session.conn = nil
	}
	s.note()
}

// read handles one frame of the bot. It reports whether the connection goes on.
func (s *Server) read(c *conn) bool {
	if c.greeting != Mute { // a bot that sends no heartbeats is dropped, later than a busy one closes
		_ = c.SetReadDeadline(time.Now().Add(10 * s.options.Heartbeat))
	}
	_, data, err := c.ReadMessage()
	if err != nil {
		s.noteClose(c, err)
		return false
	}
	var f frame
	switch {
	case len(data) > 4096 || json.Unmarshal(data, &f) != nil:
		return c.closeWith(4002)
	case s.tooMany(c):
		return c.closeWith(4008)
	}
	return s.take(c, f)
}

// tooMany reports whether the bot sent more than 120 frames in a minute, which is shorter when heartbeats are faster than Discord's.
func (s *Server) tooMany(c *conn) bool {
	now, window := time.Now(), time.Duration(float64(time.Minute)*float64(s.options.Heartbeat)/float64(discordBeat))
	c.sent = append(c.sent, now)
	for len(c.sent) > 0 && now.Sub(c.sent[0]) > window {
		c.sent = c.sent[1:]
	}
	return len(c.sent) > 120
}

// noteClose keeps how the bot closed. After 1000 and 1001 its session is over.
func (s *Server) noteClose(c *conn, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var closed *websocket.CloseError
	var timeout net.Error
	switch {
	case errors.As(err, &closed):
		s.gate.closes = append(s.gate.closes, closed.Code)
		if (closed.Code == 1000 || closed.Code == 1001) && c.session != nil {
			c.session.ended = true
		}
	case errors.As(err, &timeout) && timeout.Timeout():
	default:
		s.gate.closes = append(s.gate.closes, websocket.CloseAbnormalClosure)
	}
}

func (s *Server) take(c *conn, f frame) bool {
	s.mu.Lock()
	silent := c.silent
	s.mu.Unlock()
	if silent || c.greeting == Mute {
		return true
	}
	switch f.Op {
	case 1:
		s.mu.Lock()
		s.gate.heartbeats++
		s.note()
		s.mu.Unlock()
		c.sendOp(11, nil)
	case 2, 6:
		return s.begin(c, f)
	case 3: // presence
	default:
		return c.closeWith(4001)
	}
	return true
}

// begin answers IDENTIFY and RESUME.
func (s *Server) begin(c *conn, f frame) bool {
	var in struct {
		Token   string `json:"token"`
		Session string `json:"session_id"`
		Seq     int    `json:"seq"`
		Intents *int   `json:"intents"`
	}
	switch {
	case json.Unmarshal(f.Data, &in) != nil:
		return c.closeWith(4002)
	case strings.TrimPrefix(in.Token, "Bot ") != Token:
		return c.closeWith(4004)
	case c.session != nil:
		return c.closeWith(4005)
	case f.Op == 2 && in.Intents == nil:
		return c.closeWith(4013)
	case f.Op == 2 && *in.Intents&(1<<1|1<<8|1<<15) != 0: // the application has no privileged ones
		return c.closeWith(4014)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.note()
	if f.Op == 2 {
		s.gate.identified++
	} else {
		s.gate.resumed++
	}
	switch c.greeting {
	case AskReconnect:
		c.greeting = welcome
		c.sendOp(7, nil)
		return true
	case Invalid, InvalidTrue:
		resumable := c.greeting == InvalidTrue
		c.greeting = welcome
		c.sendOp(9, resumable)
		return true
	case welcome, Refused, Mute:
	}
	if f.Op == 2 {
		s.ready(c, *in.Intents)
		return true
	}
	s.resume(c, in.Session, in.Seq)
	return true
}

// ready begins a session. The caller holds mu.
func (s *Server) ready(c *conn, intents int) {
	n := &session{id: s.id(), conn: c, intent: intents}
	s.gate.sessions[n.id], s.gate.current, c.session = n, n, n
	s.emit(n, "READY", map[string]any{
		"v": 10, "user": userOf(Bot), "guilds": []any{}, "session_id": n.id, "private_channels": []any{},
		"resume_gateway_url": s.socket("/ws/resume"), "application": map[string]any{"id": Application, "flags": 0},
	})
	threads := []any{}
	for _, c := range s.world.channels {
		if c.Parent != "" {
			threads = append(threads, map[string]any{"id": c.ID, "guild_id": c.Guild, "parent_id": c.Parent, "type": 11, "name": "thread"})
		}
	}
	if len(threads) > 0 && intents&1 != 0 {
		s.emit(n, "GUILD_CREATE", map[string]any{"id": Guild, "channels": []any{}, "threads": threads})
	}
}

// resume sends what the bot has missed. The caller holds mu.
func (s *Server) resume(c *conn, id string, seq int) {
	old := s.gate.sessions[id]
	if seq += 1 - s.firstNumber(); old == nil || old.ended || seq > len(old.events) {
		c.sendOp(9, false)
		return
	}
	old.conn, c.session, s.gate.current = c, old, old
	for _, data := range old.events[max(0, seq):] {
		c.send(data)
	}
	s.emit(old, "RESUMED", map[string]any{})
}

// firstNumber is the number of READY.
func (s *Server) firstNumber() int {
	if s.options.Zero {
		return 0
	}
	return 1
}

// emit adds an event to a session, and sends it if the bot is there. The caller holds mu.
func (s *Server) emit(to *session, name string, d any) {
	data := encode(map[string]any{"op": 0, "t": name, "s": len(to.events) + s.firstNumber(), "d": d})
	to.events = append(to.events, data)
	if to.conn != nil && !to.conn.silent {
		to.conn.send(data)
	}
}

// dispatch sends an event to a bot that asked for it. The caller holds mu.
func (s *Server) dispatch(name string, d any, intent int) {
	if to := s.gate.current; to != nil && !to.ended && (intent == 0 || to.intent&intent != 0) {
		s.emit(to, name, d)
	}
}

// intentOf returns the intent under which events of a channel are sent: dm or guild.
func (s *Server) intentOf(channel string, dm, guild int) int {
	if c := s.world.channels[channel]; c != nil && c.Guild != "" {
		return guild
	}
	return dm
}
