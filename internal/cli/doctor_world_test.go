package cli

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/seal"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/testkit"
)

func (w *world) remove(name string) {
	w.t.Helper()
	if err := os.RemoveAll(filepath.Join(w.dir, name)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) link(name, target string) {
	w.t.Helper()
	if err := os.Symlink(target, filepath.Join(w.dir, name)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) move(from, to string) {
	w.t.Helper()
	if err := os.Rename(filepath.Join(w.dir, from), filepath.Join(w.dir, to)); err != nil {
		w.t.Fatal(err)
	}
}

// routineText is a routine's file.
func routineText(id, cron, more string) string {
	return "---\nid: " + id + "\ncron: \"" + cron + "\"\nbackground: true\n" + more + "---\nLook.\n"
}

// copyJob copies a routine's file, with the id of the routine.
func (w *world) copyJob(from, to string) {
	w.write("routines/"+to+".md", strings.Replace(w.read("routines/"+from+".md"), "---\n", "---\nid: "+from+"\n", 1))
}

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// table is the crontab, crontab replaces it.
func (w *world) table() string {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join(w.home, "bin/table"))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(text)
}

func (w *world) crontab(text string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.home, "bin/table"), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// unit writes the service of the tick among the user's units.
func (w *world) unit(text string) {
	w.t.Helper()
	path := filepath.Join(w.home, ".config/systemd/user/ollim-tick.service")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// plantShellClaude makes a claude command whose interpreter only the shell's PATH has, as node of a version manager.
func plantShellClaude(w *world) {
	w.useClaude()
	w.must("config", "set", "env", "HOME="+w.home, "FAKE_VERSION="+fakeVersion)
	w.program("bin/node-of-shell", "#!/bin/sh\nexec /bin/sh \"$@\"\n")
	w.program("bin/claude", "#!/usr/bin/env node-of-shell\n"+strings.TrimPrefix(fakeClaude, "#!/bin/sh\n"))
	w.knowClaude(fakeVersion, "")
}

// plantCluster records an installation in a cluster, and makes a kubectl command.
func plantCluster(kubectl string) func(*world) {
	return func(w *world) {
		w.write("state/clusters.json", `{"kubernetes":[{"image":"i","claim":"data","tick_only":true}]}`)
		w.program("bin/kubectl", "#!/bin/sh\n"+kubectl+"\n")
	}
}

// plantDiscord sets a token for a service that nobody provides.
func plantDiscord(w *world) {
	w.must("config", "set", "discord.api", "http://"+freeAddress(w.t))
	w.secretsAs("discord.TOKEN=x\n", 0o600)
}

func plantHook(w *world) {
	w.must("config", "set", "webhook.listen", freeAddress(w.t))
	w.must("webhook", "add", "ci", "--field", "tag", "Look.")
	text := w.read("webhooks/ci.md")
	_, rest, _ := strings.Cut(text, "id: ")
	id, _, _ := strings.Cut(rest, "\n")
	w.write("webhooks/ci.md", strings.Replace(text, "id: "+id, "id: ci", 1))
}

// plantEvent puts an event into the inbox that has waited for two hours.
func plantEvent(hook string) func(*world) {
	return func(w *world) {
		w.write("state/inbox/"+hook+"/1772445601000-20260302T080001.000Z-abcdef.json",
			`{"hook":"`+hook+`","run":"20260302T080001.000Z-abcdef","number":1772445601000,"arrived":"2026-03-02T08:00:01Z"}`)
	}
}

// freeAddress is one at which nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := testkit.FreeAddress("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	return address
}

func plantDeadRun(w *world) {
	at := w.clock().Add(-3 * 60e9).UTC()
	id := at.Format("20060102T150405.000Z") + "-abcdef"
	w.write(runFile(id, "run.json"), `{"id":"`+id+`","kind":"routine","job":"daily","name":"daily","started":"`+at.Format("2006-01-02T15:04:05Z07:00")+`","pid":0}`)
}

// plantKilledRun is the record of a sealed run whose process was killed a while ago. It returns the run's id, which no other test uses: the
// processes of a run are found by it in the whole machine.
func plantKilledRun(w *world) string {
	w.t.Helper()
	at, p := w.clock().Add(-time.Hour).UTC().Truncate(time.Second), process.Self()
	id, err := runlog.NewID(at, rand.Reader)
	if err != nil {
		w.t.Fatal(err)
	}
	record, err := json.Marshal(map[string]any{
		"id": id, "kind": "routine", "job": "daily", "name": "daily", "started": at, "finished": at.Add(time.Hour), "outcome": "interrupted",
		"sealed": map[string]any{"abi": 7}, "pid": p.PID, "pid_start": p.Start, "boot_id": p.Boot, "pid_namespace": p.Namespace,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.write(runFile(id, "run.json"), string(record))
	return id
}

// plantKilledRunElsewhere is a killed run beside a sealed process of another installation.
func plantKilledRunElsewhere(w *world) {
	plantKilledRun(w)
	other := w.t.TempDir()
	canary := filepath.Join(other, "canary")
	if err := os.WriteFile(canary, nil, 0o600); err != nil {
		w.t.Fatal(err)
	}
	s := seal.New(func() (seal.Rules, error) {
		return seal.Rules{Read: []string{"/usr", "/lib", "/lib64", "/bin", "/etc"}, Canary: canary}, nil
	}, nil)
	cmd := exec.Command("/usr/bin/sleep", "60")
	if err := s.Start(cmd); errors.Is(err, seal.ErrUnsupported) {
		testkit.Missing(w.t, "%v: run the test on Linux 6.12 or later", err)
	} else if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = s.Close(); _ = cmd.Wait() })
}

// plantMarkedProcess is a process that a killed run has left.
func plantMarkedProcess(w *world) {
	cmd := exec.Command("sleep", "60")
	cmd.Env = append(cmd.Environ(), "OLLIM_RUN="+plantKilledRun(w))
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
}

// plantHungLock holds the lock of a data file.
func plantHungLock(w *world) {
	held, err := lock.TryGuard(filepath.Join(w.dir, "state/locks/notices.lock"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(held.Release)
}

// plantLeftover lets a process inherit the lock of a job whose run is over.
func plantLeftover(w *world) {
	path := filepath.Join(w.dir, "state/locks/job-daily.lock")
	cmd := exec.Command("sh", "-c", `exec 9<>"$0" && flock -n 9 && echo held && exec sleep 6000`, path)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "held\n" {
		w.t.Fatal(line, err)
	}
}
