package run

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/conversation"
	"github.com/ollim/ollim/internal/agent/notify"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state"
	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/model"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/spend"
)

// TestModelOfAContinuedRun: a run that continues with the owner's answer asks the model that answered before; in every other run the
// requested model is asked first, whichever answered in the end, and a rebuilt run is asked the same.
func TestModelOfAContinuedRun(t *testing.T) {
	t.Parallel()
	for _, continued := range []int{0, 1} {
		for _, fallback := range []string{"", "overloaded"} {
			record := runlog.Record{Model: "opus", ModelUsed: "haiku", Fallback: fallback, Continued: continued}
			goesOn := continued == 1 && fallback != ""
			if got := asked(&runlog.Run{Record: record}); got != map[bool]string{true: "haiku", false: "opus"}[goesOn] {
				t.Errorf("continued %d, fallback %q: asks %s", continued, fallback, got)
			}
			now := asToday(Spec{Conversation: conversation.Question{}, Policy: Rights{AllowPing: true}}, record, "sonnet")
			if want := map[bool]string{true: "opus " + fallback, false: "sonnet "}[goesOn]; now.Model+" "+now.Fallback != want || !now.AllowPing {
				t.Errorf("continued %d, fallback %q: rebuilt with %q, %q", continued, fallback, now.Model, now.Fallback)
			}
		}
	}
}

// TestWaitBeforeAnotherModel: a run waits for an overloaded service for a quarter of its time, but not for longer than five minutes or
// its own patience, and for none without another model to ask.
func TestWaitBeforeAnotherModel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ limit, patience, want time.Duration }{
		{8 * time.Minute, 0, 2 * time.Minute}, {time.Hour, 0, 5 * time.Minute}, {time.Hour, time.Minute, time.Minute}, {4 * time.Minute, time.Hour, time.Minute},
	} {
		m := models{r: &Runner{Settings: Settings{Models: func() model.Table { return model.Table{} }}}, spec: Spec{Limits: Limits{Time: c.limit, Patience: c.patience}}}
		if got := m.fallback(); got.Patience != 0 || got.Models != nil {
			t.Errorf("without another model: %+v", got)
		}
		m.spec.Engine.Fallback = []string{"haiku"}
		if got := m.fallback(); got.Patience != c.want || !slices.Equal(got.Models, []string{"haiku"}) {
			t.Errorf("%v of patience in %v: waits %v for %q", c.patience, c.limit, got.Patience, got.Models)
		}
	}
}

// TestSettingOfTheModel: the notice of a model that could not be used names the setting that chose it.
func TestSettingOfTheModel(t *testing.T) {
	t.Parallel()
	routine := runlog.Record{Subject: runlog.Subject{Kind: string(job.Routine), Name: "news", Path: "routines/news.md"}}
	reminder := runlog.Record{Subject: runlog.Subject{Kind: string(job.Reminder), Name: "tea", Path: "reminders/tea.md"}}
	chat, question := runlog.Record{Subject: runlog.Subject{Kind: "chat"}}, runlog.Record{Subject: runlog.Subject{Kind: runlog.Ask}}
	foreground := func(r runlog.Record, engine string) runlog.Record {
		r.Foreground, r.Engine = true, engine
		return r
	}
	by := func(r runlog.Record, engine string) runlog.Record {
		r.Engine = engine
		return r
	}
	for i, c := range []struct {
		record runlog.Record
		chosen string
		want   string
	}{
		{foreground(chat, engine.Native), "opus", "chat.model"}, {foreground(routine, engine.Native), "opus", "chat.model"},
		{foreground(chat, engine.Native), "haiku", "--model"}, {by(routine, engine.Native), "opus", "ollim routine edit news"},
		{by(routine, engine.Native), "", "native.model"}, {by(routine, engine.ClaudeCode), "", "ollim routine edit news"},
		{by(reminder, engine.Native), "haiku", "model: in reminders/tea.md"}, {by(reminder, engine.Native), "", "native.model"},
		{by(reminder, engine.ClaudeCode), "", "model: in reminders/tea.md"}, {by(question, engine.Native), "haiku", "--model"},
		{by(question, engine.Native), "", "native.model"}, {by(question, engine.ClaudeCode), "", "chat.model"}, {foreground(chat, engine.Native), "", "native.model"},
	} {
		m := models{&Runner{Settings: Settings{Main: config.Chat{Model: "opus"}}}, Spec{Engine: Choice{Model: c.chosen}}, &runlog.Run{Record: c.record}}
		if got := m.setting(); !strings.Contains(got, c.want) {
			t.Errorf("%d: %q, want %q", i, got, c.want)
		}
	}
}

// TestLimitOfARun: the lower one of the job's limit and the configured one counts, unless the owner typed it; 0 and infinity are none. The
// error of a run that reached it names each setting that is too low for it, and no other.
func TestLimitOfARun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		own, perRun float64
		typed       bool
		kind        job.Kind
		most        float64
		raise       []string // for a run that needs 2 USD
	}{
		{0, 1, false, job.Routine, 1, []string{"ollim config set spend.per-run 2.00"}},
		{0.5, 1, false, job.Routine, 0.5, []string{"set max-cost: 2.00 with ollim routine edit news", "ollim config set spend.per-run 2.00"}},
		{0.5, math.Inf(1), false, job.Reminder, 0.5, []string{"set max-cost: 2.00 in reminders/tea.md"}},
		{3, 1, false, job.Webhook, 1, []string{"ollim config set spend.per-run 2.00"}},
		{1, 2, false, job.Routine, 1, []string{"set max-cost: 2.00 with ollim routine edit news"}},
		{2, 1, false, job.Routine, 1, []string{"ollim config set spend.per-run 2.00"}},
		{1.5, 1, true, "ask", 1.5, []string{"--max-cost 2.00"}},
		{0, math.Inf(1), true, "ask", 0, nil},
	} {
		s := Spec{Limits: Limits{Cost: c.own, Typed: c.typed}}
		record := runlog.Record{Subject: runlog.Subject{Kind: string(c.kind), Name: "news", Path: "reminders/tea.md"}}
		a := &account{run: &runlog.Run{Record: record}, spec: s, spend: spend.Book{Limits: spend.Limits{PerRun: c.perRun}}}
		if got := s.most(c.perRun); got != c.most {
			t.Errorf("%+v: %v", c, got)
		}
		if got := a.raised(2); !slices.Equal(got, c.raise) {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// TestRemedyOfALimit: only a run that reached its own limit is told how to allow more, and twice as much is enough.
func TestRemedyOfALimit(t *testing.T) {
	t.Parallel()
	disk := store.Disk{Now: time.Now, Warn: func(text string) { t.Error(text) }}
	id, err := runlog.NewID(time.Now(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	begun, err := state.Of(paths.Dir(t.TempDir()), disk, time.UTC).Runs.Open(runlog.Record{ID: id, Started: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	a := &account{run: begun, spend: spend.Book{Limits: spend.Limits{PerRun: 1}}}
	for _, err := range []error{errors.New("no"), &overLimit{&spend.Limit{Key: "per-day"}}} {
		if got := a.remedy("", err); !errors.Is(got, err) || strings.Contains(got.Error(), "to allow more") {
			t.Errorf("%v: %v", err, got)
		}
	}
	for err, want := range map[error]string{
		engine.ErrMaxCost: "to allow more: ollim config set spend.per-run 2.00",
		fmt.Errorf("%w: %w", engine.ErrMaxCost, &engine.Unaffordable{Next: 1, Spent: 0.5}): "to allow more: ollim config set spend.per-run 3.00",
	} {
		if got := a.remedy("", err); !errors.Is(got, engine.ErrMaxCost) || !strings.HasSuffix(got.Error(), want) {
			t.Errorf("%v: %v", err, got)
		}
	}
}

// TestOutcomeOf: each way in which a run ends has its outcome, also inside another error; a time limit counts before what it cancelled.
func TestOutcomeOf(t *testing.T) {
	t.Parallel()
	for want, errs := range map[runlog.Outcome][]error{
		runlog.OK: {nil}, runlog.Timeout: {ErrTimeout, errors.Join(context.Canceled, ErrTimeout)}, runlog.Interrupted: {context.Canceled, fmt.Errorf("%w: %w", context.Canceled, ErrWithdrawn)},
		runlog.Waiting: {errWaiting}, runlog.Paused: {&Refusal{Kind: ErrPaused}}, runlog.Refused: {Refuse("no"), atLimit(&spend.Limit{Key: "per-day"})},
		runlog.Unreported: {errors.Join(errUnreported, engine.ErrMaxCost)}, runlog.Gated: {ErrGated}, runlog.Failed: {errors.New("no"), engine.ErrMaxCost},
	} {
		for _, err := range errs {
			if got := outcomeOf(err); got != want {
				t.Errorf("%v is %q, want %q", err, got, want)
			}
		}
	}
}

// TestCauseOfARefusal: a refusal that names its cause is reported by it, a missing engine by the setting, any other by the job's file.
func TestCauseOfARefusal(t *testing.T) {
	t.Parallel()
	record := runlog.Record{Subject: runlog.Subject{Kind: string(job.Routine), Job: "news", Name: "news"}, Error: "no"}
	limit := atLimit(&spend.Limit{Key: "per-day"})
	if got := refusalOf(record, fmt.Errorf("x: %w", limit)); got.Kind != notify.Limit {
		t.Errorf("at a limit: %+v", got)
	}
	if got := refusalOf(record, ErrNoEngine); got.Kind != notify.Engine || !strings.Contains(got.Remedy, "config set engine") {
		t.Errorf("without an engine: %+v", got)
	}
	if got := refusalOf(record, Refuse("no")); got.Kind != notify.Refused || got.Subject != "news" || !strings.Contains(got.Remedy, "ollim check") {
		t.Errorf("a faulty file: %+v", got)
	}
}

// TestPatternsToAsk: file tools of a run whose owner can be asked reach all that the owner may allow; other runs reach what they may.
func TestPatternsToAsk(t *testing.T) {
	t.Parallel()
	own := []string{"Read(./a.md)"}
	if got := reach(&runlog.Run{Record: runlog.Record{Tools: own}}); !slices.Equal(got, own) {
		t.Errorf("dontAsk reaches %q", got)
	}
	got := reach(&runlog.Run{Record: runlog.Record{Tools: own, Permissions: string(policy.AskOwner)}})
	if !slices.Contains(got, "Write(./**)") || !slices.Contains(got, own[0]) {
		t.Errorf("default reaches %q", got)
	}
}

// TestWhenASessionIsFull: a session that a later run continues is compacted at the limits; one that none continues is not, except that of
// a question, which the owner may continue.
func TestWhenASessionIsFull(t *testing.T) {
	t.Parallel()
	r := &Runner{Settings: Settings{CompactAt: 1000}, Stores: &state.Stores{}}
	r.Spend.Limits.PerRun = 2
	for record, want := range map[*runlog.Record]engine.Full{
		{Key: "main"}: {Tokens: 1000, MaxCost: 2}, {Subject: runlog.Subject{Kind: runlog.Ask}}: {Tokens: 1000, MaxCost: 2},
		{Subject: runlog.Subject{Kind: string(job.Routine)}}: {},
	} {
		if got := r.full(Spec{}, &runlog.Run{Record: *record}); got != want {
			t.Errorf("%+v: %+v", record.Subject, got)
		}
	}
}

// TestPriceInTheRecord: the record has the price of a model whose price is known, with that of long requests if there is one.
func TestPriceInTheRecord(t *testing.T) {
	t.Parallel()
	if got := (Settings{}).price("claude-opus-4-5"); got != nil {
		t.Errorf("without a table: %+v", got)
	}
	s := Settings{Models: model.Known}
	for _, m := range s.Models().Models() {
		got := s.price(m.ID)
		if (got != nil) != m.Priced || got != nil && ((got.Long != nil) != (m.Long > 0) || got.Rates != runlog.Rates(m.Price)) {
			t.Errorf("%s: %+v, want %+v", m.ID, got, m)
		}
	}
	for _, name := range []string{"", "no-such-model"} {
		if got := s.price(name); got != nil {
			t.Errorf("%q has the price %+v", name, got)
		}
	}
}
