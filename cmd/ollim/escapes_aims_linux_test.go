package main

import (
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ollim/ollim/internal/testkit"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

//go:embed testdata/escapes/probe.c
var probeSource string

// compileProbe returns a directory, which everybody may read, with the program probe and the library probe.so.
func compileProbe(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "probe")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if !installed("cc") {
		testkit.Missing(t, "no C compiler: apt-get install gcc libc6-dev")
	}
	for _, args := range [][]string{{"-o", "probe"}, {"-shared", "-fPIC", "-o", "probe.so"}} {
		cmd := exec.Command("cc", append(args, "-Wall", "-Werror", "-x", "c", "-")...)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(probeSource)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if os.Getuid() == 0 {
		makeSetuid(t, dir, 65534)
	}
	return dir
}

// makeSetuid makes a copy of the probe that runs as another user.
func makeSetuid(t *testing.T, dir string, user int) {
	t.Helper()
	program, err := os.ReadFile(filepath.Join(dir, "probe"))
	path := filepath.Join(dir, "setuid")
	if err := errors.Join(err, testkit.WriteFile(path, program, 0o755), os.Chown(path, user, 0), os.Chmod(path, 0o755|os.ModeSetuid)); err != nil {
		t.Fatal(err)
	}
}

// forUser returns a directory with what root makes for the test of an ordinary user: a setuid program, and the claude command.
func forUser(t *testing.T) string {
	t.Helper()
	dir := compileProbe(t)
	makeSetuid(t, dir, 0)
	claude, err := filepath.EvalSymlinks(anthropicapi.Claude(t))
	if err == nil {
		err = os.Link(claude, filepath.Join(dir, "claude")) // 200 MB
	}
	if err != nil {
		var program []byte
		if program, err = os.ReadFile(claude); err == nil {
			err = testkit.WriteFile(filepath.Join(dir, "claude"), program, 0o755)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// listenOther listens on 127.0.0.2 at a port that a program can bind on 127.0.0.1: Linux gives it to no connection that asks for any.
func (a *trial) listenOther() string {
	a.t.Helper()
	for {
		port := strconv.Itoa(20000 + rand.IntN(10000))
		if l, err := net.Listen("tcp4", "0.0.0.0:"+port); err == nil {
			_ = l.Close()
			return a.listen("tcp4", "127.0.0.2:"+port)
		}
	}
}

func (a *trial) listen(network, address string) string {
	a.t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			a.arrived.Add(1)
			if strings.HasSuffix(address, "fds") {
				if secret, err := os.Open(filepath.Join(a.out, "secret")); err == nil {
					_, _, _ = conn.(*net.UnixConn).WriteMsgUnix([]byte("x"), unix.UnixRights(int(secret.Fd())), nil)
					_ = secret.Close()
				}
			}
			_ = conn.Close()
		}
	}()
	if _, port, err := net.SplitHostPort(l.Addr().String()); err == nil {
		return port
	}
	return l.Addr().String()
}

func (a *trial) listenUDP() string {
	a.t.Helper()
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { _ = conn.Close() })
	go func() {
		for {
			if _, _, err := conn.ReadFrom(make([]byte, 9)); err != nil {
				return
			}
			a.arrived.Add(1)
		}
	}()
	_, port, _ := net.SplitHostPort(conn.LocalAddr().String())
	return port
}

// startVictim starts a process whose environment, working directory and standard input hold secrets.
func (a *trial) startVictim() string {
	a.t.Helper()
	secret, err := os.Open(filepath.Join(a.out, "secret"))
	if err != nil {
		a.t.Fatal(err)
	}
	defer func() { _ = secret.Close() }()
	cmd := exec.Command("/bin/sleep", "1000000")
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.SysProcAttr = a.out, []string{"SECRET=sesame"}, secret, &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		a.t.Fatal(err)
	}
	a.victim = cmd.Process
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	a.t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
	return strconv.Itoa(cmd.Process.Pid)
}

// environOf returns where the environment of a process lies, in hexadecimal. exec.Cmd.Start returns when the kernel closes the descriptors of
// the new program, which it does before it notes that address; until then the file environ is empty.
func environOf(t testing.TB, pid int) string {
	t.Helper()
	for {
		environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil {
			t.Fatal(err)
		}
		if len(environ) > 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	if err != nil || len(fields) < 48 {
		t.Fatalf("%v %q", err, stat)
	}
	at, _ := strconv.ParseUint(fields[47], 10, 64)
	return strconv.FormatUint(at, 16)
}

func (a *trial) addKey() string {
	a.t.Helper()
	id, err := unix.AddKey("user", "escape-"+filepath.Base(a.base), []byte("sesame"), unix.KEY_SPEC_USER_KEYRING)
	if err == nil {
		err = unix.KeyctlSetperm(id, 0x3f3f0000)
	}
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { _, _ = unix.KeyctlInt(unix.KEYCTL_UNLINK, id, unix.KEY_SPEC_USER_KEYRING, 0, 0) })
	return strconv.Itoa(id)
}

// shareMemory makes shared memory that holds a secret.
func (a *trial) shareMemory() string {
	a.t.Helper()
	id, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, 0o600)
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) })
	memory, err := unix.SysvShmAttach(id, 0, 0)
	if err != nil {
		a.t.Fatal(err)
	}
	copy(memory, "sesame\x00")
	if err := unix.SysvShmDetach(memory); err != nil {
		a.t.Fatal(err)
	}
	return strconv.Itoa(id)
}

// queueMessage makes a queue with a message that holds a secret.
func (a *trial) queueMessage() string {
	a.t.Helper()
	id, _, errno := unix.Syscall(unix.SYS_MSGGET, unix.IPC_PRIVATE, 0o600, 0)
	if errno == 0 {
		a.t.Cleanup(func() { _, _, _ = unix.Syscall(unix.SYS_MSGCTL, id, unix.IPC_RMID, 0) })
		message := struct {
			kind int64
			text [7]byte
		}{1, [7]byte{'s', 'e', 's', 'a', 'm', 'e'}}
		_, _, errno = unix.Syscall6(unix.SYS_MSGSND, id, uintptr(unsafe.Pointer(&message)), unsafe.Sizeof(message.text), unix.IPC_NOWAIT, 0, 0)
		runtime.KeepAlive(&message)
	}
	if errno != 0 {
		a.t.Fatal(errno)
	}
	return strconv.Itoa(int(id))
}
