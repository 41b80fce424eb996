package update

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/ollim/ollim/internal/platform/store"
)

// The fates of an update.
const (
	becamePopped  = "popped"  // used: by the run fate.To, or by a person
	becameDropped = "dropped" // left out by the cap, and counted by a sentinel
	becameCleared = "cleared" // thrown away unread, by fate.To

	becameAdded = "added" // nothing yet: the line notes who reported it
)

// fate is how an update left the queue. A sentinel has a fate too when it is popped or cleared.
type fate struct {
	Update
	Became  string    `json:"became"`            // popped, dropped or cleared
	At      time.Time `json:"at"`                // when it left the queue
	By      string    `json:"by,omitempty"`      // who reported it: a run id or "owner"; "" if unknown
	To      string    `json:"to,omitempty"`      // the run that consumed it, or who cleared it; "" for a person
	Omitted int       `json:"omitted,omitempty"` // of a sentinel: how many dropped updates it stood for
}

// line is a line of the archive.
type line struct {
	fate
	// Newest is the latest ts or at in the archive so far. It is written if the clock has been set back since, because
	// the last line must give the high-water mark.
	Newest time.Time `json:"newest,omitzero"`
}

// UnmarshalJSON rejects other JSON, so that readers skip it.
func (l *line) UnmarshalJSON(data []byte) error {
	type plain line
	err := json.Unmarshal(data, (*plain)(l))
	if err == nil && (l.TS.IsZero() || !slices.Contains([]string{becamePopped, becameDropped, becameCleared, becameAdded}, l.Became)) {
		err = errors.New("not a line of the archive")
	}
	return err
}

func (b Box) archived(bad *int) iter.Seq2[line, error] {
	return store.Lines[line](b.Home.UpdateArchive(), bad)
}

// newest yields the lines of the archive, the last first.
func (b Box) newest() iter.Seq2[line, error] { return store.Newest[line](b.Home.UpdateArchive()) }

// Archive yields the fate of every update that has left the queue, oldest fate first, each update once: after a crash
// the later of two lines counts. Torn or malformed lines are skipped and counted in *bad, which may be nil. Reading
// stops at the first I/O error, which is yielded with a zero fate.
func (b Box) Archive(bad *int) iter.Seq2[fate, error] {
	return func(yield func(fate, error) bool) {
		var fates []fate
		at := map[key]int{}
		for l, err := range b.archived(bad) {
			if err != nil {
				yield(fate{}, err)
				return
			}
			if i, known := at[keyOf(l.Update)]; known {
				l.By = cmp.Or(l.By, fates[i].By)
				fates[i].Became = becameAdded // the later line counts
			}
			at[keyOf(l.Update)] = len(fates)
			fates = append(fates, l.fate)
		}
		for _, f := range fates {
			f.TS, f.At = f.TS.In(b.Zone), f.At.In(b.Zone)
			if f.Became != becameAdded && !yield(f, nil) {
				return
			}
		}
	}
}

// Reporters returns the reporter of each update: a run's id, "owner", or "" if it is unknown.
func (b Box) Reporters(list []Update) ([]string, error) {
	if len(list) == 0 {
		return nil, nil
	}
	by, unknown := map[key]string{}, map[key]bool{}
	for _, u := range list {
		unknown[keyOf(u)] = true
	}
	var failed error
	for l, err := range b.newest() {
		if failed = err; err != nil || len(unknown) == 0 {
			break
		}
		if k := keyOf(l.Update); l.By != "" && unknown[k] {
			by[k] = l.By
			delete(unknown, k)
		}
	}
	names := make([]string, len(list))
	for i, u := range list {
		names[i] = by[keyOf(u)]
	}
	return names, failed
}

// fates returns the same fate for all updates of a list, which may begin with a sentinel.
func (o *opened) fates(list []Update, became, to string) []fate {
	var fates []fate
	for i, u := range list {
		f := fate{Update: u, Became: became, At: o.now, To: to}
		if n, ok := sentinelCount(u.Message); ok && i == 0 {
			f.Omitted = n
		}
		fates = append(fates, f)
	}
	return fates
}

// archive appends fates.
func (o *opened) archive(fates []fate, d store.Durability) error {
	high, err := o.highWater()
	if err != nil || len(fates) == 0 {
		return err
	}
	var lines []any
	for _, f := range fates {
		l := line{fate: f}
		if high = latest(high, f.TS, f.At); high.After(f.At) {
			l.Newest = high
		}
		lines = append(lines, l)
	}
	return store.AppendJSON(o.Home.UpdateArchive(), d, lines...)
}

// notArchived returns the fates that have no line in the archive yet.
func (o *opened) notArchived(fates []fate) ([]fate, error) {
	type fact struct {
		key
		became string
	}
	has := map[fact]bool{}
	for l, err := range o.archived(nil) {
		if err != nil {
			return nil, err
		}
		has[fact{keyOf(l.Update), l.Became}] = true
	}
	return slices.DeleteFunc(fates, func(f fate) bool { return has[fact{keyOf(f.Update), f.Became}] }), nil
}

// stampsSince collects every ts in the archive from an instant on, in microseconds.
func (o *opened) stampsSince(from time.Time) (map[int64]bool, error) {
	used := map[int64]bool{}
	for l, err := range o.archived(nil) {
		if err != nil {
			return nil, err
		}
		if !l.TS.Before(from) {
			used[l.TS.UnixMicro()] = true
		}
	}
	return used, nil
}

// highWater returns the latest ts in the archive, as recorded by its last whole line; zero if there are no lines.
func (o *opened) highWater() (time.Time, error) {
	for l, err := range o.newest() {
		return latest(l.At, l.Newest), err
	}
	return time.Time{}, nil
}

// Trim removes the fates from before an instant, and who reported what is no longer pending. The last line stays: it has the high-water
// mark of the archive.
func (b Box) Trim(ctx context.Context, before time.Time) error {
	o, err := b.open(ctx, Owner{}, "")
	if err != nil {
		return err
	}
	defer o.close()
	pending := map[key]bool{}
	for _, u := range o.pending.list() {
		pending[keyOf(u)] = true
	}
	last, err := o.highWater()
	if err != nil {
		return err
	}
	return store.FilterLines(b.Home.UpdateArchive(), func(l line) bool {
		return !l.At.Before(before) || pending[keyOf(l.Update)] || latest(l.At, l.Newest).Equal(last)
	})
}
