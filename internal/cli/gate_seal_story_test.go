package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit"
)

// newOrchard is a world with a job whose gate, verify and after execute what the agent wrote in a directory that the job may write. It
// returns the directory, in which each leaves what it got.
func newOrchard(t *testing.T, flags ...string) (w *world, src string) {
	t.Helper()
	w = newWorld(t)
	w.script("turns:\n  - - text: done\n")
	src = filepath.Join(w.home, "src")
	secrets := filepath.Join(w.home, ".config", "ollim", "secrets.env")
	for path, text := range map[string]string{
		secrets: "x.Y=sesame\n", filepath.Join(w.home, "diary"): "sesame\n", filepath.Join(w.dir, "state", "marker"): "sesame\n",
		filepath.Join(src, "code"): fmt.Sprintf(`cat %s %s/diary state/marker config.yaml
touch %s/taken new.md gates/new
test -S "$OLLIM_SOCKET" && echo "a socket"
cat routines/tests.md
echo "$OLLIM_JOB in $(pwd -P), temporary files in $TMPDIR"
echo x >"$TMPDIR/x" && echo "wrote there"
cat /dev/stdin
`, secrets, w.home, w.home),
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"routine", "add", "tests", "--id", "tests", "--cron", "0 9 * * *", "--background", "--isolated", "--dirs", "rw:" + src}
	for _, key := range []string{"gate", "verify", "after"} {
		w.writeProgram("gates/"+key, fmt.Sprintf("#!/bin/sh\nsh %[1]s/code >%[1]s/%[2]s 2>&1\nexit 0\n", src, key))
		args = append(args, "--"+key, key)
	}
	w.must(append(append(args, flags...), "Work.")...)
	return w, src
}

func said(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// What a gate, verify and after execute can do no more than the agent that wrote it.
func TestSealedPrograms(t *testing.T) {
	t.Parallel()
	needsSeal(t)
	w, src := newOrchard(t)
	w.must("fire", "tests")
	for _, key := range []string{"gate", "verify", "after"} {
		got := said(t, src, key)
		for _, word := range []string{"sesame", "engine:"} {
			if strings.Contains(got, word) {
				t.Errorf("%s got %q:\n%s", key, word, got)
			}
		}
		wants := []string{"Permission denied", "a socket", "cron: ", "tests in " + w.dir, "temporary files in " + w.env["TMPDIR"] + "/ollim-", "wrote there"}
		if key != "gate" {
			wants = append(wants, `"id":"`+w.last()["id"].(string)+`"`)
		}
		for _, want := range wants {
			if !strings.Contains(got, want) {
				t.Errorf("%s did not get %q:\n%s", key, want, got)
			}
		}
	}
	left, _ := filepath.Glob(filepath.Join(w.env["TMPDIR"], "*"))
	run := w.last()["id"].(string)
	copies, _ := filepath.Glob(filepath.Join(w.dir, runFile(run), "programs", "*"))
	for _, path := range append(append(left, copies...), filepath.Join(w.home, "taken"), filepath.Join(w.dir, "new.md"), filepath.Join(w.dir, "gates/new"), filepath.Join(w.dir, runFile(run), "socket")) {
		if exists(path) {
			t.Errorf("%s is there", path)
		}
	}
}

// A job whose executables are to run outside the seal says so, and its owner approves that.
func TestUnsealedPrograms(t *testing.T) {
	t.Parallel()
	needsSeal(t)
	w, src := newOrchard(t, "--unsealed", "verify", "--unsealed", "after")
	w.must("fire", "tests")
	for key, want := range map[string]bool{"gate": false, "verify": true, "after": true} {
		if got := said(t, src, key); strings.Contains(got, "sesame") != want || strings.Contains(got, "a socket") == want {
			t.Errorf("%s got\n%s", key, got)
		}
	}
	if sealed, _ := w.last()["sealed"].(map[string]any); fmt.Sprint(sealed["unsealed"]) != "[after verify]" && fmt.Sprint(sealed["unsealed"]) != "[verify after]" {
		t.Errorf("the record says %v", sealed)
	}
	file := w.read("routines/tests.md")
	w.write("routines/tests.md", strings.Replace(file, "unsealed:\n", "unsealed:\n  - gate\n", 1))
	w.pass(time.Minute)
	if r := w.run("fire", "tests"); r.status != int(statusRefused) || !strings.Contains(r.errOut, "not approved: ") || !strings.Contains(r.errOut, "unsealed") {
		t.Errorf("%+v\n%s", r, w.read("routines/tests.md"))
	}
	for text, want := range map[string]string{
		"unsealed: [gate]":     "unsealed: names gate, which the routine does not have",
		"unsealed: [heart]":    `"heart" is not one of: gate, after, verify`,
		"unsealed: [verify]\n": "unsealed: names verify, which the routine does not have",
	} {
		w.write("routines/bad.md", "---\nid: bad\ncron: 0 9 * * *\nbackground: true\n"+text+"\n---\nWork.\n")
		if r := w.run("check"); r.status != int(statusData) || !strings.Contains(r.out, want) {
			t.Errorf("%s: %+v", text, r)
		}
	}
}

// What runs is what was approved, byte for byte, however often a link in gates leads elsewhere meanwhile.
func TestProgramsRunAsApproved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script("turns:\n  - - text: done\n")
	dir := filepath.Join(w.home, "shared")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	// Another program of the owner's replaces the file; the job itself may not.
	put := func(name, text string) {
		if err := testkit.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil { //nolint:gosec // a program
			t.Error(err)
		}
	}
	const good, bad = "#!/bin/sh\nexit 0\n", "#!/bin/sh\necho SWAPPED\nexit 1\n"
	put("v", good)
	if err := os.MkdirAll(filepath.Join(w.dir, "gates"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "v"), filepath.Join(w.dir, "gates/v")); err != nil {
		t.Fatal(err)
	}
	w.must("routine", "add", "swap", "--cron", "0 9 * * *", "--background", "--isolated", "--verify", "v", "Go.")
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
				put("other", []string{good, bad}[i%2])
				_ = os.Rename(filepath.Join(dir, "other"), filepath.Join(dir, "v"))
				time.Sleep(time.Duration(i%5) * 200 * time.Microsecond) // each file stays for a time of its own, to meet every step of a run
			}
		}
	}()
	outcomes := map[string]int{}
	for range 60 {
		w.run("fire", "swap")
		record := w.last()
		outcomes[fmt.Sprint(record["outcome"])]++
		if strings.Contains(fmt.Sprint(record["error"]), "SWAPPED") {
			t.Errorf("%v: %v", record["outcome"], record["error"])
		}
		w.pass(time.Minute)
	}
	close(done)
	<-ended
	t.Log(outcomes)
}

// An executable that the job may change is none, whatever it holds now.
func TestProgramThatTheJobMayChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script("turns:\n  - - text: done\n")
	src := filepath.Join(w.home, "src")
	if err := os.MkdirAll(src, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(src, "v"), filepath.Join(w.home, "v"), filepath.Join(w.dir, "notes/v")} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := testkit.WriteFile(path, []byte("#!/bin/sh\n"), 0o700); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	link := func(to string) {
		t.Helper()
		path := filepath.Join(w.dir, "gates/v")
		_ = os.Remove(path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, path); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		to    string
		flags []string
		want  string
	}{
		"dirs":      {filepath.Join(src, "v"), []string{"--background", "--dirs", "rw:" + src}, "verify: gates/v is a link to " + src + "/v, which the job may change: copy the file to gates"},
		"read":      {filepath.Join(src, "v"), []string{"--background", "--dirs", src}, ""},
		"elsewhere": {filepath.Join(w.home, "v"), []string{"--background", "--dirs", "rw:" + src}, ""},
		"pattern":   {filepath.Join(w.dir, "notes/v"), []string{"--background", "--allowed-tools", "Write(./notes/**)"}, "notes/v, which the job may change"},
		"data":      {filepath.Join(w.dir, "notes/v"), []string{"--background", "--allowed-tools", "Write(./other/**)"}, ""},
		"forked":    {filepath.Join(w.dir, "notes/v"), nil, "notes/v, which the job may change"},
	} {
		link(tc.to)
		w.must(append(append([]string{"routine", "add", name, "--cron", "0 9 * * *", "--verify", "v"}, tc.flags...), "Go.")...)
		r, check := w.run("fire", name), w.run("check")
		if tc.want == "" && (r.status != 0 || check.status != 0) || tc.want != "" && (r.status != int(statusRefused) || !strings.Contains(r.errOut, tc.want) || !strings.Contains(check.out, tc.want)) {
			t.Errorf("%s: %+v\n%s", name, r, check.out)
		}
		w.must("routine", "rm", name)
		w.pass(time.Minute)
	}
}
