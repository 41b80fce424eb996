package process

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestListening: the sockets that accept connections are found, and no others.
func TestListening(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	before := Listening(os.Getpid())
	var want []string
	for network, address := range map[string]string{"unix": path, "tcp4": "127.0.0.1:0", "tcp6": "[::1]:0"} {
		l, err := net.Listen(network, address)
		if err != nil && network == "tcp6" {
			t.Log(err) // a machine without IPv6
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		conn, err := net.Dial(network, l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		want = append(want, l.Addr().String())
	}
	abstract, err := net.Listen("unix", "") // the kernel chooses its name
	if err != nil {
		t.Fatal(err)
	}
	defer abstract.Close()
	got := slices.DeleteFunc(Listening(os.Getpid()), func(at string) bool { return slices.Contains(before, at) })
	for _, at := range want {
		if !slices.Contains(got, at) {
			t.Errorf("%s is not in %q", at, got)
		}
	}
	if len(got) != len(want)+1 {
		t.Errorf("got %q, want %q and a name without a file", got, want)
	}
	if left := Listening(-1); left != nil {
		t.Errorf("%q of no process", left)
	}
}
