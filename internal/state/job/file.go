package job

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/yamldoc"
	"github.com/ollim/ollim/internal/policy"
)

// Parse parses a job file. name stands for the file in errors and becomes the job's path. The error is a yamldoc.Faults with everything
// that is wrong.
func Parse(kind Kind, name string, data []byte) (Job, error) {
	return parse(kind, name, data, fields(kind))
}

// parse is Parse with the table of the kind's fields, which several files can share. A table caches the zones that it has loaded, so it
// must not be used by several goroutines at once.
func parse(kind Kind, name string, data []byte, table []field) (Job, error) {
	page, err := yamldoc.ParsePage(name, data)
	if err != nil {
		return Job{}, err
	}
	j := New(kind)
	j.Path, j.page = name, page
	j.Body = strings.Trim(strings.ReplaceAll(page.Body, "\r\n", "\n"), "\r\n")
	faults := j.decode(table)
	if !page.Doc.Has("id") {
		faults = append(faults, j.named()...)
	}
	faults = append(faults, j.rules(faults, table)...)
	if len(faults) > 0 {
		slices.SortStableFunc(faults, func(a, b *yamldoc.Fault) int { return cmp.Compare(a.Line, b.Line) })
		return j, faults
	}
	if j.MaxChain > 0 && j.ChainParent == "" {
		j.ChainParent = j.ID
	}
	return j, nil
}

// named gives a job without an id the name of its file as its id.
func (j *Job) named() yamldoc.Faults {
	j.ID = baseName(j.Path)
	if j.Attempt() == Second {
		j.ID = strings.TrimSuffix(j.ID, retry)
	}
	if checkID(j.ID) == nil {
		return nil
	}
	return yamldoc.Faults{j.page.Doc.Fault("id", fmt.Sprintf("is missing, and the file name %q is not a valid id: add id:, or rename the file, with "+
		"letters, digits, . _ -", plaintext.Short(j.ID, maxID)))}
}

func (j *Job) decode(table []field) yamldoc.Faults {
	readers := make([]yamldoc.Field, 0, len(table))
	for _, f := range table {
		readers = append(readers, yamldoc.Field{Key: f.key, Read: func(v yamldoc.Value) error { return f.read(j, v) }})
	}
	var faults yamldoc.Faults
	errors.As(j.page.Doc.Decode(readers), &faults)
	return faults
}

// rules checks what depends on more than one field. It omits faults that follow from one in known.
func (j *Job) rules(known yamldoc.Faults, table []field) (faults yamldoc.Faults) {
	doc := j.page.Doc
	wrong := func(key, reason string) { faults = append(faults, doc.Fault(key, reason)) }
	unclear := func(key string) bool {
		return slices.ContainsFunc(known, func(f *yamldoc.Fault) bool { return f.Key == key })
	}
	for _, key := range []string{"cron", "run-at", "fields"} {
		if slices.ContainsFunc(table, func(f field) bool { return f.key == key }) && !doc.Has(key) {
			wrong(key, "is missing")
		}
	}
	for _, f := range table {
		switch {
		case !doc.Has(f.key):
		case j.Plain && f.agentOnly:
			wrong(f.key, "a plain reminder has no agent: remove plain: true, or this key")
		case !j.Background && f.bgOnly && !unclear("background"):
			wrong(f.key, "only a background "+string(j.Kind)+" can have it: "+j.wayToBackground())
		}
	}
	if j.Session == "persistent" && j.Isolated {
		wrong("session", "persistent and isolated: true exclude each other")
	}
	if doc.Has("retry") && j.Retry > 0 && !doc.Has("verify") {
		wrong("retry", "needs verify, which decides whether to go on")
	}
	if doc.Has("gate-audit") && j.GateAudit > 0 && !doc.Has(GateKey) {
		wrong("gate-audit", "needs gate, which it audits")
	}
	if j.GateAudit > 0 && j.Update == Always {
		wrong("gate-audit", "update-main-session: always makes every run report, which would turn the gate off")
	}
	for _, key := range j.Unsealed {
		if !unclear("unsealed") && !doc.Has(key) {
			wrong("unsealed", "names "+key+", which the "+string(j.Kind)+" does not have")
		}
	}
	if j.Kind == Reminder && strings.HasSuffix(strings.ToLower(j.ID), retry) {
		wrong("id", "cannot end in "+retry+", which marks a second attempt")
	}
	if j.ChainDepth > j.MaxChain && !unclear("max-chain") && !unclear("chain-depth") {
		wrong("chain-depth", "is beyond max-chain")
	}
	if !unclear("allowed-tools") && !unclear("dirs") {
		faults = append(faults, j.judge()...)
	}
	if strings.TrimSpace(j.Body) == "" {
		wrong("", "the text below the frontmatter, the prompt, is empty")
	}
	return faults
}

func (j *Job) wayToBackground() string {
	if j.Kind == Reminder {
		return "remove background: false"
	}
	return "add background: true"
}

// judge refuses tool patterns that no job may have. It parses the patterns again, because what they may reach depends on dirs. The
// owner's home is unknown here, so a directory below ~/ does not extend a pattern that has its full path; dirs itself adds the patterns
// for that directory.
func (j *Job) judge() (faults yamldoc.Faults) {
	const key = "allowed-tools"
	if len(j.AllowedTools) == 0 {
		return nil
	}
	roots := j.Roots("")
	errors.As(j.page.Doc.Decode([]yamldoc.Field{{Key: key, Read: func(v yamldoc.Value) error {
		_, err := v.Texts(func(pattern string) error { return policy.Judge(pattern, roots...) })
		return err
	}}}), &faults)
	return slices.DeleteFunc(faults, func(f *yamldoc.Fault) bool { return f.Key != key }) // faults of other keys are reported elsewhere
}

// Format returns the text of a new job file: the fields that differ from their defaults, in the order of Fields, then the body.
func Format(j Job) ([]byte, error) {
	var pairs []yamldoc.Pair
	for _, f := range fields(j.Kind) {
		if value := f.write(j); value != nil {
			pairs = append(pairs, yamldoc.Pair{Key: f.key, Value: value})
		}
	}
	return yamldoc.NewPage(pairs, j.Body)
}

// Source returns the text of the job's file as it was read; nil if it was not read from a file.
func (j Job) Source() []byte {
	if j.page == nil {
		return nil
	}
	return j.page.With(j.page.Doc)
}

// WithModel returns the text of the job's file with another model. Nothing else changes.
func (j Job) WithModel(name string) ([]byte, error) { return j.with("model", name) }

// WithGate returns the text of the job's file with another gate. Nothing else changes.
func (j Job) WithGate(name string) ([]byte, error) { return j.with(GateKey, name) }

func (j Job) with(key, value string) ([]byte, error) {
	doc, err := j.page.Doc.Set([]string{key}, value)
	if err != nil {
		return nil, err
	}
	return j.page.With(doc), nil
}

// WithEnabled returns the text of the job's file with enabled set to false, or without enabled if it is true. Nothing else changes.
func (j Job) WithEnabled(enabled bool) ([]byte, error) {
	doc, err := j.page.Doc.Delete([]string{"enabled"})
	if !enabled {
		doc, err = j.page.Doc.Set([]string{"enabled"}, false)
	}
	if err != nil {
		return nil, err
	}
	return j.page.With(doc), nil
}
