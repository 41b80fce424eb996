package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestExamples runs every example command line of the README and of the hand-written manuals, in their order, in a data
// directory with the jobs that they name. Each must succeed.
func TestExamples(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../man/*.[57]")
	if err != nil || len(pages) == 0 {
		t.Fatal("no manual pages found", err)
	}
	for _, page := range append(pages, "../../README.md") {
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			c := newCommand(t)
			c.prepareExamples()
			found := examples(c.readPage(page))
			if len(found) == 0 {
				t.Fatal("no examples found")
			}
			left := 0
			for _, example := range found {
				if !c.example(example) {
					left++
				}
			}
			if left > 0 && !t.Failed() {
				t.Skipf("no jq, which %d of %d examples need: apt-get install jq", left, len(found))
			}
		})
	}
}

func (c *command) readPage(path string) string {
	c.t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(text)
}

// examples finds the lines `  $ …` of a manual, and those of a README's sh blocks that call ollim. A line that ends in a backslash
// is joined with the next.
func examples(page string) (found []string) {
	roff := strings.NewReplacer(`\-`, "-", `\(aq`, "'", `\(dq`, `"`, `\e`, `\`, `\(ti`, "~", `\(ha`, "^")
	shell := false
	for line := range strings.Lines(strings.ReplaceAll(page, "\\\n", " ")) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "```") {
			shell = line == "```sh"
			continue
		}
		example, isExample := strings.CutPrefix(roff.Replace(line), "  $ ")
		if shell {
			example, _, _ = strings.Cut(line, "  #")
			isExample = strings.Contains(example, "ollim ")
		}
		if example = strings.TrimSpace(example); isExample && example != "" {
			found = append(found, example)
		}
	}
	return found
}

// prepareExamples makes the jobs and the skill that the examples name, a mail command, and a repository with a history.
func (c *command) prepareExamples() {
	if err := os.MkdirAll(filepath.Join(c.data, "skills", "standup"), 0o700); err != nil {
		c.t.Fatal(err)
	}
	c.write("skills/standup/SKILL.md", "---\ndescription: The stand-up note\n---\nWrite three lines about $ARGUMENTS.\n")
	c.write("hello.yaml", "turns:\n  - - text: hello\n")
	c.write("market.yaml", "turns:\n  - - text: hello\n")
	for _, name := range []string{"review", "digest", "tidy"} {
		c.write("routines/"+name+".md", "---\nid: "+name+"\ncron: \"0 9 * * *\"\n---\nGo.\n")
	}
	c.write("ask.yaml", "turns:\n  - - tool: ask_owner\n      input: {question: \"Delete the old copies?\", choices: [keep, delete]}\n    - text: asked\n")
	c.write("routines/backup.md", "---\nid: backup\ncron: \"0 2 * * *\"\nbackground: true\nengine: script:ask.yaml\n---\nGo.\n")
	c.ok("config", "set", "engine", "script:hello.yaml")
	bin := filepath.Join(c.data, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		c.t.Fatal(err)
	}
	c.write("bin/mail", "#!/bin/sh\ncat >>\"$OLLIM_DATA_DIR/mailed\"\n")
	if err := os.Chmod(filepath.Join(bin, "mail"), 0o700); err != nil {
		c.t.Fatal(err)
	}
	if err := os.Symlink(c.path, filepath.Join(bin, "ollim")); err != nil {
		c.t.Fatal(err)
	}
	c.ok("fire", "backup")
	c.shell("git init -q . && git -c user.name=a -c user.email=a@example.org commit -q --allow-empty -m first")
}

func (c *command) shell(line string) (string, error) {
	cmd := exec.Command("sh", "-c", line)
	cmd.Dir = c.data
	cmd.Env = []string{"OLLIM_DATA_DIR=" + c.data, "HOME=" + c.data, "PATH=" + filepath.Join(c.data, "bin") + ":/usr/local/bin:/usr/bin:/bin"}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// example runs one example, and reports whether it could: some need jq.
func (c *command) example(line string) bool {
	c.t.Helper()
	if strings.HasPrefix(strings.TrimPrefix(line, "CGO_ENABLED=0 "), "go ") {
		return true // the README's way in; the continuous integration runs both
	}
	if _, err := exec.LookPath("jq"); err != nil && strings.Contains(line, "jq ") {
		if os.Getenv("CI") == "true" {
			c.t.Error("no jq: apt-get install jq")
		}
		return false
	}
	if out, err := c.shell(line); err != nil {
		c.t.Errorf("%s: %v\n%s", line, err, out)
	}
	return true
}
