package fire

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/ollim/ollim/internal/agent/notify"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/state/inbox"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/question"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/slot"
	"github.com/ollim/ollim/internal/state/spend"
)

func damagedCalls() map[string]damaged {
	all := map[string]damaged{}
	for _, part := range []map[string]damaged{damagedSlots(), damagedReminders(), damagedEntries(), damagedQuestions(), damagedUpkeep(), damagedPrograms()} {
		maps.Copy(all, part)
	}
	return all
}

func damagedSlots() map[string]damaged {
	contest := func(run string, at, rival time.Time) damaged {
		return func(b *broken) (func() error, func() any) {
			c := &claim{r: b.Runner, job: b.job("a"), run: run, at: at, rival: rival}
			must(b.t, b.Slots.Claim(slot.Claim{Job: "a", Slot: nine, Run: "x", PID: 1 << 30}))
			return func() error {
					err := c.contest("")
					if c.at.IsZero() && err == nil {
						err = errLater
					}
					return err
				}, func() any {
					held, err := b.Slots.Load("a", nine)
					return fmt.Sprint(held.Run, err, c.at)
				}
		}
	}
	miss := func(c slot.Claim) damaged {
		return func(b *broken) (func() error, func() any) {
			must(b.t, b.Slots.Rewrite(c))
			return func() error {
				missed, _, err := Slots{b.Runner}.Miss(b.t.Context(), "a", nine, "off")
				if !missed && err == nil {
					err = errLater
				}
				return err
			}, b.held
		}
	}
	return map[string]damaged{
		"take": func(b *broken) (func() error, func() any) {
			c := &claim{r: b.Runner, job: b.job("a"), run: "x"}
			return func() error { return c.take(b.t.Context()) }, func() any {
				held, err := b.Slots.Load("a", nine)
				return fmt.Sprint(held.Run, err)
			}
		},
		"contest of its own claim": contest("x", nine, time.Time{}),
		"contest of a void claim":  contest("y", time.Time{}, nine),
		"miss at a limit":          miss(slot.Claim{Job: "a", Slot: nine, Held: "limit"}),
		"miss unasked":             miss(slot.Claim{Job: "a", Slot: nine, Held: "no network", Unasked: true}),
	}
}

func damagedReminders() map[string]damaged {
	giveUp := func(lines ...string) damaged {
		return func(b *broken) (func() error, func() any) {
			j := b.reminder(lines...)
			r := b.began(j, nil)
			r.Outcome = runlog.Failed
			return func() error {
				_, err := ending{b.Runner, j}.giveUp(b.t.Context(), &j, r)
				return err
			}, func() any { return fmt.Sprint(j.Path == b.Home.Path("reminders", "r.md"), len(b.told()) > 0) }
		}
	}
	return map[string]damaged{
		"first failure of a reminder": giveUp("isolated: true"),
		"plain reminder":              giveUp("plain: true"),
		"claim of a reminder": func(b *broken) (func() error, func() any) {
			f := &fire{r: b.Runner, job: b.reminder("isolated: true")}
			return f.claimFile, func() any { return f.job.Attempt() }
		},
		"chain": func(b *broken) (func() error, func() any) {
			j := b.reminder("isolated: true", "allowed-tools: [WebSearch]", "chain-parent: r", "max-chain: 3")
			b.approveJob(j)
			r := b.began(j, nil)
			must(b.t, r.Event(b.t.Context(), runlog.Event{Type: runlog.FollowUp, Text: "2026-03-03T09:00:00Z"}))
			return func() error { return ending{b.Runner, j}.followUp(b.t.Context(), j, r) }, func() any { return b.chain() }
		},
	}
}

func damagedEntries() map[string]damaged {
	return map[string]damaged{
		"start": func(b *broken) (func() error, func() any) {
			b.hook("ci", "")
			b.accept("ci")
			starts := 0
			start := func() error {
				_, err := Entries{b.Runner}.Start(b.t.Context(), func(string) (process.ID, error) { starts++; return process.ID{PID: 1 << 30}, nil })
				return err
			}
			return start, func() any {
				if starts == 0 { // its webhook could not be read, so it waits for the next tick
					must(b.t, start())
				}
				return starts
			}
		},
		"begun": func(b *broken) (func() error, func() any) {
			e := b.entry()
			return func() error {
					_, err := (&answered{Entry: e, r: b.Runner}).begun(b.t.Context(), job.Job{})
					return err
				}, func() any {
					return b.Inbox.Waits(e.Run)
				}
		},
		"give back": func(b *broken) (func() error, func() any) {
			e := b.entry()
			a := &answered{Entry: e, r: b.Runner}
			r := b.began(b.job("ci"), func(r *runlog.Record) { r.ID = e.Run })
			must(b.t, a.take())
			later := &run.Later{Limit: &spend.Limit{Key: "per-day", Used: 5, Allowed: 5}}
			return func() error {
				a.taken = true
				return a.giveBack(b.t.Context(), r, later)
			}, func() any { return fmt.Sprint(b.Inbox.Waits(e.Run), len(b.causes())) }
		},
	}
}

// entry accepts an event of the webhook ci.
func (h *hooks) entry() inbox.Entry {
	h.t.Helper()
	h.hook("ci", "")
	e, err := h.Inbox.Find(h.accept("ci"))
	must(h.t, err)
	return e
}

func damagedQuestions() map[string]damaged {
	file := func(b *broken, id string) string {
		q, err := b.Questions.Load(id)
		return fmt.Sprint(q.Answer, q.Sent, q.Lapsed, err != nil)
	}
	awaited := func(b *broken, r *runlog.Run) (func() error, func() any) {
		f := b.continues(r)
		var text string
		return func() error {
			q, _, err := (&continuation{f: f}).awaited(b.t.Context())
			text = q.Text
			return err
		}, func() any { return fmt.Sprint(text, f.claim.at, file(b, r.ID)) }
	}
	return map[string]damaged{
		"give": func(b *broken) (func() error, func() any) {
			r := b.waits(nil)
			return func() error {
				_, err := Answers{b.Runner}.Give(b.t.Context(), r.ID, "2")
				return err
			}, func() any { return file(b, r.ID) }
		},
		"awaited": func(b *broken) (func() error, func() any) { return awaited(b, b.waits(nil)) },
		"awaited without its file": func(b *broken) (func() error, func() any) {
			r := b.waits(nil)
			must(b.t, os.Remove(b.Home.Question(r.ID)))
			return awaited(b, r)
		},
		"ask again": func(b *broken) (func() error, func() any) {
			r := b.waits(nil)
			q, err := b.Questions.Load(r.ID)
			must(b.t, err)
			return func() error { return Answers{b.Runner}.AskAgain(b.t.Context(), q) }, func() any {
				return fmt.Sprint(file(b, r.ID), len(b.told()) > 0)
			}
		},
		"forget": func(b *broken) (func() error, func() any) {
			r := b.waits(func(q *question.Question) { q.Lapsed = true })
			must(b.t, b.end(r.ID, runlog.Expired))
			f := &fire{r: b.Runner, job: b.job("a"), run: "x"}
			return func() error {
				f.forgetQuestions(b.t.Context(), runlog.Record{Turns: 1})
				return nil
			}, func() any { return file(b, r.ID) }
		},
	}
}

func damagedUpkeep() map[string]damaged {
	paused := func(b *broken, until time.Time) {
		b.now = nine.Add(-time.Hour)
		_, err := b.Slots.Note(b.t.Context(), []slot.Schedule{Slots{b.Runner}.ScheduleOf(b.job("a"))}, nil)
		must(b.t, err)
		must(b.t, b.Spend.PauseAll(b.t.Context(), until))
		b.now = nine.Add(time.Minute)
		must(b.t, b.Slots.Claim(slot.Claim{Job: "a", Slot: nine, Outcome: "paused"}))
	}
	return map[string]damaged{
		"held": func(b *broken) (func() error, func() any) {
			paused(b, time.Time{})
			var text string
			return func() (err error) {
				text, err = Pauses{b.Runner}.Held()
				return err
			}, func() any { return text }
		},
		"end of a pause": func(b *broken) (func() error, func() any) {
			paused(b, nine)
			return func() error {
					err := Pauses{b.Runner}.End(b.t.Context())
					if _, known := b.Spend.LastPause(); known && err == nil {
						err = errLater
					}
					return err
				}, func() any {
					_, known := b.Spend.LastPause()
					page, err := b.Notices.Read()
					return fmt.Sprint(known, len(page.Causes), err)
				}
		},
		"owed call": func(b *broken) (func() error, func() any) {
			s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			b.t.Cleanup(s.Close)
			r := b.began(b.job("a"), nil)
			must(b.t, r.Finish(runlog.OK, ""))
			must(b.t, b.Heartbeats.Owe(b.t.Context(), "a", r.ID, s.URL))
			return func() error {
					return Monitors{b.Runner}.callOwed(b.t.Context(), func(string, runlog.Record) bool { return true })
				}, func() any {
					owed, err := b.Heartbeats.List()
					return fmt.Sprint(len(owed), err)
				}
		},
		"recheck": func(b *broken) (func() error, func() any) {
			files, err := b.Jobs.Load()
			must(b.t, err)
			b.opens(notify.Job, "gone")
			return func() error { return Rules{b.Runner}.Recheck(b.t.Context(), files) }, func() any { return b.causes() }
		},
		"find": func(b *broken) (func() error, func() any) {
			var f *fire
			return func() (err error) {
				f, err = New(b.Runner).find(b.t.Context(), "a", timer())
				return err
			}, func() any { return f.job.ID }
		},
		"preview": func(b *broken) (func() error, func() any) {
			var plan run.Plan
			return func() (err error) {
				if plan, err = New(b.Runner).Preview(b.t.Context(), "a", Options{}); plan.Refused != "" {
					err = errors.New(plan.Refused)
				}
				return err
			}, func() any { return fmt.Sprint(plan.Engine, plan.Tools) }
		},
	}
}

func damagedPrograms() map[string]damaged {
	audit := func(told bool, call func(b *broken, a gateAudit, r *runlog.Run) error) damaged {
		return func(b *broken) (func() error, func() any) {
			b.write("gate: check", "gate-audit: 1")
			b.script("check", "exit 1")
			p, r := b.programs("check")
			a := gateAudit{b.Runner, p.job, p.permitted["check"]}
			if told {
				must(b.t, r.Event(b.t.Context(), runlog.Event{Type: runlog.Report, Text: "r"}))
			}
			_, err := b.Gates.Close(b.t.Context(), "a", a.digest, r.ID, 1)
			must(b.t, err)
			return func() error { return call(b, a, r) }, func() any {
				known, err := b.Gates.Of("a", a.digest)
				return fmt.Sprint(known.Audit, known.Told, err)
			}
		}
	}
	return map[string]damaged{
		"audit that was killed": audit(false, func(b *broken, a gateAudit, _ *runlog.Run) error {
			known, err := a.state(b.t.Context())
			if err == nil && known.Audit != "" {
				return errors.New("the audit still goes on")
			}
			return err
		}),
		"end of an audit": audit(true, func(b *broken, a gateAudit, r *runlog.Run) error {
			return a.end(b.t.Context(), r)
		}),
		"copy of a program": func(b *broken) (func() error, func() any) {
			b.write("gate: check")
			b.script("check", "exit 1")
			p, r := b.programs("check")
			var file string
			return func() (err error) {
					file, err = p.copied(r.ID, "check")
					return err
				}, func() any {
					text, err := os.ReadFile(file)
					return fmt.Sprint(string(text), err)
				}
		},
	}
}
