package notify

import "testing"

func TestFailure(t *testing.T) {
	for reason, want := range map[string]string{"no network": "Market check failed: no network", "": "Market check failed"} {
		if got := failed("Market check", "failed", reason); got != want {
			t.Errorf("%q: %q", reason, got)
		}
	}
}
