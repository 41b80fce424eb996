package doctor

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/ollim/ollim/internal/agent/notify"
	"github.com/ollim/ollim/internal/agent/tick"
	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/schedule/installer"
	"github.com/ollim/ollim/internal/state/job"
)

// probe reads what checks learn from the machine; a nil function is the machine's own.
type probe struct {
	Space  func(dir string) (freeSpace, error) // of the file system
	Mounts func() ([]byte, error)              // as in /proc/self/mountinfo
	Units  func(name string) bool              // reports whether systemd has a system unit
}

// freeSpace is what is left of a file system.
type freeSpace struct {
	Bytes uint64 // free for this user
	Files uint64 // inodes that are free
	Inode bool   // it counts inodes
}

// Bounds of what is left of a file system. A run's record takes some 100 KiB, a week of a busy installation some 100 MiB.
const (
	fewBytes  = notify.FewBytes
	someBytes = 500 << 20
	fewFiles  = 10_000
)

// disk checks that a file can be written, and that enough space is free.
func (e *examination) disk(context.Context) string {
	folder := e.home.Dir.State()
	if _, err := os.Stat(folder); err != nil {
		folder = string(e.home.Dir)
	}
	probe := filepath.Join(folder, "doctor.probe")
	err := store.Write(probe, make([]byte, 4<<10), store.Synced)
	if err == nil {
		err = store.Remove(probe)
	}
	e.fault(err, "free disk space, or make the file system writable: df -h "+folder)
	space := e.Probe.Space
	if space == nil {
		space = left
	}
	s, err := space(folder)
	remedy := "free disk space: df -h " + folder
	switch free := fmt.Sprintf("%d MiB are free", s.Bytes>>20); {
	case err != nil:
		e.fault(err, "")
	case s.Bytes < fewBytes:
		e.fail(remedy, "%s", free)
	case s.Bytes < someBytes:
		e.warn(remedy, "%s", free)
	case s.Inode && s.Files < fewFiles:
		e.warn("remove files: df -i "+folder, "%s left", plaintext.Count(int(s.Files), "inode"))
	default:
		return free
	}
	return "writable"
}

// Space returns the free space of the file system of a directory, in bytes.
func Space(dir string) (uint64, error) {
	s, err := left(dir)
	return s.Bytes, err
}

func left(dir string) (freeSpace, error) {
	var s syscall.Statfs_t
	err := syscall.Statfs(dir, &s)
	return freeSpace{Bytes: s.Bavail * uint64(s.Bsize), Files: s.Ffree, Inode: s.Files > 0}, err //nolint:gosec // a size is positive
}

// zone looks at the variables that name a zone. The zones of the settings and of jobs were checked when they were read.
func (e *examination) zone(context.Context) string {
	configured := e.home.Config.Timezone
	own, _ := e.App.Lookup("TZ")
	for place, name := range map[string]string{"TZ of the environment": strings.TrimPrefix(own, ":"), "TZ in env of config.yaml": variables(e.home.Config.Env)["TZ"]} {
		if _, err := time.LoadLocation(name); err != nil {
			e.fail("write one like Europe/Paris", "%s is %q, which is not a time zone", place, name)
		}
	}
	if machine := app.MachineZone(); !installer.SameZone(machine, configured) {
		return configured + "; cron and systemd use " + machine
	}
	return configured
}

// clock looks for records of the future: the clock is wrong, or it was.
func (e *examination) clock(context.Context) string {
	const remedy = "set the clock: timedatectl set-ntp true"
	now := e.App.Now()
	if seen, err := tick.Seen(e.home.Dir); err == nil && seen.After(now.Add(time.Minute)) {
		e.fail(remedy, "it is %s, and ollim tick ran at %s", e.clockText(now), e.clockText(seen))
	}
	if ahead, err := e.home.Runs.After(now.Add(time.Minute)); err == nil && len(ahead) > 0 {
		e.fail(remedy, "it is %s, and %s began later, such as %s", e.clockText(now), plaintext.Count(len(ahead), "run"), ahead[0])
	}
	return e.clockText(now)
}

// remote describes why locks on a file system may not exclude the processes of other machines; "" if they do, or if it is on this
// machine. fstype and options are those of mountinfo.
func remote(fstype string, options []string) string {
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(options, w) })
	}
	switch fstype {
	case "nfs", "nfs4":
		if has("nolock", "local_lock=all", "local_lock=flock") {
			return "is NFS, mounted so that locks stay on this machine"
		}
	case "cifs", "smb3":
		if has("nobrl", "nolock") {
			return "is SMB, mounted so that locks stay on this machine"
		}
	case "9p", "fuse.sshfs", "fuse.rclone", "fuse.s3fs", "fuse.gcsfuse", "vboxsf", "afs":
		return "is " + fstype + ", whose locks stay on this machine"
	}
	return ""
}

// mountOf finds the file system that holds a path, the one with the longest mount point, in a text as /proc/self/mountinfo.
func mountOf(mountinfo []byte, path string) (fstype string, options []string) {
	octal := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`) // as mountinfo writes these four
	longest := -1
	for line := range strings.Lines(string(mountinfo)) {
		mount, source, found := strings.Cut(line, " - ")
		fields, after := strings.Fields(mount), strings.Fields(source)
		if !found || len(fields) < 6 || len(after) < 3 {
			continue
		}
		point := octal.Replace(fields[4])
		rel, err := filepath.Rel(point, path)
		if err != nil || !filepath.IsLocal(rel) || len(point) < longest {
			continue
		}
		longest, fstype = len(point), after[0]
		options = strings.Split(fields[5]+","+after[2], ",")
	}
	return fstype, options
}

// start returns how to start a server: by the units of the package, if those are installed and would serve this data directory.
func (e *examination) start(verb, unit string, kinds ...string) string {
	has := e.Probe.Units
	if has == nil {
		has = func(unit string) bool {
			return slices.ContainsFunc([]string{"/etc", "/usr/local/lib", "/usr/lib", "/lib"}, func(dir string) bool {
				_, err := os.Stat(filepath.Join(dir, "systemd/system", unit))
				return err == nil
			})
		}
	}
	base, _ := e.App.UserHome()
	u, err := user.Current()
	if err != nil || string(e.home.Dir) != filepath.Join("/home", u.Username, app.UsualDir) && string(e.home.Dir) != filepath.Join(base, app.UsualDir) {
		return "start ollim " + verb
	}
	remedy := "systemctl enable --now"
	for _, kind := range kinds {
		if !has(unit + "@" + kind) {
			return "start ollim " + verb
		}
		remedy += " " + unit + "@" + u.Username + kind
	}
	return remedy + " (as root)"
}

// seal looks at what the kernel enforces on the programs that agents start.
func (e *examination) seal(context.Context) string {
	const remedy = "use Linux 6.12 or later, with Landlock; ollim-security(7) says what is not enforced until then"
	abi, why, err := e.home.Firer().Rules.Seals(job.New(job.Routine))
	switch {
	case err != nil:
		e.fault(err, remedy+"; or: ollim config set seal auto")
	case e.home.Config.Seal == "off":
		e.warn("ollim config set seal auto", "commands of agents are not sealed: seal: off")
	case why != "":
		e.warn(remedy, "commands of agents are not sealed: %s", why)
	}
	return fmt.Sprintf("commands of agents are sealed, by Landlock ABI %d, and end with ollim, even if it is killed", abi)
}
