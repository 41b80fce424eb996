package doctor

import (
	"context"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/store"
)

// Bounds of the search for planted code.
const (
	plantedDepth = 5
	plantedFiles = 100_000
	plantedBytes = 1 << 20 // of a file that is read
	plantedDays  = 30      // the runs that are looked at
)

// written maps directories that runs could write to the first such time.
type written map[string]time.Time

// planted warns of code that a run may have left where the owner's own programs execute it later, unsealed: settings and hooks of
// git and claude, and what editors and shells run when a directory is entered. It looks at files that were changed since a sealed run that could
// write there began. The time of the last change of an inode counts, which no program can set.
func (e *examination) planted(context.Context) string {
	dirs := written{}
	past, _ := e.home.Runs.Tally(e.App.Now().AddDate(0, 0, -plantedDays)) // runs reports the error
	for _, t := range past.Tallies {
		for dir, at := range t.Writes {
			if first, known := dirs[dir]; !known || at.Before(first) {
				dirs[dir] = at
			}
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		left := plantedFiles
		_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error { // what cannot be read is left out
			if left--; left < 0 {
				e.warn("look for hooks and settings in it that you did not make", "%s has more than %d files: not all were searched for code that a run left", dir, plantedFiles)
				return fs.SkipAll
			}
			if err != nil {
				return nil //nolint:nilerr // see above
			}
			rel, _ := filepath.Rel(dir, path)
			if entry.IsDir() && (entry.Name() == "node_modules" || strings.Count(rel, "/") >= plantedDepth) {
				return fs.SkipDir
			}
			why := runsCode(path, entry)
			if why == "" {
				return nil
			}
			if info, err := os.Lstat(path); err == nil && changed(info).After(dirs[dir]) {
				e.warn("read it before you work in "+dir, "%s: %s; it was changed after a run that could write there", path, why)
			}
			return nil
		})
	}
	return ""
}

// runsCode returns how programs that only look at the directory execute the content of a file; "" if they do not.
func runsCode(path string, entry fs.DirEntry) string {
	if !entry.Type().IsRegular() && entry.Type()&fs.ModeSymlink == 0 {
		return ""
	}
	parent, name := filepath.Base(filepath.Dir(path)), entry.Name()
	switch {
	case (name == "config" || name == "config.worktree") && (parent == ".git" || isGit(filepath.Dir(path))), name == ".gitmodules":
		if key := gitRuns(path); key != "" {
			return "git runs what " + key + " says"
		}
	case parent == "hooks" && filepath.Ext(name) != ".sample" && isGit(filepath.Dir(filepath.Dir(path))):
		return "git runs this hook"
	case name == ".envrc":
		return "direnv runs it"
	case parent == ".vscode" && name == "tasks.json":
		if data, err := store.ReadText(path, plantedBytes, false); err == nil && strings.Contains(string(data), `"folderOpen"`) {
			return "an editor runs its tasks when the folder is opened"
		}
	case parent == ".husky":
		return "git runs this hook"
	case parent == ".claude" && (name == "settings.json" || name == "settings.local.json"):
		return "claude runs its hooks"
	case name == ".mcp.json":
		return "claude starts its servers"
	}
	return ""
}

// isGit reports whether a directory is a git repository: that of a working tree, or a bare one.
func isGit(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, "HEAD"))
	return err == nil
}

// gitRuns returns the first key in a git configuration file whose value git executes; "" if there is none.
func gitRuns(path string) string {
	data, err := store.ReadText(path, plantedBytes, false)
	if err != nil {
		return ""
	}
	const keys = `core.fsmonitor core.hookspath core.sshcommand core.pager core.editor core.askpass core.gitproxy
		sequence.editor diff.external diff.textconv diff.command filter.clean filter.smudge filter.process merge.driver
		credential.helper gpg.program gpg.ssh.program include.path includeif.path pager.diff pager.log pager.show pager.status
		remote.uploadpack remote.receivepack submodule.update interactive.difffilter
		trailer.cmd trailer.command difftool.cmd mergetool.cmd core.alternaterefscommand`
	section := ""
	for line := range strings.Lines(strings.TrimPrefix(string(data), "\ufeff")) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "["); ok {
			header, after, _ := strings.Cut(rest, "]")
			name, _, _ := strings.Cut(strings.TrimSpace(header), " ")
			name, _, _ = strings.Cut(name, ".") // [diff.x] is [diff "x"]
			section, line = strings.ToLower(name), strings.TrimSpace(after)
		}
		name, value, _ := strings.Cut(line, "=")
		key, value := section+"."+strings.ToLower(strings.TrimSpace(name)), strings.Trim(strings.TrimSpace(value), `"`)
		if section == "alias" && strings.HasPrefix(value, "!") || slices.Contains(strings.Fields(keys), key) && value != "true" && value != "false" {
			return key
		}
	}
	return ""
}
