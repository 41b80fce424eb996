package replay

import (
	"context"
	"fmt"

	"github.com/ollim/ollim/internal/agent/tools"
)

// fieldPolicy is how the use of a tool is judged.
const fieldPolicy = "policy"

// verdicts judges the uses of tools by the rules of today, and returns the first one that was judged otherwise. A use about which the owner
// was asked is left out.
func (w *walk) verdicts(ctx context.Context) (*Difference, error) {
	set := w.begins.Tools
	for _, e := range w.kept.verdicts {
		use, known := w.kept.uses[e.ToolID]
		if !known || w.kept.asked[e.ToolID] {
			continue
		}
		judge, is := w.subagent(set, use.Parent).(*tools.Set)
		if !is {
			continue
		}
		reason, err := judge.Judge(ctx, e.Tool, e.ToolID, use.Input)
		if err != nil {
			return nil, err
		}
		w.out.Uses++
		if then, now := verdict(e.IsError, e.Text), verdict(reason != "", reason); e.IsError != (reason != "") {
			return &Difference{Field: fieldPolicy, Place: fmt.Sprintf("%s %s", e.Tool, use.Input), Then: then, Now: now}, nil
		}
	}
	return nil, nil
}

func verdict(denied bool, why string) string {
	if !denied {
		return "allowed"
	}
	return "refused: " + why
}
