package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// machine is a virtual machine that has mounted the export.
type machine struct {
	name    string
	cmd     *exec.Cmd
	conn    net.Conn // of its port
	dir     string
	started time.Duration // until it answered

	mu      sync.Mutex
	last    int
	waiting map[int]chan reply
}

const bootPatience = 5 * time.Minute

// boot starts a machine, and waits until it has mounted the export.
func (b *bench) boot(name string) (*machine, error) {
	begin := time.Now()
	m := &machine{name: name, dir: filepath.Join(b.dir, name), waiting: map[int]chan reply{}}
	if err := os.RemoveAll(m.dir); err != nil {
		return nil, err
	}
	if err := os.Mkdir(m.dir, 0o700); err != nil {
		return nil, err
	}
	port, monitor := filepath.Join(m.dir, "port"), filepath.Join(m.dir, "monitor")
	m.cmd = b.program("qemu-system-x86_64", "-L", filepath.Join(b.root, "usr/share/qemu"), "-L", filepath.Join(b.root, "usr/share/seabios"),
		"-accel", "tcg", "-cpu", "max", "-m", "320", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-kernel", b.kernel, "-initrd", b.initrd, "-append", fmt.Sprintf("console=ttyS0 quiet panic=-1 name=%s port=%d", name, b.port),
		"-serial", "file:"+filepath.Join(m.dir, "console"), "-monitor", "unix:"+monitor+",server=on,wait=off",
		"-netdev", "user,id=net0", "-device", "virtio-net-pci,netdev=net0,romfile=", "-device", "virtio-serial-pci",
		"-chardev", "socket,id=port,server=on,wait=off,path="+port, "-device", "virtserialport,chardev=port,name=port")
	if err := m.cmd.Start(); err != nil {
		return nil, err
	}
	if err := syscall.Setpriority(syscall.PRIO_PROCESS, m.cmd.Process.Pid, b.nice); err != nil {
		return nil, errors.Join(err, m.kill())
	}
	var err error
	for range 100 {
		if m.conn, err = net.Dial("unix", port); err == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil {
		return nil, errors.Join(err, m.kill())
	}
	up := make(chan reply, 1)
	m.waiting[0] = up
	go m.read()
	select {
	case <-up:
		m.started = time.Since(begin)
		return m, nil
	case <-time.After(bootPatience):
		console, _ := os.ReadFile(filepath.Join(m.dir, "console")) // says why
		return nil, errors.Join(fmt.Errorf("machine %s does not answer:\n%s", name, console), m.kill())
	}
}

// read hands out the replies until the machine is gone.
func (m *machine) read() {
	in := json.NewDecoder(bufio.NewReader(m.conn))
	for {
		var r reply
		err := in.Decode(&r)
		m.mu.Lock()
		if err != nil {
			for _, c := range m.waiting {
				c <- reply{Status: gone, Out: "the machine is gone"}
			}
			m.waiting = nil
			m.mu.Unlock()
			return
		}
		if c := m.waiting[r.Number]; c != nil {
			c <- r
			delete(m.waiting, r.Number)
		}
		m.mu.Unlock()
	}
}

// gone is the exit status of the commands of a machine that was killed, and late that of a command without a reply.
const (
	gone = -2
	late = -3
)

// pending is a command that runs on a machine.
type pending struct {
	replies chan reply
	begin   time.Time
}

// begin starts a shell command.
func (m *machine) begin(command string, args ...any) *pending {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := &pending{make(chan reply, 1), time.Now()}
	if m.waiting == nil {
		p.replies <- reply{Status: gone, Out: "the machine is gone"}
		return p
	}
	m.last++
	m.waiting[m.last] = p.replies
	if err := json.NewEncoder(m.conn).Encode(request{m.last, fmt.Sprintf(command, args...)}); err != nil {
		p.replies <- reply{Status: gone, Out: err.Error()}
		delete(m.waiting, m.last)
	}
	return p
}

// wait waits until the command has ended. took is the time since it began.
func (p *pending) wait(patience time.Duration) (r reply, took time.Duration) {
	select {
	case r = <-p.replies:
	case <-time.After(patience):
		r = reply{Status: late, Out: "no end"}
	}
	return r, time.Since(p.begin)
}

const patience = 3 * time.Minute

// run runs a shell command and waits for its end.
func (m *machine) run(command string, args ...any) (reply, time.Duration) {
	return m.begin(command, args...).wait(patience)
}

// until runs a shell command twice a second until it exits 0, and reports whether it did in time.
func (m *machine) until(limit time.Duration, command string, args ...any) bool {
	begin := time.Now()
	for time.Since(begin) < limit {
		if r, _ := m.run(command, args...); r.Status == 0 {
			return true
		}
		time.Sleep(500 * time.Millisecond)
	}
	return false
}

// state describes what the processes of ollim wait for, and what the kernel says.
func (m *machine) state() string {
	r, _ := m.begin("ps; for p in $(pidof ollim); do for t in /proc/$p/task/*; do cat $t/wchan; echo; cat $t/stack; done; done; dmesg | tail -n 12").wait(20 * time.Second)
	return m.name + ": " + r.Out
}

func (m *machine) signal(s syscall.Signal) error { return m.cmd.Process.Signal(s) }

// monitor runs a command of QEMU's monitor.
func (m *machine) monitor(command string) error {
	conn, err := net.Dial("unix", filepath.Join(m.dir, "monitor"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	in := bufio.NewReader(conn)
	for _, line := range []string{"", command + "\n"} { // its prompt comes before and after
		if _, err := conn.Write([]byte(line)); err != nil {
			return err
		}
		if _, err := in.ReadString(')'); err != nil {
			return err
		}
	}
	return nil
}

// kill ends the machine at once, as a loss of power does.
func (m *machine) kill() error {
	err := m.cmd.Process.Kill()
	_ = m.cmd.Wait() // it was killed
	if m.conn != nil {
		err = errors.Join(err, m.conn.Close())
	}
	return err
}
