// Package state lists the stores of a data directory, one for each kind of file.
package state

import (
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/approval"
	"github.com/ollim/ollim/internal/state/budget"
	"github.com/ollim/ollim/internal/state/changed"
	"github.com/ollim/ollim/internal/state/channel"
	"github.com/ollim/ollim/internal/state/gate"
	"github.com/ollim/ollim/internal/state/heartbeat"
	"github.com/ollim/ollim/internal/state/inbox"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/ledger"
	"github.com/ollim/ollim/internal/state/notice"
	"github.com/ollim/ollim/internal/state/object"
	"github.com/ollim/ollim/internal/state/question"
	"github.com/ollim/ollim/internal/state/queue"
	"github.com/ollim/ollim/internal/state/request"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
	"github.com/ollim/ollim/internal/state/skill"
	"github.com/ollim/ollim/internal/state/slot"
	"github.com/ollim/ollim/internal/state/spend"
	"github.com/ollim/ollim/internal/state/update"
)

// Stores is the stores of one data directory.
type Stores struct {
	Approvals  approval.Book
	Budget     budget.Book // of pings
	Changes    changed.Book
	Channels   channel.Book
	Gates      gate.Book
	Heartbeats heartbeat.Book
	Inbox      inbox.Book
	Jobs       job.Library
	Ledger     *ledger.Ledger
	Notices    notice.Book
	Objects    object.Box
	Questions  question.Book
	Queue      queue.Book
	Requests   request.Book
	Runs       runlog.Book
	Sessions   session.Book
	Skills     skill.Library
	Slots      slot.Book
	Spend      spend.Book
	Updates    update.Box
}

// Of returns the stores of a data directory without what some of them take from elsewhere. It touches no file.
func Of(dir paths.Dir, disk store.Disk, zone *time.Location) *Stores {
	objects := object.Box{Home: dir, Disk: disk}
	facts := Ledger(dir, disk, zone)
	s := &Stores{
		Approvals:  approval.Book{Home: dir, Disk: disk, Zone: zone},
		Budget:     budget.Book{Home: dir, Disk: disk, Zone: zone},
		Changes:    changed.Book{Home: dir, Disk: disk},
		Channels:   channel.Book{Home: dir, Disk: disk},
		Gates:      gate.Book{Ledger: facts},
		Heartbeats: heartbeat.Book{Ledger: facts},
		Inbox:      inbox.Book{Home: dir, Disk: disk, Zone: zone},
		Jobs:       job.Library{Home: dir, Zone: zone},
		Ledger:     facts,
		Notices:    notice.Book{Ledger: facts},
		Objects:    objects,
		Questions:  question.Book{Home: dir, Disk: disk, Zone: zone},
		Queue:      queue.Book{Home: dir, Disk: disk, Zone: zone},
		Requests:   request.Book{Home: dir, Disk: disk, Objects: objects},
		Runs:       runlog.Book{Ledger: facts, Home: dir, Disk: disk, Zone: zone},
		Sessions:   session.Book{Home: dir, Disk: disk, Zone: zone},
		Skills:     skill.Library{Home: dir},
		Slots:      slot.Book{Home: dir, Disk: disk, Zone: zone},
		Spend:      spend.Book{Ledger: facts, Home: dir, Disk: disk, Zone: zone},
		Updates:    update.Box{Ledger: facts, Home: dir, Disk: disk, Zone: zone},
	}
	s.Jobs.Approved = func(j job.Job) bool { return s.Approvals.Holds(j) }
	return s
}

// Ledger returns the ledger of a data directory, which knows the facts of all stores. It touches no file.
func Ledger(dir paths.Dir, disk store.Disk, zone *time.Location) *ledger.Ledger {
	l := ledger.New(dir, disk, gate.Facts(), heartbeat.Facts(), notice.Facts(), spend.Facts(), update.Facts())
	path := func(name string) string { return dir.State(name) }
	updates, accounts := update.Box{Home: dir, Disk: disk, Zone: zone}, spend.Book{Home: dir, Disk: disk}
	l.Imports = []ledger.Import{
		{Store: "heartbeat", Former: []string{heartbeat.Former}, Add: func(tx *ledger.Tx) error { return heartbeat.Import(tx, path(heartbeat.Former)) }},
		{Store: "notice", Former: notice.Former(), Add: func(tx *ledger.Tx) error { return notice.Import(tx, path) }},
		{Store: "spend", Former: []string{spend.Former}, Add: accounts.Import},
		{Store: "update", Former: update.Former(), Add: updates.Import},
	}
	return l
}
