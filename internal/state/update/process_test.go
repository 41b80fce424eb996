package update

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/testkit"
)

// Eight processes add while four pop, as runs and as persons. Three of the adders are killed, and the readers again and
// again, at random moments. In the end every update that was added has met exactly one fate.
func TestManyProcesses(t *testing.T) {
	dir := t.TempDir()
	for _, folder := range []string{"acks", "started", "read"} {
		if err := store.MkdirAll(filepath.Join(dir, folder)); err != nil {
			t.Fatal(err)
		}
	}
	const adders, killed, readers = 8, 3, 4
	var adding, reading sync.WaitGroup
	for i := range adders {
		adding.Go(func() {
			life := time.Hour
			if i < killed {
				life = rand.N(500 * time.Millisecond)
			}
			live(t, "adder", dir, fmt.Sprint("a", i), life)
		})
	}
	stop := filepath.Join(dir, "stop")
	for i := range readers {
		reading.Go(func() {
			for n := 0; ; n++ {
				if exists(stop) {
					return
				}
				part := []string{"run", "person"}[i%2]
				live(t, part, dir, fmt.Sprintf("%s%d.%d", part, i, n), 10*time.Millisecond+rand.N(150*time.Millisecond))
			}
		})
	}
	adding.Wait()
	if err := os.WriteFile(stop, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	reading.Wait()
	drain(t, realBox(dir))
	countEverything(t, realBox(dir), killed)
}

// live runs a child until its end, or kills it when its time has come.
func live(t *testing.T, part, dir, name string, life time.Duration) {
	cmd := testkit.Child(t, part, dir, name)
	if err := cmd.Start(); err != nil {
		t.Error(err)
		return
	}
	killer := time.AfterFunc(life, func() { _ = cmd.Process.Kill() })
	defer killer.Stop()
	if err := cmd.Wait(); err != nil && cmd.ProcessState.ExitCode() != -1 { // -1: by a signal
		t.Errorf("%s %s: %v", part, name, err)
	}
}

// drain pops until nothing is left, as the last reader.
func drain(t *testing.T, b Box) {
	t.Helper()
	for {
		c, err := b.Pop(context.Background(), Owner{})
		if err != nil {
			t.Fatal(err)
		}
		if len(c.Updates) == 0 {
			break
		}
		if err := c.Deliver(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := b.unsettled(); err != nil || len(left) != 0 {
		t.Errorf("claims left: %v, %v", left, err)
	}
}

func countEverything(t *testing.T, b Box, killed int) {
	t.Helper()
	fates, dropped, omitted := map[string]fate{}, 0, 0
	for f, err := range b.Fates(time.Time{}) {
		switch {
		case err != nil:
			t.Fatal(err)
		case f.Omitted > 0:
			omitted += f.Omitted
			continue
		case f.Became == becameDropped:
			dropped++
		}
		if other, twice := fates[f.Message]; twice {
			t.Errorf("%q met two fates: %+v and %+v", f.Message, other, f)
		}
		fates[f.Message] = f
	}
	if dropped != omitted {
		t.Errorf("%d were dropped, the sentinels say %d", dropped, omitted)
	}
	acked := ackedMessages(t, b.Home)
	for _, message := range acked {
		if _, ok := fates[message]; !ok {
			t.Errorf("%q is lost", message)
		}
	}
	if unseen := len(fates) - len(acked); unseen < 0 || unseen > killed {
		t.Errorf("%d met a fate, %d were seen to be added, %d adders killed", len(fates), len(acked), killed)
	}
	used := usedUpdates(t, b.Home, fates)
	t.Logf("%d added, %d dropped, %d popped, %d of them seen used, by %d readers", len(fates), dropped,
		len(fates)-dropped, used, len(readersOf(t, b.Home)))
}

func ackedMessages(t *testing.T, h paths.Dir) (list []string) {
	t.Helper()
	for path, data := range files(t, h.Path("acks")) {
		list = append(list, strings.Fields(data)...)
		if n := len(strings.Fields(data)); n < addsPerChild {
			t.Logf("%s added %d", filepath.Base(path), n)
		}
	}
	return list
}

// usedUpdates checks what readers noted: each update was used by one run only, one that had started.
func usedUpdates(t *testing.T, h paths.Dir, fates map[string]fate) int {
	t.Helper()
	by := map[string]string{}
	for _, folder := range []string{"started", "read"} {
		for path, data := range files(t, h.Path(folder)) {
			var list []Update
			if err := json.Unmarshal([]byte(data), &list); err != nil {
				t.Fatal(err)
			}
			for _, u := range list {
				if _, isSentinel := sentinelCount(u.Message); isSentinel {
					continue
				}
				to := ""
				if folder == "started" {
					to = filepath.Base(path)
				}
				if other, twice := by[u.Message]; twice {
					t.Errorf("%q was used by %s and %s", u.Message, other, filepath.Base(path))
				}
				by[u.Message] = filepath.Base(path)
				if f := fates[u.Message]; f.Became != becameUsed || f.To != to {
					t.Errorf("%q was used by %s, the archive says %+v", u.Message, filepath.Base(path), f)
				}
			}
		}
	}
	for message, f := range fates {
		if _, ok := by[message]; f.To != "" && !ok {
			t.Errorf("%q was popped by %s, which had not started", message, f.To)
		}
	}
	return len(by)
}

func readersOf(t *testing.T, h paths.Dir) map[string]bool {
	t.Helper()
	readers := map[string]bool{}
	for _, folder := range []string{"started", "read"} {
		for path := range files(t, h.Path(folder)) {
			base := filepath.Base(path)
			readers[base[:strings.LastIndex(base, ".")]] = true
		}
	}
	return readers
}

func files(t *testing.T, folder string) map[string]string {
	t.Helper()
	list, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	content := map[string]string{}
	for _, f := range list {
		if strings.HasPrefix(f.Name(), ".") {
			continue // a temporary file of a child that was killed
		}
		path := filepath.Join(folder, f.Name())
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		content[path] = string(data)
	}
	return content
}
