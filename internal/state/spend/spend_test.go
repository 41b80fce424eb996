package spend

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/state/ledger"
)

func TestReserveAndSettle(t *testing.T) {
	d := newDesk(t, defaults)
	d.totals("{0 0} {0 0} 0")
	d.reserve("a", 0, 1)
	d.reserve("b", 0.3, 0.3)
	d.reserve("c", 7, 1)
	d.totals("{0 2.3} {0 2.3} 3")
	d.settle("a", 0.05)
	d.totals("{0.05 1.3} {0.05 1.3} 3")
	d.settle("b", 2) // the last turn went far beyond
	d.settle("c", 0)
	d.totals("{2.05 0} {2.05 0} 3")
}

func TestWhatIsLeft(t *testing.T) {
	d := newDesk(t, Limits{1, 2.5, 50, 500})
	d.reserve("a", 0, 1)
	d.reserve("b", 0, 1)
	limit := d.refused("c", "limit per-day: 0.00 spent and 2.00 reserved of 2.50 USD, until 2026-02-25T00:00:00+01:00 or a run under way ends")
	if !limit.Passing {
		t.Error("not passing")
	}
	d.settle("a", 1)
	d.settle("b", 1)
	d.reserve("c", 0, 0.5) // less than it may need, but no other run will leave more
	limit = d.refused("d", "limit per-day: 2.00 spent and 0.50 reserved of 2.50 USD, until 2026-02-25T00:00:00+01:00 or a run under way ends")
	if !limit.Passing {
		t.Error("not passing")
	}
	d.settle("c", 3)
	limit = d.refused("e", "limit per-day: 5.00 spent of 2.50 USD, until 2026-02-25T00:00:00+01:00")
	if limit.Passing {
		t.Error("passing")
	}
	d.at("2026-02-25 00:00")
	d.reserve("e", 0, 1)
	d.totals("{0 1} {5 1} 1")
}

func TestLimits(t *testing.T) {
	const tomorrow, march = "until 2026-02-25T00:00:00+01:00", "until 2026-03-01T00:00:00+01:00"
	for _, test := range []struct {
		Limits
		most    float64
		granted float64
		refused string // the second run, after the first one settled at 1.00
	}{
		{Limits{2, 1, 50, 5}, 0, 1, "limit per-day: 1.00 spent of 1.00 USD, " + tomorrow},
		{Limits{2, 50, 1, 5}, 0, 1, "limit per-month: 1.00 spent of 1.00 USD, " + march},
		{Limits{2, 1, 1, 1}, 0, 1, "limit per-month: 1.00 spent of 1.00 USD, " + march},
		{Limits{2, 1, 50, 1}, 0, 1, "limit per-day: 1.00 spent of 1.00 USD, " + tomorrow},
		{Limits{2, 50, 50, 1}, 1.5, 1.5, "limit runs-per-day: 1 of 1, " + tomorrow},
		{Limits{2, 50, 50, 2}, 0.0000001, 0.000001, ""},
		{none, 0, inf, ""},
		{none, 3, 3, ""},
		{Limits{1e12, inf, inf, math.MaxInt}, 0, inf, ""},
		{Limits{inf, 1.25, inf, math.MaxInt}, 0, 1.25, ""},
		{Limits{inf, 1, inf, math.MaxInt}, 0, 1, "limit per-day: 1.00 spent of 1.00 USD, " + tomorrow},
	} {
		d := newDesk(t, test.Limits)
		d.reserve("a", test.most, test.granted)
		if test.refused != "" {
			d.settle("a", 1)
			d.refused("b", test.refused)
		} else if test.granted < 1 || math.IsInf(test.granted, 1) {
			d.settle("a", 1)
			d.reserve("b", test.most, test.granted)
		}
	}
}

// What makes no sense as a limit is none that lets anything through.
func TestNothingMayBeSpent(t *testing.T) {
	nan := math.NaN()
	for _, test := range []struct {
		Limits
		want string
	}{
		{Limits{0, 5, 50, 500}, "limit per-run: nothing may be spent"},
		{Limits{-1, 5, 50, 500}, "limit per-run: nothing may be spent"},
		{Limits{nan, inf, inf, 500}, "limit per-run: nothing may be spent"},
		{Limits{-inf, inf, inf, 500}, "limit per-run: nothing may be spent"},
		{Limits{1, 0, inf, 500}, "limit per-day: 0.00 spent of 0.00 USD, until 2026-02-25T00:00:00+01:00"},
		{Limits{1, nan, 1, 500}, "limit per-day: 0.00 spent of 0.00 USD, until 2026-02-25T00:00:00+01:00"},
		{Limits{1, 5, -2, 500}, "limit per-month: 0.00 spent of 0.00 USD, until 2026-03-01T00:00:00+01:00"},
		{Limits{1, 5, 50, 0}, "limit runs-per-day: 0 of 0, until 2026-02-25T00:00:00+01:00"},
		{Limits{1, 5, 50, -1}, "limit runs-per-day: 0 of 0, until 2026-02-25T00:00:00+01:00"},
		{Limits{}, "limit per-run: nothing may be spent"},
	} {
		d := newDesk(t, test.Limits)
		d.refused("a", test.want)
	}
}

func TestForce(t *testing.T) {
	d := newDesk(t, Limits{1, 2, 2, 1})
	d.force("a", 0, 1)
	d.force("b", 0.5, 0.5)
	d.settle("a", 3)
	d.force("c", 9, 1)
	d.totals("{3 1.5} {3 1.5} 3")
	d.refused("d", "limit per-month: 3.00 spent and 1.50 reserved of 2.00 USD, until 2026-03-01T00:00:00+01:00")

	d = newDesk(t, Limits{})
	d.force("a", 0, inf)
	d.force("b", 9, 9)
	d.totals("{0 9} {0 9} 2")
	d.settle("a", 4)
	d.totals("{4 9} {4 9} 2")
}

// A caller that does not know whether it worked reserves or settles again.
func TestAgain(t *testing.T) {
	d := newDesk(t, Limits{1, 1.5, 50, 2})
	d.reserve("a", 0.7, 0.7)
	d.reserve("b", 0.8, 0.8)
	d.reserve("a", 0.7, 0.7)
	d.reserve("b", 0.8, 0.8)
	d.totals("{0 1.5} {0 1.5} 2")
	d.settle("a", 0.1)
	d.settle("a", 0.1)
	d.totals("{0.1 0.8} {0.1 0.8} 2")
	d.settle("a", 0.2)
	d.totals("{0.2 0.8} {0.2 0.8} 2")
	d.release("a") // too late
	d.release("x")
	d.totals("{0.2 0.8} {0.2 0.8} 2")
	if got, err := d.ask("a", 0, nil, true); err == nil || err.Error() != "run a: already settled" {
		t.Error(got, err)
	}
	d.totals("{0.2 0.8} {0.2 0.8} 2")

	d = newDesk(t, none)
	d.reserve("a", 0, inf)
	d.reserve("a", 0, inf)
	d.totals("{0 0} {0 0} 1")
}

func TestRelease(t *testing.T) {
	d := newDesk(t, Limits{1, 5, 50, 1})
	for range 3 {
		d.reserve("a", 0, 1)
		d.release("a")
		d.release("a")
		d.totals("{0 0} {0 0} 0")
	}
	d.reserve("a", 0, 1)
	d.totals("{0 1} {0 1} 1")
}

func TestDeadRuns(t *testing.T) {
	d := newDesk(t, defaults)
	for _, run := range []string{"alive", "dead", "nobody knows", "negative", "beyond"} {
		d.reserve(run, 0, 1)
	}
	asked := map[string]int{}
	look := func(run string) (float64, bool) {
		asked[run]++
		return map[string]float64{"dead": 0.2, "nobody knows": math.NaN(), "negative": -1, "beyond": 1.5, "alive": 9}[run], run == "alive"
	}
	if got, err := d.ask("new", 0.3, look, false); got != 0.3 || err != nil { // 5 - 1 - 0.2 - 1 - 1 - 1.5
		t.Error(got, err)
	}
	if want := fmt.Sprint(map[string]int{"alive": 1, "dead": 1, "nobody knows": 1, "negative": 1, "beyond": 1}); fmt.Sprint(asked) != want {
		t.Errorf("asked %v", asked)
	}
	d.totals("{3.7 1.3} {3.7 1.3} 6")
	d.settle("dead", 0.2) // it says so itself after all
	d.totals("{3.7 1.3} {3.7 1.3} 6")
	d.settle("nobody knows", 0.1)
	d.totals("{2.8 1.3} {2.8 1.3} 6")
}

// Dead runs are found among any number of settled ones.
func TestDeadAmongSettled(t *testing.T) {
	for range 5 { // the order of the runs is another each time
		d := newDesk(t, none)
		for i := range 20 {
			d.reserve(fmt.Sprint("settled", i), 0.1, 0.1)
			d.settle(fmt.Sprint("settled", i), 0.1)
		}
		d.reserve("dead", 1, 1)
		if _, err := d.ask("new", 0.5, func(run string) (float64, bool) { return 0.25, run != "dead" }, false); err != nil {
			t.Fatal(err)
		}
		d.totals("{2.25 0.5} {2.25 0.5} 22")
	}
}

// A crashed run does not block for ever, whatever else is at its limit.
func TestDeadRunsAtTheLimit(t *testing.T) {
	d := newDesk(t, Limits{5, 5, 50, 1})
	d.reserve("a", 0, 5)
	before := d.file()
	if got, err := d.ask("b", 0, func(string) (float64, bool) { return 0.5, false }, false); err == nil ||
		!strings.HasPrefix(err.Error(), "limit runs-per-day") {
		t.Error(got, err)
	}
	if d.file() != before {
		t.Error("a refusal has written")
	}
	d.Limits.RunsPerDay = 2
	if got, err := d.ask("b", 0, func(string) (float64, bool) { return 0.5, false }, false); got != 4.5 || err != nil {
		t.Error(got, err)
	}
}

func TestNoCosts(t *testing.T) {
	d := newDesk(t, defaults)
	d.reserve("a", 0, 1)
	before := d.file()
	for _, cost := range []float64{-0.000001, -1, math.NaN(), inf, -inf, 1e9 + 1, math.MaxFloat64} {
		if err := d.Settle(ctx, "a", cost); !errors.Is(err, errCost) {
			t.Errorf("Settle %v: %v", cost, err)
		}
		if got, err := d.ask("b", cost, nil, true); got != 0 || !errors.Is(err, errCost) {
			t.Errorf("Reserve %v: %v, %v", cost, got, err)
		}
	}
	if d.file() != before {
		t.Error("written")
	}
	d.settle("a", math.Copysign(0, -1))
	d.totals("{0 0} {0 0} 1")
}

func TestSumsAreExact(t *testing.T) {
	p := newPage()
	for i := range 10000 {
		p.Runs["a"] = entry{Day: "2026-02-24"}
		p.settle(move{Run: "a", Cost: known(0.1, 0), Day: "2026-02-24"})
		if i%100 != 0 {
			continue
		}
		data, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, &p); err != nil {
			t.Fatal(err)
		}
	}
	if s := p.sum("2026-02-24"); s.usd() != (amounts{1000, 0}) {
		t.Error(s.usd())
	}
}

func TestMoney(t *testing.T) {
	for usd, want := range map[float64]string{
		0: "0", 0.1: "0.1", 1: "1", 1.1: "1.1", 0.29: "0.29", 0.000001: "0.000001", 0.0000004: "0", 0.0000005: "0.000001",
		12.3456785: "12.345679", 123456789.123456: "123456789.123456", 999999999.999999: "999999999.999999", 1e9: "1000000000",
	} {
		m, err := toMoney(usd)
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(m)
		var back money
		err = errors.Join(err, json.Unmarshal(data, &back))
		if err != nil || back != m || trim(string(data)) != trim(want) {
			t.Errorf("%v: %s, %d and back %d, %v", usd, data, m, back, err)
		}
	}
}

// trim makes 1e-06 of 0.000001.
func trim(s string) string {
	var f float64
	_, _ = fmt.Sscan(s, &f)
	return fmt.Sprintf("%.7f", f)
}

func TestHighSums(t *testing.T) {
	d := newDesk(t, none)
	for i := range 3 {
		d.force(fmt.Sprint(i), 1e9, 1e9)
		d.settle(fmt.Sprint(i), 1e9)
	}
	d.totals("{1e+09 0} {1e+09 0} 3")
	d.settle("0", 0)
	d.settle("1", 0)
	d.settle("2", 0) // the sum was cut, so it cannot become negative
	d.totals("{0 0} {0 0} 3")
}

func TestFacts(t *testing.T) {
	d := newDesk(t, defaults)
	d.reserve("a", 0, 1)
	d.force("b", 0.5, 0.5)
	d.settle("a", 0.125)
	d.release("b")
	want := `"fact":"ledger.imported","stores":["spend"]
"fact":"money.found","days":{},"runs":{},"jobs":{}
"fact":"money.reserved","run":"a","day":"2026-02-24","reserved":1
"fact":"money.reserved","run":"b","day":"2026-02-24","owner":true,"reserved":0.5
"fact":"money.settled","run":"a","day":"2026-02-24","cost":0.125
"fact":"money.released","run":"b","day":"2026-02-24"
`
	got := regexp.MustCompile(`\{"at":"[^"]*",|(,"more":\d)?,"hash":"\w+"\}`).ReplaceAllString(d.file(), "")
	if got != want {
		t.Errorf("got %s", got)
	}
}

func TestLimitsAsJSON(t *testing.T) {
	for l, want := range map[Limits]string{
		defaults:         `{"per_day":5,"per_month":50,"per_run":1,"runs_per_day":500}`,
		none:             `{"per_day":null,"per_month":null,"per_run":null,"runs_per_day":null}`,
		{-1, 0, 0.25, 0}: `{"per_day":0,"per_month":0.25,"per_run":0,"runs_per_day":0}`,
	} {
		if data, err := json.Marshal(l); string(data) != want || err != nil {
			t.Errorf("%s, %v, want %s", data, err, want)
		}
	}
	d := newDesk(t, none)
	totals, err := d.Totals()
	if err != nil {
		t.Fatal(err)
	}
	if data, err := json.Marshal(totals); err != nil || !strings.HasPrefix(string(data), `{"today":{"spent":0,"reserved":0},"month":{`) {
		t.Errorf("%s, %v", data, err)
	}
}

type began struct {
	Run      string  `json:"run"`
	Reserved float64 `json:"reserved"`
}

func (began) Fact() string { return "run.began" }

// TestReserveWith: what is to happen with a reservation is in the same change of the ledger, or does not happen.
func TestReserveWith(t *testing.T) {
	d := newDesk(t, Limits{1, 1, 1, 10})
	claim := func(run string) Claim {
		return Claim{Run: run, With: func(reserved float64) []ledger.Fact { return []ledger.Fact{began{run, reserved}} }}
	}
	for range 2 { // also when it is asked again
		if _, err := d.Reserve(ctx, claim("a"), nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.Reserve(ctx, claim("b"), nil); err == nil {
		t.Fatal("it was not refused")
	}
	var kinds []string
	for line, err := range d.Ledger.Lines(time.Time{}) {
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, line.Kind)
		if more := strings.Contains(string(line.JSON), `"more":1`); line.Kind == reservation && !more || line.Kind == "run.began" && more {
			t.Errorf("not one change: %s", line.JSON)
		}
		if line.Kind == "run.began" && !strings.Contains(string(line.JSON), `"run":"a","reserved":1`) {
			t.Errorf("%s", line.JSON)
		}
	}
	if got := strings.Join(kinds, " "); !strings.HasSuffix(got, "money.reserved run.began run.began") || strings.Count(got, reservation) != 1 {
		t.Error(got)
	}
}
