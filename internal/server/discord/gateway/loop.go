package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/gorilla/websocket"

	"github.com/ollim/ollim/internal/server/discord/api"
)

const (
	version = "10" // of the gateway

	burst   = 20              // sessions that may begin at once
	refill  = 3 * time.Minute // after which one more may
	spacing = 5 * time.Second // between two of them; Discord refuses a second one within it

	elsewhere = 3 // attempts without success after which the address of new sessions is tried too, in turn with the session's own
	abandon   = 5 // RESUMEs without success after which a new session begins
)

// loop connects again and again, until ctx ends or an error is fatal, and returns that error.
func (r *run) loop(ctx context.Context) error {
	for {
		err := r.connect(ctx)
		if fatal(err) || ctx.Err() != nil {
			return err
		}
		if errors.Is(err, errForgotten) || r.unanswered >= abandon {
			r.session, r.seq, r.unanswered = session{}, 0, 0
		}
		wait := r.wait(err)
		r.Log(fmt.Errorf("%w; connecting again in %s", err, wait.Round(100*time.Millisecond)))
		if err := r.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// wait returns how long to wait after a connection that ended with err: what err asks for, or up to twice as long at every failure,
// from 1 s to 60 s, and a random part of it, so that a thousand bots do not return at once.
func (r *run) wait(err error) time.Duration {
	var own later
	if errors.As(err, &own) {
		return own.after
	}
	most := min(time.Minute, time.Second<<min(r.failed, 6))
	r.failed++
	return time.Duration(r.Random() * float64(most))
}

// connect makes one connection, and returns why it ended.
func (r *run) connect(ctx context.Context) error {
	r.missed++
	address := r.session.resume
	if r.session.id == "" {
		if err := r.allowed(); err != nil {
			return err
		}
	}
	if r.session.id == "" || address == "" || r.missed > elsewhere && r.missed%2 == 0 {
		found, err := r.ask(ctx, r.session.id == "")
		if err != nil {
			return err
		}
		address = found
	}
	ws, err := r.dial(ctx, address)
	if err != nil {
		return fmt.Errorf("connect to the gateway: %w", err)
	}
	return closed(newConn(r, ws).serve(ctx), r.Intents)
}

// allowed returns an error while no session may begin.
func (r *run) allowed() error {
	now := r.Now()
	if wait := r.used(now) - (burst-1)*refill; wait > 0 {
		return later{fmt.Errorf("%d sessions began within the hour", burst), wait}
	}
	if wait := r.identified.Add(spacing).Sub(now); wait > 0 && wait <= spacing {
		return later{errors.New("another session has just begun"), wait}
	}
	return nil
}

// used returns how much of the allowance of new sessions is used: refill for each. A value that cannot be is one of a wrong clock.
func (r *run) used(now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	used := max(0, r.saved.Quota.Sub(now))
	if used > 2*burst*refill {
		return 0
	}
	return used
}

// count counts a session that is about to begin, so that not even a crash in the next moment begins one that is not counted.
func (r *run) count() {
	r.identified = r.Now()
	full := r.identified.Add(r.used(r.identified) + refill).Round(0).UTC()
	r.save(func(s *Saved) { s.Quota = full })
}

// ask returns the address of the gateway. With begin, an error is returned while Discord's count of new sessions is used up.
func (r *run) ask(ctx context.Context, begin bool) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, r.Patience)
	defer cancel()
	found, err := r.REST.Gateway(ctx)
	if err != nil {
		err = fmt.Errorf("ask for the gateway's address: %w", err)
		if refused, ok := errors.AsType[*api.Error](err); ok && refused.After > 0 {
			return "", later{err, refused.After}
		}
		return "", err
	}
	if limit := found.Starts; begin && limit.Total > 0 && limit.Remaining <= 0 {
		after := time.Duration(limit.ResetAfter)*time.Millisecond + time.Duration(r.Random()*float64(time.Second))
		return "", later{errors.New("the bot has used up Discord's daily number of new sessions"), after}
	}
	return found.URL, nil
}

// dial opens a websocket. The address may come from a file and the token is sent there, so only loopback may do without TLS.
func (r *run) dial(ctx context.Context, address string) (*websocket.Conn, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	if ip := net.ParseIP(u.Hostname()); u.Scheme != "wss" && (ip == nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("%q is not the address of a gateway: want wss://", address)
	}
	if u.Path == "" {
		u.Path = "/"
	}
	u.RawQuery = url.Values{"v": {version}, "encoding": {"json"}}.Encode()
	stop := func() bool { return true }
	dialer := websocket.Dialer{Proxy: http.ProxyFromEnvironment, HandshakeTimeout: r.Patience}
	dialer.NetDialContext = func(dialing context.Context, network, addr string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(dialing, network, addr)
		if err == nil { // the library watches the deadline of a handshake, but not the end of its context
			stop = context.AfterFunc(ctx, func() { _ = c.Close() })
		}
		return c, err
	}
	ws, answer, err := dialer.DialContext(ctx, u.String(), http.Header{"User-Agent": {r.REST.Agent()}})
	stop()
	if answer != nil && answer.Body != nil {
		_ = answer.Body.Close()
	}
	if err != nil && answer != nil {
		return nil, fmt.Errorf("%s instead of a websocket", answer.Status)
	}
	return ws, err
}
