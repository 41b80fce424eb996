package budget

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
)

// play prints how many tokens this process took and kept.
func play(part, dir string) error {
	now := time.Date(2026, 2, 24, 12, 0, 0, 0, time.UTC)
	disk := store.Disk{Now: func() time.Time { return now }, Warn: func(m string) { fmt.Fprintln(os.Stderr, m) }}
	b := Book{Home: paths.Dir(dir), Disk: disk, Zone: time.UTC}
	kept := 0
	for i := 0; part == "all" || i < 6; i++ {
		ok, _, err := b.Take(ctx)
		if err != nil {
			return err
		}
		if part == "all" && !ok {
			break
		}
		if part == "some" { // two of three go back
			err = b.TakeCritical(ctx)
			if ok && i%3 != 0 {
				err = errors.Join(err, b.Return(ctx, false))
				ok = false
			}
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
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
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
					cmd := exec.Command(self)
					cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", childEnv+"="+part+" "+dir)
					cmd.Stderr = os.Stderr
					out, err := cmd.Output()
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
