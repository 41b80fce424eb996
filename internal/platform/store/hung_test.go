package store_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
)

// TestHungHolder: a lock that a process has waited for in vain is not waited for so long again, until it was had.
func TestHungHolder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.lock")
	holder, err := lock.Try(path)
	if err != nil {
		t.Fatal(err)
	}
	d, _ := disk()
	d.Locks = &lock.Table{}
	waits := func() time.Duration {
		t.Helper()
		began := time.Now()
		held, err := d.Lock(t.Context(), path)
		if held.Release(); !errors.Is(err, lock.ErrBusy) {
			t.Fatal(err)
		}
		return time.Since(began)
	}
	impatient, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := d.Lock(impatient, path); !errors.Is(err, lock.ErrBusy) {
		t.Fatal(err)
	}
	first, second, third := waits(), waits(), waits() // the impatient one has not shown that the holder hangs
	if second > first/4 || third > first/4 {
		t.Errorf("it waited %s, then %s and %s", first, second, third)
	}
	if other, err := d.Lock(t.Context(), path+".other"); err != nil {
		t.Error(err)
	} else {
		other.Release()
	}
	holder.Release()
	for range 2 {
		held, err := d.Lock(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		held.Release()
	}
}
