package discord

import (
	"net"
	"path/filepath"
	"testing"
)

func TestNotifier(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	Notifier("")("READY=1")
	Notifier(path)("READY=1", "STATUS=connected")
	data := make([]byte, 100)
	n, err := c.Read(data)
	if got := string(data[:n]); err != nil || got != "READY=1\nSTATUS=connected" {
		t.Errorf("%q, %v", got, err)
	}
}
