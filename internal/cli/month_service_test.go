package cli

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/state/model"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// monthService is the scripted model service of a month. It counts tokens by the size of what is sent, keeps a prompt cache by the
// vendor's rules (prefixes up to a breakpoint, lifetimes of five minutes and an hour, renewed when read), and adds up what it charges.
type monthService struct {
	api   *anthropicapi.Server
	door  *monthDoor
	table model.Table
	now   atomic.Int64 // of the month, in nanoseconds; the server itself runs outside its clock

	mu     sync.Mutex
	status int                  // what every request gets instead of an answer; 0: an answer
	cache  map[string]cacheLine // by hash of a prefix
	spent  map[string]float64   // USD by job and day: "monitor 2026-10-04"
	asked  map[string]int       // requests that were answered, likewise
	turns  int
	of     map[string]int // turns of each job
	zone   *time.Location
}

// cacheLine is a cached prefix.
type cacheLine struct {
	until time.Time
	life  time.Duration
}

// Sizes of the model. A token is as long as the testkit's.
const (
	monthToken   = 4    // bytes
	leastCached  = 1024 // tokens of a prefix that is cached
	cacheLookup  = 20   // blocks before a breakpoint at which a shorter prefix is looked for
	shortLife    = 5 * time.Minute
	compactAbove = 20_000 // tokens from which the scripted agent compacts, once it is told how large its context is
)

func newMonthService(t *testing.T, zone *time.Location) *monthService {
	s := &monthService{
		api: anthropicapi.New(t), table: model.Known(), zone: zone,
		cache: map[string]cacheLine{}, spent: map[string]float64{}, asked: map[string]int{}, of: map[string]int{},
	}
	s.api.Handle(s.answer)
	s.door = newMonthDoor(t, s.api.URL())
	return s
}

func (s *monthService) clock() time.Time { return time.Unix(0, s.now.Load()) }

// fail has every request answered with this status from now on; 0 answers again.
func (s *monthService) fail(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

// answer is the reply to one request, with its usage.
func (s *monthService) answer(q anthropicapi.Request) anthropicapi.Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.api.Forget()
	closing := http.Header{"Connection": {"close"}} // an idle connection would stop the month's clock
	if s.status != 0 {
		return anthropicapi.Reply{Status: s.status, Header: closing}
	}
	s.turns++
	news, first := monthNews(q)
	owner := monthOwner(q, first)
	s.of[owner]++ // the answers to a job do not depend on which jobs of the same minute ask first
	r := monthReply(q, news, s.of[owner]+len(owner))
	r.Header = closing
	prefix, cost := s.charge(q, len(r.Text)+len(fmt.Sprint(r.ToolUses)))
	r.Usage = prefix
	key := owner + " " + s.clock().In(s.zone).Format(time.DateOnly)
	s.spent[key] += cost
	s.asked[key]++
	return r
}

// charge returns what a request and an answer of so many bytes use, and its price in USD.
func (s *monthService) charge(q anthropicapi.Request, answer int) (anthropicapi.Usage, float64) {
	blocks := monthBlocks(q.Raw)
	now, m := s.clock(), s.table.Resolve(q.Model)
	total, last, read := 0, -1, 0
	sum := sha256.New()
	hashes, ends := make([]string, len(blocks)), make([]int, len(blocks))
	_, _ = io.WriteString(sum, q.Model)
	for i, b := range blocks {
		_, _ = io.WriteString(sum, b.text)
		total += len(b.text) / monthToken
		hashes[i], ends[i] = string(sum.Sum(nil)), total
		if b.life > 0 {
			last = i
		}
	}
	for i, b := range blocks {
		for back := i; b.life > 0 && back >= 0 && i-back < cacheLookup; back-- {
			if c, known := s.cache[hashes[back]]; known && !c.until.Before(now) {
				s.cache[hashes[back]] = cacheLine{now.Add(c.life), c.life}
				read = max(read, ends[back])
				break
			}
		}
	}
	u := anthropicapi.Usage{CacheRead: read, Out: answer/monthToken + 8}
	cost, from := 0.0, read
	for i, b := range blocks {
		if b.life == 0 || ends[i] < leastCached {
			continue
		}
		price := m.Price.CacheWrite
		if b.life > shortLife {
			price = m.Price.CacheHour
		}
		if written := ends[i] - from; written > 0 {
			cost, from = cost+float64(written)*price, ends[i]
			s.cache[hashes[i]] = cacheLine{now.Add(b.life), b.life}
		}
	}
	u.CacheWrite = from - read
	if last < 0 {
		from = 0
	}
	u.In = total - from
	cost += float64(read)*m.Price.CacheRead + float64(u.In)*m.Price.In + float64(u.Out)*m.Price.Out
	return u, cost / 1e6
}

// monthBlock is a part of a request in the order in which prefixes are made: tools, system prompt, messages.
type monthBlock struct {
	text string
	life time.Duration // of a cache breakpoint at its end; 0: none
}

func monthBlocks(raw []byte) (list []monthBlock) {
	var body struct {
		Tools, System []json.RawMessage
		Messages      []struct {
			Role    string
			Content []json.RawMessage
		}
	}
	if err := json.Unmarshal(raw, &body); err != nil {
		panic(err)
	}
	mark := regexp.MustCompile(`,"cache_control":\{"type":"ephemeral"(,"ttl":"(5m|1h)")?\}`)
	add := func(head string, blocks []json.RawMessage) {
		for _, b := range blocks {
			text, life := string(b), time.Duration(0)
			if m := mark.FindStringSubmatch(text); m != nil {
				if life = shortLife; m[2] == "1h" {
					life = time.Hour
				}
				text = mark.ReplaceAllString(text, "")
			}
			list = append(list, monthBlock{head + text, life})
		}
	}
	add("tool", body.Tools)
	add("system", body.System)
	for _, m := range body.Messages {
		add(m.Role, m.Content)
	}
	return list
}

// monthNews returns what the user has said since the last text of the model, and the message that began this turn: the one with the tag.
func monthNews(q anthropicapi.Request) (news, first string) {
	for i := len(q.Messages) - 1; i >= 0; i-- {
		m := q.Messages[i]
		if m.Role != "user" {
			if news == "" {
				continue
			}
			if !strings.Contains(news, "\x00tool") {
				break
			}
			continue
		}
		said := ""
		for _, b := range m.Content {
			if said += b.Text; b.Type == "tool_result" {
				said += "\x00tool " + b.ResultText
			}
		}
		news = said + "\n" + news
		if first = said; !strings.Contains(said, "\x00tool") {
			break
		}
	}
	return news, first
}

// monthSpeaker is the job that a message comes from, or chat.
func monthSpeaker(text string) string {
	tag := regexp.MustCompile(`\[(?:routine|reminder|webhook)(?:-bg)?:([\w.-]+)\]`)
	if m := tag.FindStringSubmatch(text); m != nil && strings.Index(text, m[0]) < 40_000 {
		return m[1]
	}
	return "chat"
}

// monthOwner is the job that a request is made for: that of its message, else the only one that ever spoke in the session.
func monthOwner(q anthropicapi.Request, first string) string {
	job := monthSpeaker(first)
	for _, m := range q.Messages {
		for _, b := range m.Content {
			if m.Role != "user" || b.Type != "text" || job != "chat" {
				continue
			}
			if by := monthSpeaker(b.Text); by != "chat" && strings.Contains(b.Text[:min(len(b.Text), 200)], "-bg:"+by) {
				return by
			}
		}
	}
	return job
}

// monthReply is what the scripted agent does: it works with a tool now and then, pings once in a while, reports where it must, and
// compacts its session when it has been told that its context is large.
func monthReply(q anthropicapi.Request, news string, turn int) anthropicapi.Reply {
	has := func(tool string) bool {
		for _, t := range q.Tools {
			if t.Name == tool || strings.HasSuffix(t.Name, "__"+tool) {
				return true
			}
		}
		return false
	}
	use := func(tool string, input map[string]any) anthropicapi.Reply { return anthropicapi.Use(tool, input) }
	job, steps := monthSpeaker(news), strings.Count(news, "\x00tool")
	answer := anthropicapi.Reply{Text: fmt.Sprintf("%s: checked %d items, nothing that cannot wait. %s", job, turn%17+3, strings.Repeat("Noted. ", 12))}
	switch {
	case steps > 2:
		return answer
	case lastTool(q) == "ping_user" && has("report_updates"):
		return use("report_updates", map[string]any{"message": job + ": told the owner."})
	case steps == 0 && has("compact_session") && monthContext(news) > compactAbove:
		return use("compact_session", map[string]any{"instructions": "Keep what was found and what is open."})
	case strings.Contains(news, "Answer with PING.") && has("ping_user") && !strings.Contains(news, "ping_user") && steps == 0 && turn%9 == 0:
		return use("ping_user", map[string]any{"message": "PING " + job + ": something to look at."})
	case strings.Contains(news, "mandatory") && has("report_updates") && steps == 0:
		return use("report_updates", map[string]any{"message": job + ": looked at everything."})
	case strings.Contains(news, "follow_up_chain(minutes_from_now") && has("follow_up_chain") && steps == 0:
		return use("follow_up_chain", map[string]any{"minutes_from_now": 90})
	}
	return answer
}

// lastTool is the tool that the model used last.
func lastTool(q anthropicapi.Request) string {
	for _, m := range slices.Backward(q.Messages) {
		for _, b := range m.Content {
			if b.Type == "tool_use" {
				return b.Name
			}
		}
		if m.Role == "assistant" {
			break
		}
	}
	return ""
}

// monthContext is the size of the context, in tokens, that the agent is told; 0: it is not told.
func monthContext(text string) float64 {
	all := regexp.MustCompile(`CONTEXT: ([0-9.]+)([kM]?) of`).FindAllStringSubmatch(text, -1)
	if len(all) == 0 {
		return 0
	}
	m := all[len(all)-1]
	n, _ := strconv.ParseFloat(m[1], 64)
	return n * map[string]float64{"": 1, "k": 1e3, "M": 1e6}[m[2]]
}

// monthDoor is the service's address. Closed, it refuses connections, as a service that is down. A goroutine outside the month's clock
// opens and closes it.
type monthDoor struct {
	behind, at string
	orders     chan bool
	done       chan error
}

func newMonthDoor(t *testing.T, behind string) *monthDoor {
	t.Helper()
	u, err := url.Parse(behind)
	if err != nil {
		t.Fatal(err)
	}
	d := &monthDoor{behind: u.Host, at: "127.0.0.1:0", orders: make(chan bool), done: make(chan error)}
	go d.attend(t.Context())
	if err := d.set(true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { close(d.orders) })
	return d
}

func (d *monthDoor) url() string { return "http://" + d.at }

func (d *monthDoor) set(open bool) error {
	d.orders <- open
	return <-d.done
}

func (d *monthDoor) attend(ctx context.Context) {
	var door net.Listener
	for open := range d.orders {
		var err error
		if door != nil {
			err = door.Close()
			door = nil
		}
		if open && err == nil {
			if door, err = (&net.ListenConfig{}).Listen(ctx, "tcp", d.at); err == nil {
				d.at = door.Addr().String()
				go d.serve(door)
			}
		}
		d.done <- err
	}
	if door != nil {
		_ = door.Close()
	}
}

// serve passes connections on until the door is closed.
func (d *monthDoor) serve(door net.Listener) {
	for {
		in, err := door.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", d.behind)
		if err != nil {
			_ = in.Close()
			continue
		}
		go func() {
			_, _ = io.Copy(out, in)
			_ = out.Close()
		}()
		go func() {
			_, _ = io.Copy(in, out)
			_ = in.Close()
			_ = out.Close()
		}()
	}
}
