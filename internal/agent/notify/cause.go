// Package notify notifies the owner of causes. A part of the program that finds something wrong opens a Cause; the part that finds it right
// again closes it. The owner gets one opening message for each cause, whatever number of jobs it concerns, at most one reminder a day while
// it lasts, which lists the jobs, and one closing message. A cause that comes back within an hour after the last message about it is
// reported again after that hour, if it still lasts.
//
// In quiet hours only critical messages are sent. The others are held, and sent as one message by the first Sweep after their end.
//
// A message is in the notices before it is in the outbox, so that it is not lost if a process is killed; at worst it is sent twice. Open,
// Close and Tell put messages into the outbox and do not wait for their delivery.
package notify

import (
	"time"

	"github.com/ollim/ollim/internal/state/notice"
)

// Kind is a kind of cause.
type Kind string

// The kinds of causes. The subject of each is in brackets.
const (
	Service  Kind = "service"      // a model service is overloaded or cannot be reached (engine)
	Key      Kind = "key"          // a key or login is missing or refused, or the account has no credit (engine)
	Model    Kind = "model"        // a model does not exist any more, is refused or stays overloaded (model)
	Engine   Kind = "engine"       // an engine is not configured or does not start (engine)
	Limit    Kind = "limit"        // a spending limit is reached (setting)
	Reserved Kind = "reserved"     // runs in progress have reserved the rest of a limit (spend)
	Gone     Kind = "gone"         // events wait for a webhook whose file is gone (webhook)
	File     Kind = "file"         // a file is invalid (path)
	Approval Kind = "approval"     // something waits for the owner's approval (job, skill, tool-policy.yaml)
	Refused  Kind = "refused"      // a job may not run as it is written (job)
	Job      Kind = notice.JobKind // a job fails (job)
	Server   Kind = "server"       // an MCP server cannot be used (server)
	Leftover Kind = "leftover"     // a process keeps a lock (run)
	Delivery Kind = "delivery"     // messages do not reach the owner
	Disk     Kind = "disk"         // the disk is full, or files cannot be used (full, state)
	Gate     Kind = "gate"         // a gate is off, because it would have skipped a run that told the owner something (job)
	Monitor  Kind = "monitor"      // a monitor does not answer heartbeats (job, or tick)
	Claim    Kind = "claim"        // the claim command fails (claim)
	Unit     Kind = "unit"         // a unit of systemd fails before its run begins (unit)
	Bill     Kind = "bill"         // costs grow (job, or month)
	Models   Kind = "models"       // a model that is used is not listed, retires, or has no price or another one (engine, model, fault)

	Slots Kind = "slots" // slots were missed: an event, see Tell
	Late  Kind = "late"  // reminders are late: an event
	News  Kind = "news"  // anything else that happened once
)

// trait is what holds for all causes of a kind.
type trait struct {
	critical bool // it is sent in quiet hours, too: everything stopped, and only the owner can change that
	update   bool // it is a pending update as well, for the conversation
	silent   bool // it cannot be sent: it is a pending update and no message
	prompt   bool // its return is reported at once, because it is another cause than before
	lasts    bool // it is checked all the time; a cause of another kind is known to last only when it has another effect
}

func (k Kind) trait() trait {
	switch k {
	case Key, Disk, Limit:
		return trait{critical: true, update: k == Limit, lasts: k == Disk}
	case Approval:
		return trait{update: true, prompt: true, lasts: true}
	case File, Refused, Gone:
		return trait{update: true, lasts: true}
	case Reserved, Server, Claim, Unit, Slots, Late:
		return trait{update: true}
	case Delivery:
		return trait{update: true, silent: true, lasts: true}
	case Monitor, Bill:
		return trait{lasts: true}
	}
	return trait{}
}

// Affected is a job that a cause concerns, and what the cause did to it now.
type Affected struct {
	ID   string
	Name string // for people; "": ID
	notice.Count
}

// Cause is something that is wrong. Two causes with the same kind and subject are the same.
type Cause struct {
	Kind    Kind
	Subject string
	Name    string     // name of what is wrong, such as "The key of native"; the closing message begins with it
	Text    string     // what is wrong, as a sentence without a full stop
	Remedy  string     // what to do, with a command in backquotes
	Jobs    []Affected // jobs that it concerns, as far as they are known
	Run     string     // run that found it; "": none
	Until   time.Time  // when it ends by itself; zero: it does not
}

// Key names the cause for Close.
func (c Cause) Key() string { return notice.Key(string(c.Kind), c.Subject) }
