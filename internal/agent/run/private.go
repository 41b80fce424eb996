package run

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/runlog"
)

// Sealing is the configuration of the seals of runs.
type Sealing struct {
	Mode  string                      // mode in the settings: auto, config.SealOn or config.SealOff
	Check func() (abi int, err error) // returns the kernel's version of Landlock
	Self  string                      // path of this program
	Temp  string                      // where a run's directory of temporary files is made
	Cache string                      // directory of the caches of jobs; "": no caches are kept
}

// SealWish is what a job's file says about the seal.
type SealWish struct {
	On      bool // the run is refused if nothing can be sealed
	Offline bool // programs may connect only to servers that were started in the run

	Open []string // keys of the owner's executables that are exempt from the seal
}

// Support returns the version of Landlock that seals a run, or the reason why the run is not sealed. It returns a *Refusal if the run
// must be sealed because of the settings or because on is set.
func (s Sealing) Support(on bool) (abi int, why string, err error) {
	mode := s.Mode
	if on {
		mode = config.SealOn
	}
	if mode == config.SealOff {
		return abi, "seal: off", nil
	}
	abi, err = s.Check()
	if err == nil {
		return abi, "", nil
	}
	if mode == config.SealOn {
		return abi, "", &Refusal{Kind: ErrRefused, Reason: "seal: on: " + err.Error(), cause: err}
	}
	return abi, err.Error(), nil
}

const (
	temporaryPrefix = "ollim-"            // prefix of the names of directories of temporary files; the id of the run follows
	cacheLife       = 14 * 24 * time.Hour // age at which an unused cache is removed
)

// private returns two directories without links: that of the run's temporary files, which is removed with the run, and that of the
// caches, which later runs of the same job use again. They are not the owner's own caches, because files that an agent leaves must not
// become part of the owner's programs. An owner without a writable home directory, such as many system users, has no caches, and only
// temporary files.
func (b *sandbox) private() (temporary, cache string) {
	temporary = b.r.Host.Sealing.temporary(b.run.ID)
	r := b.run.Record
	sum := sha256.Sum256([]byte(strings.Join([]string{string(b.r.Home), r.Kind, r.Job, r.Root, r.Network}, "\x00")))
	// shared by the runs of one job, or by the questions in one directory
	cache = filepath.Join(b.r.Host.Sealing.Caches(), r.Kind+"-"+hex.EncodeToString(sum[:8]))
	if real, err := policy.Resolve(cache); err != nil || real != cache || !filepath.IsAbs(cache) || !canMake(cache) {
		cache = filepath.Join(temporary, "cache")
	}
	return temporary, cache
}

// temporary returns the directory of a run's temporary files, without links. Sweep knows it by its name.
func (s Sealing) temporary(run string) string {
	dir, err := filepath.EvalSymlinks(s.Temp)
	if err != nil {
		dir = s.Temp
	}
	return filepath.Join(dir, temporaryPrefix+run+"-"+strconv.Itoa(os.Getpid()))
}

// Caches returns the directory of all caches, without links in its path; "" if there can be none. It rejects a link in its place, which
// the agent of a job with rw:~/.cache can have made.
func (s Sealing) Caches() string {
	around := filepath.Dir(s.Cache)
	_, err := os.Stat(filepath.Dir(around))
	real, linkErr := policy.Resolve(around)
	dir := filepath.Join(real, filepath.Base(s.Cache))
	if info, statErr := os.Lstat(dir); s.Cache == "" || errors.Join(err, linkErr) != nil || statErr == nil && !info.IsDir() {
		return ""
	}
	return dir
}

// canMake reports whether this process may make a directory, or write in it if it exists.
func canMake(dir string) bool {
	const writing = 2 // W_OK
	err := syscall.Access(dir, writing)
	for ; errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir); err = syscall.Access(dir, writing) {
		dir = filepath.Dir(dir)
	}
	return err == nil
}

// makePrivate makes the two directories. It fails if the one for temporary files exists, which may be another user's.
func (b *sandbox) makePrivate(temporary, cache string) error {
	now := b.r.Disk.Now()
	return errors.Join(os.Mkdir(temporary, 0o700), os.MkdirAll(cache, 0o700), os.Chtimes(cache, now, now))
}

// makeCanary makes the file that no sealed program may open, unless it exists.
func makeCanary(path string) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return store.Write(path, []byte("A sealed program cannot read this file; every start of one tries it.\n"), store.Buffered)
}

// privateVars returns the variables that tell programs the two directories.
func privateVars(temporary, cache string) []string {
	return []string{
		"SHLVL=2", // without SHLVL a bash whose input is a socket, or below ssh, reads the owner's .bashrc, which is sealed off
		"TMPDIR=" + temporary, "TMP=" + temporary, "TEMP=" + temporary, "XDG_CACHE_HOME=" + cache,
		"GOCACHE=" + filepath.Join(cache, "go-build"), "npm_config_cache=" + filepath.Join(cache, "npm"),
	}
}

// Clear removes the temporary files of a run that another process has closed. What is left when ctx ends is for Sweep.
func (s Sealing) Clear(ctx context.Context, run string) error {
	dirs, err := s.temporaries(run)
	for _, dir := range dirs {
		err = errors.Join(err, store.RemoveAll(ctx, dir))
	}
	return err
}

// temporaries returns the directories that temporary has made for the runs whose ids match a pattern.
func (s Sealing) temporaries(runs string) ([]string, error) {
	return filepath.Glob(filepath.Join(s.Temp, temporaryPrefix+runs+"-*"))
}

// Sweep removes the temporary files that killed runs have left, or runs with very many of them, and caches that were not used for two
// weeks. It stops when ctx ends; the next call continues.
func (s Sealing) Sweep(ctx context.Context, runs runlog.Book, now time.Time) error {
	temporary, err := s.temporaries("2*Z-*")
	for _, dir := range temporary {
		id := strings.TrimPrefix(filepath.Base(dir), temporaryPrefix)
		id = id[:strings.LastIndexByte(id, '-')]
		if record, loadErr := runs.Load(id); loadErr == nil && (record.Done() || !runs.Alive(record)) {
			err = errors.Join(err, store.RemoveAll(ctx, dir))
		}
	}
	caches, _ := os.ReadDir(s.Caches()) // if the directory cannot be listed, this user's runs have no caches in it
	for _, entry := range caches {
		info, statErr := entry.Info()
		if statErr == nil && info.IsDir() && info.ModTime().Before(now.Add(-cacheLife)) {
			err = errors.Join(err, store.RemoveAll(ctx, filepath.Join(s.Caches(), entry.Name())))
		}
	}
	return err
}
