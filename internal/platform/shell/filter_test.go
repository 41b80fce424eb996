package shell

import (
	"slices"
	"strings"
	"testing"
)

func TestFilter(t *testing.T) {
	for text, want := range map[string]string{
		`exit 1`: "",
		`n=$(printf '%s\n' "$1" | awk '$5+0 > 90' | wc -l); [ "$n" -gt 0 ] || exit 1`:     "",
		"big() { [ \"$1\" -gt 5 ]; }\nif big \"$2\"; then exit 0; fi 2>/dev/null\nexit 1": "",
		"grep -q x <<END && exit 0\n$1\nEND\nexit 1":                                      "",
		`case "$1" in *down*) exit 0 ;; esac; exit 1`:                                     "",
		``:                                "no command",
		`if`:                              "cannot read it",
		`curl -s http://x`:                "it starts curl",
		`"$1"`:                            "not a plain word",
		`eval exit 1`:                     "it starts eval",
		`. ./x`:                           "it starts .",
		`echo x >data/y`:                  "by a redirection",
		`cat </etc/passwd`:                "by a redirection",
		`sleep 100 &`:                     "background",
		`[ -e data/x ] && exit 1`:         "looks at a file",
		`test -f data/x`:                  "looks at a file",
		`[ -n "$1" ]`:                     "",
		`awk 'BEGIN { system("id") }'`:    "system",
		`[ "$(date +%u)" = 6 ] && exit 1`: "it starts date",
		`printf x | md5sum`:               "it starts md5sum",
		`PATH=. true`:                     "sets PATH",
		strings.Repeat("# long\n", 10_000) + "exit 1": "longer than",
	} {
		_, err := Filter(text)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.80q: %v, want %q", text, err, want)
		}
	}
	literals, err := Filter(`case "$1" in "a b"*|c) exit 1 ;; esac; grep -q 'd e' # f`)
	if err != nil || !slices.Contains(literals, "a b") || !slices.Contains(literals, "d e") || slices.Contains(literals, "f") {
		t.Errorf("%q, %v", literals, err)
	}
}

func FuzzFilter(f *testing.F) {
	f.Add(`n=$(printf '%s\n' "$1" | awk '$5+0 > 90'); [ -n "$n" ] || exit 1`)
	f.Add("if x; then (y); fi <<E\nE\n")
	f.Fuzz(func(_ *testing.T, text string) { _, _ = Filter(text) }) // it must not panic
}
