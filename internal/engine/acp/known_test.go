package acp

import (
	"strings"
	"testing"
)

func TestUntested(t *testing.T) {
	e := &Engine{Profile: Profile{Name: "x", Tested: [2]string{"1.18.33", "1.20.0"}}}
	for version, want := range map[string]string{
		"1.18.33": "", "1.19.4": "", "1.20.0": "", "1.9.99": "is older than 1.18.33", "1.20.1": "is newer than 1.20.0", "2": "is newer", "": "does not say",
	} {
		if got := e.Untested(version); (got == "") != (want == "") || !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", version, got, want)
		}
	}
	if got := (&Engine{}).Untested("1"); !strings.Contains(got, "no profile") {
		t.Errorf("got %q", got)
	}
}

func TestNoKey(t *testing.T) {
	e := &Engine{Profile: opencode(), Sought: "no engine.KEY in secrets.env"}
	if got := e.NoKey(); !strings.Contains(got, "ANTHROPIC_API_KEY") || !strings.Contains(got, "secrets.env") {
		t.Errorf("got %q", got)
	}
	for _, entry := range []string{"OPENAI_API_KEY=k", "OPENCODE_CONFIG=/home/ada/opencode.json"} {
		if e.Env = []string{entry}; e.NoKey() != "" {
			t.Errorf("%s: got %q", entry, e.NoKey())
		}
	}
}
