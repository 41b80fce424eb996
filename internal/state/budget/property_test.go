package budget

import (
	"encoding/json"
	"math"
	"math/big"
	"os"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit"
	"pgregory.net/rapid"
)

// model is the bucket in the plainest way, with exact fractions.
type model struct {
	capacity, rate int
	tokens         *big.Rat
	last           time.Time
	used, critical map[string]int // by day, as the file has them: of the last one only
}

// look is the tokens there are at an instant.
func (m *model) look(now time.Time) *big.Rat {
	tokens := new(big.Rat).Set(m.tokens)
	if passed := now.Sub(m.last); passed > 0 {
		tokens.Add(tokens, big.NewRat(int64(passed), int64(m.rate)*int64(time.Minute)))
	}
	if full := big.NewRat(int64(m.capacity), 1); tokens.Cmp(full) > 0 {
		return full
	}
	return tokens
}

// write is what each change does first.
func (m *model) write(now time.Time) (today string) {
	today = now.Format(time.DateOnly)
	m.tokens, m.last = m.look(now), now
	m.used, m.critical = map[string]int{today: m.used[today]}, map[string]int{today: m.critical[today]}
	return today
}

// put adds whole tokens and keeps within the capacity.
func (m *model) put(n int64) {
	m.tokens.Add(m.tokens, big.NewRat(n, 1))
	m.tokens = m.look(m.last)
}

func (m *model) take(now time.Time) bool {
	today := m.write(now)
	if m.tokens.Cmp(big.NewRat(1, 1)) < 0 {
		return false
	}
	m.put(-1)
	m.used[today]++
	return true
}

func TestBookAgainstModel(t *testing.T) {
	root := testkit.MemoryDir(t)
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp(root, "")
		if err != nil {
			r.Fatal(err)
		}
		d := deskAt(r, dir, rapid.SampledFrom([]string{"Europe/Prague", "Asia/Beirut", "Pacific/Apia"}).Draw(r, "zone"))
		d.at("2026-03-28 20:00:00")
		m := &model{5, 90, big.NewRat(5, 1), d.now, nil, nil}
		m.write(d.now)
		r.Repeat(map[string]func(*rapid.T){
			"take":  func(*rapid.T) { d.take(m.take(d.now)) },
			"again": func(*rapid.T) { d.take(m.take(d.now)) },
			"critical": func(*rapid.T) {
				m.critical[m.write(d.now)]++
				d.critical()
			},
			"return": func(r *rapid.T) {
				today, critical := m.write(d.now), rapid.Bool().Draw(r, "critical")
				if critical {
					m.critical[today] = max(m.critical[today]-1, 0)
				} else {
					m.used[today] = max(m.used[today]-1, 0)
					m.put(1)
				}
				d.giveBack(critical)
			},
			"set": func(r *rapid.T) {
				m.write(d.now)
				capacity := rapid.SampledFrom([]int{-1, 0, 1, 5, 7}).Draw(r, "capacity")
				rate := rapid.SampledFrom([]int{-1, 1, 60, 90, 1440}).Draw(r, "rate")
				if capacity >= 0 {
					m.capacity = capacity
				}
				if rate >= 0 {
					m.rate = rate
				}
				m.put(0)
				d.set(capacity, rate)
			},
			"pass": func(r *rapid.T) {
				d.pass(time.Duration(rapid.IntRange(0, 8*3600).Draw(r, "seconds")) * time.Second)
			},
			"wait": func(*rapid.T) { // to the moment of the next token
				if s, err := d.Status(); err == nil {
					d.pass(s.NextRefill.Round(time.Second))
				}
			},
			"back": func(r *rapid.T) {
				d.pass(-time.Duration(rapid.IntRange(0, 100*3600).Draw(r, "seconds")) * time.Second)
			},
			"": func(r *rapid.T) {
				d.agrees(r, m)
				d.tidy(r)
			},
		})
	})
}

// tidy fails for a file that others could not make sense of.
func (d *desk) tidy(r *rapid.T) {
	var f struct {
		Capacity, Available float64
		Used                int `json:"daily_used"`
		Critical            int `json:"critical_used"`
	}
	text := d.file()
	if text == "" {
		return
	}
	if err := json.Unmarshal([]byte(text), &f); err != nil || f.Available < 0 || f.Available > f.Capacity || f.Used < 0 || f.Critical < 0 {
		r.Fatalf("%v: %s", err, text)
	}
}

func (d *desk) agrees(r *rapid.T, m *model) {
	s, err := d.Status()
	if err != nil {
		r.Fatal(err)
	}
	exact := m.look(d.now)
	want, _ := exact.Float64()
	today := d.now.Format(time.DateOnly)
	if s.Capacity != m.capacity || s.RefillEvery != time.Duration(m.rate)*time.Minute || math.Abs(s.Available-want) > 1e-5 ||
		s.DailyUsed != m.used[today] || s.CriticalUsed != m.critical[today] {
		r.Fatalf("%+v, model %+v with %v", s, *m, want)
	}
	if s.Available < 0 || s.Available > float64(s.Capacity) || (s.NextRefill == 0) != (s.Available == float64(s.Capacity)) {
		r.Fatalf("%+v", s)
	}
	if s.NextRefill > 0 { // there is one more then, and not long before
		now := d.now
		d.pass(s.NextRefill)
		then, _ := d.Status()
		d.now = now.Add(s.NextRefill - 2*time.Second)
		before, _ := d.Status()
		d.now = now
		if int(then.Available) != int(s.Available)+1 && !m.last.After(now) || int(before.Available) > int(s.Available) {
			r.Fatalf("%+v, then %+v, before %+v", s, then, before)
		}
	}
}
