package notify

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/outbox"
)

// Health reports what keeps messages or runs from the owner: a delivery that fails, a full disk, and files that cannot be used.
type Health struct {
	Book   Book
	Outbox outbox.Post
	Home   paths.Dir
	Disk   store.Disk
}

// slowDelivery is the age from which a message that could not be sent shows that the delivery is broken.
const slowDelivery = 10 * time.Minute

// Delivery reports that messages do not reach the owner, or do again.
func (h Health) Delivery(ctx context.Context) error {
	waiting, err := h.Outbox.Pending()
	c := Cause{
		Kind: Delivery, Subject: "outbox", Name: "The delivery of messages", Remedy: "`ollim doctor --send` sends a test message and shows the error",
	}
	failing := 0
	for _, m := range waiting {
		if m.Attempts == 0 || m.Stuck {
			continue
		}
		if failing++; c.Text == "" && h.Disk.Now().Sub(m.Created) >= slowDelivery {
			c.Text = fmt.Sprintf("Messages have not reached you since %s: %s", m.Created.In(h.Book.Zone).Format("Mon 2 Jan 15:04"), m.LastError)
		}
	}
	switch {
	case c.Text != "":
		_, openErr := h.Book.Open(ctx, c)
		return errors.Join(err, openErr)
	case failing == 0 && err == nil:
		return h.Book.Close(ctx, c.Key(), "")
	}
	return err
}

// Usable reports that no routine can run, because of files that cannot be used, or that routines can run again, with nil.
func (h Health) Usable(ctx context.Context, fault error) error {
	c := Cause{Kind: Disk, Subject: "state", Name: "The directory " + h.Home.State(), Remedy: "`ollim doctor` says how to mend it"}
	if fault == nil {
		return h.Book.Close(ctx, c.Key(), "can be used again")
	}
	c.Text = "No routine can run: " + plaintext.OneLine(fault)
	_, err := h.Book.Open(ctx, c)
	return err
}

// FewBytes is the free space below which the disk counts as full: the notification must still be written.
const FewBytes = 50 << 20

// Full reports that the disk is full, or has space again.
func (h Health) Full(ctx context.Context, free uint64) error {
	c := Cause{Kind: Disk, Subject: "full", Name: "The disk"}
	if free >= FewBytes {
		return errors.Join(h.spaceAgain(ctx, c), h.readyForFull())
	}
	c.Text = fmt.Sprintf("The disk is full: %d MiB are free in %s, so runs cannot be recorded", free>>20, h.Home)
	c.Remedy = "free disk space: `df -h " + string(h.Home) + "`"
	_, err := h.Book.Open(ctx, c)
	if errors.Is(err, syscall.ENOSPC) {
		h.tellDirectly(ctx, c)
	}
	return err
}

// spaceAgain reports that the disk has space again, even if tellDirectly reported the full disk and the cause could not be written.
func (h Health) spaceAgain(ctx context.Context, c Cause) error {
	const how = "has space again"
	path := h.Home.Lock("disk")
	info, err := os.Lstat(path)
	if err != nil || !toldOfFull(info) {
		return h.Book.Close(ctx, c.Key(), how)
	}
	open, err := h.Book.OpenCauses()
	if _, noted := open[c.Key()]; noted {
		err = errors.Join(err, h.Book.Close(ctx, c.Key(), how))
	} else if err == nil {
		err = h.Book.Tell(ctx, Cause{Kind: News, Subject: c.Subject, Name: c.Name, Text: c.Name + " " + how})
	}
	if err != nil {
		return err
	}
	return os.Chmod(path, 0o600)
}

// toldOfFull reports whether tellDirectly has reported a full disk: it makes the lock file "disk" read-only. A copy of the directory keeps
// that mode, but not the time.
func toldOfFull(info fs.FileInfo) bool { return info.Mode()&0o200 == 0 }

// tellDirectly runs the delivery command without the outbox, once a day while nothing can be written. The time of a lock file is that of
// the last message. The file is made while there is space; setting its time and mode needs none.
func (h Health) tellDirectly(ctx context.Context, c Cause) {
	path := h.Home.Lock("disk")
	info, err := os.Stat(path)
	if err != nil || len(h.Outbox.Command) == 0 || toldOfFull(info) && h.Disk.Now().Sub(info.ModTime()) < 24*time.Hour {
		return
	}
	err = h.Outbox.Try(ctx, outbox.Message{
		ID: "notice-disk", Kind: outbox.Failure, Label: c.Name, Critical: true, Text: c.Text + "\nTo do: " + c.Remedy, Created: h.Disk.Now(),
	})
	if err == nil { // else the next tick tries again
		err = errors.Join(os.Chtimes(path, h.Disk.Now(), h.Disk.Now()), os.Chmod(path, 0o400))
	}
	if err != nil {
		h.Disk.Warn(plaintext.OneLine(err))
	}
}

// readyForFull makes the lock file whose time and mode tellDirectly sets.
func (h Health) readyForFull() error {
	path := h.Home.Lock("disk")
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return store.Write(path, nil, store.Buffered)
}
