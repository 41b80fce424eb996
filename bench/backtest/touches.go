package main

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Calls of strace -f: a file that is opened for writing, renamed, removed or made, a connection, and a program.
var (
	opened    = regexp.MustCompile(`\d+ +openat\([^,]+, "([^"]+)", [^)]*O_(?:WRONLY|RDWR|CREAT)`)
	changed   = regexp.MustCompile(`\d+ +(?:renameat2?|unlinkat|mkdirat|linkat|symlinkat|rename|unlink|mkdir)\((?:[^"]*)"([^"]+)"(?:[^"]*"([^"]+)")?`)
	connected = regexp.MustCompile(`\d+ +connect\(\d+, \{(.*)\}`)
	started   = regexp.MustCompile(`\d+ +execve\("([^"]+)"`)
)

// touches prints the files that a backtest writes, the addresses that it connects to, and the programs that it starts.
func (b *bench) touches(url string) error {
	if _, err := exec.LookPath("strace"); err != nil {
		fmt.Println("what a backtest touches was not looked at: install strace")
		return nil //nolint:nilerr // the other figures do not need it
	}
	cmd := b.cmd("backtest", "disk", "--model", "chatty", "--last", "10", "--max-cost", "1000")
	cmd.Path, _ = exec.LookPath("strace")
	cmd.Args = append([]string{"strace", "-f", "-qq", "-e", "trace=%file,connect", "-o", "/dev/stderr", b.ollim}, cmd.Args[1:]...)
	var trace strings.Builder
	cmd.Stderr = &trace
	_ = cmd.Run() // it exits 0: no decision is missed; what it says is among the calls
	port := url[strings.LastIndexByte(url, ':')+1:]
	var broken error
	folders := map[string]bool{}
	programs := 0
	for line := range strings.Lines(trace.String()) {
		if strings.Contains(line, "= -1 E") && !strings.Contains(line, "EINPROGRESS") {
			continue
		}
		for _, m := range slices.Concat(opened.FindAllStringSubmatch(line, -1), changed.FindAllStringSubmatch(line, -1)) {
			path := m[1]
			if path == "/dev/null" {
				continue
			}
			inside, err := filepath.Rel(filepath.Join(b.home, "state"), path)
			if err != nil || strings.HasPrefix(inside, "..") {
				broken = errors.Join(broken, fmt.Errorf("it writes %s", path))
				continue
			}
			folders["state/"+strings.SplitN(inside, "/", 2)[0]] = true
		}
		if m := connected.FindStringSubmatch(line); m != nil && !strings.Contains(m[1], "htons("+port+")") {
			broken = errors.Join(broken, fmt.Errorf("it connects to %s", m[1]))
		}
		if m := started.FindStringSubmatch(line); m != nil {
			programs++
		}
	}
	if programs != 1 {
		broken = errors.Join(broken, fmt.Errorf("%d programs were started", programs))
	}
	if len(folders) == 0 {
		broken = errors.Join(broken, errors.New("the trace shows no files"))
	}
	var list []string
	for f := range folders {
		list = append(list, f)
	}
	slices.Sort(list)
	fmt.Printf("\na backtest writes in %s, connects to the service alone, and starts no program\n", strings.Join(list, ", "))
	return broken
}
