package runner

import "testing"

func TestFailure(t *testing.T) {
	for reason, want := range map[string]string{"no network": "Market check failed: no network", "": "Market check failed"} {
		if got := failure("Market check", "failed", reason); got != want {
			t.Errorf("%q: %q", reason, got)
		}
	}
}

// What the owner reads names the job as they know it, and says what is the matter.
func TestMessages(t *testing.T) {
	for got, want := range map[string]string{
		unreported("Market check"):                      "Market check ran but did not report what it did.",
		refusedJob("Market check", "gate is not there"): "Market check was not run: gate is not there",
		badFile("routines/a.md:3: corn: unknown key"):   "A job file is invalid and cannot run until it is corrected (see `ollim check`): routines/a.md:3: corn: unknown key",
		unavailable("Take the pizza out."):              "(agent unavailable) Take the pizza out.",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
