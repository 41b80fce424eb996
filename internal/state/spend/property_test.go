package spend

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit"
	"pgregory.net/rapid"
)

// model is what there should be, in millionths of a USD.
type model struct {
	*desk
	runs map[string]*fate
	next int
}

// fate is what becomes of a run.
type fate struct {
	day     string
	granted money // reserved until settled
	cost    money
	settled bool
	dead    bool
	shown   float64 // by the record of a dead run
	forced  bool
}

// counted is what the run weighs.
func (f *fate) counted() money {
	if f.settled {
		return f.cost
	}
	return f.granted
}

func (m *model) today() string { return m.now.Format(time.DateOnly) }

// on adds up a day or a month by the labels alone.
func (m *model) on(prefix string) (total money, runs int) {
	for _, f := range m.runs {
		if strings.HasPrefix(f.day, prefix) {
			total += f.counted()
			runs++
		}
	}
	return total, runs
}

func (m *model) snapshot(r *rapid.T, at time.Time) (day, month money, runs int) {
	defer func(now time.Time) { m.now = now }(m.now)
	m.now = at
	got, err := m.Totals()
	if err != nil {
		r.Fatal(err)
	}
	both := func(s amounts) money { return known(s.Spent, 0) + known(s.Reserved, 0) }
	return both(got.Today), both(got.Month), got.Runs
}

func (m *model) pick(r *rapid.T, fits func(*fate) bool) (string, *fate) {
	var ids []string
	for _, id := range slices.Sorted(maps.Keys(m.runs)) {
		if fits(m.runs[id]) {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		r.Skip("no such run")
	}
	id := rapid.SampledFrom(ids).Draw(r, "run")
	return id, m.runs[id]
}

// look also settles, in the model, whom it declares dead.
func (m *model) look(buried *[]*fate) look {
	return func(run string) (float64, bool) {
		f := m.runs[run]
		if f.dead {
			*buried = append(*buried, f)
		}
		return f.shown, !f.dead
	}
}

func (m *model) reserve(r *rapid.T, force bool) {
	most := rapid.SampledFrom([]float64{0, 0.000001, 0.1, 0.333333, 1, 2}).Draw(r, "most")
	dayBefore, monthBefore, runsBefore := m.snapshot(r, m.now)
	var buried []*fate
	m.next++
	id := fmt.Sprint("run", m.next)
	got, err := m.ask(id, most, m.look(&buried), force)
	var limit *Limit
	day, month, runs := m.snapshot(r, m.now)
	if errors.As(err, &limit) && !force {
		if day != dayBefore || month != monthBefore || runs != runsBefore ||
			limit.Used+limit.Reserved+limit.Needs < limit.Allowed+5e-7 || !limit.Passing && limit.Used < limit.Allowed {
			r.Fatalf("refused: %v, from %v %v %d to %v %v %d", err, dayBefore, monthBefore, runsBefore, day, month, runs)
		}
		return
	}
	if err != nil {
		r.Fatal(err)
	}
	for _, f := range buried {
		f.settled, f.cost = true, known(f.shown, f.granted)
	}
	granted := known(got, -1)
	wish := known(most, 0)
	if wish == 0 {
		wish = dollar
	}
	if granted <= 0 || granted > min(wish, dollar) || force && granted != min(wish, dollar) {
		r.Fatalf("granted %v of %v", got, most)
	}
	m.runs[id] = &fate{day: m.today(), granted: granted, forced: force}
	if !force && (day > known(m.Limits.PerDay, 0) || month > known(m.Limits.PerMonth, 0) || runs > m.Limits.RunsPerDay) {
		r.Fatalf("above the limits: %v %v %d", day, month, runs)
	}
	if limits := []money{known(m.Limits.PerDay, 0) - day, known(m.Limits.PerMonth, 0) - month, min(wish, dollar) - granted}; !force && slices.Min(limits) != 0 {
		r.Fatalf("granted %v of %v, and there was more: %v", got, most, limits)
	}
}

func (m *model) check(r *rapid.T) {
	day, month, runs := m.snapshot(r, m.now)
	today := m.today()
	wantDay, wantRuns := m.on(today)
	wantMonth, _ := m.on(today[:7])
	later := slices.ContainsFunc(slices.Collect(maps.Values(m.runs)), func(f *fate) bool { return f.day > today })
	if day < wantDay || month < wantMonth || runs < wantRuns {
		r.Fatalf("counts %v %v %d, want at least %v %v %d", day, month, runs, wantDay, wantMonth, wantRuns)
	}
	typed := 0
	for _, f := range m.runs {
		if f.day == today && f.forced {
			typed++
		}
	}
	if got, err := m.Totals(); err != nil || got.Typed < typed || !later && got.Typed != typed {
		r.Fatalf("%d runs were started by the owner, want %d, %v", got.Typed, typed, err)
	}
	if !later && (day != wantDay || month != wantMonth || runs != wantRuns) {
		r.Fatalf("counts %v %v %d, want %v %v %d", day, month, runs, wantDay, wantMonth, wantRuns)
	}
	m.overspent(r)
}

// overspent checks every day by itself: for any clock, the day's cost is within its limit, except by force.
func (m *model) overspent(r *rapid.T) {
	days := map[string]money{}
	for _, f := range m.runs {
		if !f.forced {
			days[f.day] += f.counted()
		}
	}
	for date, total := range days {
		if total > known(m.Limits.PerDay, 0) {
			r.Fatalf("%s: %v", date, total)
		}
	}
}

func TestBookAgainstModel(t *testing.T) {
	root := testkit.MemoryDir(t)
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp(root, "")
		if err != nil {
			r.Fatal(err)
		}
		m := &model{desk: deskAt(r, dir, "America/Sao_Paulo", Limits{1, 2.5, 6, 8}), runs: map[string]*fate{}}
		m.at(rapid.SampledFrom([]string{"2018-11-03 22:00", "2018-02-17 12:00", "2018-03-31 23:00"}).Draw(r, "start"))
		open := func(f *fate) bool { return !f.settled && !f.dead }
		r.Repeat(map[string]func(*rapid.T){
			"reserve":  func(r *rapid.T) { m.reserve(r, false) },
			"reserve2": func(r *rapid.T) { m.reserve(r, false) },
			"force":    func(r *rapid.T) { m.reserve(r, true) },
			"settle": func(r *rapid.T) {
				id, f := m.pick(r, open)
				f.cost = money(rapid.Int64Range(0, int64(f.granted)).Draw(r, "cost"))
				f.settled = true
				for range rapid.IntRange(1, 2).Draw(r, "times") {
					m.settle(id, f.cost.usd())
				}
			},
			"settle again": func(r *rapid.T) { // also one that was taken for dead
				id, f := m.pick(r, func(f *fate) bool { return f.settled && f.day == m.today() })
				f.cost = money(rapid.Int64Range(0, int64(f.cost)).Draw(r, "cost"))
				m.settle(id, f.cost.usd())
			},
			"raise": func(r *rapid.T) {
				id, f := m.pick(r, open)
				least := f.granted + money(rapid.Int64Range(0, int64(dollar)).Draw(r, "more"))
				most := least + money(rapid.Int64Range(0, int64(dollar)).Draw(r, "wish"))
				day, month, _ := m.snapshot(r, m.now)
				got, err := m.Raise(ctx, id, least.usd(), most.usd(), nil)
				var limit *Limit
				if errors.As(err, &limit) && !f.forced {
					if d, mo, _ := m.snapshot(r, m.now); d != day || mo != month || limit.Used+limit.Reserved+(least-f.granted).usd() < limit.Allowed+5e-7 {
						r.Fatalf("refused: %v, from %v %v to %v %v", err, day, month, d, mo)
					}
					return
				}
				if granted := known(got, -1); err != nil || granted < least || granted > most || f.forced && granted != most {
					r.Fatalf("raised to %v, %v, of %v to %v", got, err, least, most)
				}
				f.granted = max(f.granted, known(got, -1))
			},
			"release": func(r *rapid.T) {
				id, _ := m.pick(r, open)
				m.release(id)
				delete(m.runs, id)
			},
			"crash": func(r *rapid.T) {
				_, f := m.pick(r, open)
				f.dead, f.shown = true, -1
				if rapid.Bool().Draw(r, "known") {
					f.shown = f.granted.usd() / 2
				}
			},
			"time passes": func(r *rapid.T) {
				m.now = m.now.Add(time.Duration(rapid.IntRange(1, 40*60).Draw(r, "minutes")) * time.Minute)
			},
			"clock set back": func(r *rapid.T) {
				m.next++ // the book has seen the time from which the clock goes back
				m.settle(fmt.Sprint("run", m.next), 0)
				m.runs[fmt.Sprint("run", m.next)] = &fate{day: m.today(), settled: true}
				day, month, runs := m.snapshot(r, m.now)
				m.now = m.now.Add(-time.Duration(rapid.IntRange(1, 60*24).Draw(r, "hours")) * time.Hour)
				if d, mo, n := m.snapshot(r, m.now); d < day || mo < month || n < runs {
					r.Fatalf("from %v %v %d to %v %v %d", day, month, runs, d, mo, n)
				}
			},
			"": m.check,
		})
	})
}
