// Package process finds processes and tells them apart: a process id alone may by now be somebody else's.
package process

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// ID is a process and when it began, in clock ticks after boot (0 where /proc does not tell).
type ID struct {
	PID   int
	Start uint64
}

// Self is this process.
func Self() ID {
	return ID{os.Getpid(), started(os.Getpid())}
}

// Alive says whether the process runs and is still the one that was meant.
func (p ID) Alive() bool {
	if p.PID <= 0 || syscall.Kill(p.PID, 0) == syscall.ESRCH {
		return false
	}
	return p.Start == 0 || p.Start == started(p.PID)
}

// Signal sends a signal to the process, if it is alive.
func (p ID) Signal(s syscall.Signal) error {
	if !p.Alive() {
		return os.ErrProcessDone
	}
	return syscall.Kill(p.PID, s)
}

// started is field 22 of /proc/PID/stat. The name in brackets before it may hold spaces and brackets.
func started(pid int) (ticks uint64) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	rest := stat[bytes.LastIndexByte(stat, ')')+1:]
	if fields := strings.Fields(string(rest)); len(fields) > 19 {
		ticks, _ = strconv.ParseUint(fields[19], 10, 64)
	}
	return ticks
}

// Carrying is the processes, in whatever group or session, that have the entry KEY=value in their environment, without
// this one. Without /proc there are none to be found.
func Carrying(entry string) (found []ID) {
	environs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil
	}
	for _, path := range environs {
		environ, err := os.ReadFile(path)
		if err != nil || !holds(environ, entry) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil && pid != os.Getpid() {
			found = append(found, ID{pid, started(pid)})
		}
	}
	return found
}

func holds(environ []byte, entry string) bool {
	for e := range bytes.SplitSeq(environ, []byte{0}) {
		if string(e) == entry {
			return true
		}
	}
	return false
}

// KillAll kills every process that carries the entry.
func KillAll(entry string) {
	for _, p := range Carrying(entry) {
		_ = p.Signal(syscall.SIGKILL) // it may have ended by itself
	}
}
