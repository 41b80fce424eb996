package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/app"
)

// rewritten is a command line as cobra gets it.
func rewritten(line string) string {
	return strings.Join(asAsk(newRoot(&deps{App: &app.App{}}), strings.Fields(line)), " ")
}

func TestQuestion(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"-p":                                   "ask",
		"-p hello":                             "ask hello",
		"--print hello":                        "ask hello",
		"-p status":                            "ask status",
		"-p --output-format json hello":        "ask --output-format json hello",
		"--output-format json -p hello":        "ask --output-format json hello",
		"--output-format=json -p hello":        "ask --output-format=json hello",
		"-r abc -p hi":                         "ask --resume=abc hi",
		"-rabc -p hi":                          "ask --resume=abc hi",
		"-r=abc -p hi":                         "ask --resume=abc hi",
		"-r -p hi":                             "ask --resume=? hi",
		"-p hi -r":                             "ask hi --resume=?",
		"-p hi -r abc":                         "ask hi --resume=abc",
		"--resume abc hi":                      "ask --resume=abc hi",
		"--resume=abc hi":                      "ask --resume=abc hi",
		"-c":                                   "ask -c",
		"-c -p hi":                             "ask -c hi",
		"-cp hi":                               "ask -c hi",
		"-pc hi":                               "ask -c hi",
		"-npc hi":                              "ask -nc hi",
		"-qp hi":                               "ask -q hi",
		"--session f -p hi":                    "ask --session f hi",
		"--session f hi":                       "ask --session f hi",
		"--no-session hi":                      "ask --no-session hi",
		"--no-session":                         "ask --no-session",
		"-q --no-session=true status":          "ask -q --no-session=true status",
		"status --no-session":                  "status --no-session",
		"--data-dir -p -p hi":                  "ask --data-dir -p hi",
		"--data-dir d -c status":               "ask --data-dir d -c status",
		"-p -- -c hi":                          "ask -- -c hi",
		"-p hi -- -c":                          "ask hi -- -c",
		"-p --model -c hi":                     "ask --model -c hi",
		"-p -":                                 "ask -",
		"ask -p hi":                            "ask hi",
		"ask hi -c":                            "ask hi -c",
		"-q ask -r abc hi":                     "ask -q --resume=abc hi",
		"-p --nosuch hi":                       "ask --nosuch hi",
		"-px hi":                               "ask -x hi",
		"status":                               "status",
		"status -p":                            "status -p",
		"run log -p":                           "run log -p",
		"--data-dir ask status":                "--data-dir ask status",
		"-q status -c":                         "-q status -c",
		"-- -p":                                "-- -p",
		"- -p":                                 "- -p",
		"--help":                               "--help",
		"--output-format json hello":           "--output-format json hello",
		"":                                     "",
		"__complete -p":                        "__complete -p",
		"--log-format json -p hi":              "ask --log-format json hi",
		"fire --wait 5m -r x":                  "fire --wait 5m -r x",
		"-c fire":                              "ask -c fire",
		"-p --max-cost 1 --allowed-tools X hi": "ask --max-cost 1 --allowed-tools X hi",
		"-p hi --allowedTools Read Edit":       "ask hi --allowedTools Read --allowedTools=Edit",
		"-p --allowedTools A Read -n":          "ask --allowedTools A --allowedTools=Read -n",
		"-p --allowedTools A Bash(ls),Read hi": "ask --allowedTools A --allowedTools=Bash(ls),Read hi",
		"-p --allowedTools A mcp__a__b hi":     "ask --allowedTools A --allowedTools=mcp__a__b hi",
		"-p --allowed-tools A Read main.go":    "ask --allowed-tools A Read main.go",
		"-p --allowedTools=A Read":             "ask --allowedTools=A Read",
		"-p --add-dir a ../b /c d":             "ask --add-dir a --add-dir=../b --add-dir=/c d",
		"-p --model m Read ../b":               "ask --model m Read ../b",
	} {
		if got := rewritten(line); got != want {
			t.Errorf("%s\n got %s\nwant %s", line, got, want)
		}
	}
}

// Whatever the words: no panic; a command's line stays as it is, and what is asked keeps every word that is no flag of ours.
func FuzzQuestion(f *testing.F) {
	for _, seed := range []string{"-p hi", "-r abc -p hi", "status -p", "--resume= x", "-rp", "--", "-", "-é -p", "--session", "-0r"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Fields(line)
		got := asAsk(newRoot(&deps{App: &app.App{}}), slices.Clone(args))
		if len(args) > 0 && !strings.HasPrefix(args[0], "-") && args[0] != "ask" && !slices.Equal(got, args) {
			t.Errorf("%q became %q", args, got)
		}
		if len(got) > 2*len(args)+1 { // a cluster may become two words
			t.Errorf("%q became longer: %q", args, got)
		}
	})
}
