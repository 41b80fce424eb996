package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// request asks a machine to run a shell command. Its reply has the same number.
type request struct {
	Number  int
	Command string
}

// reply says what a command printed and how it ended.
type reply struct {
	Number int
	Out    string
	Status int
}

// guest is the first process of a machine: it mounts the export and serves requests, as long as the machine runs.
func guest() {
	fmt.Println("guest:", serve())
	time.Sleep(time.Hour) // the end of the first process is a panic of the kernel
}

// serve returns why requests can be served no more.
func serve() error {
	for _, m := range [][2]string{{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}, {"tmpfs", "/tmp"}} {
		if err := syscall.Mount(m[0], m[1], m[0], 0, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m[1], err)
		}
	}
	if err := load(); err != nil {
		return err
	}
	settings, err := options()
	if err != nil {
		return err
	}
	if err := syscall.Sethostname([]byte(settings["name"])); err != nil {
		return err
	}
	setup := "/bin/busybox --install -s /bin; ifconfig lo 127.0.0.1 up; ifconfig eth0 10.0.2.15 netmask 255.255.255.0 up"
	if out, status := shell(setup); status != 0 {
		return fmt.Errorf("%s: exit status %d: %s", setup, status, out)
	}
	mount := "vers=4.2,proto=tcp,sec=sys,hard,addr=10.0.2.2,clientaddr=10.0.2.15,port=" + settings["port"]
	if err := syscall.Mount("10.0.2.2:/data", "/data", "nfs4", 0, mount); err != nil {
		return fmt.Errorf("mount NFS: %w", err)
	}
	return answer()
}

// load loads the modules of the kernel in the order of their names.
func load() error {
	paths, err := filepath.Glob("/modules/*.ko")
	if err != nil {
		return err
	}
	slices.Sort(paths)
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		if err := errors.Join(unix.FinitModule(int(f.Fd()), "", 0), f.Close()); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// options returns the words of the form KEY=VALUE of the kernel's command line.
func options() (map[string]string, error) {
	line, err := os.ReadFile("/proc/cmdline")
	settings := map[string]string{}
	for _, word := range strings.Fields(string(line)) {
		key, value, _ := strings.Cut(word, "=")
		settings[key] = value
	}
	return settings, err
}

// answer runs the commands that come over the machine's port.
func answer() error {
	var port *os.File
	err := os.ErrNotExist
	for range 100 {
		names, _ := filepath.Glob("/dev/vport*") // the pattern is valid
		if len(names) > 0 {
			if port, err = os.OpenFile(names[0], os.O_RDWR, 0); err == nil {
				break
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil {
		return err
	}
	var mu sync.Mutex
	out := json.NewEncoder(port)
	write := func(r reply) {
		mu.Lock()
		defer mu.Unlock()
		if err := out.Encode(r); err != nil {
			fmt.Println("guest:", err)
		}
	}
	write(reply{}) // the machine is up
	in := bufio.NewReader(port)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return err
		}
		var r request
		if err := json.Unmarshal(line, &r); err != nil {
			return err
		}
		go func() {
			out, status := shell(r.Command)
			write(reply{r.Number, out, status})
		}()
	}
}

func shell(command string) (out string, status int) {
	cmd := exec.Command("/bin/busybox", "sh", "-c", command)
	cmd.Env = []string{"PATH=/bin", "HOME=/tmp", "TZ=UTC"}
	text, err := cmd.CombinedOutput()
	if failed := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failed) {
		return err.Error(), -1
	}
	return strings.TrimSpace(string(text)), cmd.ProcessState.ExitCode()
}
