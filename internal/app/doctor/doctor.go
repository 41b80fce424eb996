// Package doctor examines an installation: the data directory and its files, the settings, the scheduler, the engines, the ways to the
// owner, and the machine. Each check is one function; it reports what it finds, PASS, WARN or FAIL, with what to do about it. A check uses
// the rules of the package that is responsible, and has none of its own. Checks also work on a broken installation; those that need the
// settings are omitted if the settings cannot be used. Nothing is changed, except that a small file is written and removed, to check that
// this works.
package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/platform/yamldoc"
)

// Results of a check.
const (
	Pass = "PASS"
	Warn = "WARN" // it works, but perhaps not for long or not as expected
	Fail = "FAIL" // something does not work
)

// Finding is one result of a check.
type Finding struct {
	Result string `json:"result"`
	What   string `json:"what"` // name of the check
	Text   string `json:"text"`
	Remedy string `json:"remedy,omitempty"` // of a fault: a command, or what to do

	Err error `json:"-"` // the error behind a fault, nil where there is none
}

// Doctor examines the installation of one process.
type Doctor struct {
	App *app.App

	// Entries looks at the entries of a scheduler, as `ollim schedule install` names it. It returns no error if that scheduler is missing.
	Entries func(ctx context.Context, scheduler string) (Entries, error)

	// Clusters lists the clusters in which the entries of this data directory were installed, likewise; nil: none.
	Clusters func() ([]string, error)

	// Probe reads what a check learns from the machine.
	Probe probe
}

// check is one check. look returns what is in order, which is reported unless it is "" or the check found a fault.
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
		{"models", true, (*examination).models},
		{"sessions", true, (*examination).sessions},
		{"entries", true, (*examination).entries},
		{"tick", false, (*examination).tick},
		{"slots", false, (*examination).slots},
		{"spending", true, (*examination).spending},
		{"cache", false, (*examination).repeated},
		{"delivery", true, (*examination).delivery},
		{"outbox", false, (*examination).outbox},
		{"heartbeats", true, (*examination).heartbeats},
		{"discord", true, (*examination).discord},
		{"doors", true, (*examination).doors},
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

// Examine makes all checks. Warnings of the program are dropped meanwhile: the checks find the same.
func (d Doctor) Examine(ctx context.Context) []Finding {
	warn := d.App.Warn
	d.App.Warn = func(string) {}
	defer func() { d.App.Warn = warn }()
	e := &examination{Doctor: d}
	e.home, e.unusable = d.App.Home()
	if e.unusable != nil {
		var err error
		if e.home, err = d.App.DefaultHome(); err != nil { // no file is possible at that path
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
			break // there is nothing to check
		}
	}
	return e.list
}

// faulty reports whether a finding from index from on is not PASS.
func (e *examination) faulty(from int) bool {
	return slices.ContainsFunc(e.list[from:], func(f Finding) bool { return f.Result != Pass })
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

// fault reports an error, with one FAIL for each fault of a file; nil is no error. An empty remedy means the hint of the error.
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
