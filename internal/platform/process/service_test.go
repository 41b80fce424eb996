package process

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
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

// TestListeners: sockets are taken only if they were passed to this very process, and connections reach them.
func TestListeners(t *testing.T) {
	env := map[string]string{"LISTEN_FDS": "1"}
	lookup := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	for _, pid := range []string{"", "1"} {
		env["LISTEN_PID"] = pid
		if list, err := Listeners(lookup); len(list) != 0 || err != nil {
			t.Errorf("of process %q: %v, %v", pid, list, err)
		}
	}
	env["LISTEN_PID"], env["LISTEN_FDS"] = strconv.Itoa(os.Getpid()), "x"
	if _, err := Listeners(lookup); err == nil {
		t.Error("LISTEN_FDS=x was accepted")
	}
}

func TestPassed(t *testing.T) {
	original, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	f, err := original.File() // as a service manager has it
	if err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	_ = original.Close()
	list, err := passed(fd, 1)
	if err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	defer func() { _ = list[0].Close() }()
	c, err := net.Dial("tcp", list[0].Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	null, err := syscall.Open(os.DevNull, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := passed(null, 1); err == nil {
		t.Error("a descriptor that is no socket was accepted")
	}
}
