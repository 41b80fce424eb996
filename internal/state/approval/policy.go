package approval

import (
	"slices"

	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/config"
)

// PolicyName is the name by which the owner approves tool-policy.yaml. Job ids have no colon, so policyKey cannot be a
// job's.
const (
	PolicyName = "tool-policy.yaml"
	policyKey  = "file:" + PolicyName
	policyKind = "policy"
)

// toolPolicy is the policy in tool-policy.yaml.
type toolPolicy struct {
	config.Tools // the tools in force
	Subject      Subject
	Empty        bool // the file names no tools
	Waits        bool // the file differs from the approved one
}

// Policy reads tool-policy.yaml. A file that is not as the owner approved it gives no tools. Its override still applies,
// as does the approved one: background runs keep those standard tools that both overrides keep. A file that names no tools needs
// no approval, unless an override was approved before it. The error is that of config.LoadTools, an
// *Unfit, or that of the book.
func (b Book) Policy() (p toolPolicy, err error) {
	p.Tools, err = config.LoadTools(b.Home.ToolPolicy())
	if err != nil {
		return toolPolicy{}, err
	}
	p.Empty = len(p.Main)+len(p.Background) == 0 && p.Override == nil
	p.Subject = Subject{Key: policyKey, Kind: policyKind, Label: PolicyName, Body: p.Text, Files: map[string]string{}}
	all := slices.Concat(p.Main, p.Background, p.Override)
	p.Subject.Fields.Servers = b.Servers.Definitions(all)
	if err := b.mentioned(&p.Subject, all, nil); err != nil {
		return toolPolicy{}, err
	}
	last, known, err := b.Last(policyKey)
	if err != nil {
		return toolPolicy{}, err
	}
	if known && last.Digest == p.Subject.Digest() {
		return p, nil
	}
	before, err := config.ParseTools(PolicyName, []byte(last.Body))
	if err != nil {
		before.Override = []string{} // the approved patterns are no longer valid
	}
	if p.Empty && before.Override == nil {
		return p, nil
	}
	p.Waits = true
	p.Tools = config.Tools{Text: p.Text, Override: narrowed(p.Override, before.Override)}
	return p, nil
}

// narrowed returns the standard tools of background runs that all overrides keep; nil when there is no override.
func narrowed(overrides ...[]string) (left []string) {
	for _, o := range overrides {
		if o == nil {
			continue
		}
		if left == nil {
			left = policy.DefaultBackground()
		}
		left = slices.DeleteFunc(left, func(pattern string) bool { return !slices.Contains(o, pattern) })
	}
	return left
}
