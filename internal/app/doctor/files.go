package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/platform/yamldoc"
	"github.com/ollim/ollim/internal/state/approval"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/skill"
)

// directory checks that the data directory exists and is this user's.
func (e *examination) directory(context.Context) string {
	dir := string(e.home.Dir)
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.fail("ollim init", "%s: no such directory", dir)
	case err != nil:
		e.fault(err, "")
	case !info.IsDir():
		e.fail("move it away, then: ollim init", "%s: not a directory", dir)
	case int(info.Sys().(*syscall.Stat_t).Uid) != os.Geteuid():
		e.fail("run ollim as its owner, or: chown -R $(id -u) "+dir, "%s belongs to another user", dir)
	}
	return dir
}

// settings reads the configuration as every command does.
func (e *examination) settings(context.Context) string {
	file := e.App.ConfigFile(e.home.Dir)
	if errors.Is(e.unusable, app.ErrNoConfig) {
		e.fault(e.unusable, "ollim init")
	} else {
		e.fault(e.unusable, "correct "+file+", or the variable that is named; then: ollim check")
	}
	return file
}

// secrets reads the secrets as the commands do that need them.
func (e *examination) secrets(context.Context) string {
	file := e.App.SecretsFile()
	remedy := "correct the line"
	err := e.App.CheckSecrets()
	if faults := (yamldoc.Faults)(nil); errors.As(err, &faults) && faults[0].Line == 0 {
		remedy = "chmod 600 " + faults[0].File
		faults[0].Reason = strings.TrimSuffix(faults[0].Reason, ": "+remedy)
	}
	e.fault(err, remedy)
	if rel, err := filepath.Rel(string(e.home.Dir), file); err == nil && filepath.IsLocal(rel) {
		e.fail("move it away: unset XDG_CONFIG_HOME, or set it to another directory", "%s lies in the data directory, which agents read", file)
	}
	if info, err := os.Stat(filepath.Dir(file)); err == nil && info.Mode().Perm()&0o022 != 0 {
		e.fail("chmod 700 "+filepath.Dir(file), "%s: others can write it (%#o)", filepath.Dir(file), info.Mode().Perm())
	}
	if _, err := os.Stat(file); err != nil {
		return "none"
	}
	return file
}

// modes checks that other users cannot enter the data directory, and that the owner can read and change it. The mode of the directory
// protects what is in it.
func (e *examination) modes(context.Context) string {
	dir := string(e.home.Dir)
	if mode, ok := modeOf(dir); ok && mode&0o077 != 0 {
		e.fail("chmod 700 "+dir, "%s: others can enter it (%#o)", dir, mode)
	}
	for _, folder := range e.home.Dir.Folders() {
		if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
			e.warn("ollim init", "%s: no such directory", folder)
		}
		e.folder(folder)
	}
	for _, folder := range e.home.Dir.StateFolders() {
		e.folder(folder)
	}
	for _, file := range []string{e.App.ConfigFile(e.home.Dir), e.home.Dir.ToolPolicy()} {
		if mode, ok := modeOf(file); ok && mode&0o022 != 0 {
			e.fail("chmod 600 "+file, "%s: others can write it (%#o)", file, mode)
		}
	}
	return "only you can enter " + dir
}

// folder checks that the owner can read and change a directory, if it is there. The check "state" reports a link.
func (e *examination) folder(path string) {
	switch info, err := os.Stat(path); {
	case err != nil: // it is missing, or the directory that it is in is reported
	case !info.IsDir():
		e.fail("move it away, then: ollim init", "%s: not a directory", path)
	case !usable(path, info, 0o700):
		e.fail(opening(info, "700", path), "%s: you cannot read and change it (%#o)", path, info.Mode().Perm())
	}
}

// usable reports whether the owner may use a file or a directory as the bits of a mode say, by its mode and by its user. Root may, but the
// mode must allow it all the same.
func usable(path string, info fs.FileInfo, bits fs.FileMode) bool {
	return info.Mode().Perm()&bits == bits && syscall.Access(path, uint32(bits>>6)) == nil
}

// opening returns the command that makes a file or a directory usable, where it is this user's, else the one that makes it so.
func opening(info fs.FileInfo, mode, path string) string {
	if int(info.Sys().(*syscall.Stat_t).Uid) != os.Geteuid() && os.Geteuid() != 0 {
		return "sudo chown -R $(id -u) " + path
	}
	return "chmod " + mode + " " + path
}

func modeOf(path string) (mode fs.FileMode, ok bool) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, false
	}
	return info.Mode().Perm(), true
}

// state checks the files of state/ and sessions/: regular files that the owner can read and write, no links, and valid JSON if the name
// says so. It reports files that were set aside, and what the owner cannot read in the directories of state/.
func (e *examination) state(ctx context.Context) string {
	dir := e.home.Dir
	for _, folder := range []string{dir.State(), dir.Sessions()} {
		if info, err := os.Lstat(folder); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			e.fail("replace it with the directory itself", "%s is a symbolic link: a program could redirect what is written there", folder)
		}
	}
	entries, err := store.List(dir.State())
	if err != nil {
		e.fault(err, "")
	}
	for _, entry := range entries {
		e.stateFile(dir.State(entry.Name()), entry)
	}
	questions, _ := store.List(dir.Questions()) // the check "modes" reports the error
	for _, entry := range questions {
		e.stateFile(filepath.Join(dir.Questions(), entry.Name()), entry)
	}
	e.unreadable(ctx)
	return plaintext.Count(len(entries), "file")
}

func (e *examination) stateFile(path string, entry fs.DirEntry) {
	info, err := entry.Info()
	switch {
	case err != nil || store.IsDraft(entry.Name()): // it is gone, or is being written
	case info.Mode()&fs.ModeSymlink != 0:
		e.fail("replace it with the file that it points to", "%s is a symbolic link, and ollim does not follow it", path)
	case info.IsDir():
	case !info.Mode().IsRegular():
		e.fail("remove it", "%s is not a file", path)
	case info.Mode().Perm()&0o600 != 0o600:
		e.fail("chmod 600 "+path, "%s: you cannot read and write it (%#o)", path, info.Mode().Perm())
	case strings.Contains(entry.Name(), ".corrupt-"):
		e.warn("read it, then remove it", "%s was set aside because it was not valid", path)
	case filepath.Ext(path) == ".jsonl":
		bad := 0
		for _, err := range store.Lines[json.RawMessage](path, &bad) {
			e.fault(err, "")
		}
		if bad > 0 {
			e.warn("read it, and remove those lines", "%s: %s cannot be read", path, plaintext.Count(bad, "line"))
		}
	case filepath.Ext(path) == ".json" && path != e.home.Dir.MainSession(): // that file is a bare string
		if data, err := store.Read(path); err != nil {
			e.fault(err, "")
		} else if !json.Valid(data) {
			e.fail("restore it, or remove it: then a new one is started", "%s is not valid JSON", path)
		}
	}
}

// loaded returns the job files that can be read. The check "jobs" reports the others.
func (e *examination) loaded() []job.Job {
	set, _ := e.home.Jobs.Load()
	return set.Jobs
}

// enabled returns the jobs that are to run.
func (e *examination) enabled() []job.Job {
	return slices.DeleteFunc(e.loaded(), func(j job.Job) bool { return !j.Enabled })
}

// jobs reads all job files, and looks for routines that never fire and for executables that are missing.
func (e *examination) jobs(context.Context) string {
	set, err := e.home.Jobs.Load()
	e.fault(err, "")
	if len(set.Faults) > 0 {
		e.fault(set.Faults, "correct the file; then: ollim check")
	}
	for _, j := range set.Jobs {
		if !j.Enabled {
			continue
		}
		if j.Kind == job.Routine && j.Schedule.Never() {
			e.warn("ollim routine edit "+j.Name(), "%s never fires: cron %q", j.Name(), j.Cron)
		}
		for _, program := range j.Unstartable(e.home.Dir) {
			e.fail("create it, or chmod +x "+program.Path+"; or remove "+program.Key+" from the job", "%s: %s: %s", j.Name(), program.Key, program.Reason)
		}
	}
	return plaintext.Count(len(set.Jobs), "job")
}

// skills reads all skills and subagents, and reports those that jobs name and that do not exist.
func (e *examination) skills(context.Context) string {
	const remedy = "correct the file; then: ollim check"
	found, faults, err := e.home.Skills.Load()
	e.fault(err, "")
	if len(faults) > 0 {
		e.fault(faults, remedy)
	}
	names := skill.AgentNames(e.home.Dir)
	for _, name := range names {
		_, err := skill.LoadAgent(e.home.Dir, name)
		e.fault(err, remedy)
	}
	for _, j := range e.enabled() {
		for _, name := range j.Skills {
			if _, err := e.home.Skills.Find(name); isUnknown(err) {
				e.fault(err, "create it, or remove it from skills of "+j.Name())
			}
		}
		if j.Subagent == "" {
			continue
		}
		if _, err := skill.LoadAgent(e.home.Dir, j.Subagent); isUnknown(err) {
			e.fault(err, "create it, or remove it from subagent of "+j.Name())
		}
	}
	return plaintext.Count(len(found), "skill") + ", " + plaintext.Count(len(names), "subagent")
}

// isUnknown reports whether a job names a file that does not exist. Other faults are reported once, for the file.
func isUnknown(err error) bool { return errors.As(err, new(*plaintext.Unknown)) }

// approvals names what waits for the owner.
func (e *examination) approvals(context.Context) string {
	book := e.home.Approvals
	for _, j := range e.enabled() {
		waits, err := book.Waits(j)
		e.fault(err, "ollim approve "+j.Name())
		if waits {
			e.warn("ollim approve "+j.Name(), "%s does not run: it waits for your approval", j.Name())
		}
	}
	policy, err := book.Policy()
	e.fault(err, "correct the file; then: ollim approve "+approval.PolicyName)
	if policy.Waits {
		e.warn("ollim approve "+approval.PolicyName, "%s gives no tools: it waits for your approval", approval.PolicyName)
	}
	return "nothing waits for your approval"
}

// servers looks at the MCP servers that are configured, and at those that jobs name.
func (e *examination) servers(context.Context) string {
	list := e.home.Config.Servers
	for _, s := range list {
		e.fault(e.home.ServerFault(s.Name), "correct mcp-servers."+s.Name+" in "+e.App.ConfigFile(e.home.Dir))
	}
	for _, j := range e.loaded() {
		for _, name := range e.home.UnknownServers(j) {
			e.fail("add it, or remove its tools from the job", "%s uses the MCP server %s, which is not in mcp-servers of config.yaml", j.Name(), name)
		}
	}
	if len(list) == 0 {
		return ""
	}
	return plaintext.Count(len(list), "MCP server")
}
