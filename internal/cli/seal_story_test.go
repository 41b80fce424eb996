package cli

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/seal"
	"github.com/ollim/ollim/internal/testkit"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// needsSeal skips a test where the kernel cannot seal.
func needsSeal(t *testing.T) {
	t.Helper()
	if _, err := seal.Check(); err != nil {
		testkit.Missing(t, "%v: run it on Linux 6.12 or later", err)
	}
}

// sealedRun fires a routine of the native engine whose one command is a shell script in the data directory, and returns what it
// printed.
func sealedRun(t *testing.T, w *world, api *anthropicapi.Server, script string, fields ...string) string {
	t.Helper()
	w.writeProgram("probe", "#!/bin/sh\n"+script)
	args := []string{"routine", "add", "daily", "--cron", "0 9 * * *", "--background", "--isolated", "--allowed-tools", "Bash(./probe)"}
	w.must(append(append(args, fields...), "Work.")...)
	api.Reply(bash("./probe"), anthropicapi.Reply{Text: "done"})
	w.must("fire", "daily")
	return api.Requests()[len(api.Requests())-1].ToolResults()[0].ResultText
}

// What an approved program tries in a sealed run, with what it gets.
func TestSealKeepsWhatIsProtected(t *testing.T) {
	t.Parallel()
	needsSeal(t)
	w, api := newNativeWorld(t)
	src, other := filepath.Join(w.home, "src"), filepath.Join(w.home, "other")
	for _, dir := range []string{src, other, filepath.Join(w.home, ".config", "ollim")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	secrets := filepath.Join(w.home, ".config", "ollim", "secrets.env")
	for path, text := range map[string]string{
		secrets: "engine.X=sesame-secret\n", filepath.Join(other, "diary"): "sesame-diary\n", filepath.Join(src, "code"): "open-code\n",
		filepath.Join(w.home, ".gitconfig"): "[user]\nname=open-git\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.write("state/marker", "sesame-state\n")
	w.write("sessions/marker", "sesame-session\n")
	w.write("gates/check", "sesame-gate\n")
	w.write("notes/today.md", "open-note\n")
	w.write("other/today.md", "open-other\n")
	if err := os.Symlink(w.dir, filepath.Join(src, "data")); err != nil {
		t.Fatal(err)
	}
	said := sealedRun(t, w, api, fmt.Sprintf(`
tries() { if "$@" 2>/dev/null; then echo "passed: $*"; fi; }
tries cat state/marker sessions/marker gates/check config.yaml tool-policy.yaml state/canary
tries cat %[1]s %[2]s/diary %[3]s/data/state/marker
tries ln state/marker notes/link
tries sh -c 'echo x >state/new'
tries sh -c 'echo x >new.md'
tries sh -c 'echo x >other/today.md'
tries sh -c 'echo x >>config.yaml'
tries rm state/marker gates/check
tries sh -c 'echo x >%[2]s/new'
tries sh -c 'echo x >%[4]s/new'
tries sh -c 'echo x >/tmp/ollim-seal-test'
cat notes/today.md other/today.md %[3]s/code %[4]s/.gitconfig
echo made >notes/made.md && cat notes/made.md
echo changed >%[3]s/made && cat %[3]s/made
echo private >"$TMPDIR/x" && cat "$TMPDIR/x" && echo "at $TMPDIR"
ls | tr '\n' ' '
`, secrets, other, src, w.home), "--dirs", "rw:"+src, "--allowed-tools", "Write(./notes/**.md)")
	for _, word := range []string{"sesame", "passed: "} {
		if strings.Contains(said, word) {
			t.Errorf("the program got %q:\n%s", word, said)
		}
	}
	for _, word := range []string{"open-note", "open-other", "open-code", "open-git", "made", "changed", "private", "notes other"} {
		if !strings.Contains(said, word) {
			t.Errorf("the program did not get %q:\n%s", word, said)
		}
	}
	_, temporary, _ := strings.Cut(said, "at ")
	temporary, _, _ = strings.Cut(temporary, "\n")
	if !strings.HasPrefix(temporary, w.env["TMPDIR"]+"/ollim-") || exists(temporary) {
		t.Errorf("TMPDIR was %q, and is still there: %v", temporary, exists(temporary))
	}
	if s := w.status(); !s.Seal.On || !strings.Contains(w.must("status"), "seal\ton\n") {
		t.Errorf("the status says %+v", s.Seal)
	}
	sealed, _ := w.last()["sealed"].(map[string]any)
	if write := fmt.Sprint(sealed["write"]); sealed["abi"] == nil || sealed["why"] != nil || sealed["network"] != "any" ||
		!strings.Contains(write, src) || !strings.Contains(write, filepath.Join(w.dir, "notes")) || !strings.Contains(fmt.Sprint(sealed["read"]), w.dir) {
		t.Errorf("the record says %v", sealed)
	}
}

// A run that starts no program makes nothing for one, and has what would be in force in its record.
func TestSealMakesNothingBeforeAProgram(t *testing.T) {
	t.Parallel()
	needsSeal(t)
	w := newWorld(t)
	w.script("turns:\n  - - text: done\n")
	w.must("routine", "add", "daily", "--cron", "0 9 * * *", "--background", "--allowed-tools", "Write(./notes/**.md)", "Work.")
	w.must("fire", "daily")
	temporary, _ := filepath.Glob(filepath.Join(w.env["TMPDIR"], "*"))
	for _, path := range append(temporary, filepath.Join(w.home, ".cache"), filepath.Join(w.dir, "notes"), filepath.Join(w.dir, "state", "canary")) {
		if exists(path) {
			t.Errorf("%s was made", path)
		}
	}
	sealed, _ := w.last()["sealed"].(map[string]any)
	if sealed["abi"] == nil || !strings.Contains(fmt.Sprint(sealed["write"]), filepath.Join(w.dir, "notes")) || fmt.Sprint(sealed["read"]) != fmt.Sprintf("[%s]", w.dir) {
		t.Errorf("the record says %v", sealed)
	}
}

var errOld = fmt.Errorf("%w: the kernel has Landlock ABI 3; ABI %d is needed", seal.ErrUnsupported, seal.MinABI)

// oldKernel makes a world in which nothing can be sealed.
func (w *world) oldKernel() {
	w.kernel = func() (int, error) { return 0, errOld }
}

func TestSealWithoutSupport(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script("turns:\n  - - text: done\n")
	w.oldKernel()
	w.must("routine", "add", "daily", "--cron", "0 9 * * *", "--background", "Work.")
	w.must("routine", "add", "strict", "--cron", "0 9 * * *", "--background", "--seal", "on", "Work.")
	w.must("fire", "daily")
	why := func() string {
		sealed, _ := w.last()["sealed"].(map[string]any)
		return fmt.Sprint(sealed["why"], sealed["abi"], sealed["write"])
	}
	if s := w.status(); s.Seal.On || !strings.Contains(w.must("status"), "seal\toff\t"+errOld.Error()+"\n") {
		t.Errorf("the status says %+v", s.Seal)
	}
	if got := why(); got != errOld.Error()+"<nil> <nil>" {
		t.Errorf("auto: the record says %s", got)
	}
	refused := func(job string) {
		t.Helper()
		r := w.run("fire", job)
		if want := fmt.Sprintf("ABI %d is needed", seal.MinABI); r.status != 78 || !strings.Contains(r.errOut, want) || w.last()["outcome"] != "refused" {
			t.Errorf("%s: status %d, outcome %v, %s", job, r.status, w.last()["outcome"], r.errOut)
		}
	}
	refused("strict")
	w.must("config", "set", "seal", "on")
	refused("daily")
	w.must("config", "set", "seal", "off")
	w.must("fire", "daily")
	if got := why(); got != "seal: off<nil> <nil>" {
		t.Errorf("off: the record says %s", got)
	}
	refused("strict")
	w.must("routine", "rm", "strict")
	w.must("routine", "add", "strict", "--cron", "0 9 * * *", "--background", "--seal", "on", "--allowed-tools", "Bash(sh *)", "Work.")
	if out := w.run("check").out; strings.Count(out, "Landlock ABI 3") != 1 {
		t.Errorf("the check says\n%s", out)
	}
	refused("strict")
	w.must("routine", "rm", "strict")
	w.must("routine", "add", "alone", "--cron", "0 9 * * *", "--background", "--network", "none", "Work.")
	if out := w.must("check"); strings.Count(out, "network: note: network: none is not enforced: seal: off\n") != 1 {
		t.Errorf("the check says\n%s", out)
	}
}

// A directory of PATH in which a job may write is noted: what its agent puts there runs later, not sealed.
func TestProgramsThatAJobMayPlant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bin := filepath.Join(w.home, "src", "bin")
	if err := os.MkdirAll(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	w.env["PATH"] += ":" + bin
	w.must("routine", "add", "reads", "--cron", "0 9 * * *", "--background", "--dirs", filepath.Dir(bin), "Work.")
	w.must("routine", "add", "writes", "--cron", "0 9 * * *", "--background", "--dirs", "rw:"+filepath.Dir(bin), "Work.")
	want := "routines/writes.md: dirs: note: the agent may write in " + bin + ", which is on PATH"
	if out := w.must("check"); !strings.Contains(out, want) || strings.Count(out, "on PATH") != 1 {
		t.Errorf("the check says\n%s", out)
	}
}

// A job whose dirs contain what is protected, or lie in it, is refused whether anything is sealed or not.
func TestDirsThatContainWhatIsProtected(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script("turns:\n  - - text: done\n")
	w.must("config", "set", "seal", "off")
	config := filepath.Join(w.home, ".config")
	if err := errors.Join(os.MkdirAll(filepath.Join(config, "ollim"), 0o700), os.Mkdir(filepath.Join(w.home, ".claude"), 0o700),
		os.Symlink(filepath.Dir(w.dir), filepath.Join(w.home, "link"))); err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct{ dir, want string }{
		{w.home, "contains a protected path: secrets.env"},
		{filepath.Join(config, "ollim"), "contains a protected path: secrets.env"},
		{filepath.Join(config, "ollim", "secrets.env"), "is a protected path"},
		{filepath.Dir(w.dir), "contains a protected path: state"},
		{filepath.Join(w.home, "link"), "contains a protected path: state"},
		{filepath.Join(w.dir, "state"), "is in the data directory"},
		{filepath.Join(w.home, ".claude"), "contains a protected path: .credentials.json"},
		{filepath.Join(w.home, ".claude.json"), "is a protected path"},
	} {
		name := fmt.Sprintf("job%d", i)
		w.must("routine", "add", name, "--cron", "0 9 * * *", "--background", "--dirs", c.dir, "Work.")
		r := w.run("fire", name)
		if r.status != 77 || !strings.Contains(r.errOut, c.want) {
			t.Errorf("%s: status %d, %s", c.dir, r.status, r.errOut)
		}
		if r := w.run("check"); r.status != 65 || !strings.Contains(r.out, c.want) {
			t.Errorf("check of %s: status %d, %s", c.dir, r.status, r.out)
		}
		w.must("routine", "rm", name)
	}
}

// What the seal closes to a command that fails is in the record, in the log and in what doctor says, with the line that opens it.
func TestRefusalsOfTheSealAreExplained(t *testing.T) {
	t.Parallel()
	needsSeal(t)
	w, api := newNativeWorld(t)
	diary := filepath.Join(w.home, "other", "diary")
	if err := errors.Join(os.MkdirAll(filepath.Dir(diary), 0o700), os.WriteFile(diary, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	sealedRun(t, w, api, "cat "+diary)
	want := diary + " is closed: dirs: " + filepath.Dir(diary) + " opens it"
	for before, args := range map[string][]string{"": {"run", "show", "daily"}, "sealed ": {"run", "log", "daily"}, "failed: ": {"doctor"}} {
		if out := w.run(args...).out; strings.Count(out, before+want) != 1 {
			t.Errorf("%s does not say %q once:\n%s", args, want, out)
		}
	}
}

// The model reads in the result of a command what the seal has closed to it and what opens that, also if the program went on without it.
func TestModelIsToldWhatTheSealRefused(t *testing.T) {
	t.Parallel()
	needsSeal(t)
	for name, c := range map[string]struct{ script, want string }{
		"failed":     {"cat DIARY", "ollim: seal: DIARY is closed: dirs: OTHER opens it for reading, dirs: rw:OTHER for writing"},
		"went on":    {"cat DIARY; echo done", "ollim: seal: DIARY is closed: dirs: OTHER opens it for reading, dirs: rw:OTHER for writing"},
		"temporary":  {"echo >/tmp/ollim-test-literal; echo done", "ollim: seal: /tmp/ollim-test-literal is closed: $TMPDIR is the run's own directory for temporary files"},
		"memory":     {"echo >/dev/shm/ollim-test; echo done", "ollim: seal: /dev/shm is closed: dirs: rw:/dev/shm opens it, for shared memory"},
		"not denied": {"echo DIARY", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, api := newNativeWorld(t)
			diary := filepath.Join(w.home, "other", "diary")
			if err := errors.Join(os.MkdirAll(filepath.Dir(diary), 0o700), os.WriteFile(diary, nil, 0o600)); err != nil {
				t.Fatal(err)
			}
			named := strings.NewReplacer("DIARY", diary, "OTHER", filepath.Dir(diary))
			out := sealedRun(t, w, api, named.Replace(c.script))
			if want := named.Replace(c.want); want == "" && strings.Contains(out, "ollim: seal") || !strings.HasSuffix(out, want) || strings.Count(out, "ollim: seal") > 1 {
				t.Errorf("%q, want at its end %q", out, want)
			}
		})
	}
}

// TestSealedBash: bash takes a socket as standard input, which claude gives it, and a variable of ssh for a login from elsewhere and reads
// the owner's .bashrc, which is closed. What the model reads of that must not look like a failure.
func TestSealedBash(t *testing.T) {
	t.Parallel()
	needsSeal(t)
	w, api := newNativeWorld(t)
	if err := os.WriteFile(filepath.Join(w.home, ".bashrc"), []byte("true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := sealedRun(t, w, api, `SSH_CLIENT=x bash -c 'echo in bash' 2>&1`)
	if out != "in bash" {
		t.Errorf("%q", out)
	}
}

// A question names the flag that is to be changed, not a key of a job.
func TestAddedDirThatIsProtected(t *testing.T) {
	t.Parallel()
	needsSeal(t)
	w := newWorld(t)
	w.script("turns:\n  - - text: done\n")
	r := w.run("ask", "-n", "--add-dir", filepath.Dir(w.dir), "hi")
	if want := "ask: refused: --add-dir " + filepath.Dir(w.dir) + " contains a protected path"; r.status != 77 || !strings.Contains(r.errOut, want) {
		t.Errorf("status %d, %s, want %s", r.status, r.errOut, want)
	}
}

// A run that changes the mode of the secrets cannot be stopped from it, and is reported.
func TestChangedModeIsReported(t *testing.T) {
	t.Parallel()
	needsSeal(t)
	w, api := newNativeWorld(t)
	w.secrets("delivery.X=1\n")
	w.must("config", "set", "delivery.command", "sh", "-c", "cat >> delivered.txt")
	secrets := filepath.Join(w.home, ".config", "ollim", "secrets.env")
	sealedRun(t, w, api, "chmod 644 "+secrets)
	want := secrets + ": its mode was changed from 0600 to 0644 while daily ran\nTo do: `chmod 600 " + secrets + "`"
	if got := w.read("delivered.txt"); !strings.Contains(got, want) {
		t.Errorf("the owner gets %q, want %q", got, want)
	}
}

// Code that a sealed run leaves where the owner's programs execute it is found.
func TestDoctorFindsPlantedCode(t *testing.T) {
	t.Parallel()
	needsSeal(t)
	w, api := newNativeWorld(t)
	w.real, w.ahead = true, -time.Second // the next command moves it to the time of the file system
	src := filepath.Join(w.home, "src")
	if err := os.MkdirAll(filepath.Join(src, "before", ".git", "hooks"), 0o700); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{"before/.git/HEAD": "ref: x\n", "before/.git/config": "[core]\n\tpager = less\n"} {
		if err := os.WriteFile(filepath.Join(src, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sealedRun(t, w, api, fmt.Sprintf(`cd %s && mkdir -p a/.git b/.git/hooks c .vscode plain/.git
printf '[core]\n\tfsmonitor = ./x\n' >a/.git/config
printf '[core]\n\tbare = false\n[remote "origin"]\n\turl = x\n' >plain/.git/config
echo x >b/.git/HEAD; echo x >b/.git/hooks/pre-commit; echo x >b/.git/hooks/pre-push.sample
echo x >c/x; ln -s x c/.envrc; echo '{"runOn": "folderOpen"}' >.vscode/tasks.json; echo x >Makefile
mkdir -p meta .claude; echo x >meta/HEAD; printf '\357\273\277[diff.x]\ntextconv = ./x\n' >meta/config; echo {} >.claude/settings.local.json; echo {} >.mcp.json`, src), "--dirs", "rw:"+src)
	out := w.run("doctor").out
	for _, want := range []string{"a/.git/config: git runs what core.fsmonitor says", "b/.git/hooks/pre-commit: ", "c/.envrc: ", ".vscode/tasks.json: ",
		"meta/config: git runs what diff.textconv says", ".claude/settings.local.json: claude runs its hooks", ".mcp.json: "} {
		if !strings.Contains(out, src+"/"+want) {
			t.Errorf("%s is not found in\n%s", want, out)
		}
	}
	if n := strings.Count(out, "\tplanted\t"); n != 7 {
		t.Errorf("%d findings, want 7:\n%s", n, out)
	}
}

// A pattern that only the seal makes harmless is in force in sealed runs, and a job that has one is refused everywhere else.
func TestPatternsThatNeedTheSeal(t *testing.T) {
	t.Parallel()
	needsSeal(t)
	w, api := newNativeWorld(t)
	w.must("routine", "add", "daily", "--cron", "0 9 * * *", "--background", "--isolated", "--allowed-tools", "Bash(sh *)", "--allowed-tools", "Bash(docker ps *)", "Work.")
	api.Reply(bash("sh -c 'echo ran | cat; cat config.yaml state/canary'"), bash("ollim config set seal off"), anthropicapi.Reply{Text: "done"})
	w.must("fire", "daily")
	result := func(call int) string { return api.Requests()[call].ToolResults()[0].ResultText }
	if !strings.Contains(result(1), "ran") || strings.Contains(result(1), "A sealed") || !strings.Contains(result(2), "owner's command") {
		t.Errorf("the commands said %q, %q", result(1), result(2))
	}
	refused := func(reason string) {
		t.Helper()
		want := "allowed-tools: Bash(sh *) is in force only in a sealed run: sh is not one of the programs that run without a seal; write a script and " +
			"name it by its path, such as ./tools/report.sh (" + reason + ")"
		if r := w.run("fire", "daily"); r.status != 77 || !strings.Contains(r.errOut, want) {
			t.Errorf("fire: status %d, %s", r.status, r.errOut)
		}
		if r := w.run("check"); r.status != 65 || !strings.Contains(r.out, want) {
			t.Errorf("check: status %d, %s", r.status, r.out)
		}
	}
	w.oldKernel()
	refused(errOld.Error())
	w.must("config", "set", "seal", "off")
	refused("seal: off")
}

// A start that finds the canary open is refused, and the run with it. Here the canary is a link to a file that every program may read.
func TestBrokenSealEndsTheRun(t *testing.T) {
	t.Parallel()
	needsSeal(t)
	w, api := newNativeWorld(t)
	w.writeProgram("probe", "#!/bin/sh\necho x >log/ran\n")
	w.must("routine", "add", "daily", "--cron", "0 9 * * *", "--background", "--allowed-tools", "Bash(./probe)", "--allowed-tools", "Write(./log/**)", "Work.")
	if err := os.Symlink("/etc/passwd", filepath.Join(w.dir, "state", "canary")); err != nil {
		t.Fatal(err)
	}
	api.Reply(bash("./probe"), anthropicapi.Reply{Text: "done"})
	r := w.run("fire", "daily")
	if r.status != 77 || !strings.Contains(r.errOut, "the seal does not hold") || w.last()["outcome"] != "refused" {
		t.Errorf("status %d, outcome %v, %s", r.status, w.last()["outcome"], r.errOut)
	}
	if n := len(api.Requests()); n != 1 || exists(filepath.Join(w.dir, "log", "ran")) {
		t.Errorf("%d requests; the program ran: %v", n, exists(filepath.Join(w.dir, "log", "ran")))
	}
}

// A job without a network connects to nothing outside its run, and one with a network does.
func TestNetworkOfAJob(t *testing.T) {
	t.Parallel()
	needsSeal(t)
	w, api := newNativeWorld(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	w.writeProgram("probe", "#!/bin/bash\nexec 3<>/dev/tcp/127.0.0.1/"+fmt.Sprint(l.Addr().(*net.TCPAddr).Port)+" && echo connected\n")
	for network, want := range map[string]bool{"any": true, "none": false} {
		w.must("routine", "add", network, "--cron", "0 9 * * *", "--background", "--isolated", "--network", network, "--allowed-tools", "Bash(./probe)", "Work.")
		api.Reply(bash("./probe"), anthropicapi.Reply{Text: "done"})
		w.must("fire", network)
		said := api.Requests()[len(api.Requests())-1].ToolResults()[0].ResultText
		if strings.Contains(said, "connected") != want || strings.Contains(said, "Permission denied") == want {
			t.Errorf("%s: %s", network, said)
		}
		if sealed, _ := w.last()["sealed"].(map[string]any); sealed["network"] != network {
			t.Errorf("%s: the record says %v", network, sealed)
		}
	}
}

// Settings elsewhere than in config.yaml of the data directory are as closed as that is.
func TestSettingsElsewhereAreProtected(t *testing.T) {
	t.Parallel()
	needsSeal(t)
	w, api := newNativeWorld(t)
	src := filepath.Join(w.home, "src")
	move := func(from, to string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(src, 0o700), os.Rename(from, to)); err != nil {
			t.Fatal(err)
		}
		w.env["OLLIM_CONFIG"] = to
	}
	inside, outside := filepath.Join(w.dir, "settings.yaml"), filepath.Join(src, "settings.yaml")
	move(filepath.Join(w.dir, "config.yaml"), inside)
	w.write("notes.yaml", "")
	if said := sealedRun(t, w, api, "cat settings.yaml || echo closed\ncat notes.yaml && echo open"); !strings.Contains(said, "closed\nopen") {
		t.Errorf("a sealed program got %s", said)
	}
	move(inside, outside)
	w.must("routine", "add", "wide", "--cron", "0 9 * * *", "--background", "--dirs", src, "Work.")
	if r := w.run("fire", "wide"); r.status != 77 || !strings.Contains(r.errOut, "contains a protected path: settings.yaml") {
		t.Errorf("status %d, %s", r.status, r.errOut)
	}
}
