package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/server/webhook"
)

func runWebhookServe(ctx context.Context, d *deps, h app.Home) error {
	return d.serveWebhooks(ctx, h, func() ([]net.Listener, error) {
		passed, err := process.Listeners(d.Lookup)
		if err != nil || len(passed) > 0 {
			return passed, err
		}
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", h.Config.Webhook.Listen)
		if err != nil {
			return nil, &withStatus{fmt.Errorf("%s: %w", h.Config.Webhook.Listen, systemError(err)), statusUnavailable}
		}
		return []net.Listener{l}, nil
	})
}

// systemError returns the system's error behind a network error, without the addresses that the network error repeats.
func systemError(err error) error {
	if number := syscall.Errno(0); errors.As(err, &number) {
		return number
	}
	return err
}

// webhookGrace is how long requests that are being answered may take when the server is stopped.
const webhookGrace = 10 * time.Second

// serveWebhooks serves on the listeners that listen returns, and starts the runs of what is accepted.
func (d *deps) serveWebhooks(ctx context.Context, h app.Home, listen func() ([]net.Listener, error)) error {
	outlivePipe()
	receiver, err := h.Inbox.Receive()
	if errors.Is(err, lock.ErrBusy) {
		return fmt.Errorf("another server accepts events for this data directory: %w", err)
	}
	if err != nil {
		return err
	}
	defer receiver.Close()
	listeners, err := listen()
	if err != nil {
		return err
	}
	defer func() {
		for _, l := range listeners {
			_ = l.Close()
		}
	}()
	files := &webhook.Files{Jobs: h.Jobs, Keys: h.HookKeys, Now: d.Now}
	if err := d.introduce(files, listeners); err != nil {
		return err
	}
	wake := make(chan struct{}, 1)
	ctx, stop := context.WithCancel(ctx)
	var starting sync.WaitGroup
	starting.Go(func() { d.startEntries(ctx, wake, d.Home) })
	defer starting.Wait()
	defer stop()
	socket, _ := d.Lookup("NOTIFY_SOCKET")
	notify := process.Notifier(socket)
	notify("READY=1", "STATUS=listening on "+listeners[0].Addr().String())
	defer context.AfterFunc(ctx, func() { notify("STOPPING=1") })()
	return webhook.Run(ctx, webhook.Options{
		Files: files, Inbox: receiver, MaxBody: h.Config.Webhook.MaxBody, Now: d.Now, Warn: d.warn, Grace: webhookGrace,
		Log: (&accessLog{d: d, zone: h.Config.Zone}).write,
		Added: func() {
			select {
			case wake <- struct{}{}:
			default: // a pass is pending
			}
		},
	}, listeners...)
}

// introduce reports the served webhooks, and why others cannot be called.
func (d *deps) introduce(files *webhook.Files, listeners []net.Listener) error {
	ids, faults, err := files.All()
	if err != nil {
		return err
	}
	for _, fault := range faults {
		d.warn("cannot be called: " + fault.Error())
	}
	for _, l := range listeners {
		d.info("webhook serve: listening on %s for %s", l.Addr(), plaintext.Count(len(ids), "webhook"))
		if a, ok := l.Addr().(*net.TCPAddr); ok && !a.IP.IsLoopback() {
			d.warn(fmt.Sprintf("%s: other machines can reach it, without TLS: let a proxy do that, and listen on 127.0.0.1", a))
		}
	}
	return nil
}

type accessLog struct {
	d    *deps
	zone *time.Location
	mu   sync.Mutex
}

func (l *accessLog) write(a webhook.Access) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a.Time = a.Time.In(l.zone)
	if l.d.json {
		_ = l.d.emit(a)
	} else {
		cells := []string{
			a.Time.Format(time.RFC3339), strconv.Itoa(a.Status), a.Method, a.Path, strconv.Itoa(a.Bytes),
			strconv.FormatInt(a.Milliseconds, 10) + "ms", a.Remote, a.Run, a.Delivery, a.Reason,
		}
		for i, c := range cells {
			if c == "" {
				cells[i] = "-"
			}
		}
		(&table{d: l.d}).row(cellsOf(cells)...)
	}
	_ = l.d.flush() // the end of the command reports it
}
