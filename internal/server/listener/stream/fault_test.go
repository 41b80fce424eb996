package stream

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ollim/ollim/internal/server/listener/messenger"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/testkit/discordapi"
)

// streaming says something for a while.
func streaming(a *Answer) (runlog.Record, error) {
	for range 100 {
		a.Observer().Text("word ")
		time.Sleep(100 * time.Millisecond)
	}
	return done()
}

// TestFaults: whatever goes wrong on the way, the whole answer is there once, and nothing says that the agent works.
func TestFaults(t *testing.T) {
	limited, failing := http.StatusTooManyRequests, http.StatusBadGateway
	for name, faults := range map[string][]discordapi.Fault{
		"placeholder refused for now": {{Method: "POST", Path: "/messages", Status: failing, Times: 4}},
		"placeholder lost":            {{Method: "POST", Path: "/messages", Status: 0, Applied: true}},
		"placeholder lost, then down": {{Method: "POST", Path: "/messages", Status: 0, Applied: true}, {Method: "POST", Path: "/messages", Status: failing, Times: 30}},
		"edits fail":                  {{Method: "PATCH", Status: failing, Times: 20}},
		"edits are lost":              {{Method: "PATCH", Status: 0, Applied: true, Times: 20}},
		"edits cut":                   {{Method: "PATCH", Status: 0, Times: 20}},
		"edits limited":               {{Method: "PATCH", Status: limited, After: 4 * time.Second, Times: 2}},
		"limited everywhere":          {{Status: limited, After: 7 * time.Second, Global: true}},
		"limited for long":            {{Method: "PATCH", Status: limited, After: 10 * time.Minute}},
		"reactions fail":              {{Path: "/reactions/", Status: failing, Times: 8}},
		"typing fails":                {{Path: "/typing", Status: failing, Times: 8}},
		"the message was deleted":     {{Method: "PATCH", Status: http.StatusNotFound, Code: 10008, Times: 2}},
		"everything fails at times":   {{Status: failing, Times: 7}},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(s *scene) {
				s.Fail(faults...)
				shown, err := s.stream.Show(s.Context(), Source{Channel: discordapi.DM, Message: s.asked}, streaming)
				if err != nil || shown.Left {
					t.Error(shown, err)
				}
				if got := strings.Join(s.Said(discordapi.DM), "|"); got != strings.Repeat("word ", 100) && !strings.Contains(name, "deleted") && !strings.Contains(name, "long") {
					t.Errorf("the bot said %q", got)
				}
				if list := s.Said(discordapi.DM); list[len(list)-1] != strings.Repeat("word ", 100) {
					t.Errorf("the bot said %q", list)
				}
			})
		})
	}
}

// TestDropped: an edit that is limited is not made later; the next one has the text of its own time.
func TestDropped(t *testing.T) {
	play(t, func(s *scene) {
		opening := 0 // the first text may come after the message that says that the agent works
		s.show(s.Context(), func(a *Answer) (runlog.Record, error) {
			a.Observer().Text("one, which is as long as the first text is")
			wait(2 * time.Second)
			opening = len(s.Calls("PATCH", ""))
			s.Fail(discordapi.Fault{Method: "PATCH", Status: http.StatusTooManyRequests, After: 8 * time.Second})
			a.Observer().Text(" two")
			wait(2 * time.Second)
			a.Observer().Text(" three")
			wait(5900 * time.Millisecond)
			s.said("one, which is as long as the first text is")
			wait(time.Second)
			s.said("one, which is as long as the first text is two three\n-# working… 5 s")
			return done()
		})
		if n := len(s.Calls("PATCH", "")) - opening; n != 3 {
			t.Errorf("%d edits", n)
		}
	})
}

// TestLostEdit: a message that perhaps shows what a lost edit said is made to show the answer.
func TestLostEdit(t *testing.T) {
	play(t, func(s *scene) {
		s.show(s.Context(), func(a *Answer) (runlog.Record, error) {
			a.Observer().Text("It is done.")
			wait(2 * time.Second)
			s.said("It is done.")
			s.Fail(discordapi.Fault{Method: "PATCH", Status: 0, Applied: true})
			wait(1500 * time.Millisecond)
			s.said("It is done.\n-# working…")
			return done()
		})
		s.said("It is done.")
	})
}

// TestCutAtTheEnd: an answer whose end finds no network is shown when the network is back; if that takes too long, it is left.
func TestCutAtTheEnd(t *testing.T) {
	for name, tc := range map[string]struct {
		away time.Duration
		left bool
	}{"a minute": {time.Minute, false}, "an hour": {time.Hour, true}} {
		t.Run(name, func(t *testing.T) {
			play(t, func(s *scene) {
				began := time.Now()
				shown, err := s.stream.Show(s.Context(), Source{Channel: discordapi.DM, Message: s.asked}, func(a *Answer) (runlog.Record, error) {
					a.Observer().Text("It begins")
					wait(2 * time.Second)
					s.Cut()
					go func() {
						time.Sleep(tc.away)
						s.Restore()
					}()
					a.Observer().Text(" and ends.")
					return done()
				})
				if err != nil || shown.Left != tc.left || len(shown.Messages) != 1 {
					t.Error(shown, err)
				}
				if took := time.Since(began); took > 11*time.Minute {
					t.Errorf("gave up after %s", took)
				}
				if tc.left {
					if len(s.left) != 1 || s.left[0].Text != "It begins and ends." || s.left[0].ReplyTo != s.asked {
						t.Errorf("left %+v", s.left)
					}
					time.Sleep(tc.away)
					return
				}
				s.said("It begins and ends.")
				s.ended(shown)
			})
		})
	}
}

// TestStopped: when the process is stopped, the end of the answer takes a few seconds at most.
func TestStopped(t *testing.T) {
	play(t, func(s *scene) {
		ctx, cancel := context.WithCancel(s.Context())
		var stopped time.Time
		shown, err := s.stream.Show(ctx, Source{Channel: discordapi.DM, Message: s.asked}, func(a *Answer) (runlog.Record, error) {
			a.Observer().Text("It begins")
			wait(2 * time.Second)
			s.Cut()
			cancel()
			stopped = time.Now()
			return runlog.Record{ID: "r", Outcome: runlog.Interrupted, Error: "stopped by a signal"}, context.Canceled
		})
		if took := time.Since(stopped); err != nil || !shown.Left || took > 30*time.Second {
			t.Errorf("took %s: %+v, %v", took, shown, err)
		}
		if want := "It begins\n\n-# The turn was interrupted: stopped by a signal"; len(s.left) != 1 || s.left[0].Text != want {
			t.Errorf("left %+v", s.left)
		}
		s.Restore()
	})
	play(t, func(s *scene) {
		ctx, cancel := context.WithCancel(s.Context())
		shown := s.show(ctx, func(a *Answer) (runlog.Record, error) {
			a.Observer().Text("It begins")
			wait(2 * time.Second)
			cancel()
			return runlog.Record{ID: "r", Outcome: runlog.Interrupted, Error: "stopped by a signal"}, context.Canceled
		})
		if s.said("It begins\n\n-# The turn was interrupted: stopped by a signal"); shown.Left {
			t.Error("left, though the network is there")
		}
	})
}

// TestClosed: an answer that Discord refuses for good is left at once.
func TestClosed(t *testing.T) {
	play(t, func(s *scene) {
		s.Fail(discordapi.Fault{Method: "POST", Path: "/messages", Status: http.StatusForbidden, Code: 50007, Times: 100})
		left := errors.New("the disk is full")
		keep := s.stream.Left
		s.stream.Left = func(ctx context.Context, o messenger.Outgoing) error {
			_ = keep(ctx, o)
			return left
		}
		shown, err := s.stream.Show(s.Context(), Source{Channel: discordapi.DM, Message: s.asked}, streaming)
		if !errors.Is(err, left) || !shown.Left || len(shown.Messages) != 0 || len(s.left) != 1 {
			t.Errorf("%+v, %v, left %v", shown, err, s.left)
		}
		if n := len(s.Calls("POST", "/messages")); n != 2 {
			t.Errorf("%d messages were tried after Discord refused the first", n)
		}
		synctest.Wait()
		if r := s.Message(s.asked).Reactions; len(r) > 0 {
			t.Errorf("reactions %v are left", r)
		}
	})
}
