// Package process identifies processes and runs programs. A process id alone may have been reused by another process, so an ID
// also holds the start time.
//
// Run starts one program without a shell and returns in time, whatever the program does: it may read no input, flood its
// output, hang, ignore SIGTERM, or leave children that keep its output open. A program inherits nothing: no variables, no
// descriptors, no terminal. It leads its own session and process group, which is killed as a whole. Background processes of a
// program that exits in time keep running.
//
// Notifier and Listeners are the two protocols between a service and systemd, for a process that is one.
package process

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ID identifies a process: its number, its start time, and the boot and namespace in which the number is valid.
type ID struct {
	PID       int    `json:"pid"`
	Start     uint64 `json:"pid_start"`               // clock ticks after boot; 0 on a system without /proc
	Boot      string `json:"boot_id,omitempty"`       // boot id of the kernel; "" on a system without /proc
	Namespace string `json:"pid_namespace,omitempty"` // namespace of process ids, such as pid:[4026531836]; "" on a system without /proc
}

// Self returns the ID of this process.
func Self() ID { return Of(os.Getpid()) }

// Foreign reports whether the process belongs to another boot or PID namespace, such as that of a container. In this one its number means
// another process, or none.
func (p ID) Foreign() bool {
	return p.Boot != "" && (p.Namespace == "" || p.Boot != Boot() || p.Namespace != namespace())
}

// Rebooted reports whether the machine has started anew since the process ran.
func (p ID) Rebooted() bool { return p.Boot != "" && p.Boot != Boot() }

// Alive reports whether the process is running and is the one identified. A zombie has ended. A foreign process is
// invisible and never alive here.
func (p ID) Alive() bool {
	if p.PID <= 0 || p.Foreign() || syscall.Kill(p.PID, 0) == syscall.ESRCH {
		return false
	}
	now := stat(p.PID)
	return now.state != "Z" && now.state != "X" && (p.Start == 0 || p.Start == now.start)
}

// Signal sends a signal to the process, if it is alive.
func (p ID) Signal(s syscall.Signal) error {
	if !p.Alive() {
		return os.ErrProcessDone
	}
	return syscall.Kill(p.PID, s)
}

// Name returns the name of the program that the process runs, at most 15 bytes; "" if the process has ended.
func (p ID) Name() string { return content(fmt.Sprintf("/proc/%d/comm", p.PID)) }

// status is the part of /proc/PID/stat that is used; the zero value if the process does not exist.
type status struct {
	state  string
	parent int
	start  uint64 // clock ticks after boot
}

// stat reads fields 3, 4 and 22. The name in brackets before them may contain spaces and brackets.
func stat(pid int) (s status) {
	text := content(fmt.Sprintf("/proc/%d/stat", pid))
	if fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:]); len(fields) > 19 {
		s.state = fields[0]
		s.parent, _ = strconv.Atoi(fields[1])
		s.start, _ = strconv.ParseUint(fields[19], 10, 64)
	}
	return s
}

// Boot returns the boot id of the kernel; "" on a system without /proc.
func Boot() string { return content("/proc/sys/kernel/random/boot_id") }

// content returns the content of a file with one line; "" if it cannot be read.
func content(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

func namespace() string {
	name, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return name
}

// Carrying returns the processes, in any group or session, that have the entry KEY=value in their environment, except this process.
// Without /proc it finds none.
func Carrying(entry string) (found []ID) {
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, p := range processes {
		pid, err := strconv.Atoi(p.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if slices.Contains(variables(environment("/proc/"+p.Name())), entry) {
			found = append(found, local(pid))
		}
	}
	return found
}

// environment returns the environment of a process; nil if it has none or has ended. While a process starts another program, its
// environment is empty until the program is read from the disk. Of a kernel thread and of a process that is ending, the program is
// unknown too.
func environment(dir string) []byte {
	for wait := time.Microsecond; wait < 3*time.Second; wait *= 2 {
		environ, err := atOnce(dir + "/environ")
		if err != nil || len(environ) > 0 {
			return environ
		}
		if _, err := os.Readlink(dir + "/exe"); err != nil || startedWithout(dir) {
			return nil
		}
		time.Sleep(wait)
	}
	return nil
}

// startedWithout reports whether a process started its program with an empty environment. The kernel places the name of the program
// directly after the environment, whose end it sets last.
func startedWithout(dir string) bool {
	const (
		atExecFn = 31 // AT_EXECFN of elf.h: address of the program's name
		envStart = 47 // field 50 of proc(5), counted from the state
		envEnd   = 48
	)
	auxv, _ := atOnce(dir + "/auxv")
	stat := content(dir + "/stat")
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) <= envEnd || fields[envStart] != fields[envEnd] {
		return false
	}
	end, _ := strconv.ParseUint(fields[envEnd], 10, 64)
	const word = strconv.IntSize / 8
	for ; len(auxv) >= 2*word; auxv = auxv[2*word:] {
		if number(auxv[:word]) == atExecFn {
			return number(auxv[word:2*word]) == end
		}
	}
	return false
}

// number decodes a word in the byte order of the machine.
func number(word []byte) uint64 {
	if len(word) == 4 {
		return uint64(binary.NativeEndian.Uint32(word))
	}
	return binary.NativeEndian.Uint64(word)
}

// atOnce reads a file of /proc with one system call. The results of several calls may belong to different programs, or be cut off when
// the process starts another one.
func atOnce(path string) ([]byte, error) {
	for size := 16 << 10; ; size *= 4 {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		text := make([]byte, size)
		n, err := f.Read(text)
		_ = f.Close()
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if n < size {
			return text[:n], nil
		}
	}
}

// variables splits the content of /proc/PID/environ.
func variables(environ []byte) []string { return strings.Split(string(environ), "\x00") }

// Of returns the ID of a child that this process has started and not waited for.
func Of(pid int) ID { return ID{pid, stat(pid).start, Boot(), namespace()} }

// local returns the ID of the process that has a number in this boot and namespace.
func local(pid int) ID { return ID{PID: pid, Start: stat(pid).start} }

// KillAll kills every process that has the entry in its environment, including processes that start meanwhile. It does not wait for their
// end.
func KillAll(entry string) {
	killed := map[ID]bool{}
	for more := true; more; {
		more = false
		for _, p := range Carrying(entry) {
			if !killed[p] {
				killed[p], more = true, true
				_ = p.Signal(syscall.SIGKILL) // an error is ignored: it may have ended by itself
			}
		}
	}
}

// Sleep returns after a time, or when ctx ends, with its error.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
