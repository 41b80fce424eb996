package config

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// hookServer configures the server of webhooks. Secrets are lines of the secrets file, not settings.
type hookServer struct {
	Listen  string // HOST:PORT
	URL     string // address of the server as senders see it; "" is http and Listen
	MaxBody int64  // largest payload, in bytes
	Inbox   int    // how many events may wait in total
	Jobs    int    // how many runs may be in progress at once
}

// MaxBody is the largest value of webhook.max-body, in bytes. It is GitHub's own limit of a payload.
const MaxBody = 25 << 20

func checkListen(s string) error {
	_, port, err := net.SplitHostPort(s)
	if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || n == 0 {
		return fmt.Errorf("%q is not an address to listen on: write one like 127.0.0.1:8420", s)
	}
	return nil
}

// size parses a size of a payload: bytes, or a number with KiB or MiB.
func size(s string) (int64, error) {
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
func (w hookServer) Address(id string) string {
	base := w.URL
	if base == "" {
		base = "http://" + w.Listen
	}
	return strings.TrimSuffix(base, "/") + "/hook/" + url.PathEscape(id)
}
