package plaintext_test

import (
	"slices"
	"testing"

	"github.com/ollim/ollim/internal/platform/plaintext"
)

func TestSimilar(t *testing.T) {
	keys := []string{"id", "cron", "timezone", "description", "background", "update-main-session", "allow-ping", "gate"}
	for name, tc := range map[string]struct {
		word  string
		known []string
		want  []string
	}{
		"itself":            {"cron", keys, []string{"cron"}},
		"swapped":           {"corn", keys, []string{"cron"}},
		"one missing":       {"timezon", keys, []string{"timezone"}},
		"two letters":       {"ic", keys, []string{"id"}},
		"all letters":       {"xy", keys, nil},
		"capitals":          {"CRON", keys, []string{"cron"}},
		"short capitals":    {"ID", keys, []string{"id"}},
		"a third":           {"update-session", keys, []string{"update-main-session"}},
		"more than a third": {"update", keys, nil},
		"far":               {"colour", keys, nil},
		"nothing":           {"", keys, nil},
		"nothing known":     {"cron", nil, nil},
		"nothing among":     {"a", []string{"", "ab"}, []string{"ab"}},
		"best first":        {"daily-markt", []string{"daily-mark", "daily-marketing", "daily-markt2", "daily-market"}, []string{"daily-mark", "daily-markt2", "daily-market"}},
		"at most three":     {"aaaa", []string{"aaab", "aaac", "aaad", "aaae"}, []string{"aaab", "aaac", "aaad"}},
		"order kept":        {"aaaa", []string{"zaaa", "aaab"}, []string{"zaaa", "aaab"}},
		"letters not bytes": {"été", []string{"ôùî"}, nil},
		"other scripts":     {"日本話", []string{"日本語", "韓国語"}, []string{"日本語"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := plaintext.Similar(tc.word, tc.known); !slices.Equal(got, tc.want) {
				t.Errorf("To(%q) = %q, want %q", tc.word, got, tc.want)
			}
		})
	}
}
