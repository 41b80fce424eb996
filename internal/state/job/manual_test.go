package job

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestManual compares the KEYS of ollim-routine(5), ollim-reminder(5) and ollim-webhook(5) with the table of fields.
func TestManual(t *testing.T) {
	routine := manualKeys(t, "routine")
	compareManual(t, Routine, routine)
	for _, kind := range []Kind{Reminder, Webhook} {
		keys, list := manualKeys(t, string(kind)), entry(t, kind, "\n.PP\nThe keys\n", "have the same meaning")
		for key, hint := range routine {
			if named(list, key) {
				keys[key] = hint
			}
		}
		compareManual(t, kind, keys)
	}
	plain := entry(t, Reminder, ".BR plain ", "are errors in a plain reminder")
	for _, f := range fields(Reminder) {
		if named(plain, f.key) != f.agentOnly {
			t.Errorf("%s: an error beside plain: want %v", f.key, f.agentOnly)
		}
	}
}

func compareManual(t *testing.T, kind Kind, described map[string]string) {
	t.Helper()
	var keys []string
	widens := widening()
	for _, f := range fields(kind) {
		keys = append(keys, f.key)
		hint := described[f.key]
		if got := strings.Contains(hint, "background only"); got != f.bgOnly {
			t.Errorf("%s: %s (%s): background only: %v, want %v", kind, f.key, hint, got, f.bgOnly)
		}
		if got := strings.Contains(hint, "needs approval"); got != slices.Contains(widens, f.key) {
			t.Errorf("%s: %s (%s): needs approval: %v", kind, f.key, hint, got)
		}
		if required := slices.Contains([]string{"cron", "run-at", "fields"}, f.key); strings.Contains(hint, "required") != required {
			t.Errorf("%s: %s (%s): required: want %v", kind, f.key, hint, required)
		}
	}
	if got, want := slices.Sorted(maps.Keys(described)), slices.Sorted(slices.Values(keys)); !slices.Equal(got, want) {
		t.Errorf("%s: the page has %v\nthe table %v", kind, got, want)
	}
}

// manualKeys are the entries of a page's section KEYS, each with the parentheses after it.
func manualKeys(t *testing.T, kind string) map[string]string {
	t.Helper()
	keys := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^\.TP\n\.BR (\S+) " \((.*)\)"$`).FindAllStringSubmatch(section(t, kind), -1) {
		keys[strings.ReplaceAll(m[1], `\-`, "-")] = m[2]
	}
	return keys
}

// entry is a part of the KEYS of a kind's page.
func entry(t *testing.T, kind Kind, from, to string) string {
	t.Helper()
	_, text, _ := strings.Cut(section(t, string(kind)), from)
	text, _, _ = strings.Cut(text, "\n"+to)
	return text
}

// named reports whether a text names a key in a line of its own.
func named(text, key string) bool {
	return regexp.MustCompile(`(?m)^\.BR? ` + regexp.QuoteMeta(strings.ReplaceAll(key, "-", `\-`)) + `( [,.])?$`).MatchString(text)
}

func section(t *testing.T, kind string) string {
	t.Helper()
	page, err := os.ReadFile("../../../man/ollim-" + kind + ".5")
	if err != nil {
		t.Fatal(err)
	}
	_, keys, _ := strings.Cut(string(page), "\n.SH KEYS\n")
	keys, _, _ = strings.Cut(keys, "\n.SH ")
	return keys
}

// widening is the fields of behaviour 9.5.
func widening() []string {
	return []string{"after", "allowed-tools", "dirs", "fallback", "gate", "heartbeat", "skills", "subagent", "unsealed", "verify"}
}
