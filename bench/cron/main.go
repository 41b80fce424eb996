// Command cron measures how long internal/platform/cron takes to read an expression and to find its next fire, beside robfig/cron and gronx. All
// three take turns in one run, so that whatever else the machine does falls on each. It is a module of its own, because nothing else of
// ollim needs those. Run it here: go run .
package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/adhocore/gronx"
	robfig "github.com/robfig/cron/v3"

	"github.com/ollim/ollim/internal/platform/cron"
)

// subject is one of the three. next returns the first fire after an instant of an expression that was read before; gronx keeps nothing of
// what it has read, so that its next reads, too.
type subject struct {
	name string
	read func(expr string) (next func(time.Time) (time.Time, error), err error)
}

var errNever = errors.New("never fires")

func subjects() []subject {
	return []subject{
		{"ollim", func(expr string) (func(time.Time) (time.Time, error), error) {
			s, err := cron.Parse(expr)
			return func(after time.Time) (time.Time, error) {
				at, ok := s.Next(after, after.Location())
				if !ok {
					return at, errNever
				}
				return at, nil
			}, err
		}},
		{"robfig", func(expr string) (func(time.Time) (time.Time, error), error) {
			s, err := robfig.ParseStandard(expr)
			return func(after time.Time) (time.Time, error) {
				at := s.Next(after)
				if at.IsZero() {
					return at, errNever
				}
				return at, nil
			}, err
		}},
		{"gronx", func(expr string) (func(time.Time) (time.Time, error), error) {
			if !gronx.IsValid(expr) {
				return nil, errors.New("not valid")
			}
			return func(after time.Time) (time.Time, error) { return gronx.NextTickAfter(expr, after, false) }, nil
		}},
	}
}

// expressions mean the same to all three.
func expressions() []string {
	return []string{
		"* * * * *",
		"*/5 * * * *",
		"0 9 * * 1-5",
		"*/15 9-17 * * mon-fri",
		"30 4 1,15 * *",
		"0 0 1 * *",
		"0 12 * 1-6/2 0",
		"0 0 29 2 *",
	}
}

// instants are when next is asked: in and out of a year's end, none near a change of clocks, about which the three do not agree.
func instants() ([]time.Time, error) {
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		return nil, err
	}
	return []time.Time{
		time.Date(2026, 11, 21, 7, 33, 23, 0, time.UTC),
		time.Date(2027, 12, 31, 23, 59, 59, 0, time.UTC),
		time.Date(2028, 2, 28, 12, 0, 0, 0, zone),
		time.Date(2026, 6, 30, 9, 0, 0, 0, zone),
	}, nil
}

const (
	rounds = 21
	slice  = 2 * time.Millisecond // of one measurement
)

func main() {
	if err := compare(); err != nil {
		fmt.Fprintln(os.Stderr, "cron:", err)
		os.Exit(1)
	}
}

func compare() error {
	at, err := instants()
	if err != nil {
		return err
	}
	fmt.Println("| expression | parse | robfig | gronx | next | robfig | gronx |\n| --- | --- | --- | --- | --- | --- | --- |")
	for _, expr := range expressions() {
		row := fmt.Sprintf("| `%s` |", expr)
		all := subjects()
		reads, nexts := make([]func() error, len(all)), make([]func() error, len(all))
		for i, s := range all {
			next, err := s.read(expr)
			if err != nil {
				return fmt.Errorf("%s: %q: %w", s.name, expr, err)
			}
			reads[i] = func() error { _, err := s.read(expr); return err }
			nexts[i] = func() error {
				for _, t := range at {
					if _, err := next(t); err != nil {
						return err
					}
				}
				return nil
			}
		}
		for _, work := range []struct {
			calls []func() error
			each  int
		}{{reads, 1}, {nexts, len(at)}} {
			took, err := inTurns(work.calls)
			if err != nil {
				return fmt.Errorf("%q: %w", expr, err)
			}
			row += fmt.Sprintf(" %.0f ns | %.1f× | %.1f× |", took[0]/float64(work.each), took[1]/took[0], took[2]/took[0])
		}
		fmt.Println(row)
	}
	return nil
}

// inTurns is the median time of a call of each, in ns.
func inTurns(calls []func() error) ([]float64, error) {
	times := make([][]float64, len(calls))
	for range rounds {
		for i, call := range calls {
			n, begin := 0, time.Now()
			for time.Since(begin) < slice {
				for range 16 { // asking for the time takes time, too
					if err := call(); err != nil {
						return nil, err
					}
				}
				n += 16
			}
			times[i] = append(times[i], float64(time.Since(begin))/float64(n))
		}
	}
	medians := make([]float64, len(calls))
	for i, list := range times {
		slices.SortFunc(list, cmp.Compare[float64])
		medians[i] = list[len(list)/2]
	}
	return medians, nil
}
