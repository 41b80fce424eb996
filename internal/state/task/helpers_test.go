package task

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m, map[string]func([]string) error{"add": addMany}) }

const addsPerChild = 12

// addMany prints "number text" of what it adds, and marks some of it as done or removes it.
func addMany(args []string) error {
	b, name := bookAt(args[0]), args[1]
	for i := range addsPerChild {
		text := fmt.Sprintf("%s-%02d", name, i)
		number, err := b.Add(context.Background(), Draft{Text: text})
		if err != nil {
			return err
		}
		fmt.Println(number, text)
		switch i % 4 {
		case 0:
			_, err = b.Done(context.Background(), fmt.Sprint(number))
		case 1:
			_, err = b.Remove(context.Background(), text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// desk is a book on a day that has begun in its zone, but not in UTC.
type desk struct {
	Book
	t testing.TB
}

func newDesk(t testing.TB, content string) desk {
	t.Helper()
	d := desk{Book{
		Home: paths.Dir(t.TempDir()),
		Disk: store.Disk{Now: func() time.Time { return time.Date(2026, 3, 3, 23, 30, 0, 0, time.UTC) }},
		Zone: time.FixedZone("", 3600),
	}, t}
	if content != "" {
		if err := os.MkdirAll(filepath.Dir(d.Home.Tasks()), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(d.Home.Tasks(), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func (d desk) add(draft Draft) int {
	d.t.Helper()
	number, err := d.Add(context.Background(), draft)
	if err != nil {
		d.t.Fatalf("Add(%q): %v", draft.Text, err)
	}
	return number
}

func (d desk) holds(want string) {
	d.t.Helper()
	data, err := os.ReadFile(d.Home.Tasks())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		d.t.Fatal(err)
	}
	if string(data) != want {
		d.t.Errorf("the file holds\n%q, want\n%q", data, want)
	}
}
