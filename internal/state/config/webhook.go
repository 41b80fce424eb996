package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// Webhook configures the server of webhooks. Secrets are lines of the secrets file, not settings.
type Webhook struct {
	Listen  string // HOST:PORT
	URL     string // of the server as senders see it; "" is http and Listen
	MaxBody string // for Size
	Inbox   int    // events that may wait in all
	Jobs    int    // runs at once
}

// MaxBody is the most that webhook.max-body can be, in bytes: GitHub's own limit of a payload.
const MaxBody = 25 << 20

// webhook returns the keys of the server of webhooks.
func webhook() []key {
	return []key{
		{
			name: "webhook.listen", example: "listen: 127.0.0.1:8420", standard: "127.0.0.1:8420",
			about: "Address of `ollim webhook serve`; a proxy in front of it does TLS.",
			check: checkListen,
		},
		{
			name: "webhook.url", example: "url: https://hooks.example.org",
			about: "Address of the server as senders see it (default: http and webhook.listen).",
			check: func(s string) error {
				if CheckURL(s) != nil { // it is not quoted: it may have a password
					return errors.New("want the address of the server as senders see it, without a password and a query, such as https://hooks.example.org")
				}
				return nil
			},
		},
		{
			name: "webhook.max-body", example: "max-body: 1MiB", standard: "1MiB",
			about: "Maximum size of a payload, up to 25MiB, which is the maximum of GitHub.",
			check: func(s string) error { _, err := Size(s); return err },
		},
		number("webhook.inbox", "Maximum number of events that wait for their runs.", 10000, 1, 1000000),
		number("webhook.jobs", "Maximum number of runs of webhooks at once.", 4, 1, 1000),
	}
}

// number returns the key of a whole number.
func number(name, about string, normal, least, most int) key {
	_, last, _ := strings.Cut(name, ".")
	return key{
		name: name, about: about, example: fmt.Sprintf("%s: %d", last, normal), standard: normal,
		check: func(s string) error {
			if n, err := strconv.Atoi(s); err != nil || n < least || n > most || strconv.Itoa(n) != s { // 010 would be read as 8
				return fmt.Errorf("%q: want a number from %d to %d", s, least, most)
			}
			return nil
		},
	}
}

func checkListen(s string) error {
	_, port, err := net.SplitHostPort(s)
	if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || n == 0 {
		return fmt.Errorf("%q is not an address to listen on: write one like 127.0.0.1:8420", s)
	}
	return nil
}

// Size parses a size of a payload: bytes, or a number with KiB or MiB.
func Size(s string) (int64, error) {
	digits, unit := s, int64(1)
	if n, found := strings.CutSuffix(s, "KiB"); found {
		digits, unit = n, 1<<10
	} else if n, found := strings.CutSuffix(s, "MiB"); found {
		digits, unit = n, 1<<20
	}
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil || n < 1 || n*unit > MaxBody {
		return 0, fmt.Errorf("%q: want a size up to %dMiB, such as 1MiB", s, MaxBody>>20)
	}
	return n * unit, nil
}

// Address returns where a hook is called.
func (w Webhook) Address(id string) string {
	base := w.URL
	if base == "" {
		base = "http://" + w.Listen
	}
	return strings.TrimSuffix(base, "/") + "/hook/" + url.PathEscape(id)
}
