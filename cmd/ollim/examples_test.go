package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/testkit"
)

// TestExamples runs every example of the README and of the hand-written manuals, in their order, in a data directory with the jobs
// that they name. Each command must succeed.
func TestExamples(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../man/*.[57]")
	if err != nil || len(pages) == 0 {
		t.Fatal("no manual pages found", err)
	}
	for _, page := range append(pages, "../../README.md") {
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			c := &exampleCommand{command: newCommand(t), address: freeAddress(t, "127.0.0.4")}
			c.prepareExamples()
			found := examples(c.readPage(page))
			if len(found) == 0 {
				t.Fatal("no examples found")
			}
			left := 0
			for _, example := range found {
				left += c.example(example)
			}
			if left > 0 && !t.Failed() {
				testkit.Missing(t, "%d commands need jq, curl or openssl: apt-get install jq curl openssl", left)
			}
		})
	}
}

// exampleCommand runs examples.
type exampleCommand struct {
	*command

	address string // of the server of webhooks
}

func (c *command) readPage(path string) string {
	c.t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(text)
}

// examples finds the lines `  $ …` of a manual, and all lines of a README's sh blocks. Those of one block are one example, a script. A line
// that ends in a backslash or a bar goes on in the next.
func examples(page string) (found [][]string) {
	roff := strings.NewReplacer(`\-`, "-", `\(aq`, "'", `\(dq`, `"`, `\e`, `\`, `\(ti`, "~", `\(ha`, "^")
	shell, open, block := false, false, []string(nil)
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "```") || line == ".fi" {
			shell = line == "```sh"
			found, block = append(found, block), nil
			continue
		}
		example, begins := strings.CutPrefix(roff.Replace(line), "  $ ")
		if shell {
			example, _, _ = strings.Cut(line, "  #")
			begins = !strings.HasPrefix(line, "```")
		}
		switch {
		case open:
			block[len(block)-1] += "\n" + example
		case begins:
			block = append(block, strings.TrimSpace(example))
		}
		open = (open || begins) && (strings.HasSuffix(example, `\`) || strings.HasSuffix(example, "|"))
	}
	return slices.DeleteFunc(found, func(block []string) bool { return len(block) == 0 })
}

// prepareExamples makes the jobs, the skill and the payloads that the examples name, a mail command, and a repository with a history.
func (c *exampleCommand) prepareExamples() {
	c.t.Cleanup(func() { // of examples that do not wait for a run, such as answer
		eventually(c.t, "all runs have ended", func() bool { return len(process.Carrying("OLLIM_DATA_DIR="+c.data)) == 0 })
	})
	if err := os.MkdirAll(filepath.Join(c.data, "skills", "standup"), 0o700); err != nil {
		c.t.Fatal(err)
	}
	c.write("skills/standup/SKILL.md", "---\ndescription: The stand-up note\n---\nWrite three lines about $ARGUMENTS.\n")
	c.write("hello.yaml", "turns:\n  - - text: '\"fix\"'\n") // which fits the schema of an example
	c.write("market.yaml", c.read("hello.yaml"))
	c.write("routines/daily-market.md", "---\nid: daily-market\ncron: \"0 9 * * 1-5\"\nbackground: true\nsession: persistent\n---\nGo.\n")
	for _, name := range []string{"review", "digest", "tidy"} {
		c.write("routines/"+name+".md", "---\nid: "+name+"\ncron: \"0 9 * * *\"\n---\nGo.\n")
	}
	c.write("ask.yaml", "turns:\n  - - tool: ask_owner\n      input: {question: \"Delete the old copies?\", choices: [keep, delete]}\n    - text: asked\n")
	c.write("routines/backup.md", "---\nid: backup\ncron: \"0 2 * * *\"\nbackground: true\nengine: script:ask.yaml\n---\nGo.\n")
	c.ok("config", "set", "engine", "script:hello.yaml")
	c.write("webhooks/bill.md", "---\nid: bill\nfields: {properties: {amount: true}}\nsecret: bill\nsignature: standard\n---\nGo.\n")
	if err := os.MkdirAll(filepath.Join(c.data, ".config", "ollim"), 0o700); err != nil {
		c.t.Fatal(err)
	}
	c.ok("config", "set", "webhook.listen", c.address)
	c.write(".config/ollim/secrets.env", "webhook.bill=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n")
	c.write("payload.json", `{"amount": 12.50}`)
	c.write("workflow_run.json", `{"workflow_run": {"head_branch": "main"}}`)
	bin := filepath.Join(c.data, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		c.t.Fatal(err)
	}
	c.write("bin/mail", "#!/bin/sh\ncat >>'"+c.data+"/mailed'\n") // its environment has no OLLIM_DATA_DIR
	c.write("bin/npx", "#!/bin/sh\nexit 1\n")                     // ollim check looks for the commands of mcp-servers
	c.write("bin/crontab", "#!/bin/sh\necho '0 9 * * * claude -p \"What is new?\"'\n")
	for _, name := range []string{"mail", "npx", "crontab"} {
		if err := os.Chmod(filepath.Join(bin, name), 0o700); err != nil {
			c.t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"bin/ollim": c.path, ".ollim-bot": "."} {
		if err := os.Symlink(to, filepath.Join(c.data, link)); err != nil {
			c.t.Fatal(err)
		}
	}
	c.ok("fire", "backup", "daily-market")
	c.ok("chat", "hello")
	c.shell("git init -q . && git -c user.name=a -c user.email=a@example.org commit -q --allow-empty -m first")
}

func (c *command) shell(line string) (string, error) {
	cmd := exec.Command("sh", "-ec", line)
	cmd.Dir = c.data
	cmd.Env = []string{"OLLIM_DATA_DIR=" + c.data, "HOME=" + c.data, "TMPDIR=" + c.data, "PATH=" + filepath.Join(c.data, "bin") + ":/usr/local/bin:/usr/bin:/bin"}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// example runs the commands of one example, and returns how many it could not: some need other programs. The server of webhooks is
// started, and stopped when the test ends; an event that is sent to it must be accepted.
func (c *exampleCommand) example(commands []string) (left int) {
	c.t.Helper()
	var script []string
	run := func() {
		text := strings.Join(script, "\n")
		out, err := c.shell(text)
		if sends := strings.Contains(text, "/hook/"); err != nil || sends && !strings.Contains(out, `"accepted"`) {
			c.t.Errorf("%s: %v\n%s", text, err, out)
		}
		script = nil
	}
	for _, line := range commands {
		switch {
		case strings.HasPrefix(strings.TrimPrefix(line, "CGO_ENABLED=0 "), "go "): // the README's way in; the continuous integration runs both
		case line == "ollim webhook serve":
			run()
			c.serveExamples()
		case c.lacks(line):
			left++
		default:
			script = append(script, strings.ReplaceAll(line, "127.0.0.1:8420", c.address))
		}
	}
	run()
	return left
}

// serveExamples starts the server of webhooks, and stops it when the test ends.
func (c *exampleCommand) serveExamples() {
	c.t.Helper()
	server := c.cmd("webhook", "serve")
	if err := server.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGTERM)
		if err := server.Wait(); err != nil {
			c.t.Error("ollim webhook serve: ", err)
		}
	})
	eventually(c.t, "the server listens", func() bool {
		conn, err := net.Dial("tcp", c.address)
		return err == nil && conn.Close() == nil
	})
}

// freeAddress returns an address of a host on which nobody listens. A test that listens there again and again has a loopback address of its
// own, because meanwhile another process may get the port.
func freeAddress(t testing.TB, host string) string {
	t.Helper()
	address, err := testkit.FreeAddress(host)
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// lacks reports whether a command needs a program that is not there.
func (c *exampleCommand) lacks(line string) bool {
	c.t.Helper()
	for _, program := range []string{"jq", "curl", "openssl"} {
		if _, err := exec.LookPath(program); err == nil || !strings.Contains(line, program+" ") {
			continue
		}
		if testkit.CI() {
			c.t.Errorf("no %[1]s: apt-get install %[1]s", program)
		}
		return true
	}
	return false
}
