package budget

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/ollim/ollim/internal/testkit"
)

func processBook(args []string) Book {
	return bookAt(args[0], func(m string) { fmt.Fprintln(os.Stderr, m) })
}

// takeAll takes tokens until there is none, and prints how many it took.
func takeAll(args []string) error {
	for b, taken := processBook(args), 0; ; taken++ {
		if ok, _, err := b.Take(ctx); err != nil || !ok {
			fmt.Println(taken)
			return err
		}
	}
}

// takeSome takes six tokens at most, gives back two of three, and prints how many it kept.
func takeSome(args []string) error {
	b, kept := processBook(args), 0
	for i := range 6 {
		ok, _, err := b.Take(ctx)
		err = errors.Join(err, b.TakeCritical(ctx))
		if ok && i%3 != 0 {
			err = errors.Join(err, b.Return(ctx, false))
			ok = false
		}
		if err != nil {
			return err
		}
		if ok {
			kept++
		}
	}
	fmt.Println(kept)
	return nil
}

func TestManyProcesses(t *testing.T) {
	for part, critical := range map[string]int{"all": 0, "some": 16 * 6} {
		t.Run(part, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			d := deskAt(t, dir, "UTC")
			d.put(map[string]any{"capacity": 60, "available": 50})
			var mu sync.Mutex
			var group sync.WaitGroup
			total := 0
			for range 16 {
				group.Go(func() {
					out, err := testkit.Child(t, part, dir).Output()
					mu.Lock()
					defer mu.Unlock()
					var kept int
					if _, scanErr := fmt.Sscan(string(out), &kept); err != nil || scanErr != nil {
						t.Error(err, scanErr)
					}
					total += kept
				})
			}
			group.Wait()
			if part == "all" && total != 50 {
				t.Errorf("%d were taken of 50", total)
			}
			s, err := d.Status()
			if err != nil || s.Available != float64(50-total) || s.DailyUsed != total || s.CriticalUsed != critical {
				t.Errorf("%+v, %v after %d", s, err, total)
			}
		})
	}
}
