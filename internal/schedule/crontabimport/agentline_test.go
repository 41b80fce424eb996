package crontabimport

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ollim/ollim/internal/platform/cron"
	"github.com/ollim/ollim/internal/state/job"
)

// only is the one line that is found.
func only(t *testing.T, crontab string) Found {
	t.Helper()
	found := Find(crontab)
	if len(found) != 1 {
		t.Fatalf("%s\nfound %d", crontab, len(found))
	}
	return found[0]
}

// file is a job as its file, without what every one of these has.
func file(t *testing.T, j job.Job) string {
	t.Helper()
	j.ID = "x"
	text, err := job.Format(j)
	if err != nil {
		t.Fatal(err)
	}
	s := strings.TrimPrefix(string(text), "---\nid: x\n")
	for _, usual := range []string{"cron: 0 9 * * *\n", "description: Do it\n", "background: true\n", "isolated: true\n"} {
		s = strings.Replace(s, usual, "", 1)
	}
	return strings.TrimPrefix(strings.TrimSuffix(s, "\n"), "---\n")
}

func TestCommands(t *testing.T) {
	for command, want := range map[string]string{
		`claude -p "Do it"`:                                            `Do it`,
		`claude -p Do it`:                                              `Do it`,
		`claude --print 'Do it' --verbose`:                             `Do it`,
		`claude "Do it" -p`:                                            `Do it`,
		`claude -p -- "Do it"`:                                         `Do it`,
		`/usr/local/bin/claude -p "Do it"`:                             `Do it`,
		`$HOME/.local/bin/claude -p "Do it"`:                           `Do it`,
		`npx -y @anthropic-ai/claude-code@2 -p "Do it"`:                `Do it`,
		`nice -n 5 ionice -c3 nohup claude -p "Do it"`:                 `Do it`,
		`env -u X PATH=/bin claude -p "Do it"`:                         `Do it`,
		`PATH=/bin claude -p "Do it"`:                                  `Do it`,
		`flock -n /tmp/lock claude -p "Do it"`:                         `Do it`,
		`bash -lc 'claude -p "Do it"'`:                                 `Do it`,
		`timeout 10m claude -p "Do it"`:                                "timeout: 10m\n---\nDo it",
		`timeout -k 5 --signal=INT 90 claude -p "Do it"`:               "timeout: 1m30s\n---\nDo it",
		`timeout 0 claude -p "Do it"`:                                  `Do it`,
		`echo "Do it" | claude -p`:                                     `Do it`,
		`printf 'Do it\n' | claude -p`:                                 `Do it`,
		`printf '\%s\n' "Do it" | claude -p`:                           `Do it`,
		`claude -p <<< "Do it"`:                                        `Do it`,
		`claude -p%Do it`:                                              `Do it`,
		`claude -p < /dev/null "Do it" > /dev/null 2>&1`:               `Do it`,
		`claude -p%Do it%100\% of it%\d`:                               "Do it\n100% of it\n\\d",
		`claude -p "Do it"%and that`:                                   "Do it\n\nand that",
		`echo that | claude -p "Do it"`:                                "Do it\n\nthat",
		`claude -p "Do it" --append-system-prompt "Be brief"`:          "Be brief\n\nDo it",
		`claude -p --model=opus "Do it"`:                               "model: opus\n---\nDo it",
		`claude -p "Do it" --model opus --max-budget-usd 0.5`:          "model: opus\nmax-cost: 0.5\n---\nDo it",
		`claude -p "Do it" --allowedTools "Read,Bash(git log:*)"`:      "allowed-tools:\n  - Read\n  - Bash(git log *)\n---\nDo it",
		`claude -p "Do it" --allowed-tools Read WebFetch --verbose`:    "allowed-tools:\n  - Read\n  - WebFetch\n---\nDo it",
		`claude -p "Do it" --add-dir /srv/x ~/y`:                       "dirs:\n  - /srv/x\n  - ~/y\n---\nDo it",
		`claude -p "Do it" --add-dir /srv/x --allowedTools Write,Edit`: "dirs:\n  - rw:/srv/x\n---\nDo it",
		`cd && claude -p "Do it"`:                                      `Do it`,
		`cd $HOME; claude -p "Do it"`:                                  `Do it`,
	} {
		f := only(t, "0 9 * * * "+command)
		if got := file(t, f.Job); f.Err != nil || got != want || len(f.Lost) > 0 {
			t.Errorf("%s\n got %q, lost %q, %v\nwant %q", command, got, f.Lost, f.Err, want)
		}
	}
}

// Exactly the lost settings are reported.
func TestLost(t *testing.T) {
	for command, want := range map[string]string{
		`claude -p "Do it" --max-turns 5`:                     "Do it!--max-turns 5 is omitted",
		`claude -p "Do it" --output-format json`:              "Do it!--output-format json is omitted",
		`claude -p "Do it" --settings '{"key":"hunter2"}'`:    "Do it!--settings is omitted",
		`claude -p "Do it" --permission-mode acceptEdits`:     "Do it!--permission-mode is omitted",
		`claude -p "Do it" --dangerously-skip-permissions`:    "Do it!--dangerously-skip-permissions is omitted",
		`claude -p "Do it" --allowedTools Bash Read`:          "allowed-tools:\n  - Read\n---\nDo it!--allowedTools: tool pattern \"Bash\": it allows every command",
		`claude -p "Do it" --resume 1b2c`:                     "session: persistent\n---\nDo it!--resume: ",
		`claude -pc "Do it"`:                                  "session: persistent\n---\nDo it!-c: ",
		`claude -p "Do it" | mail -s x me`:                    "Do it!its answer went to mail -s x me: ",
		`(cd && claude -p "Do it") >> ~/log 2>&1`:             "Do it!its answer went to ~/log: ",
		`git log | claude -p "Do it"`:                         "Do it!git log pipes into claude: ",
		`claude -p "Do it" < notes.md`:                        "Do it!claude reads notes.md: ",
		`[ -f x ] && claude -p "Do it"`:                       "Do it![ -f x ] is omitted: ",
		`if [[ -f x ]]; then claude -p "Do it"; fi`:           "Do it![[ -f x ]] is omitted: ",
		`claude -p "Do it" && touch done`:                     "Do it!touch done is omitted: ",
		`KEY=hunter2 claude -p "Do it"`:                       "Do it!it sets KEY: ",
		`env B=hunter2 A=1 claude -p "Do it"`:                 "Do it!it sets A, B: ",
		`cd ~/src && claude -p "Do it"`:                       "dirs:\n  - ~/src\n---\nDo it!it worked in ~/src: ",
		`cd src; claude -p "Do it" --allowedTools Edit,Write`: "dirs:\n  - rw:~/src\n---\nDo it!it worked in ~/src: ",
		`cd ${HOME}/a && claude -p "Do it"`:                   "dirs:\n  - ~/a\n---\nDo it!it worked in ~/a: ",
		`sh -c "cd /srv && claude -p 'Do it'"`:                "dirs:\n  - /srv\n---\nDo it!it worked in /srv: ",
		`cd $X && claude -p "Do it"`:                          "Do it!the directory ~/$X cannot be used in dirs",
		`claude -p "/review"`:                                 "description: /review\n---\n/review!/review is a command of Claude Code",
		`claude -p "Do $X"`:                                   "description: Do $X\nenabled: false\n---\nDo $X!the shell inserts a part",
		`claude -p "Do it" --model $M`:                        "Do it!--model is inserted",
		`timeout x claude -p "Do it"`:                         "Do it!timeout x is not understood",
		`claude -p "Do it" --system-prompt "Be X"`:            "Be X\n\nDo it!--system-prompt becomes",
	} {
		f := only(t, "0 9 * * * "+command)
		want, lost, _ := strings.Cut(want, "!")
		if got := file(t, f.Job); f.Err != nil || got != want || len(f.Lost) != 1 || !strings.HasPrefix(f.Lost[0], lost) {
			t.Errorf("%s\n got %q, lost %q, %v\nwant %q, lost %q", command, got, f.Lost, f.Err, want, lost)
		}
		if s := strings.Join(f.Lost, ""); strings.Contains(s, "hunter2") {
			t.Errorf("%s: %s", command, s)
		}
	}
}

// A routine has no tool and no directory that its line had not.
func TestGivesNoMoreThanTheLine(t *testing.T) {
	for command, want := range map[string]string{
		`cd ~/src/foo && claude -p "Do it" --allowedTools "Bash(git log:*)"`:            "allowed-tools:\n  - Bash(git log *)\ndirs:\n  - ~/src/foo\n---\nDo it",
		`cd ~/src && claude -p "Do it" --allowedTools Edit`:                             "dirs:\n  - ~/src\n---\nDo it",
		`cd ~/src && claude -p "Do it" --allowedTools Write`:                            "dirs:\n  - ~/src\n---\nDo it",
		`cd ~/src && claude -p "Do it" --allowedTools "Write(docs/**)" "Edit(docs/**)"`: "dirs:\n  - ~/src\n---\nDo it",
		`claude -p "Do it" --allowedTools "Write(notes/**)" "Read(~/x)"`:                "Do it",
		`cd ~/src && claude -p "Do it" --permission-mode acceptEdits`:                   "dirs:\n  - rw:~/src\n---\nDo it",
		`cd ~/src && claude -p "Do it" --permission-mode default`:                       "dirs:\n  - ~/src\n---\nDo it",
		`cd ~/src && claude -p "Do it" --permission-mode plan --allowedTools WebFetch`:  "Do it",
		`cd ~/src && claude -p "Do it" --dangerously-skip-permissions`:                  "dirs:\n  - rw:~/src\n---\nDo it",
		`claude -p "Do it" --allowedTools "Bash(gh pr:*)" --disallowedTools Bash`:       "Do it",
		`claude -p "Do it" --allowedTools WebFetch --tools Read`:                        "Do it",
		`cd ~/src && claude -p "Do it" --settings deny.json`:                            "Do it",
	} {
		f := only(t, "0 9 * * * "+command)
		if got := file(t, f.Job); f.Err != nil || got != want {
			t.Errorf("%s\n got %q, lost %q, %v\nwant %q", command, got, f.Lost, f.Err, want)
		}
	}
}

func TestNoRoutine(t *testing.T) {
	for line, want := range map[string]error{
		`0 9 * * * claude -p a && claude -p b`:          errSeveral,
		`0 9 * * * claude -p`:                           errNoPrompt,
		`0 9 * * * claude -p < prompt.md`:               errNoPrompt,
		`0 9 * * * cat prompt.md | claude -p`:           errNoPrompt,
		`0 9 * * * claude -p --allowedTools "Do it"`:    errNoPrompt, // claude takes it for a tool, too
		`0 9 * * * xargs claude -p < x`:                 errUnclear,
		`0 9 * * * sudo -u me claude -p "Do it"`:        errUnclear,
		`0 9 * * * for x in a b; do claude -p $x; done`: errUnclear,
	} {
		if f := only(t, line); !errors.Is(f.Err, want) || f.Lost != nil {
			t.Errorf("%s: %v, %q", line, f.Err, f.Lost)
		}
	}
	for _, line := range []string{`0 9 * * fri-mon claude -p x`, `@reboot claude -p x`, `0 9 * * fri-mon claude -p a; claude -p b`} {
		var wrong *cron.SyntaxError
		if f := only(t, line); !errors.As(f.Err, &wrong) {
			t.Errorf("%s: %v", line, f.Err)
		}
	}
	if f := only(t, `0 9 * * * claude -p "Do it`); f.Err == nil {
		t.Error("an open quote")
	}
	if f := only(t, `0 9 * * * claude -p "100% sure"`); f.Err == nil || !strings.Contains(f.Err.Error(), `at the first % (write \%)`) {
		t.Errorf("cut in a quote: %v", f.Err)
	}
	for _, line := range []string{
		``, `# 0 9 * * * claude -p x`, `0 9 * * * claude update`, `0 9 * * * ollim fire --scheduled -- claude`, `0 9 * * * echo claude`,
		`0 9 * * *`, `@daily`, `0 9 * claude -p x`, `X=claude -p x`, `0 9 * * * /opt/my-claude -p x`, `0 9 * * * true # claude`, `0 9 * * * cp -p claude x`,
		`0 9 * * * echo "`,
	} {
		if found := Find(line); len(found) != 0 {
			t.Errorf("%s: %+v", line, found)
		}
	}
}

// Variables hold from their line on; the schedule keeps its words.
func TestCrontab(t *testing.T) {
	found := Find("# mine\n" +
		"0 9 * * Mon-Fri claude -p one\r\n" +
		"MAILTO = \"me@example.org\"\n" +
		"TOKEN=secret\n\n" +
		"  */5\t*  * * *\tclaude -p two >/dev/null\n" +
		"CRON_TZ=Europe/Paris\nMAILTO=\n" +
		"# BEGIN ollim\n@daily /usr/bin/ollim --data-dir /d fire --scheduled -- claude\n# END ollim\n" +
		"@daily claude -p three\n" +
		"CRON_TZ=Mars/X\n" +
		"@hourly claude -p four")
	var got strings.Builder
	for _, f := range found {
		fmt.Fprintf(&got, "%d %q %q %s %q %v\n", f.Line, f.Job.Cron, f.Job.Timezone, f.Job.Body, f.Lost, f.Err)
	}
	const want = `2 "0 9 * * Mon-Fri" "" one [] <nil>
6 "*/5 * * * *" "" two ["it sets TOKEN: use env in config.yaml, or ollim secret set"] <nil>
12 "@daily" "Europe/Paris" three ["it sets TOKEN: use env in config.yaml, or ollim secret set"] <nil>
14 "@hourly" "" four ["CRON_TZ=Mars/X is not a zone" "it sets TOKEN: use env in config.yaml, or ollim secret set"] <nil>
`
	if got.String() != want {
		t.Errorf("got\n%swant\n%s", &got, want)
	}
	f := only(t, "MAILTO=me\n0 9 * * * claude -p x")
	if len(f.Lost) != 1 || !strings.HasPrefix(f.Lost[0], "cron mailed its answer to me: ") {
		t.Errorf("%q", f.Lost)
	}
}

func TestDescription(t *testing.T) {
	for prompt, want := range map[string]string{
		"Do it.":             "Do it",
		"# News%%Tell them.": "News",
		"Water the plants, all of them: those in the kitchen and those in the hall": "Water the plants, all of them: those in the kitchen and",
		strings.Repeat("x", 99): strings.Repeat("x", 60),
	} {
		if f := only(t, "0 9 * * * claude -p%"+prompt); f.Err != nil || f.Job.Description != want {
			t.Errorf("%s: %q, %v", prompt, f.Job.Description, f.Err)
		}
	}
}

// Whatever a prompt is, quoted as a crontab needs it, it arrives.
func TestPromptArrives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		prompt := "x" + rapid.StringMatching(`[a-zäß日 "$'*#%&|;<>(){}!~@/.,=-]{0,40}`).Draw(t, "prompt")
		quoted := "'" + strings.ReplaceAll(strings.ReplaceAll(prompt, "'", `'\''`), "%", `\%`) + "'"
		found := Find("0 9 * * * claude -p --model m -- " + quoted)
		if len(found) != 1 || found[0].Err != nil || len(found[0].Lost) > 0 || strings.TrimSpace(found[0].Job.Body) != strings.TrimSpace(prompt) {
			t.Fatalf("%q: %+v", prompt, found)
		}
	})
}

// What is found can be written and read again, and each line once.
func FuzzFind(f *testing.F) {
	for _, crontab := range []string{
		"0 9 * * * claude -p x", "X=1\n@daily echo x | claude -p%y\\%z%", "* * * * * bash -c 'cd /x && claude -pc \"$(y)\"'", "@daily timeout 5 claude -p x > y",
		"0 9 * * * claude -p --add-dir a ~/b --allowedTools Read,Edit( x", "@daily env - A= claude -p \"\xff\" --model=\x01",
		"@daily sh -c 'sh -c \"sh -c claude\"' claude -p", "@daily claude -p '---\n' --max-budget-usd 1e99", "CRON_TZ=UTC\n@daily timeout 1e9h claude -p 日",
	} {
		f.Add(crontab)
	}
	f.Fuzz(func(t *testing.T, crontab string) {
		last := 0
		for _, found := range Find(crontab) {
			if found.Line <= last || found.Line > strings.Count(crontab, "\n")+1 {
				t.Fatalf("line %d after %d", found.Line, last)
			}
			if last = found.Line; found.Err != nil {
				continue
			}
			j := found.Job
			j.ID = "x"
			text, err := job.Format(j)
			if err != nil {
				t.Fatal(err)
			}
			again, err := job.Parse(job.Routine, "x", text)
			if err != nil || again.Body != j.Body || again.Cron != j.Cron || !again.Background || again.Timeout < time.Second {
				t.Fatalf("%s\n%v", text, err)
			}
		}
	})
}
