package job

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/policy"
)

const maxID = 64

// checkID returns an error if an id could not safely be part of a file name.
func checkID(id string) error {
	switch {
	case id == "":
		return errors.New("is empty")
	case len(id) > maxID:
		return fmt.Errorf("longer than %d characters", maxID)
	case !plaintext.IsID(id):
		return fmt.Errorf("%q is not a valid id: want letters and digits and, after the first character, . _ -", id)
	}
	return nil
}

// Meaning returns what commands take a word for, as the name of a run or of a session, instead of a job with that id or file name; "" if
// nothing. A job may have the name, but RUN and SESSION may then mean something else, and its runs share a line with others.
func Meaning(word string) string {
	switch word {
	case "last":
		return "the newest run of any job"
	case "main":
		return "the main conversation"
	case "fork":
		return "the interactive fork"
	case "ask", "backtest", "distil":
		return "runs that have no job"
	}
	return ""
}

// checkName returns an error if text is not a valid name of a gate, a skill or an agent.
func checkName(name string) error {
	if !plaintext.IsID(name) {
		return fmt.Errorf("%q is not a name: want letters and digits and, after the first character, . _ -", name)
	}
	return nil
}

// checkHost returns an error if text is not a valid name of a machine.
func checkHost(name string) error {
	if !plaintext.IsID(name) {
		return fmt.Errorf("%q is not the name of a machine: write it as hostname prints it", name)
	}
	return nil
}

func loadZone(name string) (*time.Location, error) {
	if name == "" || name == "Local" {
		return nil, fmt.Errorf("%q is not a zone: write one like Europe/Paris", name)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("unknown zone %q: write one like Europe/Paris", name)
	}
	return zone, nil
}

// checkDir returns an error if an entry of dirs is invalid.
func checkDir(entry string) error {
	dir, writable := strings.CutPrefix(entry, "rw:")
	if strings.HasPrefix(dir, "~/") {
		dir = "/home" + dir[1:] // any home directory does for the check
	}
	if !filepath.IsAbs(dir) {
		return fmt.Errorf("%q: want an absolute path or one that begins with ~/; rw: in front allows writing", entry)
	}
	_, err := policy.OfDir(policy.Root{Dir: filepath.Clean(dir), Writable: writable})
	return err
}

// maxDays is the longest duration in days. A Duration holds 292 years; this is 179.
const maxDays = 1<<16 - 1

// ParseDuration parses 90s, 30m, 2h, 1h30m, 7d or 0. A day has 24 hours.
func ParseDuration(s string) (time.Duration, error) {
	if s == "0" {
		return 0, nil
	}
	var days time.Duration
	rest := s
	if n, tail, found := strings.Cut(s, "d"); found {
		whole, err := strconv.ParseUint(n, 10, 64)
		if err != nil || whole > maxDays {
			return 0, notDuration(s)
		}
		days, rest = time.Duration(whole)*24*time.Hour, tail
		if rest == "" {
			return days, nil
		}
	}
	d, err := time.ParseDuration(rest)
	if err != nil || d < 0 || strings.HasPrefix(rest, "+") || days+d < days {
		return 0, notDuration(s)
	}
	return days + d, nil
}

// notDuration returns the error of a text that ParseDuration does not accept.
func notDuration(s string) error {
	if s != "" && regexp.MustCompile(`^([0-9]+d)?([0-9]+(\.[0-9]*)?(h|m|s|ms|us|µs|ns))*$`).MatchString(s) {
		return fmt.Errorf("%q is too long: write at most %dd", s, maxDays)
	}
	return fmt.Errorf("%q is not a duration: write one like 30m, 2h or 1d", s)
}

// FormatDuration writes a duration with its largest units: 30m, 1h30m, 2d.
func FormatDuration(d time.Duration) string {
	const day = 24 * time.Hour
	if d == 0 {
		return "0"
	}
	var s string
	if days := d / day; days > 0 {
		s = fmt.Sprintf("%dd", days)
		d -= days * day
	}
	if d == 0 {
		return s
	}
	short := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(short, zero) {
			short = short[:len(short)-len("0s")]
		}
	}
	return s + short
}
