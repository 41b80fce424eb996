package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/testkit"
)

var start = time.Date(2026, 2, 24, 22, 30, 0, 0, time.UTC)

// TestMain makes this program one of several processes at the same outbox.
func TestMain(m *testing.M) {
	roles := map[string]func([]string) error{}
	for name, play := range map[string]func(context.Context, *office) error{
		"send": sendOne, "send much": sendMuch, "queue": queueAll, "flush": flushOnce, "lockout": tryEverything,
		"serve": serveDoor, "hand": handOver,
	} {
		roles[name] = func(args []string) error {
			o := officeAt(args[0])
			o.Command = args[1:]
			return play(context.Background(), o)
		}
	}
	testkit.Main(m, roles)
}

// muchText does not fit into a pipe.
var muchText = strings.Repeat("0123456789", 30_000)

// office is a Post in a new data directory, with a clock that the test sets and the warnings that it gave.
type office struct {
	Post
	now    time.Time
	mu     sync.Mutex
	warned []string
}

func newOffice(t *testing.T) *office {
	t.Helper()
	return officeAt(t.TempDir())
}

func officeAt(dir string) *office {
	o := &office{now: start}
	o.Post = Post{
		Home: paths.Dir(dir),
		Disk: store.Disk{
			Now: func() time.Time { return o.now },
			Warn: func(m string) {
				o.mu.Lock()
				defer o.mu.Unlock()
				o.warned = append(o.warned, m)
			},
		},
		Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin"},
	}
	return o
}

// script makes a shell script the command of o. The variable $data is the data directory; output belongs there.
func (o *office) script(t *testing.T, body string) {
	t.Helper()
	path := o.Home.Path("send.sh")
	text := "#!/bin/sh\ndata='" + o.Home.Path() + "'\n" + body + "\n"
	if err := testkit.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	o.Command = []string{path}
}

// message is one that was created at start.
func message(id string) Message {
	return Message{
		ID: id, Run: "20260224-run", Job: "a1b2c3d4", Label: "Daily market analysis", Kind: Ping, Text: "text of " + id, Created: start,
	}
}

// try sends a message and returns its fate.
func (o *office) try(ctx context.Context, m Message) (Fate, error) {
	receipt, err := o.Send(ctx, m)
	return receipt.Fate, err
}

func (o *office) send(t *testing.T, m Message, want Fate) {
	t.Helper()
	if fate, err := o.try(t.Context(), m); fate != want || err != nil {
		t.Fatalf("Send(%s): %q, %v, want %q", m.ID, fate, err, want)
	}
}

func (o *office) flush(t *testing.T, want Report) {
	t.Helper()
	if r, err := o.Flush(t.Context()); r != want || err != nil {
		t.Fatalf("Flush: %+v, %v, want %+v", r, err, want)
	}
}

func (o *office) pending(t *testing.T) []entry {
	t.Helper()
	entries, err := o.Pending()
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

// files lists the outbox, also what is hidden in it.
func (o *office) files(t *testing.T) string {
	t.Helper()
	entries, err := os.ReadDir(o.Home.Outbox())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// file writes a file of the outbox by hand.
func (o *office) file(t *testing.T, name, data string) {
	t.Helper()
	if err := os.MkdirAll(o.Home.Outbox(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(o.Home.Outbox(), name), []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (o *office) read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(o.Home.Path(name))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(data)
}

// child is this binary in a role, at the same data directory and with the same command.
func (o *office) child(t *testing.T, role string) *exec.Cmd {
	t.Helper()
	return testkit.Child(t, role, append([]string{o.Home.Path()}, o.Command...)...)
}

func sendOne(ctx context.Context, o *office) error {
	fmt.Println(o.try(ctx, message("r.1")))
	return nil
}

func sendMuch(ctx context.Context, o *office) error {
	m := message("r.1")
	m.Text = muchText
	fmt.Println(o.try(ctx, m))
	return nil
}

// queueAll queues messages until it is killed, and prints their ids.
func queueAll(ctx context.Context, o *office) error {
	o.Command = nil
	for i := 0; ; i++ {
		id := fmt.Sprintf("p%d.%d", os.Getpid(), i)
		if fate, err := o.try(ctx, message(id)); err != nil || fate != Queued {
			return fmt.Errorf("%s: %s, %w", id, fate, err)
		}
		fmt.Println(id)
	}
}

func flushOnce(ctx context.Context, o *office) error {
	r, err := o.Flush(ctx)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

// tryEverything prints the results of an owner who cannot write to the outbox.
func tryEverything(ctx context.Context, o *office) error {
	fmt.Println(o.try(ctx, message("r.1")))
	fmt.Println(o.Flush(ctx))
	fmt.Println(o.try(ctx, message("r.2")))
	return nil
}
