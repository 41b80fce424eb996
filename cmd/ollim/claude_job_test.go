package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// routine adds a background routine as its owner, who thereby approves what it asks for.
func (h *fixture) routine(name string, flags ...string) {
	h.t.Helper()
	h.ok(append(append([]string{"routine", "add", name, "--id", name, "--cron", "0 9 * * *", "--background"}, flags...), "Look around.")...)
}

const critic = "---\nname: critic\ndescription: Finds faults\ntools: Read, Grep\n---\nCRITIC: you find faults.\n"

// delegate is a use of the tool that starts a subagent.
func delegate(to string, want fate) attempt {
	return attempt{tool: "Agent", input: map[string]any{"description": "look", "prompt": "look around", "subagent_type": to}, want: want}
}

// TestJobOnClaude: what the owner gives one job, its patterns, directories, skills and subagent, works as it stands and opens nothing
// else. A start of the command is dear: all of it is shown by one run.
func TestJobOnClaude(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	h := newFixture(t)
	parts := []part{h.toolsOfAJob(t), h.dirsOfAJob(t), h.skillsOfAJob(), h.subagentOfAJob()}
	flags := []string{"--model", "claude-opus-4-8"} // whose price all tested versions know
	var attempts []attempt
	for _, p := range parts {
		flags, attempts = append(flags, p.flags...), append(attempts, p.attempts...)
	}
	h.routine("all", flags...)
	h.try(attempts, "fire", "all")
	for _, p := range parts {
		p.check(t)
	}
	h.requestsAreKept(h.api, h.price("run", "show", "all").Cost)
}

// part is something that a job is given: the flags, what its agent tries, and what must hold afterwards.
type part struct {
	flags    []string
	attempts []attempt
	check    func(*testing.T)
}

// reported checks that the agent was told all this.
func (h *fixture) reported(t *testing.T, lines ...string) {
	t.Helper()
	first := h.api.Requests()[0]
	reported := first.System + "\n" + first.LastUserText()
	for _, line := range lines {
		if !strings.Contains(reported, line) {
			t.Errorf("%q is not in %q", line, reported)
		}
	}
}

// subagentOfAJob: the job's subagent is offered, is the only one that may be called, and reaches what its file and the run's policy
// both allow. What is tried after the call is tried by the subagent.
func (h *fixture) subagentOfAJob() part {
	h.put("agents/critic.md", critic)
	call := delegate("critic", allowed)
	call.says = "That was all."
	other := delegate("general-purpose", denied)
	other.says = `"general-purpose" matches none of the allowed patterns: Task(critic)`
	public := read("routines/open.md", allowed)
	public.says = "PUBLIC"
	return part{[]string{"--subagent", "critic"}, []attempt{
		other, call,
		public, read("config.yaml", denied), read("state/notes.md", denied), search("Grep", "SECRET-", "state", denied),
		write("tasks/new.md", unknown), bash("ollim help", unknown), // in the run's list, not in its own
	}, func(t *testing.T) {
		var by []anthropicapi.Request
		for _, q := range h.api.Requests() {
			if strings.Contains(q.System, "CRITIC: you find faults.") {
				by = append(by, q)
			}
		}
		if len(by) != 7 {
			t.Fatalf("%d requests by the subagent", len(by))
		}
		if got := offered(by[0]); got != "Read Grep" {
			t.Errorf("the subagent is shown %s", got)
		}
		h.reported(t, `SUBAGENT: Delegate the task to the subagent "critic"`)
		if !h.api.Requests()[0].Has("critic: Finds faults") {
			t.Error("the subagent is not offered")
		}
	}}
}

// TestJobsAlone: isolated jobs have their subagent and their skills, too.
func TestJobsAlone(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	for name, of := range map[string]func(*fixture) part{"subagent": (*fixture).subagentOfAJob, "skills": (*fixture).skillsOfAJob} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newFixture(t)
			p := of(h)
			h.routine("alone", append(p.flags, "--isolated")...)
			h.try(p.attempts, "fire", "alone")
			p.check(t)
		})
	}
}

// TestBadSubagent: a subagent's file that is not there or not complete stops the job before anything is asked.
func TestBadSubagent(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	c, api := withClaude(t)
	for name, tc := range map[string]struct{ file, said string }{
		"no-description": {"---\nname: no-description\n---\nYou find faults.\n", "agents/no-description.md: description: is missing"},
		"no-prompt":      {"---\ndescription: Finds faults\n---\n", "the system prompt, is empty"},
		"not-there":      {"", "there is no agents/not-there.md"},
	} {
		if tc.file != "" {
			c.put("agents/"+name+".md", tc.file)
		}
		c.ok("routine", "add", name, "--id", name, "--cron", "@daily", "--background", "--subagent", name, "Review.")
		var errOut bytes.Buffer
		cmd := c.cmd("fire", name)
		cmd.Stderr = &errOut
		if code := status(cmd.Run()); code != 65 && code != 77 || !strings.Contains(errOut.String(), tc.said) {
			t.Errorf("exit %d: %s", code, errOut.String())
		}
		if got := c.ok("updates", "pop"); strings.Count(got, "\n") != 1 || !strings.Contains(got, tc.said) {
			t.Errorf("the owner is told %q", got)
		}
	}
	if n := len(api.Requests()); n != 0 {
		t.Errorf("%d requests", n)
	}
}

// dirsOfAJob: directories of a job lie beside the data directory, for reading or for writing too, and open nothing else.
func (h *fixture) dirsOfAJob(t *testing.T) part {
	t.Helper()
	reads, writes := t.TempDir(), t.TempDir()
	for _, dir := range []string{reads, writes} {
		h.place(filepath.Join(dir, "sub/main.go"), "package main // PUBLIC\n", 0o600)
		for link, to := range map[string]string{"state": filepath.Join(h.data, "state"), "config.go": filepath.Join(h.data, "config.yaml")} {
			if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
				t.Fatal(err)
			}
		}
	}
	in := func(dir, name string) string { return filepath.Join(dir, name) }
	source := read(in(reads, "sub/main.go"), allowed)
	source.says = "PUBLIC"
	found := search("Grep", "PUBLIC|SECRET-", reads, allowed)
	found.says = "main.go"
	listed := search("Glob", "**/*.go", writes, allowed)
	listed.says = "main.go"
	only := write(in(reads, "new.go"), denied)
	only.says = "read-only directory"
	return part{[]string{"--dirs", reads, "--dirs", "rw:" + writes}, []attempt{
		source, read(in(writes, "sub/main.go"), allowed), found, listed, search("Grep", "PUBLIC", in(writes, "sub"), allowed),
		write(in(writes, "new.go"), allowed), write(in(writes, "deeper/new.txt"), allowed), only,
		{tool: "Edit", input: map[string]any{"file_path": in(writes, "sub/main.go"), "old_string": "PUBLIC", "new_string": "theirs"}, want: allowed},
		{tool: "Edit", input: map[string]any{"file_path": in(reads, "sub/main.go"), "old_string": "PUBLIC", "new_string": "theirs"}, want: denied},
		read(in(reads, "state/notes.md"), denied), read(in(reads, "config.go"), denied), write(in(writes, "state/new.md"), denied), write(in(writes, "config.go"), denied),
		search("Grep", "SECRET-", in(reads, "state"), denied), search("Glob", "*", in(reads, "state"), denied),
		search("Grep", "SECRET-", in(h.data, "state"), denied), search("Glob", "*", in(h.data, "sessions"), denied), search("Grep", "SECRET-", in(h.data, "config.yaml"), denied),
		read("state/notes.md", denied), read(in(h.data, "config.yaml"), denied), read(in(h.outside, "outside.md"), denied), read("/etc/passwd", denied),
		search("Grep", "root", "/etc", denied), search("Grep", "SECRET-", filepath.Dir(h.data), denied), write("tasks/new.md", denied),
	}, func(t *testing.T) {
		if text, err := os.ReadFile(in(writes, "sub/main.go")); err != nil || string(text) != "package main // theirs\n" {
			t.Errorf("%q %v", text, err)
		}
		h.reported(t, "- "+reads+"\n- rw:"+writes)
	}}
}

// toolsOfAJob: the patterns that its owner gave it work as they stand, and not in a chain with anything else.
func (h *fixture) toolsOfAJob(t *testing.T) part {
	t.Helper()
	git(t, h.data, "init", "-q")
	git(t, h.data, "add", "routines/open.md")
	git(t, h.data, "commit", "-q", "-m", "FIRST commit")
	log := bash("git log --oneline", allowed)
	log.says = "FIRST commit"
	new := write("notes/a/b.md", allowed)
	new.says = "notes/a/b.md"
	return part{[]string{"--allowed-tools", "Bash(git log *)", "--allowed-tools", "Write(notes/**.md)"}, []attempt{
		log, bash("git log -n 1 -- routines/open.md", allowed), new, write("notes/c.md", allowed), bash("ollim help", allowed),
		bash("git log; cat config.yaml", denied), bash("git log && git commit -m x", denied), bash("git log | cat", denied), bash("git log > notes/log.md", denied),
		bash("git status", denied), bash("git -c core.pager=sh log", denied), bash("git log --output=state/notes.md", sealed), bash("PAGER=sh git log", denied),
		bash("sh -c 'git log'", denied),
		write("notes/a.sh", denied), write("notes/../tasks/new.md", denied), write("tasks/new.md", denied), write("notes/.hidden.md", denied), write("state/notes.md", denied),
		{tool: "Edit", input: map[string]any{"file_path": "routines/open.md", "old_string": "PUBLIC", "new_string": "theirs"}, want: unknown},
	}, func(t *testing.T) {
		if got := h.read("notes/a/b.md"); got != "mine" {
			t.Errorf("notes/a/b.md: %q", got)
		}
		h.reported(t, "TOOL RESTRICTIONS:", "\n- Bash(git log *)\n", "\n- Write(notes/**.md)\n", "\n- Read(./**.md)\n")
	}}
}

// skillsOfAJob: the agent is told which skills it must use, and gets them rendered as the run began.
func (h *fixture) skillsOfAJob() part {
	h.put("skills/stocks/SKILL.md", "---\nname: stocks\ndescription: Stocks.\n---\nHome: !`pwd`\n\nBuy $ARGUMENTS.\n")
	h.put("skills/other/SKILL.md", "---\nname: other\ndescription: Another.\n---\nOTHER\n")
	use := func(name, arguments string, want fate, says string) attempt {
		input := map[string]any{"name": name}
		if arguments != "" {
			input["arguments"] = arguments
		}
		return attempt{tool: "mcp__ollim__skill", input: input, want: want, says: says}
	}
	return part{[]string{"--skills", "stocks"}, []attempt{
		use("stocks", "oil", allowed, "Home: "+h.data+"\n\nBuy oil."), use("stocks", "", allowed, "Home: "+h.data),
		use("stocks", "!`cat config.yaml`", refused, "no !` in the arguments"), use("other", "", refused, `"other" matches none of the allowed patterns`),
		use("../stocks", "", refused, "is not the name of a skill"), read("skills/stocks/SKILL.md", allowed),
		{tool: "Skill", input: map[string]any{"skill": "stocks"}, want: unknown},
	}, func(t *testing.T) {
		if got := offered(h.api.Requests()[0]); !strings.Contains(got, " skill") || strings.Contains(got, "Skill") {
			t.Errorf("shown %s", got)
		}
		h.reported(t, "REQUIRED SKILLS: Before you proceed, invoke each of these with the `skill` tool, as its `name`.\n- stocks\n")
	}}
}
