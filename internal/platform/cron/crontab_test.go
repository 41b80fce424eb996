package cron_test

import (
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/cron"
	"github.com/ollim/ollim/internal/testkit"
)

func TestCrontab(t *testing.T) {
	tests := []struct{ expr, fields string }{ // no fields: there is no such line
		{"@daily", "0 0 * * *"},
		{"@weekly", "0 0 * * 0"},
		{"0 9 * JAN,mar fri-sun", "0 9 * 1,3 0,5,6"},
		{"0 9 * * 7", "0 9 * * 0"},
		{"*/20 */3 * * *", "*/20 */3 * * *"},
		{"*/5 9-11 * * 1-5", "*/5 9,10,11 * * 1,2,3,4,5"},
		{"0,*/30 1 * * *", "0,30 1 * * *"},
		{"0 0 13 * 5", "0 0 13 * 5"},
		{"0 0 */10 * *", "0 0 1,11,21,31 * *"},
		{"0 0 * * */2", "0 0 * * 0,2,4,6"},
		{"0 0 1-31 * 5", "0 0 * * *"},
		{"0 0 13 * 0-7", "0 0 * * *"},
		{"0 0 31 2 1", "0 0 31 2 1"},
		{"0 0 30 2,3 *", "0 0 30 2,3 *"},

		// Both day fields must match: only if one of them decides nothing.
		{"0 0 */2 * 1", ""},
		{"0 0 1,15 * */3", ""},
		{"0 0 1-29 2 */3", "0 0 * 2 0,3,6"},
		{"0 0 1-28 2 */3", ""}, // leap years
		{"0 0 */31,2-30 4,6 1", "0 0 * 4,6 1"},
		{"0 0 */31,2-30 4,5 1", ""},
		{"0 0 1-30 4,5 */3", ""},

		{"0 0 31 2 *", ""},
		{"0 0 31 4,6 */3", ""},
	}
	for _, test := range tests {
		fields, ok := parse(t, test.expr).Crontab()
		if fields != test.fields || ok != (test.fields != "") {
			t.Errorf("%q: Crontab is %q, %v, want %q", test.expr, fields, ok, test.fields)
		}
	}
	if fields, ok := (cron.Schedule{}).Crontab(); ok || fields != "" {
		t.Errorf("the zero schedule: Crontab is %q, %v", fields, ok)
	}
}

var portable = regexp.MustCompile(`^([*](/\d+)?(,\d+)*|\d+(,\d+)*)( ([*](/\d+)?(,\d+)*|\d+(,\d+)*)){1}( ([*]|\d+(,\d+)*)){3}$`)

// A line means the same to each daemon, and what the expression means.
func TestCrontabRandom(t *testing.T) {
	r := rand.New(rand.NewSource(12))
	none := 0
	for range testkit.Full(8000, 3000) {
		s := randomSpec(r, mix{})
		parsed := parse(t, s.text)
		line, ok := parsed.Crontab()
		if !ok {
			none++
			if both := (s.star[2] || s.star[4]) && s.partial(2) && s.partial(4); !both && !parsed.Never() {
				t.Errorf("%q: no line for the crontab", s.text)
			}
			continue
		}
		if !portable.MatchString(line) {
			t.Fatalf("%q: %q is not portable", s.text, line)
		}
		again := parse(t, line)
		if next, ok := again.Crontab(); !ok || next != line || again.Wild() != s.wild() {
			t.Fatalf("%q: %q becomes %q, %v; wild is %v", s.text, line, next, ok, again.Wild())
		}
		debian, busybox := readLine(line)
		for range 60 { // minutes that match and minutes beside them
			civil := time.Unix(r.Int63n(4e9), 0).UTC().Truncate(time.Minute)
			if at, ok := parsed.Next(civil, time.UTC); ok && r.Intn(4) > 0 {
				civil = at.Add(time.Duration(r.Intn(2)) * time.Minute)
			}
			want := s.matches(civil)
			if debian.matches(civil) != want || busybox.matches(civil) != want {
				t.Fatalf("%q: %q at %v: Debian %v, busybox %v, want %v",
					s.text, line, civil, debian.matches(civil), busybox.matches(civil), want)
			}
		}
	}
	if none == 0 {
		t.Error("every expression has a line")
	}
}

// partial reports whether a day field leaves out a value.
func (s *spec) partial(field int) bool {
	values := s.set[field][fieldLow[field] : fieldLow[field]+fieldCount[field]]
	return slices.Contains(values, false)
}

// readLine reads five fields of numbers, commas and leading stars as the
// daemons do. Debian's: a star is a star flag. Busybox: alternatives, unless
// one of them is complete; the first date of a step is 0.
func readLine(line string) (debian, busybox spec) {
	for i, text := range strings.Fields(line) {
		debian.star[i] = text[0] == '*'
		for item := range strings.SplitSeq(text, ",") {
			base, stepText, stepped := strings.Cut(item, "/")
			n, err := strconv.Atoi(base)
			if err == nil {
				debian.add(i, n, n, 1)
				busybox.add(i, n, n, 1)
				continue
			}
			step := 1
			if stepped {
				step, _ = strconv.Atoi(stepText)
			}
			debian.add(i, fieldLow[i], fieldHigh[i], step)
			low := fieldLow[i]
			if i == 2 {
				low = 0
			}
			busybox.add(i, low, fieldHigh[i], step)
		}
	}
	complete := func(field, low, count int) bool { return !slices.Contains(busybox.set[field][low:low+count], false) }
	busybox.star[2], busybox.star[4] = complete(2, 0, 32), complete(4, 0, 7)
	return debian, busybox
}

func TestCrontabZones(t *testing.T) {
	r := rand.New(rand.NewSource(13))
	for _, w := range windows {
		zone := load(t, w.zone)
		from := instant(t, w.from, zone)
		for i := range testkit.Full(80, 20) {
			s := parse(t, randomSpecText(r, mix{plainDays: i%4 != 0, nights: i%3 != 0}))
			line, ok := s.Crontab()
			if !ok {
				continue
			}
			want := slices.Collect(s.Between(from, from.AddDate(0, 0, w.days), zone))
			got := slices.Collect(parse(t, line).Between(from, from.AddDate(0, 0, w.days), zone))
			if !slices.EqualFunc(got, want, sameTime) {
				t.Fatalf("%s: %q and %q differ:\n%v\n%v", zone, s, line, got, want)
			}
		}
	}
}

func randomSpecText(r *rand.Rand, m mix) string {
	s := randomSpec(r, m)
	return s.text
}

// The real program reads every line, and none is too long for it.
func TestCrontabProgram(t *testing.T) {
	testkit.Program(t, "crontab", "cron")
	check := func(lines ...string) error {
		file := filepath.Join(t.TempDir(), "table")
		text := strings.Join(lines, " /bin/true\n") + " /bin/true\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return exec.Command("crontab", "-n", file).Run()
	}
	if check("0 0 * * *") != nil || check("0 0 32 * *") == nil {
		testkit.Missing(t, "needs Debian's crontab, which has a dry run: apt-get install cron")
	}
	r := rand.New(rand.NewSource(14))
	var lines []string
	for range 2000 {
		if line, ok := parse(t, randomSpecText(r, mix{})).Crontab(); ok {
			if len(line) > 400 {
				t.Errorf("%q has %d bytes", line, len(line))
			}
			lines = append(lines, line)
		}
	}
	if err := check(lines...); err != nil {
		t.Errorf("crontab -n: %v", err)
	}
}
