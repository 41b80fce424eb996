package process

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const path = "PATH=/usr/local/bin:/usr/bin:/bin"

// sh is a call of a shell that runs body, in a new directory.
func sh(t *testing.T, body string) Call {
	t.Helper()
	return Call{Argv: []string{"/bin/sh", "-c", body}, Env: []string{path}, Dir: t.TempDir(), Limit: 1 << 16, Grace: 100 * time.Millisecond}
}

// file writes an executable script, or what else text and mode make of it.
func file(t *testing.T, name, text string, mode os.FileMode) string {
	t.Helper()
	name = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(name, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return name
}

func run(t *testing.T, c Call) Result {
	t.Helper()
	r, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// patience bounds the wait for what another process does.
const patience = 5 * time.Minute

// pid waits for the process id that a program writes into its directory.
func pid(t *testing.T, c Call, name string) int {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		data, _ := os.ReadFile(filepath.Join(c.Dir, name))
		if n, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil && strings.HasSuffix(string(data), "\n") {
			return n
		}
	}
	t.Fatalf("no process id in %s", name)
	return 0
}

// alive is false also for a zombie.
func alive(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !strings.HasPrefix(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " Z")
}

func dead(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if !alive(pid) {
			return
		}
	}
	t.Errorf("process %d is still alive", pid)
	_ = syscall.Kill(pid, syscall.SIGKILL)
}

func TestRun(t *testing.T) {
	for name, tc := range map[string]struct {
		body   string
		out    string
		stderr string
		status int
		end    string
	}{
		"silent":      {"exit 0", "", "", 0, "exit status 0"},
		"both":        {"echo out; echo err >&2", "out\n", "err\n", 0, "exit status 0"},
		"status":      {"echo half; exit 77", "half\n", "", 77, "exit status 77"},
		"signal":      {"echo half; kill -KILL $$", "half\n", "", -1, "signal: killed"},
		"SIGTERM":     {"kill -TERM $$", "", "", -1, "signal: terminated"},
		"input":       {"cat", "to be read", "", 0, "exit status 0"},
		"not read":    {"exec 0<&-; echo done; exit 3", "done\n", "", 3, "exit status 3"},
		"much stderr": {"seq 100000 >&2", "", tailOf(100000), 0, "exit status 0"},
	} {
		t.Run(name, func(t *testing.T) {
			c := sh(t, tc.body)
			c.Stdin = []byte("to be read")
			r := run(t, c)
			if string(r.Out) != tc.out || r.Cut || r.Stderr != tc.stderr || r.Status != tc.status || r.End != tc.end {
				t.Errorf("%+v", r)
			}
		})
	}
}

// tailOf is the end of what `seq n` writes.
func tailOf(n int) string {
	var all strings.Builder
	for i := 1; i <= n; i++ {
		all.WriteString(strconv.Itoa(i) + "\n")
	}
	return all.String()[all.Len()-StderrLimit:]
}

func TestLimit(t *testing.T) {
	for name, tc := range map[string]struct {
		limit int
		bytes string
		want  int
		cut   bool
	}{
		"less":     {10, "9", 9, false},
		"exactly":  {10, "10", 10, false},
		"one more": {10, "11", 10, true},
		"flood":    {100_000, "9000000", 100_000, true},
		"no limit": {0, "9000000", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := sh(t, `head -c `+tc.bytes+` /dev/zero && echo all >&2`)
			c.Limit = tc.limit
			if r := run(t, c); len(r.Out) != tc.want || r.Cut != tc.cut || r.Status != 0 || r.Stderr != "all\n" {
				t.Errorf("%d bytes, cut %v, status %d, %q", len(r.Out), r.Cut, r.Status, r.Stderr)
			}
		})
	}
}

func TestHeadAndTail(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, e := kept{limit: rapid.IntRange(1, 50).Draw(t, "limit")}, kept{limit: StderrLimit, last: true}
		var all []byte
		for _, chunk := range rapid.SliceOf(rapid.SliceOfN(rapid.Byte(), 0, 3000)).Draw(t, "chunks") {
			all = append(all, chunk...)
			for _, w := range []io.Writer{&h, &e} {
				if n, err := w.Write(chunk); n != len(chunk) || err != nil {
					t.Fatalf("%d, %v", n, err)
				}
			}
		}
		if !bytes.Equal(h.data, all[:min(len(all), h.limit)]) || h.cut != (len(all) > h.limit) {
			t.Errorf("kept %d of %d bytes, limit %d, cut %v", len(h.data), len(all), h.limit, h.cut)
		}
		if !bytes.Equal(e.data, all[max(0, len(all)-StderrLimit):]) {
			t.Errorf("kept %d of %d bytes", len(e.data), len(all))
		}
	})
}

func TestStdin(t *testing.T) {
	much := bytes.Repeat([]byte("x"), 1<<20)
	for name, tc := range map[string]struct {
		body string
		in   []byte
		want string
	}{
		"none":            {"wc -c", nil, "0\n"},
		"much":            {"wc -c", much, "1048576\n"},
		"read twice":      {"wc -c; wc -c < /dev/stdin", much, "1048576\n1048576\n"}, // it is a file
		"nobody reads":    {"echo no", much, "no\n"},
		"somebody closes": {"exec < /dev/null; echo no", much, "no\n"},
	} {
		t.Run(name, func(t *testing.T) {
			c := sh(t, tc.body)
			c.Stdin = tc.in
			if r := run(t, c); string(r.Out) != tc.want || r.Status != 0 {
				t.Errorf("%q, status %d", r.Out, r.Status)
			}
			if left, err := filepath.Glob(filepath.Join(c.Dir, ".*")); err != nil || len(left) > 0 {
				t.Errorf("left %q, %v", left, err)
			}
		})
	}
}

// TestBusy: a program whose file is open for writing is started when it is closed, and not started if it stays open.
func TestBusy(t *testing.T) {
	for name, tc := range map[string]struct {
		closed time.Duration
		want   error
	}{"soon closed": {100 * time.Millisecond, nil}, "never closed": {time.Hour, syscall.ETXTBSY}} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "program")
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o700)
			if err == nil {
				_, err = f.WriteString("#!/bin/sh\necho ran\n")
			}
			if err != nil {
				t.Fatal(err)
			}
			closing := time.AfterFunc(tc.closed, func() { _ = f.Close() })
			r, err := Run(t.Context(), Call{Argv: []string{path}, Dir: t.TempDir(), Env: os.Environ(), Limit: 100})
			if !errors.Is(err, tc.want) || err == nil && string(r.Out) != "ran\n" {
				t.Errorf("%q, %v", r.Out, err)
			}
			if closing.Stop() {
				_ = f.Close()
			}
		})
	}
}

// What is inherited: the given variables, the given directory, three descriptors. Not our variables, files or session.
func TestNothingOfOurs(t *testing.T) {
	t.Setenv("LEAK", "ours")
	inherited, err := syscall.Dup(1) // as a shell or an engine would pass it on to us
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Close(inherited) }()
	c := Call{Argv: []string{"env"}, Env: []string{"A=1", path, "A=2"}, Dir: t.TempDir(), Limit: 1 << 16}
	if got := string(run(t, c).Out); got != path+"\nA=2\n" && got != "A=2\n"+path+"\n" {
		t.Errorf("environment %q", got)
	}
	c.Argv, c.Env = []string{"/usr/bin/env"}, nil
	if got := string(run(t, c).Out); got != "" {
		t.Errorf("an empty environment has %q", got)
	}
	c = sh(t, `pwd; for fd in /proc/$$/fd/*; do [ ! -e "$fd" ] || echo "${fd##*/}"; done; read -r _ _ _ _ group session tty _ < /proc/$$/stat
[ "$group $session $tty" = "$$ $$ 0" ] || echo "$$ has group $group, session $session, terminal $tty"`)
	if got, want := string(run(t, c).Out), c.Dir+"\n0\n1\n2\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRelativePathBeginsAtDir(t *testing.T) {
	c := Call{Argv: []string{"./tell", "me"}, Dir: filepath.Dir(file(t, "tell", "#!/bin/sh\necho \"$0 $1\"\n", 0o700)), Limit: 100}
	if got := string(run(t, c).Out); got != "./tell me\n" {
		t.Errorf("%q", got)
	}
}

func TestCannotStart(t *testing.T) {
	dir := t.TempDir()
	for name, tc := range map[string]struct {
		call  Call
		cause error
		text  string
	}{
		"nothing":        {Call{}, nil, "no program given"},
		"not in PATH":    {Call{Argv: []string{"no-such-program"}, Env: []string{path}}, ErrNotFound, "no-such-program: not found in " + path},
		"missing":        {Call{Argv: []string{"/no/such"}}, syscall.ENOENT, "/no/such: no such file or directory"},
		"not executable": {Call{Argv: []string{file(t, "x", "#!/bin/sh\n", 0o600)}}, syscall.EACCES, "x: permission denied"},
		"a folder":       {Call{Argv: []string{dir}}, syscall.EACCES, dir + ": permission denied"},
		"no #! line":     {Call{Argv: []string{file(t, "x", "echo hello\n", 0o700)}}, syscall.ENOEXEC, "x: neither a program for this machine nor a script with a #! line: exec format error"},
		"empty file":     {Call{Argv: []string{file(t, "x", "", 0o700)}}, syscall.ENOEXEC, "a script with a #! line"},
		"interpreter":    {Call{Argv: []string{file(t, "x", "#!/no/such/shell\n", 0o700)}}, syscall.ENOENT, "x: its interpreter: no such file or directory"},
		"no folder":      {Call{Argv: []string{"/bin/sh"}, Dir: "/no/such"}, syscall.ENOENT, "/bin/sh: cannot run in /no/such: no such file"},
		"nul":            {Call{Argv: []string{"/bin/sh", "a\x00b"}}, syscall.EINVAL, "/bin/sh: invalid argument"},
		"too long":       {Call{Argv: []string{"/bin/sh", strings.Repeat("x", 1<<20)}}, syscall.E2BIG, "argument list too long"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.call.Limit, tc.call.Stdin = 10, []byte("in")
			r, err := Run(t.Context(), tc.call)
			if err == nil || !strings.Contains(err.Error(), tc.text) || tc.cause != nil && !errors.Is(err, tc.cause) || r.Status != -1 {
				t.Errorf("%+v, %v, want %q", r, err, tc.text)
			}
		})
	}
}

func TestLookPath(t *testing.T) {
	bin := t.TempDir()
	t.Chdir(bin)
	for name, mode := range map[string]os.FileMode{"ours/tell": 0o700, "plain/tell": 0o600, "theirs/tell": 0o700, "folder/tell/x": 0o700, "tell": 0o700} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", filepath.Join(bin, "ours"))
	theirs := "PATH=:.:theirs:/no/such:" + bin + "/plain:" + bin + "/folder:" + bin + "/theirs:" + bin + "/ours"
	for _, tc := range []struct {
		name string
		env  []string
		want string
	}{
		{"tell", []string{"PATH=" + bin + "/ours", theirs}, bin + "/theirs/tell"},
		{"tell", []string{theirs, "PATH=."}, ""},
		{"tell", nil, ""},
		{"", []string{theirs}, ""},
		{"./tell", nil, "./tell"},
		{"/no/such", nil, "/no/such"},
	} {
		got, err := LookPath(tc.name, tc.env)
		if got != tc.want || errors.Is(err, ErrNotFound) != (tc.want == "") {
			t.Errorf("%q in %q: %q, %v, want %q", tc.name, tc.env, got, err, tc.want)
		}
	}
}

func TestContextHadEnded(t *testing.T) {
	cause := errors.New("too late")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if r, err := Run(ctx, Call{Argv: []string{"/no/such"}}); !errors.Is(err, cause) || r.Status != -1 {
		t.Errorf("%+v, %v: it was started", r, err)
	}
}
