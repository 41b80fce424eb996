package channel

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
)

// BenchmarkLoad reads 1,000 sessions of 50 messages of 200 bytes, each time as a new process does.
func BenchmarkLoad(b *testing.B) {
	book := Book{Home: paths.Dir(b.TempDir()), Disk: store.Disk{Now: time.Now, Warn: func(m string) { b.Error(m) }, Locks: &lock.Table{}}}
	at := time.Date(2026, 2, 14, 10, 30, 0, 0, time.UTC)
	for i := range 1000 {
		s := Session{Channel: "telegram", ChatID: fmt.Sprint(i), CreatedAt: at, LastAccessed: at}
		s.SessionID = s.Channel + "_" + s.ChatID
		for k := range maxMessages {
			role := []string{User, Assistant}[k%2]
			s.Messages = append(s.Messages, Message{Role: role, Content: strings.Repeat("word ", 40), Timestamp: at})
		}
		if err := store.WriteJSON(book.Home.Channel(s.SessionID), s, store.Buffered); err != nil {
			b.Fatal(err)
		}
	}
	began := cpu(b)
	for b.Loop() {
		book.Cache = &Cache{}
		if l, err := book.Load(b.Context()); err != nil || l.Sessions != 1000 {
			b.Fatal(l, err)
		}
	}
	b.ReportMetric(float64((cpu(b)-began).Milliseconds())/float64(b.N), "cpu-ms/op")
}

// cpu returns the processor time of this process, which does not depend on other processes.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
