// Command channels measures the sessions of channels: how long a process takes to load 1,000 files of 50 messages, and whether 100
// chats at once lose a message, as processes of their own and as turns of one process. Run it from the repository:
// go run ./bench/channels
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ollim/ollim/bench/program"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/channel"
)

func main() {
	files := flag.Int("files", 1000, "sessions to load")
	loads := flag.Int("loads", 20, "how often they are loaded")
	chats := flag.Int("chats", 100, "turns at once")
	binary := flag.String("ollim", "", "the program to measure; default: built from this repository")
	flag.Parse()
	if err := measure(*files, *loads, *chats, *binary); err != nil {
		fmt.Fprintln(os.Stderr, "channels:", err)
		os.Exit(1)
	}
}

func measure(files, loads, chats int, binary string) error {
	dir, err := os.MkdirTemp("", "ollim-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	fmt.Println("| measurement | limit | median | best | processor time |\n| --- | --- | --- | --- | --- |")
	if err := load(filepath.Join(dir, "load"), files, loads); err != nil {
		return err
	}
	if err := turns(filepath.Join(dir, "turns"), chats); err != nil {
		return err
	}
	return processes(dir, chats, binary)
}

// messages is how many a session keeps.
const messages = 50

func book(dir string) channel.Book {
	warn := func(text string) { fmt.Fprintln(os.Stderr, "channels: warning:", text) }
	return channel.Book{Home: paths.Dir(dir), Disk: store.Disk{Now: time.Now, Warn: warn, Locks: &lock.Table{}}, Cache: &channel.Cache{}}
}

func load(dir string, files, loads int) error {
	b := book(dir)
	at := time.Now().UTC().Truncate(time.Second)
	for i := range files {
		s := channel.Session{SessionID: "telegram_" + strconv.Itoa(i), Channel: "telegram", ChatID: strconv.Itoa(i), CreatedAt: at, LastAccessed: at}
		for k := range messages {
			role := []string{channel.User, channel.Assistant}[k%2]
			s.Messages = append(s.Messages, channel.Message{Role: role, Content: strings.Repeat("word ", 40), Timestamp: at})
		}
		if err := store.WriteJSON(b.Home.Channel(s.SessionID), s, store.Buffered); err != nil {
			return err
		}
	}
	var took []time.Duration
	cpu := spent(syscall.RUSAGE_SELF)
	for range loads {
		b.Cache = &channel.Cache{} // as in a new process
		began := time.Now()
		l, err := b.Load(context.Background())
		if err != nil || l.Sessions != files {
			return fmt.Errorf("%s: %w", l, cmp.Or(err, errors.New("not all of them")))
		}
		took = append(took, time.Since(began))
	}
	cpu = (spent(syscall.RUSAGE_SELF) - cpu) / time.Duration(loads)
	slices.Sort(took)
	fmt.Printf("| load %d sessions of %d messages | 200 ms | %s | %s | %s |\n", files, messages, millis(took[len(took)/2]), millis(took[0]), millis(cpu))
	return nil
}

func millis(d time.Duration) string { return fmt.Sprintf("%.0f ms", float64(d)/1e6) }

// spent is the processor time of this process or of its children.
func spent(who int) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(who, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// turns takes turns in this process, in one chat for every 25 of them, whose 50 messages are then all in the file.
func turns(dir string, chats int) error {
	b := book(dir)
	began, cpu := time.Now(), spent(syscall.RUSAGE_SELF)
	err := together(chats, func(i int) error {
		n, err := channel.NewName("bench", strconv.Itoa(i/25))
		if err != nil {
			return err
		}
		guard, err := b.Disk.Locks.WaitGuard(context.Background(), b.Home.ConversationLock(n.Key()))
		if err != nil {
			return err
		}
		defer guard.Release()
		turn, err := b.Open(n)
		if err != nil {
			return err
		}
		turn.Begin(context.Background(), strconv.Itoa(i), time.Now())
		turn.Answer("yes")
		return turn.End()
	})
	return errors.Join(err, count(b, chats, "turns of one process", began, spent(syscall.RUSAGE_SELF)-cpu))
}

// processes takes turns by the chat command with the script engine.
func processes(dir string, chats int, binary string) error {
	binary, err := program.Path(binary, dir)
	if err != nil {
		return err
	}
	data := filepath.Join(dir, "data")
	run := func(args ...string) error {
		cmd := exec.Command(binary, append([]string{"--data-dir", data}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("ollim %s: %w: %s", strings.Join(args, " "), err, out)
		}
		return nil
	}
	if err := run("init", "--engine", "script:bench.yaml"); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(data, "bench.yaml"), []byte("turns:\n  - - text: \"yes\"\n"), 0o600); err != nil {
		return err
	}
	began, cpu := time.Now(), spent(syscall.RUSAGE_CHILDREN)
	err = together(chats, func(i int) error {
		return run("chat", "--channel", "bench", "--chat-id", strconv.Itoa(i/25), strconv.Itoa(i))
	})
	return errors.Join(err, count(book(data), chats, "processes", began, spent(syscall.RUSAGE_CHILDREN)-cpu))
}

// together does something chats times at once.
func together(chats int, do func(i int) error) error {
	errs := make([]error, chats)
	var all sync.WaitGroup
	for i := range chats {
		all.Go(func() { errs[i] = do(i) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// count checks that every message and its answer are there, and prints how long that took.
func count(b channel.Book, chats int, what string, began time.Time, cpu time.Duration) error {
	took := time.Since(began)
	names, err := b.Names()
	seen := map[string]bool{}
	for _, n := range names {
		s, readErr := b.Read(n)
		err = errors.Join(err, readErr)
		for i := 0; i+1 < len(s.Messages); i += 2 {
			if s.Messages[i].Role == channel.User && s.Messages[i+1].Content == "yes" {
				seen[s.Messages[i].Content] = true
			}
		}
	}
	fmt.Printf("| %d chats at once, as %s: %d messages lost | 0 lost | %s | | %s |\n", chats, what, chats-len(seen), millis(took), millis(cpu))
	if len(seen) != chats {
		err = errors.Join(err, fmt.Errorf("%d of %d messages are there", len(seen), chats))
	}
	return err
}
