package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/app/doctor"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/testkit"
)

// fakeCrontab keeps the table of a user in a file beside it, as crontab(1) does in its spool.
const fakeCrontab = `#!/bin/sh
table=$(dirname "$0")/table
case $1 in
-l) test -e "$table" || { echo "no crontab for ada" >&2; exit 1; }; cat "$table" ;;
*) cp "$1" "$table" ;;
esac
`

// fakeVersion is the version that the fake of the claude command names.
const fakeVersion = "2.1.330"

// fakeClaude is a claude command that is logged in and would fail a trial; its environment has to have PATH and FAKE_VERSION.
const fakeClaude = `#!/bin/sh
case $1 in
--version) echo "$FAKE_VERSION (Claude Code)" ;;
auth) test -n "$FAKE_LOGGED_OUT" && { echo '{"loggedIn": false, "authMethod": "none"}'; exit 1; }
	echo '{"loggedIn": true, "authMethod": "claude.ai"}' ;;
-p) echo '{"type": "system", "subtype": "init"}' ;;
esac
`

// sound is a world with a whole installation: a routine, a delivery command, entries in a crontab, and a tick that was just here. Its
// engine is the script one.
func sound(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.program("bin/crontab", fakeCrontab)
	w.env["PATH"] = filepath.Join(w.home, "bin") + ":" + w.env["PATH"]
	w.script("turns:\n  - - text: done\n")
	w.must("config", "set", "delivery.command", "true")
	w.must("routine", "add", "daily", "--cron", "0 9 * * *", "--background", "Look around.")
	w.must("schedule", "install", "crontab")
	w.must("tick")
	return w
}

// program writes an executable in the owner's home.
func (w *world) program(name, text string) string {
	w.t.Helper()
	path := filepath.Join(w.home, name)
	_ = os.Remove(path) // it may be running
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), testkit.WriteFile(path, []byte(text), 0o700)); err != nil {
		w.t.Fatal(err)
	}
	return path
}

// useClaude makes the engine a fake of the claude command, of which it is known that it does what ollim relies on.
func (w *world) useClaude(env ...string) {
	w.must("config", "set", "claude-code.command", w.program("bin/claude", fakeClaude))
	w.must("config", "set", "engine", "claude-code")
	w.must(append([]string{"config", "set", "env", "HOME=" + w.home, "PATH=/usr/bin:/bin", "FAKE_VERSION=" + fakeVersion}, env...)...)
	w.knowClaude(fakeVersion, "")
}

// useVersion is useClaude with a version that passed the trial.
func (w *world) useVersion(version string) {
	w.useClaude("FAKE_VERSION=" + version)
	w.knowClaude(version, "")
}

// knowClaude writes what is known of the fake of the claude command: its version, and the canary that has failed, if any.
func (w *world) knowClaude(version, fault string) {
	w.t.Helper()
	path := filepath.Join(w.home, "bin/claude")
	file, err := filepath.EvalSymlinks(path)
	if err != nil {
		w.t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil {
		w.t.Fatal(err)
	}
	known := map[string]any{
		"path": path, "file": file, "size": info.Size(), "modified": info.ModTime().UTC(), "canaries": 1, "version": version, "checked": w.clock(), "fault": fault,
	}
	text, err := json.Marshal(known)
	if err != nil {
		w.t.Fatal(err)
	}
	w.write("state/cache/claude.json", string(text))
}

func (w *world) chmod(name string, mode os.FileMode) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.Chmod(path, mode); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = os.Chmod(path, 0o700) }) // an ordinary user cannot remove a closed directory
}

// secretsAs writes the secrets file.
func (w *world) secretsAs(text string, mode os.FileMode) {
	w.t.Helper()
	path := filepath.Join(w.home, ".config", "ollim", "secrets.env")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) findings() (list []doctor.Finding, status int) {
	w.t.Helper()
	r := w.run("doctor", "--json")
	lines := bufio.NewScanner(strings.NewReader(r.out))
	for lines.Scan() {
		var f doctor.Finding
		if err := json.Unmarshal(lines.Bytes(), &f); err != nil {
			w.t.Fatalf("%s: %v", lines.Text(), err)
		}
		list = append(list, f)
	}
	if r.errOut != "" || len(list) == 0 {
		w.t.Errorf("%d findings, %s", len(list), r.errOut)
	}
	return list, r.status
}

func TestDoctorFindsNothingWrong(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*world){
		"script":   func(*world) {},
		"claude":   func(w *world) { w.useClaude() },
		"tickOnly": func(w *world) { w.must("schedule", "install", "--tick-only", "crontab") },
		"a run":    func(w *world) { w.must("fire", "daily") },

		"a killed run beside another installation": plantKilledRunElsewhere,
		"a widened job": func(w *world) {
			w.must("routine", "add", "disk", "--cron", "0 9 * * *", "--background", "--allowed-tools", "Bash(df -h)", "Look.")
			w.must("schedule", "install", "crontab")
		},
		"a monitor that answers again": func(w *world) {
			w.must("config", "set", "heartbeat", "http://"+freeAddress(w.t))
			w.run("tick")
			monitor := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			w.t.Cleanup(monitor.Close)
			w.must("config", "set", "heartbeat", monitor.URL)
			w.must("tick")
		},
		"a webhook": func(w *world) {
			w.must("webhook", "add", "ci", "--field", "tag", "Look at {tag}.")
			held, err := lock.TryGuard(filepath.Join(w.dir, "state/locks/inbox.lock"))
			if err != nil {
				w.t.Fatal(err)
			}
			w.t.Cleanup(held.Release)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := sound(t)
			change(w)
			list, status := w.findings()
			for _, f := range list {
				if f.Result != doctor.Pass {
					t.Errorf("%+v", f)
				}
			}
			if status != 0 {
				t.Errorf("exit status %d", status)
			}
		})
	}
}

// fault is one thing that is wrong, and what doctor says of it.
type fault struct {
	plant  func(*world)
	result string
	what   string // the check
	text   string // part of the finding
	remedy string // part of the remedy
}

func write(name, text string) func(*world) { return func(w *world) { w.write(name, text) } }

// set changes a setting as an editor would: config set refuses what cannot work.
func set(key string, values ...string) func(*world) {
	return func(w *world) {
		if err := homeOf(w.t, w.deps(nil, nil, nil)).Set(w.t.Context(), key, values...); err != nil {
			w.t.Fatal(err)
		}
	}
}

// plantGrowth leaves a file with a large hole: doctor goes by the lengths of files.
func plantGrowth(w *world) {
	w.write(runFile("20260301T000000.000Z-abcdef", "answer"), "")
	if err := os.Truncate(filepath.Join(w.dir, runFile("20260301T000000.000Z-abcdef", "answer")), 3<<30); err != nil {
		w.t.Fatal(err)
	}
}

// plantUnreadable leaves two claims that nobody can read.
func plantUnreadable(w *world) {
	for _, name := range []string{"state/slots/x/20260101T000000Z", "state/slots/x/20260102T000000Z"} {
		w.write(name, "{}")
		w.chmod(name, 0)
	}
}

func later(d time.Duration) func(*world) { return func(w *world) { w.pass(d) } }

func faults() map[string]fault {
	const f, w = doctor.Fail, doctor.Warn
	return map[string]fault{
		"no directory":          {func(w *world) { w.dir += "-gone"; w.env["OLLIM_DATA_DIR"] = w.dir }, f, "directory", "no such directory", "ollim init"},
		"a file as directory":   {func(w *world) { w.env["OLLIM_DATA_DIR"] = filepath.Join(w.dir, "config.yaml") }, f, "directory", "not a directory", "ollim init"},
		"no settings":           {func(w *world) { w.remove("config.yaml") }, f, "settings", "no configuration", "ollim init"},
		"unknown setting":       {write("config.yaml", "timezon: UTC\n"), f, "settings", "timezon", "ollim check"},
		"broken settings":       {write("config.yaml", "timezone: [\n"), f, "settings", "config.yaml:", "ollim check"},
		"unknown zone":          {write("config.yaml", "timezone: Mars/Base\n"), f, "settings", "Mars/Base", "ollim check"},
		"bad variable":          {func(w *world) { w.env["OLLIM_CHAT_BUSY"] = "often" }, f, "settings", "OLLIM_CHAT_BUSY", "the variable"},
		"settings as directory": {func(w *world) { w.remove("config.yaml"); w.write("config.yaml/x", "") }, f, "settings", "is a directory", "correct"},
		"zone of the shell":     {func(w *world) { w.env["TZ"] = "Mars/Base" }, f, "zone", "Mars/Base", "Europe/Paris"},
		"zone of children":      {set("env", "TZ=Mars/Base"), f, "zone", "env of config.yaml", "Europe/Paris"},
		"open secrets":          {func(w *world) { w.secretsAs("engine.X=y\n", 0o644) }, f, "secrets", "others can read it", "chmod 600"},
		"bad secrets":           {func(w *world) { w.secretsAs("X=y\n", 0o600) }, f, "secrets", "secrets.env:1", "correct the line"},
		"secrets for the agent": {func(w *world) { w.env["XDG_CONFIG_HOME"] = w.dir; w.write("ollim/secrets.env", "") }, f, "secrets", "lies in the data directory", "move it"},
		"open directory":        {func(w *world) { w.chmod(".", 0o755) }, f, "modes", "others can enter it", "chmod 700"},
		"unusable folder":       {func(w *world) { w.chmod("state/runs", 0o500) }, f, "modes", "cannot read and change", "chmod 700"},
		"unusable claims":       {func(w *world) { w.write("state/slots/x/20260101T000000Z", "{}"); w.chmod("state/slots", 0o000) }, f, "modes", "state/slots: you cannot read and change it", "chmod 700"},
		"file as claims":        {func(w *world) { w.remove("state/slots"); w.write("state/slots", "") }, f, "modes", "state/slots: not a directory", "move it away"},
		"unusable questions":    {func(w *world) { w.write("state/questions/x", ""); w.chmod("state/questions", 0o100) }, f, "modes", "state/questions: you cannot read and change it", "chmod 700"},
		"unreadable message":    {func(w *world) { w.must("ping", "lost?"); w.write("state/outbox/r.1.jsonl/x", "") }, f, "delivery", "1 message could not be delivered since ", "ollim doctor --send"},
		"waits unreadable":      {write("state/outbox/r.1.jsonl/x", ""), w, "outbox", "1 waiting: ", "ollim tick"},
		"closed message":        {func(w *world) { w.write("state/outbox/r.1.jsonl", "{}"); w.chmod("state/outbox/r.1.jsonl", 0) }, f, "state", "r.1.jsonl: you cannot read it", "chmod 600"},
		"broken question":       {write("state/questions/x.json", "{"), f, "state", "questions/x.json is not valid JSON", "remove it"},
		"empty record":          {write(runFile("20260301T000000.000Z-abcdef", "run.json"), ""), f, "runs", "20260301T000000.000Z-abcdef/run.json: unexpected end", "rm -r "},
		"record as directory":   {write(runFile("20260301T000000.000Z-abcdef", "run.json/x"), ""), f, "runs", "20260301T000000.000Z-abcdef/run.json: is a directory", "chmod -R u+rwX "},
		"claims of a job":       {func(w *world) { w.write("state/slots/x/20260101T000000Z", "{}"); w.chmod("state/slots/x", 0o000) }, f, "state", "state/slots/x: you cannot read it", "chmod 700"},
		"unreadable claim": {func(w *world) {
			w.write("state/slots/x/20260101T000000Z", "{}")
			w.chmod("state/slots/x/20260101T000000Z", 0)
		}, f, "state", "20260101T000000Z: you cannot read it", "chmod 600"},
		"unreadable claims": {plantUnreadable, f, "state", "state/slots/x: you cannot read 2 files in it, such as 20260101T000000Z", "chmod -R u+rwX "},
		"no folder":         {func(w *world) { w.remove("gates") }, w, "modes", "no such directory", "ollim init"},
		"file as folder":    {func(w *world) { w.remove("tasks"); w.write("tasks", "") }, f, "modes", "not a directory", "ollim init"},
		"open settings":     {func(w *world) { w.chmod("config.yaml", 0o622) }, f, "modes", "others can write it", "chmod 600"},
		"link in state":     {func(w *world) { w.link("state/budget", "/tmp") }, f, "state", "symbolic link", "replace it"},
		"state as link":     {func(w *world) { w.move("state", "elsewhere"); w.link("state", "elsewhere") }, f, "state", "symbolic link", "replace it"},
		"file as routines":  {func(w *world) { w.remove("routines"); w.write("routines", "") }, f, "jobs", "not a directory", "move it away"},
		"unreadable state":  {func(w *world) { w.write("state/x.json", "{}"); w.chmod("state/x.json", 0o000) }, f, "state", "cannot read and write", "chmod 600"},
		"broken lines":      {write("state/session_history.jsonl", "{}\n{\n\x00\n"), w, "state", "2 lines cannot be read", "remove those lines"},
		"monitor of ticks":  {func(w *world) { w.must("config", "set", "heartbeat", "http://"+freeAddress(w.t)); w.run("tick") }, w, "heartbeats", "the monitor of tick has not answered since", "heartbeat in config.yaml"},
		"session gone":      {write("state/sessions.json", "s-gone"), w, "sessions", "the session main, s-gone, is unknown", "ollim session clear main"},
		"session of nobody": {write("state/sessions.json", "20260102T030405.678Z-0a1b2c"), f, "sessions", "belongs to no engine", "ollim session clear main"},
		"broken state":      {write("state/ping_budget.json", "{"), f, "state", "not valid JSON", "restore it"},
		"set aside":         {write("state/approvals.json.corrupt-20260101T000000.000000Z", "{"), w, "state", "was set aside", "read it"},
		"bad routine":       {write("routines/bad.md", "---\nid: bad\ncron: \"61 * * * *\"\n---\nx\n"), f, "jobs", "routines/bad.md:3: cron", "ollim check"},
		"one id twice":      {func(w *world) { w.copyJob("daily", "again") }, f, "jobs", "is used twice", "ollim check"},
		"bad reminder":      {write("reminders/bad.md", "no frontmatter"), f, "jobs", "reminders/bad.md", "ollim check"},
		"never fires":       {write("routines/never.md", routineText("never", "0 9 31 2 *", "")), w, "jobs", "never fires", "ollim routine edit never"},
		"no gate":           {write("routines/g.md", routineText("g", "0 9 * * *", "gate: nothing\n")), f, "jobs", "gates/nothing", "create it"},
		"gate without mode": {func(w *world) {
			w.write("gates/g", "#!/bin/sh\n")
			w.write("routines/g.md", routineText("g", "0 9 * * *", "after: g\n"))
		}, f, "jobs", "not executable", "chmod +x"},
		"bad skill":         {write("skills/x/SKILL.md", "nothing"), f, "skills", "skills/x/SKILL.md", "ollim check"},
		"no skill":          {write("routines/g.md", routineText("g", "0 9 * * *", "skills: [cook]\n")), f, "skills", `no skill "cook"`, "create it"},
		"bad subagent":      {write("agents/x.md", "nothing"), f, "skills", "agents/x.md", "ollim check"},
		"no subagent":       {write("routines/g.md", routineText("g", "0 9 * * *", "subagent: cook\n")), f, "skills", `no agent "cook"`, "create it"},
		"unapproved job":    {write("routines/g.md", routineText("g", "0 9 * * *", "allowed-tools: [WebFetch]\n")), w, "approvals", "g does not run", "ollim approve g"},
		"unapproved policy": {write("tool-policy.yaml", "main:\n  additional-allowed: [\"Bash(df -h)\"]\n"), w, "approvals", "gives no tools", "ollim approve tool-policy.yaml"},
		"bad policy":        {write("tool-policy.yaml", "main: [\n"), f, "approvals", "tool-policy.yaml", "ollim approve"},
		"no server program": {set("mcp-servers.docs.command", "/nowhere/server"), f, "servers", "/nowhere/server", "mcp-servers.docs"},
		"unknown server":    {write("routines/g.md", routineText("g", "0 9 * * *", "allowed-tools: [mcp__gone__x]\n")), f, "servers", "the MCP server gone", "add it"},
		"no engine":         {func(w *world) { w.write("config.yaml", "timezone: UTC\n") }, f, "engine", "no engine is configured", "config set engine"},
		"no script":         {func(w *world) { w.remove("script.yaml") }, f, "engine", "script.yaml", ""},
		"no key":            {set("engine", "native"), f, "engine", "no key", "engine.ANTHROPIC_API_KEY"},
		"no claude":         {func(w *world) { w.useClaude(); os.Remove(filepath.Join(w.home, "bin/claude")) }, f, "engine", "bin/claude", "claude-code.command"},
		"claude for nobody": {func(w *world) { w.useClaude(); os.Chmod(filepath.Join(w.home, "bin/claude"), 0o600) }, f, "engine", "permission denied", "install it"},
		"old claude":        {func(w *world) { w.useVersion("1.0.9") }, w, "engine", "claude 1.0.9 is older than 2.1.", "npm install"},
		"new claude":        {func(w *world) { w.useVersion("2.2.0") }, w, "engine", "claude 2.2.0 is newer than 2.1.", "npm install"},
		"claude that drifted": {func(w *world) {
			w.useClaude()
			w.knowClaude(fakeVersion, "a changed system prompt does not arrive")
		}, f, "engine", "a changed system prompt does not arrive", "npm install"},
		"claude not tried": {func(w *world) { w.useClaude("FAKE_VERSION=2.1.300") }, f, "engine", "claude 2.1.300 does not do what ollim relies on", "npm install"},
		"a trial that is not kept": {func(w *world) {
			w.useClaude()
			w.remove("state/cache/claude.json")
			w.write("state/cache/claude.json/x", "")
		}, w, "engine", "claude 2.1.330 was examined, and the next run will examine it again: ", "free disk space, or make "},
		"no place for a trial": {func(w *world) {
			w.useClaude()
			w.remove("state/cache")
			w.write("state/cache", "")
		}, f, "engine", "state/cache: not written: not a directory", "free disk space, or make "},
		"claude logged out":     {func(w *world) { w.useClaude("FAKE_LOGGED_OUT=1") }, f, "engine", "not logged in", "claude auth login"},
		"claude cannot keep":    {func(w *world) { w.useClaude("CLAUDE_CONFIG_DIR=/proc/nowhere") }, f, "engine", "cannot keep its sessions", "CLAUDE_CONFIG_DIR"},
		"claude of a shell":     {plantShellClaude, f, "engine under cron", "node", "env in config.yaml"},
		"engine of a job":       {write("routines/g.md", routineText("g", "0 9 * * *", "engine: native\n")), f, "engine", "no key", "engine.ANTHROPIC_API_KEY"},
		"entries not current":   {func(w *world) { w.must("routine", "add", "more", "--cron", "0 8 * * *", "--background", "x") }, w, "entries", "not current", "ollim schedule install crontab"},
		"entries of no program": {func(w *world) { w.crontab(strings.ReplaceAll(w.table(), self(w.t)+" ", "/gone/ollim ")) }, f, "entries", "/gone/ollim, which does not exist", "ollim schedule install crontab"},
		"entries without end":   {func(w *world) { w.crontab(strings.Replace(w.table(), "# END ollim\n", "", 1)) }, f, "entries", "no end", "crontab -e"},
		"entries of another":    {func(w *world) { w.crontab(strings.ReplaceAll(w.table(), w.dir, "/other")) }, w, "entries", "another data directory, /other", "schedule remove crontab"},
		"cluster unreachable":   {plantCluster(`echo "connection refused" >&2; exit 1`), w, "entries", "kubernetes --claim data: not compared: kubectl get: exit status 1: connection refused", "ollim schedule diff kubernetes --claim data --image i --tick-only"},
		"cluster not current":   {plantCluster(`case $* in get*) echo '{"kind":"List","items":[]}' ;; *) echo '{"kind":"CronJob","metadata":{"name":"x"}}' ;; esac`), w, "entries", "kubernetes --claim data: its entries are not current: 1 change", "ollim schedule install kubernetes --claim data --image i --tick-only"},
		"cluster of another":    {plantCluster(`echo '{"kind":"List","items":[{"metadata":{"name":"x","annotations":{"ollim/data-dir":"/other"}}}]}'`), w, "entries", "another data directory, /other", "schedule remove kubernetes --claim data"},
		"record of clusters":    {write("state/clusters.json", "{"), f, "entries", "unexpected end of JSON", "install the entries again"},
		"changed unit": {func(w *world) {
			w.unit("# Written by ollim; hash 0\nExecStart=/bin/sh --data-dir " + w.dir + " tick\n")
		}, f, "entries", "not as ollim wrote it", "drop-in"},
		"no tick":               {func(w *world) { w.remove("state/tick.json") }, f, "tick", "never seen", "the log of cron"},
		"no schedule":           {func(w *world) { w.must("schedule", "remove", "crontab"); w.remove("state/tick.json") }, f, "tick", "never seen: no schedule is installed", "ollim schedule install"},
		"no cron daemon":        {func(w *world) { w.noCron = true; w.remove("state/tick.json") }, f, "tick", "never seen: no cron daemon is running", "cron"},
		"tick stopped":          {later(20 * time.Minute), f, "tick", "last seen 20m0s ago", "the log of cron"},
		"paused":                {func(w *world) { w.must("pause", "2h") }, w, "tick", "paused until", "ollim resume"},
		"broken pause":          {write("state/pause.json", "{"), f, "tick", "treated as paused", "ollim resume"},
		"missed slots":          {func(w *world) { w.pass(25 * time.Hour); w.must("tick") }, w, "slots", "1 slot missed", "ollim schedule audit"},
		"unaccounted slots":     {later(25 * time.Hour), f, "slots", "1 slot unaccounted for", "ollim schedule audit"},
		"nothing may be spent":  {set("spend.per-run", "0"), f, "spending", "spend.per-run is 0", "config set spend.per-run"},
		"grown":                 {plantGrowth, w, "growth", "state/runs 3072.0 MiB, 438.9 MiB a day", "keep.runs"},
		"day is spent":          {set("spend.per-day", "0"), w, "spending", "today", "spend.per-day"},
		"month is spent":        {set("spend.per-month", "0"), w, "spending", "this month", "spend.per-month"},
		"no runs left":          {set("spend.runs-per-day", "0"), w, "spending", "there were 0 of 0", "spend.runs-per-day"},
		"no delivery":           {func(w *world) { w.write("config.yaml", "timezone: UTC\nengine: script:script.yaml\n") }, f, "delivery", "no delivery is configured", "delivery.command"},
		"no delivery program":   {set("delivery.command", "/nowhere/mail"), f, "delivery", "/nowhere/mail", "delivery.command"},
		"undelivered":           {func(w *world) { w.must("config", "set", "delivery.command", "false"); w.run("ping", "hello") }, w, "outbox", "1 waiting", "ollim tick"},
		"discord token refused": {plantDiscord, f, "discord API", "", "network"},
		"no webhook secret":     {func(w *world) { w.must("webhook", "add", "ci", "--field", "tag", "Look."); w.secretsAs("", 0o600) }, f, "webhooks", "no call of ci is accepted", "ollim secret set webhook.ci"},
		"no webhook server":     {plantHook, w, "webhooks", "no server accepts calls", "ollim webhook serve"},
		"events of no webhook":  {plantEvent("gone"), w, "webhooks", "which does not exist", "restore"},
		"old events":            {func(w *world) { plantHook(w); plantEvent("ci")(w) }, w, "webhooks", "1 event of the webhook ci wait since", "rate-limit"},
		"clock set back":        {later(-time.Hour), f, "clock", "ollim tick ran at", "timedatectl"},
		"run of the future":     {write(runFile("20300101T000000.000Z-abcdef", "run.json"), "{}"), f, "clock", "1 run began later", "timedatectl"},
		"dead run":              {plantDeadRun, w, "runs", "its record is incomplete", "ollim tick"},
		"lock as link":          {func(w *world) { w.link("state/locks/x.lock", "/tmp") }, f, "locks", "not a file", "remove it"},
		"process of a run":      {plantMarkedProcess, w, "runs", "(sleep) is left of run ", "kill "},
		"hung lock":             {plantHungLock, f, "locks", "held for 10s", "fuser"},
		"a door that fails":     {plantFailingDoor, f, "doors", "radio does not run", "ollim door test"},
		"left behind":           {plantLeftover, f, "locks", "left behind by run", "kill"},
	}
}

// plantFailingDoor lets a door be served whose program ends soon after each start.
func plantFailingDoor(w *world) {
	w.must("config", "set", "doors.radio.command", "sh")
	held, err := lock.Try(filepath.Join(w.dir, "state/locks/door_radio.lock"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(held.Release)
	write("state/door_radio_failure.txt", "it ended before it said hello\n")(w)
}

// TestDoctorNamesAFaultOnce: what one fault breaks is not named as another.
func TestDoctorNamesAFaultOnce(t *testing.T) {
	t.Parallel()
	w := sound(t)
	w.useClaude()
	w.secretsAs("engine.ANTHROPIC_API_KEY=x\n", 0o644)
	w.crontab(strings.ReplaceAll(w.table(), self(t)+" ", "/gone/ollim "))
	list, _ := w.findings()
	var found []string
	for _, f := range list {
		if f.Result != doctor.Pass {
			found = append(found, f.What)
		}
	}
	if want := []string{"secrets", "entries"}; !slices.Equal(found, want) {
		t.Errorf("%q, want %q", found, want)
	}
}

func TestDoctorFindsEachFault(t *testing.T) {
	t.Parallel()
	if n := len(faults()); n < 25 {
		t.Fatalf("%d faults", n)
	}
	for name, f := range faults() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := sound(t)
			f.plant(w)
			list, status := w.findings()
			found := slices.ContainsFunc(list, func(got doctor.Finding) bool {
				return got.Result == f.result && got.What == f.what && strings.Contains(got.Text, f.text) && strings.Contains(got.Remedy, f.remedy) &&
					(got.Remedy == "" || !strings.Contains(got.Text, got.Remedy))
			})
			failed := slices.ContainsFunc(list, func(got doctor.Finding) bool { return got.Result == doctor.Fail })
			if !found || (status == 1) != failed || status > 1 {
				t.Errorf("exit status %d, want %s %s: %s: %s in", status, f.result, f.what, f.text, f.remedy)
				for _, got := range list {
					t.Logf("%+v", got)
				}
			}
			for _, got := range list {
				if got.Result != doctor.Pass && got.Remedy == "" {
					t.Errorf("without a remedy: %+v", got)
				}
			}
		})
	}
}

// TestDeliveryIsNamedAsTyped: doctor names the delivery by the line that the owner typed, not by the shell that runs it.
func TestDeliveryIsNamedAsTyped(t *testing.T) {
	t.Parallel()
	w := sound(t)
	for typed, want := range map[string]string{"cat >> inbox.txt": "by cat >> inbox.txt", "cat >> " + strings.Repeat("x", 80): "by cat >> " + strings.Repeat("x", 52) + "…"} {
		w.must("config", "set", "delivery.command", "sh", "-c", typed)
		w.wants(w.must("doctor"), "PASS\tdelivery\t"+want+"\t\n")
	}
}

// TestDoctorOnATerminal: the faults come last, then a line that counts the findings; a pipe has them in the order of the checks.
func TestDoctorOnATerminal(t *testing.T) {
	t.Parallel()
	w := sound(t)
	if r := w.onTerminal("doctor"); r.status != 0 || !strings.HasSuffix(r.out, " checks: nothing is wrong\n") {
		t.Errorf("%+v", r)
	}
	w.remove("script.yaml")
	w.must("pause", "2h")
	r := w.onTerminal("doctor")
	lines := strings.Split(strings.TrimSuffix(r.out, "\n"), "\n")
	worst := 0
	for _, line := range lines[1 : len(lines)-1] {
		if line[0] == ' ' { // goes on
			continue
		}
		rank := slices.Index([]string{doctor.Pass, doctor.Warn, doctor.Fail}, strings.Fields(line)[0])
		if rank < worst {
			t.Errorf("after a worse one: %s", line)
		}
		worst = rank
	}
	if sum := lines[len(lines)-1]; r.status != 1 || worst != 2 || !strings.HasSuffix(sum, " PASS, 1 WARN, 1 FAIL") {
		t.Errorf("%d: %s", r.status, sum)
	}
	if out := w.run("doctor").out; !strings.Contains(out, "FAIL\tengine\t") || !strings.HasPrefix(out[strings.LastIndex(out[:len(out)-1], "\n")+1:], "PASS\tlocks\t") {
		t.Errorf("in a pipe: %s", out)
	}
}

// TestTypedTick: a tick at a terminal does not show that something runs ticks; who sets a reminder or a routine meanwhile is told.
func TestTypedTick(t *testing.T) {
	t.Parallel()
	w := sound(t)
	w.noCron = true
	if r := w.onTerminal("remind", "45m", "tea"); r.errOut != "" {
		t.Errorf("a tick was just here: %q", r.errOut)
	}
	w.pass(20 * time.Minute)
	if r := w.onTerminal("tick"); r.status != 0 {
		t.Errorf("%+v", r)
	}
	w.wants(w.must("status"), "tick\tnot running\tMon 2026-03-02 10:00 UTC\tno cron daemon is running\t")
	for _, args := range [][]string{{"remind", "45m", "tea"}, {"routine", "add", "weekly", "--cron", "0 9 * * 1", "Look."}} {
		if r := w.onTerminal(args...); r.status != 0 || !strings.Contains(r.errOut, "nothing fires it: no cron daemon is running") || strings.Contains(r.out, "fires") {
			t.Errorf("%s: %+v", args, r)
		}
		if r := w.run(args...); r.errOut != "" && args[0] == "remind" {
			t.Errorf("%s: not at a terminal: %q", args, r.errOut)
		}
	}
	w.must("tick")
	w.wants(w.must("status"), "tick\trunning\t")
}
