package inbox

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/testkit"
)

// TestEachFault: whichever system call fails, an event that Add has accepted waits or is with its run, once. One that it has not accepted
// is an error, and is accepted once when it is sent again.
func TestEachFault(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(r *Receiver, b Book, e Entry) error{
		"Receive": func(_ *Receiver, b Book, _ Entry) error {
			r, err := b.Receive()
			if err == nil {
				r.Close()
			}
			return err
		},
		"Add": func(r *Receiver, _ Book, _ Entry) error {
			_, _, err := r.Add(t.Context(), sent("2", "second"))
			return err
		},
		"Add again": func(r *Receiver, _ Book, _ Entry) error {
			_, isNew, err := r.Add(t.Context(), sent("1", "first"))
			if isNew {
				err = errors.Join(err, errors.New("a second event"))
			}
			return err
		},
		"Claim":          func(_ *Receiver, b Book, e Entry) error { return b.Claim(e) },
		"Claim and back": func(_ *Receiver, b Book, e Entry) error { return errors.Join(b.Claim(e), b.GiveBack(e)) },
	} {
		for fault := range testkit.EachFault(t, syscall.EIO) {
			w := newWorld(t)
			w.Disk.Warn = func(string) {}
			r := w.receive()
			w.adds(r, sent("1", "first"), "run-1")
			e, err := w.Find("run-1")
			if err == nil {
				err = store.MkdirOwn(filepath.Dir(w.Home.RunEntry(e.Run)))
			}
			if err != nil {
				t.Fatal(err)
			}
			if name == "Receive" {
				r.Close()
			}
			fault.In(w.Home.Path(), func() { err = call(r, w.Book, e) })
			if err != nil && (fault.Call == "" || !errors.Is(err, syscall.EIO)) {
				t.Errorf("%s, %q fails: %v", name, fault.Call, err)
			}
			_, waits := w.Find("run-1")
			_, claimed := os.Lstat(w.Home.RunEntry("run-1"))
			if (waits == nil) == (claimed == nil) {
				t.Errorf("%s, %q fails: %v, then it waits: %v, is with its run: %v", name, fault.Call, err, waits, claimed)
			}
			if err == nil && name == "Claim" && claimed != nil || name == "Receive" && waits != nil {
				t.Errorf("%s, %q fails: %v, then it waits: %v, is with its run: %v", name, fault.Call, err, waits, claimed)
			}
			r.Close()
			r = w.receive()
			again, isNew, err2 := r.Add(t.Context(), sent("2", "second"))
			if err2 != nil || isNew && name == "Add" && err == nil {
				t.Errorf("%s, %q fails: %v, then the second event is %s, new %t, %v", name, fault.Call, err, again, isNew, err2)
			}
			if same, isNew, err := r.Add(t.Context(), sent("1", "first")); same != "run-1" || isNew || err != nil {
				t.Errorf("%s, %q fails, then the first event is %s, new %t, %v", name, fault.Call, same, isNew, err)
			}
		}
	}
}
