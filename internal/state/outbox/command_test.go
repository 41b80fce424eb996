package outbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/process"
)

func TestTextArrivesByteForByte(t *testing.T) {
	megabyte := strings.Repeat("0123456789 äöü 🦊\r\n", 45_000)
	for name, tc := range map[string]struct{ text, want string }{
		"plain":              {"hello", "hello\n"},
		"newline":            {"hello\n", "hello\n"},
		"several newlines":   {"\n a\n\nb \n\n\n", "\n a\n\nb \n"},
		"empty":              {"", "\n"},
		"nul and escapes":    {"a\x00b\x1b[31m <&> \u2028 \"\\", "a\x00b\x1b[31m <&> \u2028 \"\\\n"},
		"not utf-8":          {"a\xffb", "a\ufffdb\n"},
		"more than 1 MB":     {megabyte, strings.TrimRight(megabyte, "\n") + "\n"},
		"looks like a shell": {"$(touch x); `touch x` %s -n", "$(touch x); `touch x` %s -n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			o.script(t, `cat > "$data/$OLLIM_MESSAGE_ID"; [ -e "$data/ok" ]`)
			m := message("r.1")
			m.Text = tc.text
			o.send(t, m, Queued)
			first := o.read(t, "r.1")
			o.file(t, "../../ok", "")
			o.now = start.Add(time.Minute)
			o.flush(t, Report{Sent: 1})
			if again := o.read(t, "r.1"); first != tc.want || again != tc.want {
				t.Errorf("got %d bytes %.60q, then %d bytes %.60q; want %d bytes", len(first), first, len(again), again, len(tc.want))
			}
		})
	}
}

func TestEnvironmentAndFolder(t *testing.T) {
	t.Setenv("LEAK", "from the process")
	o := newOffice(t)
	o.script(t, `env > "$data/env"; pwd > "$data/pwd"`)
	o.Env = append(o.Env, "OLLIM_RUN=other", "OLLIM_HOME=/kept", "OLLIM_KIND=overridden", "LANG=C")
	m := message("20260224.7")
	m.Label, m.Job, m.Kind, m.Critical = "two\nlines\x00\r of = text", strings.Repeat("ä", 70_000), Failure, true
	o.send(t, m, Sent)
	got := strings.Split(strings.TrimSpace(o.read(t, "env")), "\n")
	for _, want := range []string{
		"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C", "OLLIM_HOME=/kept", "OLLIM_MESSAGE_ID=20260224.7", "OLLIM_MESSAGE_RUN=20260224-run",
		"OLLIM_JOB=" + strings.Repeat("ä", maxValue/2), "OLLIM_LABEL=two lines of = text", "OLLIM_KIND=failure", "OLLIM_CRITICAL=1",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("%.80s is missing in %.2000q", want, got)
		}
	}
	for _, kv := range got {
		if strings.HasPrefix(kv, "OLLIM_RUN=") || strings.HasPrefix(kv, "LEAK=") {
			t.Errorf("the command got %s", kv)
		}
	}
	if pwd := strings.TrimSpace(o.read(t, "pwd")); pwd != o.Home.Path() {
		t.Errorf("ran in %s, not in %s", pwd, o.Home.Path())
	}
	m = message("r.2")
	o.send(t, m, Sent)
	if !strings.Contains(o.read(t, "env"), "OLLIM_CRITICAL=0\n") {
		t.Error("OLLIM_CRITICAL is not 0")
	}
}

func TestStatusDecides(t *testing.T) {
	for name, tc := range map[string]struct {
		body   string
		want   Fate
		reason string // what Pending, or for a refusal Warn, says
	}{
		"ok":                   {"exit 0", Sent, ""},
		"ok with noise":        {"cat; head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2; exit 0", Sent, ""},
		"1":                    {"echo no network >&2; exit 1", Queued, "exit status 1: no network"},
		"silent":               {"exit 75", Queued, "exit status 75"},
		"76":                   {"exit 76", Queued, "exit status 76"},
		"127":                  {"no-such-program 2> /dev/null", Queued, "exit status 127"},
		"refused":              {"echo blocked >&2; exit 77", Refused, "message r.1 was refused: exit status 77: blocked"},
		"killed":               {"kill -KILL $$", Queued, "signal: killed"},
		"terminated by itself": {"kill -TERM $$", Queued, "signal: terminated"},
		"control characters":   {`printf '\033[2Ja\tb\n\377c\n' >&2; exit 3`, Queued, "exit status 3: [2Ja b c"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			o.script(t, tc.body)
			o.send(t, message("r.1"), tc.want)
			var got []string
			for _, e := range o.pending(t) {
				got = append(got, e.LastError)
			}
			got = append(got, o.warned...)
			if want := tc.reason; strings.Join(got, "|") != want {
				t.Errorf("got %q, want %q", got, want)
			}
			if files, want := o.files(t), map[bool]string{true: "r.1.jsonl"}[tc.want == Queued]; files != want {
				t.Errorf("in the outbox: %q, want %q", files, want)
			}
		})
	}
}

func TestOnlyTheEndOfStderrIsKept(t *testing.T) {
	o := newOffice(t)
	o.script(t, `seq 1 5000 >&2; exit 1`)
	o.send(t, message("r.1"), Queued)
	got := o.pending(t)[0].LastError
	if len(got) > process.StderrLimit+20 || len(got) < process.StderrLimit-20 || !strings.HasSuffix(got, " 4999 5000") {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}

func TestCommandThatCannotStart(t *testing.T) {
	o := newOffice(t)
	o.script(t, "exit 0")
	plain, script := o.Home.Path("plain"), o.Home.Path("bad.sh")
	for path, text := range map[string]string{plain: "#!/bin/sh\n", script: "#!/no/such/interpreter\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(script, 0o700); err != nil {
		t.Fatal(err)
	}
	for i, tc := range []struct{ command, reason string }{
		{"/no/such/command", "no such file"},
		{plain, "permission denied"},
		{o.Home.Path(), "permission denied"},
		{script, "no such file"},
		{"no-such-command", "not found in PATH=/usr/local/bin"},
	} {
		o.Command = []string{tc.command}
		id := fmt.Sprintf("r.%d", i)
		o.send(t, message(id), Queued)
		e := o.pending(t)[i]
		if e.ID != id || e.Attempts != 1 || !strings.Contains(e.LastError, tc.reason) {
			t.Errorf("%s: %+v, want %q", tc.command, e, tc.reason)
		}
	}
}

func TestCommandIsFoundInItsOwnPath(t *testing.T) {
	o := newOffice(t)
	t.Chdir(o.Home.Path())
	bin := t.TempDir()
	for path, mode := range map[string]os.FileMode{
		"ours/tell":   0o700, // not in the PATH of the command
		"plain/tell":  0o600, // first in it, but not executable
		"folder/tell": os.ModeDir | 0o700,
		"theirs/tell": 0o700,
	} {
		path = filepath.Join(bin, path)
		dir := filepath.Dir(path)
		if mode.IsDir() {
			dir = path
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		text := "#!/bin/sh\necho \"$0 $1\" >> told\n"
		if err := os.WriteFile(path, []byte(text), mode); err != nil && !mode.IsDir() {
			t.Fatal(err)
		}
	}
	in := func(name string) string { return filepath.Join(bin, name) }
	t.Setenv("PATH", in("ours"))
	o.Command = []string{"tell", "1"}
	o.Env = []string{"PATH=" + in("ours"), "PATH=:.:no/such:" + in("plain") + ":" + in("folder") + ":" + in("theirs")}
	o.send(t, message("r.1"), Sent)
	if err := os.Rename(in("theirs/tell"), o.Home.Path("tell")); err != nil {
		t.Fatal(err)
	}
	o.Command = []string{"./tell", "2"}
	o.send(t, message("r.2"), Sent)
	o.Command = []string{"tell", "3"} // "." in a PATH would be the data directory, where agents write
	o.send(t, message("r.3"), Queued)
	if got, want := o.read(t, "told"), in("theirs/tell")+" 1\n./tell 2\n"; got != want {
		t.Errorf("started %q, want %q", got, want)
	}
}

func TestStdinNobodyReads(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"exits":  "exit 0",
		"closes": "exec < /dev/null; sleep 0.1; exit 0",
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			o.script(t, body)
			m := message("r.1")
			m.Text = strings.Repeat("x", 1<<20)
			o.send(t, m, Sent)
		})
	}
}

// A command may leave a process running that keeps its pipes open. It is not waited for and not a failure.
func TestGrandchildKeepsThePipes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		status, trouble string
		want            Fate
	}{{"0", "", Sent}, {"5", "exit status 5", Queued}} {
		t.Run(tc.status, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t)
			o.script(t, `exec 3<&0; sleep 100000 <&3 & echo $! > "$data/pid"; exit `+tc.status)
			m := message("r.1")
			m.Text = strings.Repeat("x", 1<<20)
			o.send(t, m, tc.want)
			if pid := strings.TrimSpace(o.read(t, "pid")); !alive(pid) {
				t.Error("what the command left behind was killed")
			} else {
				kill(t, pid)
			}
			var trouble string
			for _, e := range o.pending(t) {
				trouble += e.LastError
			}
			if trouble != tc.trouble {
				t.Errorf("pending: %q, want %q", trouble, tc.trouble)
			}
		})
	}
}

// timesOut sends a message with a command whose child writes the file child, with its process id, as its last step before it waits for ever.
// The time limit is doubled until the child has come that far, so all that the command does before is done.
func timesOut(t *testing.T, body string) (o *office, took time.Duration) {
	t.Helper()
	for limit := 200 * time.Millisecond; ; limit *= 2 {
		o = newOffice(t)
		o.Timeout = limit
		o.script(t, body)
		began := time.Now()
		o.send(t, message("r.1"), Queued)
		if took = time.Since(began); o.read(t, "child") != "" || limit > time.Minute {
			return o, took
		}
	}
}

func TestTimeoutEndsTheWholeGroup(t *testing.T) {
	t.Parallel()
	o, took := timesOut(t, `trap '' TERM
echo working >&2
echo $$ > "$data/leader"
export data
sh -c 'trap "" TERM; echo $$ > "$data/child"; while :; do sleep 1; done' &
while :; do sleep 1; done`)
	if took < 2*o.Timeout {
		t.Errorf("took %s, want at least %s", took, 2*o.Timeout)
	}
	for _, who := range []string{"leader", "child"} {
		dies(t, strings.TrimSpace(o.read(t, who)))
	}
	if got, want := o.pending(t)[0].LastError, "no end within "+o.Timeout.String()+": working"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// What the command has started is ended too, when the command itself goes at once. And its status counts no more.
func TestTimeoutOfAnObedientCommand(t *testing.T) {
	t.Parallel()
	o, _ := timesOut(t, `trap 'echo bye >&2; exit 0' TERM
export data
sh -c 'trap "" TERM; exec 2> /dev/null; echo $$ > "$data/child"; while :; do sleep 1; done' &
wait`)
	dies(t, strings.TrimSpace(o.read(t, "child")))
	if got, want := o.pending(t)[0].LastError, "no end within "+o.Timeout.String()+": bye"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestContextEndsAnAttempt(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.script(t, `echo $$ > "$data/leader"; exec sleep 100000`)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		eventually(t, "the command runs", func() bool { return o.read(t, "leader") != "" })
	}()
	if fate, err := o.try(ctx, message("r.1")); fate != Queued || err != nil {
		t.Errorf("%q, %v", fate, err)
	}
	dies(t, strings.TrimSpace(o.read(t, "leader")))
	if fate, err := o.try(ctx, message("r.2")); fate != Queued || err != nil {
		t.Errorf("with a context that had ended: %q, %v", fate, err)
	}
	o.now = start.Add(time.Hour)
	if r, err := o.Flush(ctx); !errors.Is(err, context.Canceled) || r != (Report{Queued: 2}) {
		t.Errorf("Flush: %+v, %v", r, err)
	}
	got := o.pending(t)
	if len(got) != 2 || got[0].LastError != "context canceled" || got[1].Attempts != 0 {
		t.Errorf("%+v", got)
	}
}

func TestTerminal(t *testing.T) {
	o := newOffice(t)
	o.script(t, `cat >> "$data/sent"`)
	var terminal bytes.Buffer
	o.Terminal = &terminal
	text := message("r.1")
	text.Kind = Text
	o.send(t, text, Sent)
	o.send(t, message("r.2"), Sent)
	if terminal.String() != "text of r.1\n" || o.read(t, "sent") != "text of r.2\n" {
		t.Errorf("terminal %q, command %q", terminal.String(), o.read(t, "sent"))
	}

	// A terminal that has gone away loses nothing, and Flush does not take the terminal for the owner's.
	o.Terminal = gone{}
	text.ID = "r.3"
	o.send(t, text, Queued)
	o.Terminal = &terminal
	o.now = start.Add(time.Minute)
	o.flush(t, Report{Sent: 1})
	if o.read(t, "sent") != "text of r.2\ntext of r.1\n" && o.read(t, "sent") != "text of r.2\ntext of r.3\n" {
		t.Errorf("command %q", o.read(t, "sent"))
	}
	o.Command = nil
	text.ID = "r.4"
	o.send(t, text, Sent)
	if files := o.files(t); files != "" {
		t.Errorf("left in the outbox: %s", files)
	}
}

type gone struct{}

func (gone) Write([]byte) (int, error) { return 0, errors.New("input/output error") }
