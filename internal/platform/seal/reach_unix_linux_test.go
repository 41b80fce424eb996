package seal

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// unixReaches name sockets in the working directory, the one that is writable.
func unixReaches() map[string]reach {
	listening := func(name string, use func(path string) error) func(outside) error {
		return func(outside) error {
			l, err := net.Listen("unix", name)
			if err != nil {
				return err
			}
			defer l.Close()
			return use(name)
		}
	}
	linked := func(to func(outside) string) func(outside) error {
		return func(o outside) error {
			link := filepath.Join(o.Inside, "link-"+filepath.Base(to(o)))
			_ = os.Remove(link)
			return errors.Join(os.Symlink(to(o), link), dial("unix", link))
		}
	}
	toDir := func(o outside) string { return filepath.Join("..", "outside", filepath.Base(o.Unix)) }
	return map[string]reach{
		"unix outside":                {func(o outside) error { return dial("unix", o.Unix) }, denied, denied},
		"unix outside, relative":      {func(o outside) error { return dial("unix", toDir(o)) }, denied, denied},
		"unix outside by a link":      {linked(func(o outside) string { return o.Unix }), denied, denied},
		"unix outside by /proc":       {func(o outside) error { return dial("unix", "/proc/self/cwd/"+toDir(o)) }, denied, denied},
		"unix outside by root":        {func(o outside) error { return dial("unix", "/proc/self/root"+o.Unix) }, denied, denied},
		"unix of the rules":           {func(o outside) error { return dial("unix", o.Allowed) }, "", ""},
		"unix of the rules, ..":       {func(outside) error { return dial("unix", "../outside/../outside/allowed") }, "", ""},
		"unix of the rules by a link": {linked(func(o outside) string { return o.Allowed }), "", ""},
		"unix that is missing":        {func(outside) error { return dial("unix", "missing") }, "no such file", "no such file"},
		"unix inside":                 {listening("inside", func(path string) error { return dial("unix", path) }), "", ""},
		"unix inside, absolute":       {listening("inside-2", func(path string) error { p, _ := filepath.Abs(path); return dial("unix", p) }), "", ""},
		"unix inside, moved": {listening("inside-3", func(path string) error {
			return errors.Join(os.Rename(path, "moved"), dial("unix", "moved"))
		}), "", ""},
		"unix inside, closed": {func(outside) error {
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: "stale"})
			if err != nil {
				return err
			}
			l.SetUnlinkOnClose(false)
			_ = l.Close()
			return dial("unix", "stale")
		}, refuses, refuses},
		"unix inside, packets": {func(outside) error {
			l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: "packets", Net: "unixpacket"})
			if err != nil {
				return err
			}
			defer l.Close()
			return dial("unixpacket", "packets")
		}, "", ""},
		"unix outside, link changed meanwhile": {raceLink, denied, denied},
		"abstract outside":                     {func(o outside) error { return dial("unix", o.Abstract) }, denied, denied},
		"abstract inside": {func(o outside) error {
			return listening(o.Abstract+"-inside", func(name string) error { return dial("unix", name) })(o)
		}, "", ""},
		"descriptors": {passDescriptor, "", ""},
	}
}

// raceLink connects many times while a link changes from a socket inside to the one outside and back.
func raceLink(o outside) error {
	l, err := net.Listen("unix", "race")
	if err != nil {
		return err
	}
	defer l.Close()
	go hangUp(l)
	var stop atomic.Bool
	defer stop.Store(true)
	go func() {
		for !stop.Load() {
			for _, to := range []string{"race", o.Unix} {
				_ = os.Symlink(to, "next")
				_ = os.Rename("next", "racing")
			}
		}
	}()
	var last error
	for range 500 {
		if err := dial("unix", "racing"); err != nil {
			last = err
		}
	}
	if errors.Is(last, syscall.ENOENT) || last == nil {
		return dial("unix", o.Unix)
	}
	return last
}

// passDescriptor sends a pipe over a socket, and data through the pipe.
func passDescriptor(outside) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	if err := unix.Sendmsg(pair[0], []byte("x"), unix.UnixRights(int(w.Fd())), nil, 0); err != nil {
		return err
	}
	data, control := make([]byte, 10), make([]byte, 100)
	n, size, _, _, err := unix.Recvmsg(pair[1], data, control, 0)
	if err != nil || n != 1 {
		return fmt.Errorf("%d bytes: %w", n, err)
	}
	messages, err := unix.ParseSocketControlMessage(control[:size])
	if err != nil || len(messages) != 1 {
		return fmt.Errorf("%d messages: %w", len(messages), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return err
	}
	if _, err := unix.Write(fds[0], []byte("through")); err != nil {
		return err
	}
	if n, err := r.Read(data); string(data[:n]) != "through" {
		return fmt.Errorf("%q %w", data[:n], err)
	}
	return nil
}
