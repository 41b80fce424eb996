package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/testkit"
	"github.com/ollim/ollim/internal/testkit/doorapi"
)

// program is the path of the ollim that the tests start. TestMain sets it.
var program string

// TestMain builds ollim once, as users get it: without the race detector, which would make each of some thousand starts
// several times as long and which sees no race between processes. The directory of the program is the first in PATH.
//
// The cache of test results knows nothing of a program that a test builds. The call of main links the program into the test
// binary as well, so that a change of any package makes kept results stale.
func TestMain(m *testing.M) {
	if os.Getenv("OLLIM_TEST_RUN_MAIN") != "" {
		main()
	}
	doorapi.Pipe()
	defer testkit.Temp()()
	dir, err := os.MkdirTemp("", "ollim-test-")
	if program = os.Getenv("OLLIM_TEST_PROGRAM"); err == nil && program == "" {
		err = build(dir)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err != nil {
		panic(err)
	}
	testkit.Overlap()
	m.Run()
}

// build puts the program into dir. The go command links it again only if it has changed: it is kept in .bin, from where each
// test process copies it, because another one may replace it.
func build(dir string) error {
	kept, err := filepath.Abs("../../.bin/test/ollim")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(kept), 0o700); err != nil {
		return err
	}
	held, err := new(lock.Table).Wait(context.Background(), kept+".lock")
	if err != nil {
		return err
	}
	defer held.Release()
	overlay, err := staying(filepath.Dir(kept))
	if err != nil {
		return err
	}
	cmd := exec.Command("go", "build", "-race=false", "-ldflags=-s -w", "-overlay="+overlay, "-o", kept, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // or each start would load the C library
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	data, err := os.ReadFile(kept)
	if err != nil {
		return err
	}
	program = filepath.Join(dir, "ollim")
	return errors.Join(os.Chmod(dir, 0o755), testkit.WriteFile(program, data, 0o755), os.Setenv("PATH", dir+":"+os.Getenv("PATH")))
}

// staying returns an overlay for the go command by which the program takes no directory but TMPDIR for one whose files do not stay: it is in
// such a directory itself, and schedules must call it.
func staying(dir string) (overlay string, err error) {
	list, err := filepath.Abs("../../internal/cli/temporary.go")
	if err != nil {
		return "", err
	}
	empty := filepath.Join(dir, "temporary.go")
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{list: empty}})
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, errors.Join(err, os.WriteFile(overlay, text, 0o600),
		os.WriteFile(empty, []byte("package cli\n\nfunc temporary() []string { return nil }\n"), 0o600))
}

// patience bounds the wait for an event that must come. It is never a measure of speed: on a busy machine everything takes
// longer, and a test that hangs is ended by its deadline.
const patience = 5 * time.Minute

// eventually waits until ok reports true. It is for events of other processes that announce nothing.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	if !await(ok) {
		t.Fatalf("not in %s: %s", patience, what)
	}
}

// await asks ever less often, because many tests wait at once, and asking takes a look at all processes, or starts one.
func await(ok func() bool) bool {
	deadline := time.Now().Add(patience)
	for pause := time.Millisecond; !ok(); pause = min(pause*5/4, 100*time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(pause)
	}
	return true
}
