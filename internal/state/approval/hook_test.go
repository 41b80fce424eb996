package approval

import (
	"slices"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/state/job"
)

const hookFile = "---\nid: ci\nfields: {properties: {branch: {pattern: '^[a-z]+$'}}}\nsignature: github\nsecret: ci\nallowed-tools: [WebSearch]\n---\nGo.\n"

// The approval of a widened webhook covers who may call it and what its agent is told. Without tools it needs none.
func TestWebhook(t *testing.T) {
	d := newDesk(t)
	parse := func(from, to string) job.Job {
		j, err := job.Parse(job.Webhook, "webhooks/ci.md", []byte(strings.Replace(hookFile, from, to, 1)))
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	approved, widened, err := d.Of(parse("", ""))
	if err != nil || !widened || !slices.Equal(approved.Widening(), []string{"allowed-tools"}) {
		t.Fatalf("widened by %q: %v, %v", approved.Widening(), widened, err)
	}
	for change, covered := range map[string]bool{
		"signature: github>signature: bearer": true, "secret: ci>secret: other": true, "pattern: '^[a-z]+$'>from: /x": true,
		"{properties>{additionalProperties: false, properties": true, "{properties>{required: [branch], properties": true,
		"secret: ci>secret: ci\nrate-limit: 1/d": false, "secret: ci>secret: ci\nisolated: true": false,
	} {
		from, to, _ := strings.Cut(change, ">")
		s, _, err := d.Of(parse(from, to))
		if err != nil || (s.Digest() != approved.Digest()) != covered {
			t.Errorf("%s: covered: %v, want %v (%v)", change, !covered, covered, err)
		}
	}
	if _, widened, err := d.Of(parse("allowed-tools: [WebSearch]\n", "")); widened || err != nil {
		t.Errorf("without tools: %v, %v", widened, err)
	}
}
