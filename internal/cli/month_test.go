package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestMonth lives as many days as OLLIM_TEST_MONTH says with a clock that nobody waits for, and accounts for every slot and every dollar.
// Limits of month_limits_test.go that are broken are logged, and fail the test if OLLIM_TEST_MONTH_LIMITS is set. `go run ./bench/month`
// sets both and prints the report.
func TestMonth(t *testing.T) {
	text, strict := os.Getenv("OLLIM_TEST_MONTH"), os.Getenv("OLLIM_TEST_MONTH_LIMITS") != ""
	if text == "" {
		t.Skip("a week takes half a minute: go run ./bench/month -days 7, which .ci/run does")
	}
	t.Parallel()
	days, err := strconv.Atoi(text)
	if err != nil || days < 7 {
		t.Fatalf("OLLIM_TEST_MONTH=%s: want a number of days from 7", text)
	}
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Date(2026, 10, 21, 0, 0, 0, 0, zone) // a week with one change of the clock
	if days >= 37 {
		begin = time.Date(2026, 10, 4, 0, 0, 0, 0, zone)
	}
	liveMonth(t, zone, begin, days, strict, func(m *month) {
		if days < 37 {
			m.week()
		} else {
			m.incidents()
		}
	})
}

// TestMonthSpring is three days around the night in which the clock skips an hour.
func TestMonthSpring(t *testing.T) {
	if os.Getenv("OLLIM_TEST_MONTH") == "" {
		t.Skip("the slots of a spring night are in the month")
	}
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	liveMonth(t, zone, time.Date(2027, 3, 13, 0, 0, 0, 0, zone), 2, false, func(*month) {}) // New York
	liveMonth(t, zone, time.Date(2027, 3, 27, 0, 0, 0, 0, zone), 2, false, func(*month) {}) // Berlin
}

func liveMonth(t *testing.T, zone *time.Location, begin time.Time, days int, strict bool, incidents func(*month)) {
	outlivePipe() // the loop that handles signals is started outside the bubble
	service := newMonthService(t, zone)
	y, mo, d := begin.Date()
	synctest.Test(t, func(t *testing.T) {
		m := &month{service: service, zone: zone, from: begin, to: time.Date(y, mo, d+days, 0, 0, 0, 0, zone), power: true}
		m.world = newWorld(t, "--engine", "native")
		m.must("config", "set", "seal", "off") // a sealed run waits for its socket, and the clock of the bubble for that
		m.real, m.ahead = true, time.Until(begin.Add(-5*time.Minute))
		if err := os.Mkdir(m.box(), 0o700); err != nil {
			t.Fatal(err)
		}
		m.must("config", "set", "env", "ANTHROPIC_API_KEY=k", "PATH="+os.Getenv("PATH"))
		m.must("config", "set", "native.base-url", service.door.url())
		m.secretsAs("webhook.default=0123456789abcdef0123456789abcdef\n", 0o600)
		m.setUp()
		m.habits(days)
		incidents(m)
		m.live()
		m.judge(strict)
	})
}

// week has the incidents of a week.
func (m *month) week() {
	m.look(m.day(0, 12.1), "")
	m.overload(m.day(1, 9.9), m.day(1, 17.9))
	m.revoked(m.day(2, 9), m.day(3, 9))
	m.noPower(m.day(3, 18), m.day(4, 18))
	m.invalid(m.day(4, 21.8), m.day(5, 8.2))
	m.pause(m.day(5, 14), m.day(6, 10))
}

// incidents are those of a month of 37 days.
func (m *month) incidents() {
	m.look(m.day(2, 12.1), "")
	m.overload(m.day(4, 10), m.day(5, 10))
	m.unreachable(m.day(8, 12), m.day(8, 18))
	m.overload(m.day(11, 16), m.day(12, 8.2))
	m.revoked(m.day(14, 9), m.day(15, 9))
	m.noPower(m.day(17, 18), m.day(19, 18))
	m.pause(m.day(23, 12), m.day(25, 12))
	m.invalid(m.day(26, 21.8), m.day(27, 8.2))
	m.vacation(m.day(30, 8), m.day(33, 8))
	m.unapproved(m.day(33, 13), m.day(35, 13))
}

func (m *month) judge(strict bool) {
	m.accountForSlots()
	m.accountForMoney()
	report := m.report()
	broken := m.limits()
	if file := os.Getenv("OLLIM_TEST_MONTH_REPORT"); file != "" {
		text := report
		for _, b := range broken {
			text += "BROKEN\t" + b + "\n"
		}
		if err := os.WriteFile(filepath.Clean(file), []byte(text), 0o600); err != nil {
			m.t.Fatal(err)
		}
	}
	m.t.Log("\n" + report)
	for _, b := range broken {
		if strict {
			m.t.Error("a limit is broken: " + b)
		} else {
			m.t.Log("a limit is broken: " + b)
		}
	}
	if m.output.Len() > 0 {
		m.t.Log(tail(m.output.String(), 20))
	}
}

func tail(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return fmt.Sprintf("%d lines, the last:\n%s", len(lines), strings.Join(lines[max(0, len(lines)-n):], "\n"))
}
