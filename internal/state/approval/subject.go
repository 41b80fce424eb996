package approval

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/job"
)

// Subject is the content to approve, of one job or one skill.
type Subject struct {
	Key    string // the job's id, or "skill:" and a name
	Kind   string // of the job, or "skill"
	Label  string // for display; not part of the approval
	Fields fields
	Body   string            // of the job
	Files  map[string]string // path in the data directory: SHA-256 in hex, or missingFile

	data  []string // names of files that commands only read; they are not a part of the subject
	roots []policy.Root
}

// missingFile stands for the digest of a file or skill directory that does not exist. The job cannot run then and
// reports so itself; once the file exists the owner must approve it.
const missingFile = "missing"

// skillKind is the Kind of a skill and the prefix of its Key.
const skillKind = "skill"

// fields are the keys of a job file that widen it. Lists other than fallback are sorted and without duplicates, because
// their order grants nothing.
type fields struct {
	AllowedTools []string `json:"allowed-tools,omitempty"`
	Gate         string   `json:"gate,omitempty"`
	After        string   `json:"after,omitempty"`
	Verify       string   `json:"verify,omitempty"`
	Unsealed     []string `json:"unsealed,omitempty"`
	Heartbeat    string   `json:"heartbeat,omitempty"`
	Dirs         []string `json:"dirs,omitempty"`
	Subagent     string   `json:"subagent,omitempty"`
	Fallback     []string `json:"fallback,omitempty"` // in the order of the file, which decides what is asked first
	Skills       []string `json:"skills,omitempty"`
	Servers      []string `json:"mcp-servers,omitempty"` // the definitions of the servers whose tools allowed-tools names
	Hook         []string `json:"webhook,omitempty"`     // of a webhook: who may call it, and what the agent is told
	Seal         string   `json:"seal,omitempty"`        // job.SealOn; "" if the job does not ask for it
	Network      string   `json:"network,omitempty"`     // job.NetworkNone; "" for any
}

type field struct {
	key    string
	values []string
}

// each lists the fields, always the same ones in the same order.
func (f fields) each() []field {
	one := func(value string) []string {
		if value == "" {
			return nil
		}
		return []string{value}
	}
	return []field{
		{"allowed-tools", f.AllowedTools}, {"gate", one(f.Gate)}, {"after", one(f.After)}, {"dirs", f.Dirs},
		{"subagent", one(f.Subagent)}, {"skills", f.Skills}, {"mcp-servers", f.Servers},
		{callKey, f.Hook}, {"verify", one(f.Verify)}, {"heartbeat", one(f.Heartbeat)}, {"seal", one(f.Seal)}, {"network", one(f.Network)},
		{"unsealed", f.Unsealed}, {"fallback", f.Fallback},
	}
}

func fieldsOf(j job.Job) fields {
	set := func(list []string) []string { return slices.Compact(slices.Sorted(slices.Values(list))) }
	network := j.Network
	if network != job.NetworkNone {
		network = ""
	}
	return fields{
		AllowedTools: set(j.AllowedTools), Gate: j.Gate, After: j.After, Verify: j.Verify, Unsealed: set(j.Unsealed), Heartbeat: j.Heartbeat,
		Dirs: set(j.Dirs), Subagent: j.Subagent, Skills: set(j.Skills), Seal: j.Seal, Network: network, Fallback: j.Fallback,
	}
}

// callKey is the key of Fields.Hook. How a webhook is called grants nothing, but decides whose input a widened webhook processes.
const callKey = "webhook"

// hookOf returns how a webhook is called, one fact on each line; nothing for another job.
func hookOf(j job.Job) []string {
	if j.Hook == nil {
		return nil
	}
	return append([]string{"secret: " + j.Hook.SecretName(), "signature: " + j.Hook.Signature.Line()}, j.Hook.Fields.Lines()...)
}

// Widening returns the keys that grant permissions: those of the fields that are set, or a skill's commands.
func (s Subject) Widening() (keys []string) {
	switch s.Kind {
	case skillKind:
		return []string{"commands"}
	case policyKind:
		return []string{"tools"}
	}
	for _, f := range s.Fields.each() {
		if len(f.values) > 0 && !slices.Contains([]string{callKey, "seal", "network"}, f.key) {
			keys = append(keys, f.key)
		}
	}
	return keys
}

// Of returns the subject of a job as it is now, and reports whether the job is widened and so needs approval. The error
// is an *Unfit.
func (b Book) Of(j job.Job) (s Subject, widened bool, err error) {
	s = Subject{Key: j.ID, Kind: string(j.Kind), Label: j.Label(), Fields: fieldsOf(j), Body: j.Body, Files: map[string]string{}}
	s.Fields.Servers, s.Fields.Hook = b.Servers.Definitions(j.AllowedTools), hookOf(j)
	if len(s.Widening()) == 0 {
		return Subject{}, false, nil
	}
	for _, p := range j.Programs() {
		err = cmp.Or(err, b.file(s.Files, b.Home.Gate(p.Name)))
	}
	if j.Subagent != "" {
		err = cmp.Or(err, b.file(s.Files, b.Home.Agent(j.Subagent)))
	}
	for _, name := range s.Fields.Skills {
		err = cmp.Or(err, b.folder(s.Files, b.Home.Path("skills", name)))
	}
	return s, true, cmp.Or(err, b.mentioned(&s, j.AllowedTools, j.Roots(b.User)))
}

// OfSkill returns the subject of a skill whose commands run in the main conversation. name is a skill's name, as in
// skills/. The error is an *Unfit.
func (b Book) OfSkill(name string) (Subject, error) {
	s := Subject{Key: skillKind + ":" + name, Kind: skillKind, Label: name, Files: map[string]string{}}
	return s, b.folder(s.Files, b.Home.Path("skills", name))
}

// Digest returns the SHA-256 of the subject, in hex. Every part is prefixed by its length, so that no two subjects are
// encoded alike.
func (s Subject) Digest() string {
	h := sha256.New()
	put := func(parts ...string) {
		for _, p := range parts {
			_, _ = fmt.Fprintf(h, "%d:%s,", len(p), p) // a hash does not fail
		}
	}
	put(s.Key, s.Kind, s.Body)
	for _, f := range s.Fields.each() {
		switch f.key {
		case "mcp-servers", callKey, "verify", "heartbeat", "seal", "network", "unsealed", "fallback":
			if len(f.values) == 0 {
				continue // so that approvals from before such a field existed stay valid
			}
			if f.key != "mcp-servers" && f.key != callKey { // else two of these fields, or one and callKey, would be encoded alike
				put(f.key)
			}
		}
		_, _ = fmt.Fprintf(h, "%d;", len(f.values))
		put(f.values...)
	}
	for _, name := range sortedKeys(s.Files) {
		put(name, s.Files[name])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// wider returns the subject, and the subjects with less of its restrictions seal and network: an approval of any of them covers this
// subject.
func (s Subject) wider() []Subject {
	list := []Subject{s}
	if s.Fields.Seal != "" {
		s.Fields.Seal = ""
		list = append(list, s)
	}
	for _, s := range list {
		if s.Fields.Network != "" {
			s.Fields.Network = ""
			list = append(list, s)
		}
	}
	return list
}

func sortedKeys(files map[string]string) []string { return slices.Sorted(maps.Keys(files)) }
