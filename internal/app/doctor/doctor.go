// Package doctor examines an installation: the data directory and its files, the settings, the scheduler, the engines, the ways to the
// owner, and the machine. Each check is one function; it reports what it finds, PASS, WARN or FAIL, with what to do about it. A check
// asks the package that owns the matter and has no rules of its own about it. Checks work on whatever is broken; those that need the
// settings are left out while the settings cannot be used. Nothing is changed, except that a small file is written and removed, which
// tells whether that works.
package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/platform/yamldoc"
)

// Results of a check.
const (
	Pass = "PASS"
	Warn = "WARN" // it works, and may not for long or not as expected
	Fail = "FAIL" // something does not work
)

// Finding is one result of a check.
type Finding struct {
	Result string `json:"result"`
	What   string `json:"what"` // was checked
	Text   string `json:"text"`
	Remedy string `json:"remedy,omitempty"` // of a fault: a command, or what to do

	Err error `json:"-"` // the error behind a fault, nil where there is none
}

// Doctor examines the installation of one process.
type Doctor struct {
	App *app.App

	// Entries looks at the entries of a scheduler, as `ollim schedule install` names it. It returns no error where that is not there.
	Entries func(ctx context.Context, scheduler string) (Entries, error)

	// Probe reads what a check learns from the machine.
	Probe probe
}

// check is one check. look returns what is well; it is not reported beside a fault, nor if it is "".
type check struct {
	name     string
	settings bool // it needs the settings
	look     func(*examination, context.Context) (well string)
}

// checks lists all checks in the order in which they are made. The first ones find what makes others fail.
func checks() []check {
	return []check{
		{"directory", false, (*examination).directory},
		{"disk", false, (*examination).disk},
		{"growth", false, (*examination).growth},
		{"settings", false, (*examination).settings},
		{"secrets", false, (*examination).secrets},
		{"modes", false, (*examination).modes},
		{"state", false, (*examination).state},
		{"zone", true, (*examination).zone},
		{"clock", false, (*examination).clock},
		{"jobs", false, (*examination).jobs},
		{"skills", false, (*examination).skills},
		{"approvals", true, (*examination).approvals},
		{"servers", true, (*examination).servers},
		{"seal", true, (*examination).seal},
		{"planted", false, (*examination).planted},
		{"engine", true, (*examination).engines},
		{"uses", true, (*examination).uses},
		{"sessions", true, (*examination).sessions},
		{"entries", true, (*examination).entries},
		{"tick", false, (*examination).tick},
		{"slots", false, (*examination).slots},
		{"spending", true, (*examination).spending},
		{"delivery", true, (*examination).delivery},
		{"outbox", false, (*examination).outbox},
		{"heartbeats", true, (*examination).heartbeats},
		{"discord", true, (*examination).discord},
		{"webhooks", true, (*examination).webhooks},
		{"runs", false, (*examination).runs},
		{"locks", false, (*examination).locks},
	}
}

// examination is a run of the checks.
type examination struct {
	Doctor

	home     app.Home
	unusable error  // why the settings cannot be used; then home has the default ones
	name     string // of the check
	list     []Finding
}

// Examine makes all checks. What the parts of the program warn of meanwhile is dropped: the checks find it.
func (d Doctor) Examine(ctx context.Context) []Finding {
	warn := d.App.Warn
	d.App.Warn = func(string) {}
	defer func() { d.App.Warn = warn }()
	e := &examination{Doctor: d}
	e.home, e.unusable = d.App.Home()
	if e.unusable != nil {
		var err error
		if e.home, err = d.App.DefaultHome(); err != nil { // a path in which there can be no file
			e.name = "directory"
			if e.directory(ctx); len(e.list) == 0 {
				e.fault(err, "")
			}
			return e.list
		}
	}
	for _, c := range checks() {
		if c.settings && e.unusable != nil {
			continue
		}
		before := len(e.list)
		e.name = c.name
		if well := c.look(e, ctx); well != "" && !e.faulty(before) {
			e.add(Finding{Result: Pass, What: c.name, Text: well})
		}
		if c.name == "directory" && e.faulty(before) {
			break // there is nothing to look at
		}
	}
	return e.list
}

// faulty reports whether anything but PASS was found since the list had that length.
func (e *examination) faulty(from int) bool {
	for _, f := range e.list[from:] {
		if f.Result != Pass {
			return true
		}
	}
	return false
}

func (e *examination) add(f Finding) { e.list = append(e.list, f) }

// fail reports that something does not work.
func (e *examination) fail(remedy, format string, args ...any) {
	e.add(Finding{Result: Fail, What: e.name, Text: fmt.Sprintf(format, args...), Remedy: remedy})
}

// warn reports what may soon not work.
func (e *examination) warn(remedy, format string, args ...any) {
	e.add(Finding{Result: Warn, What: e.name, Text: fmt.Sprintf(format, args...), Remedy: remedy})
}

// fault reports an error, one FAIL for each fault of a file; nil is none. Where no remedy is given it is the
// hint of the error.
func (e *examination) fault(err error, remedy string) {
	if err == nil {
		return
	}
	const plain = "correct that, then: ollim doctor"
	var faults yamldoc.Faults
	if errors.As(err, &faults) {
		for _, f := range faults {
			e.add(Finding{Result: Fail, What: e.name, Text: f.Error(), Remedy: cmp.Or(remedy, plain), Err: err})
		}
		return
	}
	var hinted *app.Hinted
	if remedy == "" && errors.As(err, &hinted) {
		remedy = hinted.Hint
	}
	text := err.Error()
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		remedy = cmp.Or(remedy, "make "+path.Path+" readable; or move it away, then: ollim init")
		if text == path.Error() {
			text = path.Path + ": " + store.Cause(err)
		}
	}
	e.add(Finding{Result: Fail, What: e.name, Text: text, Remedy: cmp.Or(remedy, plain), Err: err})
}
