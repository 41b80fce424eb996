package lock

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// Inherited lists the ids of the processes that hold the lock at path because they inherited it. The list is empty while the
// process that took the lock holds it itself. Processes of another user or PID namespace are invisible, as are all without /proc.
func Inherited(path string) (pids []int) {
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil
	}
	links, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return nil
	}
	for _, link := range links {
		if file, err := os.Readlink(link); err != nil || file != target {
			continue
		}
		pid, taker := holder(link)
		switch {
		case pid == 0: // the process has the file open without the lock
		case pid == taker:
			return nil
		case len(pids) == 0 || pids[len(pids)-1] != pid:
			pids = append(pids, pid)
		}
	}
	return pids
}

// holder returns the process that has the descriptor /proc/PID/fd/N, and the process that took its lock. The kernel reports the latter by
// its number even after it has ended, or as 0. Both are 0 if the descriptor has no lock.
func holder(link string) (pid, taker int) {
	fds := filepath.Dir(link)
	info, err := os.ReadFile(filepath.Join(filepath.Dir(fds), "fdinfo", filepath.Base(link)))
	if err != nil {
		return 0, 0
	}
	_, line, locked := bytes.Cut(info, []byte("lock:"))
	if !locked {
		return 0, 0
	}
	fields := bytes.Fields(line) // format of a lock line: FLOCK ADVISORY WRITE PID …
	if len(fields) < 5 {
		return 0, 0
	}
	taker, _ = strconv.Atoi(string(fields[4]))
	pid, _ = strconv.Atoi(filepath.Base(filepath.Dir(fds)))
	return pid, taker
}
