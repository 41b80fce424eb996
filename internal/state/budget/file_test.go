package budget

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
)

func TestFile(t *testing.T) {
	d := newDesk(t)
	d.now = d.now.Add(1234567 * time.Nanosecond).UTC()
	d.take(true)
	d.critical()
	want := `{
  "available": 4,
  "capacity": 5,
  "critical_reset_date": "2026-02-24",
  "critical_used": 1,
  "daily_used": 1,
  "daily_used_reset": "2026-02-24",
  "last_refill": "2026-02-24T12:00:00.001234+01:00",
  "refill_rate_minutes": 90
}
`
	if got := d.file(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	d.put(strings.Replace(want, "{", `{"note": {"n": 12345678901234567890, "s": "<&>"},`, 1))
	d.take(true)
	if got := strings.Join(strings.Fields(d.file()), ""); !strings.Contains(got, `"note":{"n":12345678901234567890,"s":"<&>"}`) || !strings.Contains(got, `"available":3,`) {
		t.Errorf("got %s", got)
	}
}

// It is 12:00 in Prague.
func TestFilesOfOthers(t *testing.T) {
	for content, want := range map[string]string{
		"{}":   "budget: 5/5 (full), used today: 0. critical bypasses: 0.",
		"null": "budget: 5/5 (full), used today: 0. critical bypasses: 0.",
		`{"capacity":5,"available":2,"refill_rate_minutes":90,"last_refill":"2026-02-24T10:15:00.123456+00:00","critical_used":1,` +
			`"critical_reset_date":"2026-02-24","daily_used":3,"daily_used_reset":"2026-02-24"}`: "budget: 2/5 (next refill in 46 min), used today: 3. critical bypasses: 1.",
		`{"capacity":4.0,"available":2.0,"refill_rate_minutes":60.0,"daily_used":3.0,"daily_used_reset":"2026-02-24"}`: "budget: 2/4 (next refill in 60 min), used today: 3. critical bypasses: 0.",
		`{"daily_used":3,"daily_used_reset":"2026-02-23","critical_used":3}`:                                           "budget: 5/5 (full), used today: 0. critical bypasses: 0.",
		`{"daily_used":3,"daily_used_reset":"2026-02-25"}`:                                                             "budget: 5/5 (full), used today: 0. critical bypasses: 0.",
		`{"available":0,"last_refill":"2026-02-24T10:00:00Z"}`:                                                         "budget: 0/5 (next refill in 30 min), used today: 0. critical bypasses: 0.",
		`{"available":0,"last_refill":"2026-02-24T02:00:00-0800"}`:                                                     "budget: 0/5 (next refill in 30 min), used today: 0. critical bypasses: 0.",
		`{"available":0,"last_refill":"2026-02-24T11:00:00.5"}`:                                                        "budget: 0/5 (next refill in 31 min), used today: 0. critical bypasses: 0.",
		`{"available":0,"last_refill":"2026-02-24 11:00:00"}`:                                                          "budget: 0/5 (next refill in 30 min), used today: 0. critical bypasses: 0.",
		`{"available":0,"last_refill":"yesterday"}`:                                                                    "budget: 0/5 (next refill in 90 min), used today: 0. critical bypasses: 0.",
		`{"available":0,"last_refill":1772000000}`:                                                                     "budget: 0/5 (next refill in 90 min), used today: 0. critical bypasses: 0.",
		`{"available":0,"last_refill":"0001-01-01T00:00:00Z"}`:                                                         "budget: 5/5 (full), used today: 0. critical bypasses: 0.",
		`{"available":0,"last_refill":"9999-12-31T23:59:59Z"}`:                                                         "budget: 0/5 (next refill in 90 min), used today: 0. critical bypasses: 0.",
		`{"capacity":0}`:                    "budget: 0/0 (critical pings only), used today: 0. critical bypasses: 0.",
		`{"capacity":0,"available":3}`:      "budget: 0/0 (critical pings only), used today: 0. critical bypasses: 0.",
		`{"capacity":-3}`:                   "budget: 0/0 (critical pings only), used today: 0. critical bypasses: 0.",
		`{"capacity":1e999,"available":1}`:  "budget: 1/1000 (next refill in 90 min), used today: 0. critical bypasses: 0.",
		`{"capacity":99999999999999999999}`: "budget: 1000/1000 (full), used today: 0. critical bypasses: 0.",
		`{"capacity":"NaN","available":"NaN","refill_rate_minutes":"NaN"}`:             "budget: 5/5 (full), used today: 0. critical bypasses: 0.",
		`{"capacity":null,"available":null,"refill_rate_minutes":[],"last_refill":{}}`: "budget: 5/5 (full), used today: 0. critical bypasses: 0.",
		`{"available":7}`:                                                                       "budget: 5/5 (full), used today: 0. critical bypasses: 0.",
		`{"available":-1e999}`:                                                                  "budget: 0/5 (next refill in 90 min), used today: 0. critical bypasses: 0.",
		`{"available":0,"refill_rate_minutes":0}`:                                               "budget: 0/5 (next refill in 1 min), used today: 0. critical bypasses: 0.",
		`{"available":0,"refill_rate_minutes":-1e300}`:                                          "budget: 0/5 (next refill in 1 min), used today: 0. critical bypasses: 0.",
		`{"available":0,"refill_rate_minutes":1e300}`:                                           "budget: 0/5 (next refill in 10080 min), used today: 0. critical bypasses: 0.",
		`{"daily_used":-3,"daily_used_reset":"2026-02-24"}`:                                     "budget: 5/5 (full), used today: 0. critical bypasses: 0.",
		`{"critical_used":1e300,"critical_reset_date":"2026-02-24"}`:                            "budget: 5/5 (full), used today: 0. critical bypasses: 1000000.",
		`{"daily_used":true,"daily_used_reset":"2026-02-24","critical_reset_date":["2026-02"]}`: "budget: 5/5 (full), used today: 0. critical bypasses: 0.",
	} {
		d := newDesk(t)
		d.put(content)
		t.Log(content)
		d.shows(want)
		d.set(-1, -1) // the same when it is written
		d.shows(want)
		if len(d.warned) != 0 {
			t.Errorf("%s: warned %q", content, d.warned)
		}
	}
}

func TestCorruptFile(t *testing.T) {
	d := newDesk(t)
	d.put("{")
	d.shows("budget: 5/5 (full), used today: 0. critical bypasses: 0.")
	d.take(true)
	d.shows("budget: 4/5 (next refill in 90 min), used today: 1. critical bypasses: 0.")
}

// Whatever stands in the file, the bucket makes sense, and writing it changes nothing.
func FuzzFile(f *testing.F) {
	f.Add(`{"capacity":5,"available":2.5,"refill_rate_minutes":90,"last_refill":"2026-02-24T10:15:00.123456+00:00"}`)
	f.Add(`{"capacity":-1,"available":1e999,"refill_rate_minutes":0.1,"last_refill":"","daily_used":1e99,"daily_used_reset":"2026-02-24"}`)
	now := time.Date(2026, 2, 24, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, content string) {
		var in, out file
		if json.Unmarshal([]byte(content), &in) != nil {
			return
		}
		s := in.at(now)
		full := s.Available >= float64(s.Capacity)
		switch {
		case s.Capacity < 0, s.Capacity > maxCapacity, s.Available < 0, s.Available > float64(s.Capacity), math.IsNaN(s.Available),
			s.RefillEvery < time.Minute, s.RefillEvery > maxRate*time.Minute, s.NextRefill < 0, s.NextRefill > s.RefillEvery,
			full != (s.NextRefill == 0), s.DailyUsed < 0, s.CriticalUsed < 0, s.Refills(math.MaxInt64) != s.Capacity-int(s.Available):
			t.Fatalf("%s: %+v", content, s)
		}
		data, err := json.Marshal(in.with(s, now))
		if err != nil || json.Unmarshal(data, &out) != nil {
			t.Fatalf("%s: %s, %v", content, data, err)
		}
		if again := out.at(now); again != s {
			t.Fatalf("%s: %+v, written and read %+v", content, s, again)
		}
	})
}
