package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// touching are the system calls that start a program, make a connection or change the file system.
const touching = "execve,execveat,connect,bind,sendto,socket,openat,open,creat,mkdir,mkdirat,rename,renameat,renameat2,link,linkat,symlink,symlinkat,unlink,unlinkat,rmdir,truncate,ftruncate,chmod,fchmod,fchmodat,?fchmodat2,utimensat"

// TestReplayTouchesNothing: a replay starts no program, opens no socket, and changes nothing outside of its own temporary directory, which
// is gone afterwards.
func TestReplayTouchesNothing(t *testing.T) {
	t.Parallel()
	c, api := withNative(t)
	c.write("data.md", "one\n")
	c.put("gates/look", "#!/bin/sh\necho news\n")
	if err := os.Chmod(filepath.Join(c.data, "gates/look"), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	temporary := t.TempDir()
	c.env = append(c.env, "TMPDIR="+temporary)
	c.ok("routine", "add", "look", "--cron", "0 9 * * *", "--background", "--gate", "look", "--session", "persistent", "--allowed-tools", "Bash(echo *)", "Look.")
	api.Reply(
		anthropicapi.Use("Bash", map[string]string{"command": "echo hello"}), anthropicapi.Use("Read", map[string]string{"file_path": "data.md"}),
		anthropicapi.Use("report_updates", map[string]string{"message": "There is news."}), anthropicapi.Reply{Text: "Done."},
	)
	c.ok("fire", "look")
	asked := len(api.Requests())
	out, code, trace := c.strace([]string{"-s", "4096", "-e", "signal=none", "-e", "trace=" + touching}, "run", "replay", "look")
	if code != 0 || !strings.Contains(out, "same: 4 requests and 2 decisions about tools") {
		t.Fatalf("exit status %d: %s", code, out)
	}
	if n := len(api.Requests()); n != asked {
		t.Errorf("%d requests were sent", n-asked)
	}
	call := regexp.MustCompile(`^\d+ +([a-z0-9]+)\((.*)`)
	own := regexp.MustCompile(regexp.QuoteMeta(temporary) + `(?:/|>, ")ollim-replay-\d+[/">]`)
	begun, made := 0, false
	for line := range strings.Lines(trace) {
		m := call.FindStringSubmatch(line)
		switch {
		case m == nil, strings.HasSuffix(strings.TrimSpace(line), "unfinished ...>") && !strings.Contains(line, `"/`):
		case m[1] == "execve" && begun == 0: // the command itself
			begun++
		case own.MatchString(m[2]):
			made = true
		case strings.HasPrefix(m[1], "open") && !strings.Contains(m[2], "O_CREAT") && !strings.Contains(m[2], "O_TRUNC") && !strings.Contains(m[2], "O_WRONLY") && !strings.Contains(m[2], "O_RDWR"):
		default:
			t.Errorf("%s", line)
		}
	}
	if !made {
		t.Error("the trace has no temporary directory")
	}
	if left, err := filepath.Glob(filepath.Join(temporary, "*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
}
