// Package runlog keeps the records of runs: one directory for each, with run.json (the run and its outcome),
// prompt.txt, events.jsonl (everything that the engine and its tools did) and stderr.log. Separate processes agree on
// what a run has done and may still do because all of them derive it from the events.
package runlog

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/process"
)

// Outcome is the outcome of a run.
type Outcome string

// The outcomes.
const (
	OK          Outcome = "ok"
	Failed      Outcome = "failed"
	Timeout     Outcome = "timeout"
	Skipped     Outcome = "skipped"
	Gated       Outcome = "gated"
	Refused     Outcome = "refused"
	Paused      Outcome = "paused"
	Unreported  Outcome = "unreported"
	Interrupted Outcome = "interrupted"
	Waiting     Outcome = "waiting" // for the owner's answer: the record is finished, and opened again when the run goes on
	Expired     Outcome = "expired" // no answer came
)

// Ask is the kind of a question at a shell, which the owner has just typed: the files that it names need no approval.
const Ask = "ask"

// NotKept says what became of the prompt and the answer of a private run.
const NotKept = "not kept: it was a test question, or one with --no-session"

// Subject is what a run is of: a job, or what has runs like one, such as main.
type Subject struct {
	Kind        string   `json:"kind"` // routine, reminder, chat, ask, …
	Job         string   `json:"job"`  // its id
	Name        string   `json:"name"` // for people: of its file, else the id
	Path        string   `json:"path"` // of its file
	Description string   `json:"description,omitempty"`
	Answers     []string `json:"answers,omitempty"` // the ids that a messenger gave to the messages that the run answers
}

// Process is the process of a run.
type Process struct {
	process.ID

	Group int `json:"pid_group"`
}

// Record is run.json. Times are in the configured zone.
type Record struct {
	ID string `json:"id"`
	Subject

	Mode   string `json:"mode"`
	Engine string `json:"engine,omitempty"`
	Model  string `json:"model,omitempty"` // that was asked for; "": the engine's default

	ModelUsed     string `json:"model_used,omitempty"`     // as the engine names it
	EngineVersion string `json:"engine_version,omitempty"` // of the engine's program
	Effort        string `json:"effort,omitempty"`         // how much the model was asked to think, in the engine's words

	Started   time.Time  `json:"started"`
	Finished  *time.Time `json:"finished,omitempty"`
	Outcome   Outcome    `json:"outcome,omitempty"` // "" while it runs
	Error     string     `json:"error,omitempty"`
	Fault     string     `json:"fault,omitempty"`     // the kind of cause that it failed by, of package notify; "": its own
	Withdrawn bool       `json:"withdrawn,omitempty"` // the owner, who started it at a terminal, stopped it there
	Verify    string     `json:"verify,omitempty"`    // verifyOK or verifyFailed; "" if the run was not verified

	Process

	AllowPing bool   `json:"allow_ping"`
	Update    string `json:"update_main_session,omitempty"`
	Busy      bool   `json:"busy"` // the main conversation was in a turn at the start

	Foreground bool   `json:"foreground,omitempty"`   // the run is part of the owner's own conversation
	Shared     bool   `json:"shared,omitempty"`       // the run is in main or a branch of main, which have the same tools
	Persistent bool   `json:"persistent,omitempty"`   // the session continues in the job's next run
	Key        string `json:"conversation,omitempty"` // of the conversation's lock; "" when no other run can know the session

	Permissions string `json:"permissions,omitempty"` // a policy.Mode; "" is dontAsk
	MayAsk      bool   `json:"may_ask,omitempty"`     // the owner can be asked, because the run's process has somebody who answers

	Tools      []string   `json:"tools,omitempty"`         // the patterns in force
	Root       string     `json:"root,omitempty"`          // the working directory, if it is not the data directory
	Dirs       []string   `json:"dirs,omitempty"`          // directories outside the data directory; rw: marks writable ones
	Skills     []string   `json:"skills,omitempty"`        // prepared in the run's directory
	MaxChain   int        `json:"max_chain,omitempty"`     // of a reminder
	ChainDepth int        `json:"chain_depth,omitempty"`   // its place, from 0
	Scheduled  *time.Time `json:"scheduled_for,omitempty"` // the time that the run is for
	Deadline   *time.Time `json:"deadline,omitempty"`      // everything of the run should have ended by then

	Seal    string  `json:"seal,omitempty"`    // job.SealOn, if the job asks for it
	Network string  `json:"network,omitempty"` // job.NetworkNone, if the job asks for it
	Sealed  *Sealed `json:"sealed,omitempty"`  // what is in force; nil: the run started no engine

	Shown time.Time `json:"updates_shown,omitzero"` // updates up to here were shown to an earlier run of the job

	ToldBefore Told `json:"told_before,omitzero"` // what the session of a persistent routine had been told before the run
	Told       Told `json:"told,omitzero"`        // what it has been told if it has read the run's prompt

	Previous string `json:"previous,omitempty"` // the id of the run that had the conversation of Key before; "": none, or not known

	SessionBefore string `json:"session_before,omitempty"`
	SessionAfter  string `json:"session_after,omitempty"`
	Parent        string `json:"parent_session,omitempty"`

	Question  string    `json:"question,omitempty"`     // that a waiting run has asked the owner
	Continued int       `json:"continued,omitempty"`    // how often it went on with an answer
	Resumed   time.Time `json:"continued_at,omitzero"`  // when it last did
	Settled   float64   `json:"cost_settled,omitempty"` // USD of Cost that were settled before that

	Compaction compaction `json:"compaction,omitempty"` // reported to the job's next turn

	Text        string  `json:"text,omitempty"`      // the final text
	Private     bool    `json:"private,omitempty"`   // the conversation is not recorded
	Accounted   bool    `json:"accounted,omitempty"` // it stands in the accounts
	Owner       bool    `json:"owner,omitempty"`     // the owner started it
	Reserved    float64 `json:"reserved,omitempty"`  // USD reserved at its start; 0 is no limit
	Turns       int     `json:"turns"`
	Pings       int     `json:"pings"`
	Reports     int     `json:"reports"`
	Compactions int     `json:"compactions"`
	Requests    int     `json:"requests,omitempty"` // to the model, that were answered
	ToolCalls   int     `json:"tool_calls,omitempty"`
	ToolErrors  int     `json:"tool_errors,omitempty"`  // of ToolCalls: those that failed or were denied
	ToolFailed  int     `json:"tools_failed,omitempty"` // uses that failed, without those that were denied
	ToolDenied  int     `json:"tools_denied,omitempty"` // uses that were denied, those of subagents included
	Usage       Usage   `json:"usage"`

	ContextBefore int `json:"context_before,omitempty"` // tokens of the conversation at the start; 0: it is new, or that is not known
	Context       int `json:"context,omitempty"`        // at the end
	Window        int `json:"window,omitempty"`         // tokens that the model can read; 0: not known
	CompactAt     int `json:"compact_at,omitempty"`     // tokens at which the conversation is compacted without being asked; 0: not known

	Cost    float64 `json:"cost"`                    // USD
	Assumed float64 `json:"cost_assumed,omitempty"`  // of Cost: for answers whose price was not reported, the most it can be
	ByTable float64 `json:"cost_by_table,omitempty"` // USD by the table of models, if what an engine reported differs from that by more than a tenth
}

// Sealed is what the kernel held the programs of the agent to.
type Sealed struct {
	ABI     int      `json:"abi,omitempty"`     // version of Landlock; 0: they were not sealed
	Why     string   `json:"why,omitempty"`     // they were not sealed
	Network string   `json:"network,omitempty"` // any or none
	Read    []string `json:"read,omitempty"`    // besides the system's own directories; the data directory without what is protected in it
	Write   []string `json:"write,omitempty"`   // these can be read as well
	Sockets []string `json:"sockets,omitempty"`
	Open    []string `json:"unsealed,omitempty"` // keys of the owner's executables that were not sealed, because the job says so
	Refused []string `json:"refused,omitempty"`  // what failed commands named and the seal closes, with what opens it
}

// The values of Record.Verify.
const (
	verifyOK     = "ok"
	verifyFailed = "failed" // the run did not do what it was for, or that could not be decided
)

// Unverified reports whether the agent did its work, but verify did not accept it. Such a run is not tried again from the start.
func (r Record) Unverified() bool {
	return r.Verify == verifyFailed && (r.Outcome == Failed || r.Outcome == Timeout)
}

// compaction is the result of the latest compaction of a session, kept until it has been reported to a turn of the
// session.
type compaction string

// The results of a compaction.
const (
	CompactionDone   compaction = "done"
	CompactionFailed compaction = "failed" // it was requested and not carried out
)

// Usage counts tokens.
type Usage struct {
	In         int `json:"in"`
	Out        int `json:"out"`
	CacheRead  int `json:"cache_read"`
	CacheWrite int `json:"cache_write"`
}

// Add returns the sum of two counts.
func (u Usage) Add(v Usage) Usage {
	return Usage{u.In + v.In, u.Out + v.Out, u.CacheRead + v.CacheRead, u.CacheWrite + v.CacheWrite}
}

// Full returns the length in tokens at which the conversation is compacted, or the model's window; 0 if neither is known.
func (r Record) Full() int { return cmp.Or(r.CompactAt, r.Window) }

// Share returns how much of Full the conversation has, in percent; 0 if that is not known.
func (r Record) Share() int { return share(r.Context, r.Full()) }

func share(tokens, full int) int {
	if full <= 0 {
		return 0
	}
	return tokens * 100 / full
}

// Size says how long the conversation is, and how long it may become.
func (r Record) Size() string {
	if r.CompactAt == 0 {
		return fmt.Sprintf("%d %% of the model's window (%d of %d tokens)", r.Share(), r.Context, r.Window)
	}
	return fmt.Sprintf("%d %% of the length at which it is compacted (%d of %d tokens)", r.Share(), r.Context, r.CompactAt)
}

// Crossed returns the share of Full, 60 or 75 percent, that the conversation has exceeded in this run; 0 if none.
func (r Record) Crossed() int {
	for _, limit := range []int{75, 60} {
		if r.Share() >= limit && share(r.ContextBefore, r.Full()) < limit {
			return limit
		}
	}
	return 0
}

// ShownUntil returns the time up to which this run and the ones before it have shown pending updates to their agent.
func (r Record) ShownUntil() time.Time {
	if r.Turns > 0 && r.Started.After(r.Shown) {
		return r.Started
	}
	return r.Shown
}

// Account returns the name under which the run stands in the accounts. Each part of a run that went on after an answer counts on
// its own, on the day on which it began.
func (r Record) Account() string {
	if r.Continued == 0 {
		return r.ID
	}
	return r.ID + accountSep + strconv.Itoa(r.Continued)
}

const accountSep = "+"

// OfAccount returns the run that stands under a name in the accounts.
func OfAccount(name string) (run string) {
	run, _, _ = strings.Cut(name, accountSep)
	return run
}

// Label returns the name of the run's job for the owner, in one line.
func (r Record) Label() string {
	return cmp.Or(strings.Join(strings.Fields(r.Description), " "), r.Name)
}

// OfJob reports whether the run is one of a job file's. Others are turns of conversations and questions at a shell.
func (r Record) OfJob() bool { return ofJob(r.Kind) }

func ofJob(kind string) bool {
	return slices.Contains([]string{"routine", "reminder", "webhook"}, kind)
}

// Problem reports whether the run ended as its owner would not have it. A fire that was skipped or paused had no run.
func (r Record) Problem() bool {
	return !r.Withdrawn && !slices.Contains([]Outcome{"", OK, Gated, Waiting, Skipped, Paused}, r.Outcome)
}

// TookPlace reports whether the run is no fire that was skipped or paused.
func (r Record) TookPlace() bool { return r.Outcome != Skipped && r.Outcome != Paused }

// Done reports whether the record of the run is finished.
func (r Record) Done() bool { return r.Finished != nil }

// idTime is the layout of the first part of a run id.
const idTime = "20060102T150405.000Z"

// NewID returns a run id: the UTC time to the millisecond, which makes names sort by age, and 6 random hex digits.
func NewID(now time.Time, random io.Reader) (string, error) {
	b := make([]byte, 3)
	if _, err := io.ReadFull(random, b); err != nil {
		return "", err
	}
	return now.UTC().Format(idTime) + "-" + hex.EncodeToString(b), nil
}

// Began returns the time in a run's id, the zero time if it is none.
func Began(id string) time.Time {
	at, _ := time.Parse(idTime, id[:min(len(id), len(idTime))])
	return at
}
