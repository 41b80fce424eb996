package inbox

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/ollim/ollim/internal/platform/paths"
)

// full makes an inbox in which so many entries of one hook wait.
func full(b *testing.B, entries int) *Receiver {
	b.Helper()
	w := newWorld(b)
	w.Limits = LimitsOf(1_000_000, 1)
	w.Home = paths.Dir(b.TempDir())
	if err := os.MkdirAll(w.folder("ci"), 0o700); err != nil {
		b.Fatal(err)
	}
	for i := range entries {
		run := fmt.Sprint("old-", i)
		text := fmt.Sprintf(`{"hook": "ci", "hash": "%[1]s", "data": [], "run": "%[1]s", "number": %d}`, run, i)
		if err := os.WriteFile(filepath.Join(w.folder("ci"), fmt.Sprintf("%013d-%s.json", i, run)), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	b.ResetTimer()
	return w.receive()
}

// BenchmarkAdd adds events from many goroutines to an inbox in which others wait.
func BenchmarkAdd(b *testing.B) {
	for _, entries := range []int{0, 10_000} {
		b.Run(fmt.Sprint(entries), func(b *testing.B) {
			r := full(b, entries)
			var n atomic.Int64
			b.SetParallelism(8)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					id := fmt.Sprint("new-", n.Add(1))
					if _, _, err := r.Add(b.Context(), sent(id, id)); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}

// BenchmarkFirst finds the oldest of many entries, as each fire does.
func BenchmarkFirst(b *testing.B) {
	r := full(b, 10_000)
	b.ResetTimer()
	for b.Loop() {
		if _, _, err := r.book.First("ci"); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkReceive is what a server does with an inbox of many entries when it starts.
func BenchmarkReceive(b *testing.B) {
	r := full(b, 10_000)
	b.ResetTimer()
	for b.Loop() {
		r.Close()
		again, err := r.book.Receive()
		if err != nil {
			b.Fatal(err)
		}
		r = again
	}
	r.Close()
}
