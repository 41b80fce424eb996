package transcript_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/transcript"
	"github.com/ollim/ollim/internal/testkit"
)

// corpus makes transcripts of about so many bytes: talk is short messages, work is calls with long results.
func corpus(b testing.TB, kind string, size int) transcript.Transcript {
	b.Helper()
	f := begin(b, b.TempDir(), "n-"+kind)
	source, err := os.ReadFile("line.go")
	if err != nil {
		b.Fatal(err)
	}
	prose := strings.Repeat("The quick brown fox jumps over the lazy dog, and \"says\" hello — naïve.\n", 20)
	var batch []transcript.Entry
	flush := func() {
		if err := f.Append(store.Buffered, batch...); err != nil {
			b.Fatal(err)
		}
		batch = batch[:0]
	}
	for i, n := 0, 0; n < size; i++ {
		if kind == "talk" {
			said := prose[:20+i*37%1000]
			batch = append(batch, entries(user(said), agent(said))...)
			n += 2 * len(said)
		} else {
			id := fmt.Sprintf("toolu_%d", i)
			got := string(source[i*97%2000:])
			batch = append(batch, entries(agent(prose[:100], call(id)), user(result(id, got)))...)
			n += len(got)
		}
		if len(batch) > 200 {
			flush()
		}
	}
	flush()
	return f
}

// plainLine is decoded without any method of ours; content is a string or blocks in all of a file.
type plainLine[T any] struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Message   struct {
		Role    string `json:"role"`
		Content T      `json:"content"`
	} `json:"message"`
	Tokens int `json:"tokens"`
}

func plain[T any](path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 1<<20)
	var all []plainLine[T]
	for {
		line, err := r.ReadBytes('\n')
		if err != nil && len(all) > 0 {
			return nil
		}
		var l plainLine[T]
		if err := json.Unmarshal(line, &l); err != nil {
			return err
		}
		all = append(all, l)
	}
}

func BenchmarkLoad(b *testing.B) {
	for _, kind := range []string{"talk", "work"} {
		f := corpus(b, kind, 20<<20)
		info, err := os.Stat(f.Path)
		if err != nil {
			b.Fatal(err)
		}
		run := func(name string, load func() error) {
			b.Run(kind+"/"+name, func(b *testing.B) {
				b.SetBytes(info.Size())
				for b.Loop() {
					if err := load(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		run("Load", func() error { _, err := f.Load(nil); return err })
		if kind == "talk" {
			run("encoding-json", func() error { return plain[string](f.Path) })
		} else {
			run("encoding-json", func() error { return plain[[]transcript.Block](f.Path) })
		}
	}
}

// grown is a transcript of so many bytes, really written.
func grown(b testing.TB, size int) transcript.Transcript {
	b.Helper()
	f := begin(b, b.TempDir(), "n-1", user("x"))
	out, err := os.OpenFile(f.Path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer out.Close()
	line := []byte(`{"type":"message","message":{"role":"user","content":"` + strings.Repeat("x", 2000) + "\"}}\n")
	for chunk := bytes.Repeat(line, 500); size > 0; size -= len(chunk) {
		if _, err := out.Write(chunk); err != nil {
			b.Fatal(err)
		}
	}
	return f
}

func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{0, 500 << 20} {
		f := grown(b, size)
		for name, d := range map[string]store.Durability{"buffered": store.Buffered, "synced": store.Synced} {
			b.Run(fmt.Sprintf("%dMB/%s", size>>20, name), func(b *testing.B) {
				e := entries(user(strings.Repeat("x", 200)))
				for b.Loop() {
					if err := f.Append(d, e...); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// An append reads no more of a long file than of a short one.
func TestAppendCostIsIndependentOfLength(t *testing.T) {
	read := func() (bytes int) {
		text, err := os.ReadFile("/proc/self/io")
		if err != nil {
			testkit.Missing(t, "what a process reads is counted in /proc/self/io: run the test on Linux, with /proc mounted: %v", err)
		}
		if _, err := fmt.Sscanf(string(text), "rchar: %d", &bytes); err != nil {
			t.Fatal(err)
		}
		return bytes
	}
	e := entries(user("x"))
	cost := func(f transcript.Transcript) int {
		before := read()
		for range 200 {
			if err := f.Append(store.Buffered, e...); err != nil {
				t.Fatal(err)
			}
		}
		return read() - before
	}
	if short, long := cost(grown(t, 0)), cost(grown(t, 20<<20)); long > short+short/2+64<<10 {
		t.Errorf("200 appends to a long file read %d bytes, to a short one %d", long, short)
	}
}

func BenchmarkSearch(b *testing.B) {
	f := corpus(b, "work", 50<<20)
	info, err := os.Stat(f.Path)
	if err != nil {
		b.Fatal(err)
	}
	sessions := f.Path[:strings.LastIndex(f.Path, "/--")]
	for _, word := range []string{"nowhere", "entry", "привет"} {
		b.Run(word, func(b *testing.B) {
			b.SetBytes(info.Size())
			for b.Loop() {
				search(b, sessions, word)
			}
		})
	}
	b.Run("first of many", func(b *testing.B) {
		for b.Loop() {
			for range transcript.Search(b.Context(), files(b, sessions), []string{"escape"}, nil, nil) {
				break
			}
		}
	})
}

func BenchmarkList(b *testing.B) {
	sessions := b.TempDir()
	for i := range 1000 {
		begin(b, sessions, fmt.Sprintf("n-%d", i), user("hello"), agent(strings.Repeat("x\n", 2000)))
	}
	for b.Loop() {
		if list, _, err := transcript.Dir(sessions).List("", nil); err != nil || len(list) != 1000 {
			b.Fatal(len(list), err)
		}
	}
}

func BenchmarkBranch(b *testing.B) {
	f := corpus(b, "work", 20<<20)
	sessions := b.TempDir()
	for i := 0; b.Loop(); i++ {
		made, err := branch(sessions, f, -1, header(fmt.Sprintf("n-%d", i)))
		if err != nil {
			b.Fatal(err)
		}
		_ = os.Remove(made.Path)
	}
}

func BenchmarkRepair(b *testing.B) {
	list, err := corpus(b, "work", 20<<20).Load(nil)
	if err != nil {
		b.Fatal(err)
	}
	all := append([]transcript.Message{user("begin")}, messages(list)...)
	b.Logf("%d messages", len(all))
	for b.Loop() {
		if _, changed := repaired(all); changed {
			b.Fatal("changed")
		}
	}
}

func BenchmarkCreate(b *testing.B) {
	sessions := b.TempDir()
	for i := 0; b.Loop(); i++ {
		if _, err := transcript.Dir(sessions).Create(header(fmt.Sprintf("n-%d", i))); err != nil {
			b.Fatal(err)
		}
	}
}
