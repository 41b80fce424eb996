package stream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ollim/ollim/internal/server/discord/api"
	"github.com/ollim/ollim/internal/server/listener/messenger"
	"github.com/ollim/ollim/internal/state/queue"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/testkit/discordapi"
)

// scene is a stream to a server with rate limits, in a bubble whose time is not the real one.
type scene struct {
	*testing.T
	*discordapi.Server
	stream Stream
	asked  string // the owner's message
	place  queue.Place
	left   []messenger.Outgoing
}

// play runs a test in a bubble.
func play(t *testing.T, test func(*scene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &scene{T: t, Server: discordapi.New(t, discordapi.Options{Limits: true, Memory: true})}
		client := api.New(api.Options{
			Base: s.URL(), Token: discordapi.Token, Now: time.Now, HTTP: s.Transport(),
			Sleep: func(ctx context.Context, d time.Duration) error {
				select {
				case <-time.After(d):
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			},
		})
		s.stream = Stream{API: client, Now: time.Now, Left: func(_ context.Context, o messenger.Outgoing) error {
			s.left = append(s.left, o)
			return nil
		}}
		s.asked = s.Say(discordapi.Post{Text: "a question"})
		test(s)
	})
}

func done(texts ...string) (runlog.Record, error) {
	return runlog.Record{ID: "r", Outcome: runlog.OK, Text: strings.Join(texts, "")}, nil
}

// show shows the answer of a turn and checks what holds in every case.
func (s *scene) show(ctx context.Context, turn func(*Answer) (runlog.Record, error)) Shown {
	s.Helper()
	shown, err := s.stream.Show(ctx, Source{Channel: discordapi.DM, Message: s.asked, Place: s.place}, turn)
	if err != nil {
		s.Error(err)
	}
	s.ended(shown)
	return shown
}

// ended checks that nothing says any more that the agent works, now and later, and that the ids are those of the messages.
func (s *scene) ended(shown Shown) {
	s.Helper()
	calls := len(s.Calls("", ""))
	time.Sleep(time.Minute)
	synctest.Wait()
	if n := len(s.Calls("", "")) - calls; n > 0 {
		s.Errorf("%d requests after the end", n)
	}
	if r := s.Message(s.asked).Reactions; len(r) > 0 {
		s.Errorf("reactions %v are left", r)
	}
	var ids []string
	for _, m := range s.answer() {
		ids = append(ids, m.ID)
	}
	if !slices.Equal(ids, shown.Messages) {
		s.Errorf("the ids %v are not those of %v", shown.Messages, ids)
	}
}

func (s *scene) answer() (list []discordapi.Message) {
	for _, m := range s.Messages(discordapi.DM) {
		if m.Author.ID == discordapi.Bot {
			list = append(list, m)
		}
	}
	return list
}

// said fails the test if the messages of the bot are others.
func (s *scene) said(want ...string) {
	s.Helper()
	if got := s.Said(discordapi.DM); !slices.Equal(got, want) {
		s.Errorf("the bot said %q, want %q", got, want)
	}
}

// limited fails the test if Discord limited the bot.
func (s *scene) unlimited() {
	s.Helper()
	for _, c := range s.Calls("", "") {
		if c.Status == http.StatusTooManyRequests {
			s.Errorf("%s %s at %s: 429", c.Method, c.Path, c.At)
		}
	}
}

// wait lets time pass, and all that happens in it.
func wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// TestAnswer: the reaction, the reply and typing come at once; the text comes when there is enough of it.
func TestAnswer(t *testing.T) {
	play(t, func(s *scene) {
		shown := s.show(s.Context(), func(a *Answer) (runlog.Record, error) {
			synctest.Wait()
			if m := s.answer(); len(m) != 1 || m[0].Content != "-# working…" || m[0].Reference.Message != s.asked || m[0].Flags != 0 {
				t.Errorf("at first the bot said %+v", m)
			}
			if s.Message(s.asked).Reactions["👀"] == nil || s.Typed(discordapi.DM) != 1 {
				t.Errorf("reactions %v, typed %d times", s.Message(s.asked).Reactions, s.Typed(discordapi.DM))
			}
			see := a.Observer()
			see.Text("Hello")
			synctest.Wait()
			s.said("-# working…")
			wait(700 * time.Millisecond)
			s.said("Hello")
			see.Text(", world")
			synctest.Wait()
			s.said("Hello")
			wait(1200 * time.Millisecond)
			s.said("Hello, world")
			see.Event(runlog.Event{Type: runlog.Text, Text: "Hello, world!"})
			see.Event(runlog.Event{Type: runlog.Result, Text: "Hello, world!"})
			return done("Hello, world!")
		})
		s.said("Hello, world!")
		if shown.Left || s.Typed(discordapi.DM) != 1 {
			t.Errorf("%+v, typed %d times", shown, s.Typed(discordapi.DM))
		}
	})
}

// TestFirstText: forty characters are shown at once, in spite of an edit just before.
func TestFirstText(t *testing.T) {
	play(t, func(s *scene) {
		s.show(s.Context(), func(a *Answer) (runlog.Record, error) {
			wait(10 * time.Second)
			s.said("-# working… 10 s")
			see := a.Observer()
			see.Text(strings.Repeat("x", 40))
			synctest.Wait()
			s.said(strings.Repeat("x", 40))
			wait(20 * time.Second)
			return done()
		})
		if typed := s.Typed(discordapi.DM); typed != 2 {
			t.Errorf("typed %d times in 10 s", typed)
		}
	})
}

// TestLines: what the agent does is one line that is replaced; what happened to the conversation stays.
func TestLines(t *testing.T) {
	play(t, func(s *scene) {
		s.place = queue.Place{Ahead: 2}
		s.show(s.Context(), func(a *Answer) (runlog.Record, error) {
			see := a.Observer()
			wait(20 * time.Second)
			s.said("-# queued: 2 messages are before it")
			see.Event(runlog.Event{Type: runlog.UpdatesPopped, Count: 2})
			see.Event(runlog.Event{Type: runlog.Thinking, Text: "hm"})
			wait(2 * time.Second)
			s.said("-# catching up on background activity…\n-# thinking…")
			see.Event(runlog.Event{Type: runlog.ToolUse, Tool: "Read", ToolID: "1", Input: []byte(`{"file_path":"/home/me/my_notes.md"}`)})
			wait(12 * time.Second)
			s.said("-# catching up on background activity…\n-# reading my\\_notes.md… 10 s")
			see.Event(runlog.Event{Type: runlog.ToolResult, ToolID: "1", Text: "…"})
			see.Event(runlog.Event{Type: runlog.Text, Text: "I see."})
			wait(1200 * time.Millisecond)
			s.said("-# catching up on background activity…\n\nI see.")
			see.Event(runlog.Event{Type: runlog.ToolUse, Tool: "mcp__ollim__report_updates", ToolID: "2", Input: []byte(`{"x":1}`)})
			wait(1200 * time.Millisecond)
			s.said("-# catching up on background activity…\n\nI see.\n-# using report\\_updates…")
			see.Event(runlog.Event{Type: runlog.Compacted, Session: "s", Parent: "s", Before: 150000, After: 9000})
			see.Event(runlog.Event{Type: runlog.Result, Text: "I see."})
			see.Event(runlog.Event{Type: runlog.Fork, Tool: runlog.ForkContinued, Text: "a trip"})
			see.Event(runlog.Event{Type: runlog.Fork, Tool: runlog.ForkKept, Text: "the disk is full"})
			return runlog.Record{ID: "r", Outcome: runlog.OK, ContextBefore: 50, Context: 62, Window: 200, CompactAt: 100}, nil
		})
		s.said("-# catching up on background activity…\n\nI see.\n\n-# the conversation was compacted: 150000 tokens became 9000\n\n" +
			"-# fork: not saved: the disk is full\n\n" +
			"-# The conversation has 62 % of the length at which it is compacted (62 of 100 tokens): /compact")
		s.unlimited()
	})
}

// TestEndings: an answer ends with how its turn ended, and what was said stays.
func TestEndings(t *testing.T) {
	for name, tc := range map[string]struct {
		text   string
		record runlog.Record
		err    error
		want   string
	}{
		"nothing":     {"", runlog.Record{ID: "r", Outcome: runlog.OK}, nil, "-# The agent ended its turn without text."},
		"failed":      {"Half", runlog.Record{ID: "r", Outcome: runlog.Failed, Error: "no *room* for @everyone\n<@1> https://x"}, errors.New("e"), "Half\n\n-# The turn failed: no \\*room\\* for \\@\u200beveryone \\<\\@\u200b1\\> https\\://x"},
		"interrupted": {"Half", runlog.Record{ID: "r", Outcome: runlog.Interrupted, Error: "stopped by a new message"}, errors.New("e"), "Half\n\n-# The turn was interrupted: stopped by a new message"},
		"timeout":     {"", runlog.Record{ID: "r", Outcome: runlog.Timeout, Error: "stopped after 10m"}, errors.New("e"), "-# The turn failed: stopped after 10m"},
		"waiting":     {"", runlog.Record{ID: "r", Outcome: runlog.Waiting}, nil, "-# The turn waits for your answer."},
		"no run":      {"", runlog.Record{}, errors.New("no engine is configured"), "-# The turn failed: no engine is configured"},
		"not begun":   {"", runlog.Record{}, context.Canceled, "-# The turn was interrupted before it began."},
		"open block":  {"```go\nx := 1", runlog.Record{ID: "r", Outcome: runlog.Failed, Error: "cut"}, nil, "```go\nx := 1\n```\n\n-# The turn failed: cut"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(s *scene) {
				s.show(s.Context(), func(a *Answer) (runlog.Record, error) {
					a.Observer().Text(tc.text)
					wait(time.Second)
					return tc.record, tc.err
				})
				s.said(tc.want)
			})
		})
	}
}

// TestPanic: a turn that panics leaves nothing that says that the agent works.
func TestPanic(t *testing.T) {
	play(t, func(s *scene) {
		func() {
			defer func() {
				if recover() != "a fault" {
					t.Error("the panic was lost")
				}
			}()
			s.stream.Show(s.Context(), Source{Channel: discordapi.DM, Message: s.asked}, func(a *Answer) (runlog.Record, error) {
				a.Observer().Text("I was about to")
				wait(time.Second)
				panic("a fault")
			})
		}()
		s.ended(Shown{Messages: []string{s.answer()[0].ID}})
		s.said("I was about to\n\n-# The turn failed: an internal error: see the log of ollim")
	})
}

// TestRetry: what an answer said that its engine begins anew is gone.
func TestRetry(t *testing.T) {
	play(t, func(s *scene) {
		s.show(s.Context(), func(a *Answer) (runlog.Record, error) {
			see := a.Observer()
			see.Text("one two three")
			wait(time.Second)
			see.Event(runlog.Event{Type: runlog.Retry, Text: "overloaded"})
			wait(2 * time.Second)
			s.said("-# the service is busy, trying again…")
			see.Text("one two four")
			see.Event(runlog.Event{Type: runlog.Result, Text: "one two four"})
			return done()
		})
		s.said("one two four")
	})
}

// TestTenMinutes: a stream of ten minutes is never limited, and its end notifies.
func TestTenMinutes(t *testing.T) {
	play(t, func(s *scene) {
		shown := s.show(s.Context(), func(a *Answer) (runlog.Record, error) {
			see := a.Observer()
			for i := range 6000 {
				text := ""
				if i%4 == 0 && i%100 < 50 {
					text = fmt.Sprintf("%d ", i)
				}
				see.Text(text)
				if i%100 == 60 {
					see.Event(runlog.Event{Type: runlog.ToolUse, Tool: fmt.Sprint("Tool", i), ToolID: fmt.Sprint(i)})
				}
				time.Sleep(100 * time.Millisecond)
			}
			return done()
		})
		s.unlimited()
		edits := s.Calls("PATCH", "/messages/")
		if len(edits) < 100 || len(edits) > 200 {
			t.Errorf("%d edits", len(edits))
		}
		s.paced()
		if list := s.answer(); len(shown.Messages) != 2 || list[0].Flags+list[1].Flags != 0 || list[1].Edits != 0 {
			t.Errorf("the answer is %+v", list)
		}
	})
}

// paced checks the pauses between edits.
func (s *scene) paced() {
	s.Helper()
	edits := s.Calls("PATCH", "/messages/")
	close := 0
	for i := 1; i < len(edits); i++ {
		if edits[i].At.Sub(edits[i-1].At) < 1200*time.Millisecond {
			close++
		}
	}
	if close > 2 { // the first text, and the end
		s.Errorf("%d edits came within 1.2 s", close)
	}
}

// TestLongTurn: the end of an answer that took longer than a minute is a new message, and the old one is gone.
func TestLongTurn(t *testing.T) {
	play(t, func(s *scene) {
		s.show(s.Context(), func(a *Answer) (runlog.Record, error) {
			a.Observer().Text("The answer ")
			wait(61 * time.Second)
			a.Observer().Text("is 42.")
			return done()
		})
		s.said("The answer is 42.")
		if m := s.answer()[0]; m.Edits != 0 || m.Flags != 0 || m.Reference.Message != s.asked {
			t.Errorf("the last message is %+v", m)
		}
	})
}

// TestBlocks: a code block that goes on in the next message is closed and opened again, and a long answer ends in a file.
func TestBlocks(t *testing.T) {
	play(t, func(s *scene) {
		line := strings.Repeat("x := 1 ", 9) + "\n"
		text := "```go\n" + strings.Repeat(line, 50) + "```\nend"
		s.show(s.Context(), func(a *Answer) (runlog.Record, error) {
			a.Observer().Text(text[:3000])
			wait(5 * time.Second)
			list := s.Said(discordapi.DM)
			if len(list) != 2 || !strings.HasSuffix(list[0], "\n```") || !strings.HasPrefix(list[1], "```go\n") || !strings.Contains(list[1][4:], "\n```\n-# working…") {
				t.Errorf("the bot said %q", list)
			}
			a.Observer().Event(runlog.Event{Type: runlog.Text, Text: text})
			return done()
		})
		list := s.Said(discordapi.DM)
		if joined := strings.Join(list, ""); len(list) != 2 || strings.Replace(joined, "\n``````go\n", "\n", 1) != text {
			t.Errorf("the bot said %q", list)
		}
	})
	play(t, func(s *scene) {
		text := strings.Repeat("All work and no play makes a long answer. ", 300)
		s.show(s.Context(), func(a *Answer) (runlog.Record, error) {
			a.Observer().Text(text)
			wait(20 * time.Second)
			return done()
		})
		list, files := s.Said(discordapi.DM), s.Calls("POST", "/messages")
		if len(list) != 4 || !strings.HasPrefix(text, strings.Join(list[:3], "")) || string(files[len(files)-1].Files[0].Data) != text {
			t.Errorf("the bot said %q", list)
		}
	})
}
