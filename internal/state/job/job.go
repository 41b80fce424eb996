// Package job defines the files that people and agents write: routines in routines/*.md, reminders in reminders/*.md, webhooks in
// webhooks/*.md. It parses each file strictly and independently of the others, finds a job by its names, and writes new files. It never
// runs a job.
package job

import (
	"cmp"
	"path/filepath"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ollim/ollim/internal/platform/cron"
	"github.com/ollim/ollim/internal/platform/timeparse"
	"github.com/ollim/ollim/internal/platform/yamldoc"
	"github.com/ollim/ollim/internal/policy"
)

// Kind is the kind of a job. Its plural is the name of its directory.
type Kind string

// The kinds of jobs.
const (
	Routine  Kind = "routine"  // runs at the times of a cron line
	Reminder Kind = "reminder" // runs once, at its time
	Webhook  Kind = "webhook"  // runs when it is called
)

// UpdateMode says when a background run reports to the main session.
type UpdateMode string

// The update modes, see ollim-routine(5).
const (
	OnPing  UpdateMode = "on_ping"
	Always  UpdateMode = "always"
	Freely  UpdateMode = "freely"
	Blocked UpdateMode = "blocked"
)

// Mode says where a job's run gets its history from.
type Mode string

// The modes of behaviour 2.3.
const (
	Foreground Mode = "foreground"
	Forked     Mode = "forked"
	Isolated   Mode = "isolated"
	Persistent Mode = "persistent"
)

// Values of a job's keys seal and network.
const (
	SealOn      = "on"   // the run is refused if the kernel cannot seal its programs
	NetworkAny  = "any"  // commands may connect to any address
	NetworkNone = "none" // commands may connect only to servers that were started in the run
)

// Job is one job file. The fields are those of ollim-routine(5), with defaults filled in.
type Job struct {
	Kind Kind
	Path string // path of the file when it was read
	Body string // the prompt, without blank lines around it

	ID           string
	Cron         string
	Timezone     string // "" is the configured zone
	Description  string
	Background   bool
	Session      string // SessionPersistent or ""
	Isolated     bool
	Model        string
	Fallback     []string // models that are asked in order if Model cannot be used; nil: the configured ones, empty: none
	Thinking     string   // "true", "false", "off", "adaptive", model.LikeMain or a number of tokens
	Update       UpdateMode
	AllowPing    bool
	AllowedTools []string
	Skills       []string
	Subagent     string
	Engine       string
	Timeout      time.Duration
	CatchUp      time.Duration
	MaxCost      float64 // USD; 0 is no limit of its own
	Gate         string
	GateAudit    int // each GateAudit-th fire that Gate closes runs all the same; 0: none does
	After        string
	Verify       string
	Retry        int      // how often a run continues after Verify rejected it
	Unsealed     []string // keys of Gate, After and Verify that are exempt from the seal
	Heartbeat    string   // URL that is called after a run
	Dirs         []string
	Seal         string // SealOn; "" means that the configuration decides
	Network      string // NetworkAny or NetworkNone
	Host         string // name of the only machine that runs the job; "": every machine
	Enabled      bool

	RunAt       time.Time // when a reminder is due
	MaxChain    int       // how many reminders may follow the first of a chain
	ChainDepth  int       // how many reminders of the chain came before this one
	ChainParent string    // id of the first reminder of the chain
	Plain       bool      // the body itself is delivered, and no engine runs
	floating    bool      // RunAt was written without an offset, see In

	Hook *Hook // how a webhook is called; nil for the other kinds

	Schedule cron.Schedule // parsed Cron

	page *yamldoc.Page
	zone *time.Location // Timezone, loaded when the file was read
}

// New returns a job with every field at its default.
func New(kind Kind) Job {
	j := Job{
		Kind: kind, Background: kind != Routine, Thinking: "true", Update: OnPing, AllowPing: true,
		Timeout: 30 * time.Minute, Network: NetworkAny, Enabled: true,
	}
	if kind == Webhook {
		normal, _ := Named(bearer)
		j.Hook = &Hook{Signature: normal, RateLimit: Rate{N: 30, Per: time.Minute}}
	}
	return j
}

// In returns the job with RunAt in the configured zone, if it was written without an offset.
func (j Job) In(zone *time.Location) Job {
	if j.floating {
		j.RunAt, j.floating = timeparse.Shown(j.RunAt, zone), false
	}
	return j
}

// Mode returns the mode that follows from the job's fields.
func (j Job) Mode() Mode {
	switch {
	case !j.Background:
		return Foreground
	case j.Session == "persistent":
		return Persistent
	case j.Isolated:
		return Isolated
	}
	return Forked
}

// Label returns the job's name for the owner, on one line: its description, or else the name of its file.
func (j Job) Label() string {
	return cmp.Or(strings.Join(strings.Fields(j.Description), " "), j.Name())
}

// Name returns the name of the job's file without .md, and without the mark of a second attempt.
func (j Job) Name() string {
	name := baseName(j.Path)
	if j.Attempt() == Second {
		return strings.TrimSuffix(name, retry)
	}
	return name
}

// Zone returns the zone in which the job's schedule is read.
func (j Job) Zone(configured *time.Location) *time.Location {
	if j.Timezone == "" {
		return configured
	}
	if j.zone != nil && j.zone.String() == j.Timezone {
		return j.zone
	}
	if zone, err := time.LoadLocation(j.Timezone); err == nil {
		return zone
	}
	return configured
}

// Roots returns the directories of dirs. home is the owner's home directory, for entries that begin with ~/.
func (j Job) Roots(home string) (roots []policy.Root) {
	for _, entry := range j.Dirs {
		dir, writable := strings.CutPrefix(entry, "rw:")
		if rest, found := strings.CutPrefix(dir, "~/"); found {
			dir = filepath.Join(home, rest)
		}
		roots = append(roots, policy.Root{Dir: filepath.Clean(dir), Writable: writable})
	}
	return roots
}

// FollowUp returns the next reminder of the job's chain. Only its id, time and place in the chain differ.
func (j Job) FollowUp(id string, at time.Time) Job {
	j.ID, j.RunAt, j.floating, j.ChainDepth = id, at, false, j.ChainDepth+1
	return j
}

// slugLimit is the length limit, in characters, of a file name that is made from a text.
const slugLimit = 50

// Slug makes a file name from a text: lower case, with one hyphen for each run of characters other than a-z and 0-9, and at most 50
// characters. It returns "" if nothing is left.
func Slug(text string) string {
	return dashed(text, func(r rune) bool { return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' })
}

// fileName is Slug, but it keeps the letters of all scripts.
func fileName(text string) string {
	return dashed(text, func(r rune) bool { return unicode.In(r, unicode.Letter, unicode.Mark, unicode.Digit) })
}

// dashed returns the first slugLimit characters of a text in lower case, with a hyphen for each run of characters that keep rejects.
func dashed(text string, keep func(rune) bool) string {
	var b strings.Builder
	n, gap := 0, false
	for _, r := range strings.ToLower(text) {
		if !keep(r) || r == utf8.RuneError {
			gap = true
			continue
		}
		if gap && n > 0 {
			b.WriteByte('-')
			n++
		}
		if n >= slugLimit {
			break
		}
		b.WriteRune(r)
		n, gap = n+1, false
	}
	return strings.TrimRight(b.String(), "-")
}
