package runner

import "testing"

func TestFailure(t *testing.T) {
	for _, tc := range []struct {
		reason string
		count  int
		want   string
	}{
		{"no network", 0, "Market check failed: no network"},
		{"no network", 1, "Market check failed: no network"},
		{"no network", 2, "Market check failed: no network"},
		{"no network", 3, "Market check failed, now 3 times in a row: no network"},
		{"no network", 100, "Market check failed, now 100 times in a row: no network"},
		{"", 1, "Market check failed"},
		{"", 10, "Market check failed, now 10 times in a row"},
	} {
		if got := failure("Market check", "failed", tc.reason, tc.count); got != tc.want {
			t.Errorf("%+v: %q", tc, got)
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
