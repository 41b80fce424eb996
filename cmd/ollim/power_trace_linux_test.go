package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit"
)

// call is a system call of a trace that succeeded.
type call struct {
	name   string
	args   []string
	result string
	began  int // the number of calls that had ended when it began
	ended  int // the number of calls that had ended before it did
}

// changing are the system calls that change files and directories, and those that tell what a descriptor means.
const changing = "openat,open,creat,write,writev,pwrite64,pwritev,ftruncate,truncate,copy_file_range,sendfile,splice,fallocate," +
	"rename,renameat,renameat2,link,linkat,symlink,symlinkat,unlink,unlinkat,mkdir,mkdirat,rmdir," +
	"fsync,fdatasync,chmod,fchmod,fchmodat,lseek,dup,dup2,dup3,fcntl"

// record runs a program under strace and returns what it printed, and the calls by which it and its children changed files.
func record(t testing.TB, cmd *exec.Cmd) (out string, code int, calls []call) {
	t.Helper()
	strace := testkit.Program(t, "strace", "strace")
	log := filepath.Join(t.TempDir(), "trace")
	cmd.Args = slices.Concat([]string{strace, "-f", "-y", "-qq", "-xx", "-s", "4194304", "-e", "trace=" + changing, "-e", "signal=none", "-o", log, cmd.Path}, cmd.Args[1:])
	cmd.Path = strace
	text, runErr := cmd.CombinedOutput()
	trace, err := os.ReadFile(log)
	if err != nil || strings.Contains(string(text), "PTRACE") {
		testkit.Missing(t, "strace may not trace here (allow ptrace): %v %s", err, text)
	}
	calls, err = parseTrace(string(trace))
	if err != nil {
		t.Fatal(err)
	}
	return string(text), status(runErr), calls
}

var (
	whole   = regexp.MustCompile(`^(\d+) +(\w+)\((.*)\) += (.*)$`)
	begun   = regexp.MustCompile(`^(\d+) +(\w+)\((.*) <unfinished \.\.\.>$`)
	resumed = regexp.MustCompile(`^(\d+) +<\.\.\. (\w+) resumed>(.*)\) += (.*)$`)
)

// parseTrace returns the successful calls in the order in which they ended. Every string of the trace must be in hexadecimal.
func parseTrace(trace string) (calls []call, err error) {
	type half struct {
		text  string
		began int
	}
	open := map[string]half{}
	for line := range strings.Lines(trace) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasSuffix(line, "+++") || strings.HasSuffix(line, "---") {
			continue
		}
		c, args, began := []string(nil), "", len(calls)
		if m := begun.FindStringSubmatch(line); m != nil {
			open[m[1]] = half{m[3], began}
			continue
		}
		if c = resumed.FindStringSubmatch(line); c != nil {
			args, began = open[c[1]].text+c[3], open[c[1]].began
			delete(open, c[1])
		} else if c = whole.FindStringSubmatch(line); c != nil {
			args = c[3]
		} else if strings.HasSuffix(line, "= ?") || strings.HasSuffix(line, " ???( <detached ...>") {
			continue // the process ended in the call, or before it made one
		} else {
			return nil, fmt.Errorf("not understood: %.200s", line)
		}
		if strings.HasPrefix(c[4], "-1 ") || strings.HasPrefix(c[4], "?") {
			continue
		}
		if strings.Contains(args, `"...`) {
			return nil, fmt.Errorf("cut off: %.200s", line)
		}
		calls = append(calls, call{c[2], strings.Split(strings.TrimSpace(args), ", "), c[4], began, len(calls)})
	}
	return calls, nil
}

// unhex returns a string of a trace, such as \x2f\x61.
func unhex(text string) (string, error) {
	data, err := hex.DecodeString(strings.ReplaceAll(text, `\x`, ""))
	return string(data), err
}

// descriptor is an argument or a result such as 3<\x2f>: a number, and the path of its file, "" if it has none in the file system.
func descriptor(text string) (key, path string) {
	number, rest, named := strings.Cut(text, "<")
	end := strings.LastIndexByte(rest, '>')
	if !named || end < 0 || !strings.HasPrefix(rest, `\x2f`) || strings.HasSuffix(rest, "(deleted)") {
		return number, ""
	}
	path, _ = unhex(rest[:end])
	return number + "<" + path, path
}

// quotedText returns the strings of an argument, joined.
func quotedText(arg string) (string, error) {
	var all strings.Builder
	for i, part := range strings.Split(arg, `"`) {
		if i%2 == 1 {
			text, err := unhex(part)
			if err != nil {
				return "", err
			}
			all.WriteString(text)
		}
	}
	return all.String(), nil
}

// number returns an argument or a result as a number. Modes are octal.
func number(text string) (int64, error) {
	text, _, _ = strings.Cut(text, " ")
	text, _, _ = strings.Cut(text, "<")
	return strconv.ParseInt(text, 0, 64)
}

// path returns the path that arguments name: a string, or a directory's descriptor and a string.
func (c call) path(at int) (string, error) {
	if at+1 < len(c.args) && strings.HasSuffix(c.args[at], ">") {
		name, err := quotedText(c.args[at+1])
		if _, dir := descriptor(c.args[at]); !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		return filepath.Clean(name), err
	}
	if at >= len(c.args) {
		return "", errors.New("no path")
	}
	name, err := quotedText(c.args[at])
	if err == nil && !filepath.IsAbs(name) {
		err = fmt.Errorf("%s: a path without a directory", name)
	}
	return filepath.Clean(name), err
}
