// Package runlog keeps the records of runs, each in a directory of its own: run.json (the run and its outcome), prompt.txt, events.jsonl
// (everything that the engine and its tools did) and stderr.log. Separate processes agree on what a run has done and may still do because
// all of them derive it from the events.
//
// What a power failure must not undo, that a run ended and that one which must not happen twice began, is a fact of the ledger, with the
// record: run.began, run.ended and run.removed. run.json does not wait for the disk, and is made again from the fact by Restore.
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
	Waiting     Outcome = "waiting" // for the owner's answer: the record is finished, and is reopened when the run continues
	Expired     Outcome = "expired" // the owner did not answer in time
)

// Ask is the kind of a run that answers a question at a shell. The owner has just typed the question, so the files that it names need no
// approval.
const Ask = "ask"

// NotKept stands in place of the prompt and the answer of a private run.
const NotKept = "not kept: it was a test question, or one with --no-session"

// Subject says what a run belongs to: a job, or something that has runs as a job has, such as main.
type Subject struct {
	Kind        string   `json:"kind"` // routine, reminder, chat, ask, …
	Job         string   `json:"job"`  // the job's id
	Name        string   `json:"name"` // name for people: that of the job's file, or else the id
	Path        string   `json:"path"` // path of the job's file
	Description string   `json:"description,omitempty"`
	Answers     []string `json:"answers,omitempty"` // ids that a messenger gave to the messages that the run answers
}

// Process identifies the process that executes a run.
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
	Model  string `json:"model,omitempty"` // the requested model, or else the engine's default; "" if the engine has none

	// what a person gave for this run alone, in place of a file or the settings: TypedModel, TypedThinking, TypedSystem
	Typed    []string `json:"typed,omitempty"`
	Thinking string   `json:"thinking,omitempty"` // how much the model was to think, if that is in Typed

	ModelUsed     string `json:"model_used,omitempty"`     // name that the engine reported
	Price         *Price `json:"price,omitempty"`          // of ModelUsed when the run ended; nil: not known
	Fallback      string `json:"fallback,omitempty"`       // why another model than the requested one was asked; "": none was
	EngineVersion string `json:"engine_version,omitempty"` // version of the engine's program
	Effort        string `json:"effort,omitempty"`         // how much the model was asked to think, in the engine's terms

	// what holds for the agent, if its engine cannot promise all: asks: all, effects, sandbox or nothing; reads, branch, max-cost, records, subagents
	Guarantees []string `json:"guarantees,omitempty"`

	Started   time.Time  `json:"started"`
	Finished  *time.Time `json:"finished,omitempty"`
	Outcome   Outcome    `json:"outcome,omitempty"` // "" while the run is in progress
	Error     string     `json:"error,omitempty"`
	Fault     string     `json:"fault,omitempty"`      // kind of the cause of a failure, as package notify names it; "": no kind is known
	Withdrawn bool       `json:"withdrawn,omitempty"`  // the owner started the run at a terminal and stopped it there
	Verify    string     `json:"verify,omitempty"`     // verifyOK or verifyFailed; "" if the run was not verified
	Audit     bool       `json:"gate_audit,omitempty"` // its gate would have ended the run, which went on to audit the gate
	GateOff   bool       `json:"gate_off,omitempty"`   // its gate would have ended the run, and is off

	Process

	AllowPing bool   `json:"allow_ping"`
	Update    string `json:"update_main_session,omitempty"`
	Busy      bool   `json:"busy"` // the main conversation was in a turn when the run started

	Foreground bool   `json:"foreground,omitempty"`   // the run is part of the owner's own conversation
	Shared     bool   `json:"shared,omitempty"`       // the run is in main or a branch of main, which have the same tools
	Persistent bool   `json:"persistent,omitempty"`   // the job's next run continues the session
	Key        string `json:"conversation,omitempty"` // key of the conversation's lock; "" if no other run can use the session

	Permissions string `json:"permissions,omitempty"` // a policy.Mode; "" is dontAsk
	MayAsk      bool   `json:"may_ask,omitempty"`     // the run's process can ask the owner for permission

	Tools      []string   `json:"tools,omitempty"`         // tool patterns in force
	Root       string     `json:"root,omitempty"`          // the working directory, if it is not the data directory
	Dirs       []string   `json:"dirs,omitempty"`          // directories outside the data directory; the prefix rw: marks writable ones
	Skills     []string   `json:"skills,omitempty"`        // skills that were copied to the run's directory
	MaxChain   int        `json:"max_chain,omitempty"`     // longest chain of a reminder
	ChainDepth int        `json:"chain_depth,omitempty"`   // the reminder's place in its chain, from 0
	Scheduled  *time.Time `json:"scheduled_for,omitempty"` // the time that the run was scheduled for
	Deadline   *time.Time `json:"deadline,omitempty"`      // the time by which the whole run should have ended

	Seal    string  `json:"seal,omitempty"`    // job.SealOn, if the job asks for it
	Network string  `json:"network,omitempty"` // job.NetworkNone, if the job asks for it
	Sealed  *Sealed `json:"sealed,omitempty"`  // the seal in force; nil if the run started no engine

	Shown time.Time `json:"updates_shown,omitzero"` // time up to which updates were shown to earlier runs of the job

	Parts []Part `json:"prompt_parts,omitempty"` // where prompt.txt has what the prompt was made from; nil: not known

	ToldBefore Told `json:"told_before,omitzero"` // what the session of a persistent routine had been told before the run
	Told       Told `json:"told,omitzero"`        // what it has been told, provided that it read the run's prompt

	// id of the run that used the conversation Key before this one; "" if there is none or it is unknown
	Previous string `json:"previous,omitempty"`

	SessionBefore string `json:"session_before,omitempty"`
	SessionAfter  string `json:"session_after,omitempty"`
	Parent        string `json:"parent_session,omitempty"`

	Question  string    `json:"question,omitempty"`     // the question that a waiting run has asked the owner
	Continued int       `json:"continued,omitempty"`    // how often the run continued with an answer
	Resumed   time.Time `json:"continued_at,omitzero"`  // when the run last continued
	Settled   float64   `json:"cost_settled,omitempty"` // the part of Cost that was settled before that, in USD

	Compaction compaction `json:"compaction,omitempty"` // reported in the job's next turn

	Text        string  `json:"text,omitempty"`      // the final answer
	Private     bool    `json:"private,omitempty"`   // the conversation is not recorded
	Accounted   bool    `json:"accounted,omitempty"` // the run has an entry in the accounts
	Owner       bool    `json:"owner,omitempty"`     // the owner started the run
	Reserved    float64 `json:"reserved,omitempty"`  // USD that were reserved when it started; 0 is no limit
	Turns       int     `json:"turns"`
	Pings       int     `json:"pings"`
	Reports     int     `json:"reports"`
	Compactions int     `json:"compactions"`
	Requests    int     `json:"requests,omitempty"` // requests to the model that were answered
	ToolCalls   int     `json:"tool_calls,omitempty"`
	ToolErrors  int     `json:"tool_errors,omitempty"`  // those of ToolCalls that failed or were denied
	ToolFailed  int     `json:"tools_failed,omitempty"` // uses of tools that failed, without the denied ones
	ToolDenied  int     `json:"tools_denied,omitempty"` // uses of tools that were denied, including those of subagents
	Usage       Usage   `json:"usage"`

	ContextBefore int `json:"context_before,omitempty"` // tokens in the conversation at the start; 0 if it is new or the number is unknown
	Context       int `json:"context,omitempty"`        // tokens at the end
	Window        int `json:"window,omitempty"`         // tokens that the model can read; 0 if unknown
	CompactAt     int `json:"compact_at,omitempty"`     // tokens at which the engine compacts the conversation by itself; 0 if unknown

	Cost float64 `json:"cost"` // USD
	// the part of Cost, in USD, that is the highest possible price of answers without a reported one
	Assumed float64 `json:"cost_assumed,omitempty"`
	// USD by the table of models, if the engine reported an amount that differs by more than a tenth
	ByTable float64 `json:"cost_by_table,omitempty"`
}

// Price is the price of a model by the table of models.
type Price struct {
	Rates

	LongFrom int    `json:"long_above,omitempty"` // a request of more tokens is charged at Long; 0: none
	Long     *Rates `json:"long,omitempty"`
}

// Rates are in USD for a million tokens. CacheHour is the price of writing to the one-hour cache, 0 if unknown.
type Rates struct {
	In         float64 `json:"in"`
	Out        float64 `json:"out"`
	CacheRead  float64 `json:"cache_read"`
	CacheWrite float64 `json:"cache_write"`
	CacheHour  float64 `json:"cache_write_1h,omitempty"`
}

// Sealed describes the restrictions that the kernel enforced on the programs of the agent.
type Sealed struct {
	ABI     int    `json:"abi,omitempty"`     // ABI version of Landlock; 0 if the programs were not sealed
	Why     string `json:"why,omitempty"`     // why the programs were not sealed
	Network string `json:"network,omitempty"` // NetworkAny or NetworkNone of package job
	// readable directories besides those of the system; of the data directory only what is not protected
	Read    []string `json:"read,omitempty"`
	Write   []string `json:"write,omitempty"` // writable directories, which are readable as well
	Sockets []string `json:"sockets,omitempty"`
	Open    []string `json:"unsealed,omitempty"` // keys of the owner's executables that the job exempts from the seal
	// paths that failed commands named and the seal denies, each with the setting that would allow it
	Refused []string `json:"refused,omitempty"`
}

// The values in Record.Typed.
const (
	TypedModel    = "model"
	TypedThinking = "thinking"
	TypedSystem   = "system" // the system prompt
)

// The values of Record.Verify.
const (
	verifyOK     = "ok"
	verifyFailed = "failed" // the checker rejected the run, or could not decide
)

// Unverified reports whether the agent finished and its checker rejected the run. Such a run is not repeated from the start.
func (r Record) Unverified() bool {
	return r.Verify == verifyFailed && (r.Outcome == Failed || r.Outcome == Timeout)
}

// compaction is the result of a session's latest compaction. It is kept until a turn of the session has been told of it.
type compaction string

// The results of a compaction.
const (
	CompactionDone   compaction = "done"
	CompactionFailed compaction = "failed" // a compaction was requested and not carried out
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

// Full returns the number of tokens at which the conversation is compacted, or else the model's context window; 0 if neither is known.
func (r Record) Full() int { return cmp.Or(r.CompactAt, r.Window) }

// Share returns the length of the conversation in percent of Full; 0 if it is unknown.
func (r Record) Share() int { return share(r.Context, r.Full()) }

func share(tokens, full int) int {
	if full <= 0 {
		return 0
	}
	return tokens * 100 / full
}

// Size describes the length of the conversation and its limit.
func (r Record) Size() string {
	if r.CompactAt == 0 {
		return fmt.Sprintf("%d %% of the model's window (%d of %d tokens)", r.Share(), r.Context, r.Window)
	}
	return fmt.Sprintf("%d %% of the length at which it is compacted (%d of %d tokens)", r.Share(), r.Context, r.CompactAt)
}

// Crossed returns the largest share of Full, 60 or 75 percent, that the conversation passed during this run; 0 if it passed none.
func (r Record) Crossed() int {
	for _, limit := range []int{75, 60} {
		if r.Share() >= limit && share(r.ContextBefore, r.Full()) < limit {
			return limit
		}
	}
	return 0
}

// ShownUntil returns the time up to which this run and earlier ones have shown pending updates to their agent.
func (r Record) ShownUntil() time.Time {
	if r.Turns > 0 && r.Started.After(r.Shown) {
		return r.Started
	}
	return r.Shown
}

// Account returns the name of the run's entry in the accounts. A run that continued after an answer has an entry for each part, on the
// day on which the part began.
func (r Record) Account() string {
	if r.Continued == 0 {
		return r.ID
	}
	return r.ID + accountSep + strconv.Itoa(r.Continued)
}

const accountSep = "+"

// OfAccount returns the id of the run that an entry in the accounts belongs to.
func OfAccount(name string) (run string) {
	run, _, _ = strings.Cut(name, accountSep)
	return run
}

// Label returns the name of the run's job as the owner sees it, on one line.
func (r Record) Label() string {
	return cmp.Or(strings.Join(strings.Fields(r.Description), " "), r.Name)
}

// OfJob reports whether the run belongs to a job file. Other runs are turns of conversations and questions at a shell.
func (r Record) OfJob() bool { return ofJob(r.Kind) }

func ofJob(kind string) bool {
	return slices.Contains([]string{"routine", "reminder", "webhook"}, kind)
}

// Problem reports whether the run had an outcome that the owner should look at. Skipped and paused fires are none.
func (r Record) Problem() bool {
	return !r.Withdrawn && !slices.Contains([]Outcome{"", OK, Gated, Waiting, Skipped, Paused}, r.Outcome)
}

// TookPlace reports whether there was a run: the fire was neither skipped nor paused.
func (r Record) TookPlace() bool { return r.Outcome != Skipped && r.Outcome != Paused }

// Done reports whether the record has an end.
func (r Record) Done() bool { return r.Finished != nil }

// idTime is the time layout of the first part of a run id.
const idTime = "20060102T150405.000Z"

// NewID returns a run id: the UTC time in milliseconds, so that ids sort by age, and 6 random hex digits.
func NewID(now time.Time, random io.Reader) (string, error) {
	b := make([]byte, 3)
	if _, err := io.ReadFull(random, b); err != nil {
		return "", err
	}
	return now.UTC().Format(idTime) + "-" + hex.EncodeToString(b), nil
}

// Began returns the time in a run's id; the zero time if the id is malformed.
func Began(id string) time.Time {
	at, _ := time.Parse(idTime, id[:min(len(id), len(idTime))])
	return at
}
