package runner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ollim/ollim/internal/agent/confine"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/runlog"
)

const (
	temporaryPrefix = "ollim-"            // of the names of directories of temporary files; the id of the run follows
	cacheLife       = 14 * 24 * time.Hour // of a cache that no run has used
)

// private returns the run's directory of temporary files, which is removed with it, and the directory of caches, which later runs of the
// same job find again, both without links. They are not the owner's own caches: what an agent leaves there must not become part of the
// owner's programs. An owner without a home directory that can be written, as many system users are, has no caches, only files of the run.
func (w *work) private() (temporary, cache string) {
	dir, err := filepath.EvalSymlinks(w.Sealing.Temp)
	if err != nil {
		dir = w.Sealing.Temp
	}
	temporary = filepath.Join(dir, temporaryPrefix+w.run.ID+"-"+strconv.Itoa(os.Getpid()))
	cache = filepath.Join(w.caches(), cacheOf(string(w.Home), w.run.Record))
	if real, err := policy.Resolve(cache); err != nil || real != cache || !filepath.IsAbs(cache) || !canMake(cache) {
		cache = filepath.Join(temporary, "cache")
	}
	return temporary, cache
}

// caches returns the directory of all caches, without links in its path; "" if there can be none. A link in its place is refused: the
// agent of a job with rw:~/.cache can have made it.
func (r *Runner) caches() string {
	around := filepath.Dir(r.Sealing.Cache)
	_, err := os.Stat(filepath.Dir(around))
	real, linkErr := policy.Resolve(around)
	dir := filepath.Join(real, filepath.Base(r.Sealing.Cache))
	if info, statErr := os.Lstat(dir); r.Sealing.Cache == "" || errors.Join(err, linkErr) != nil || statErr == nil && !info.IsDir() {
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

// makePrivate makes the two directories. One for temporary files that is there already may be another user's.
func (w *work) makePrivate(temporary, cache string) error {
	now := w.Disk.Now()
	return errors.Join(os.Mkdir(temporary, 0o700), os.MkdirAll(cache, 0o700), os.Chtimes(cache, now, now))
}

// cacheOf names the cache that the runs of one job, or the questions asked in one directory, share.
func cacheOf(home string, r runlog.Record) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{home, r.Kind, r.Job, r.Root, r.Network}, "\x00")))
	return r.Kind + "-" + hex.EncodeToString(sum[:8])
}

// SweepPrivate removes the temporary files of runs whose process was killed, and caches that no run has used for two weeks.
func (r *Runner) SweepPrivate() error {
	temporary, err := filepath.Glob(filepath.Join(r.Sealing.Temp, temporaryPrefix+"2*Z-*-*"))
	for _, dir := range temporary {
		id := strings.TrimPrefix(filepath.Base(dir), temporaryPrefix)
		id = id[:strings.LastIndexByte(id, '-')]
		if record, loadErr := r.Runs.Load(id); loadErr == nil && (record.Done() || !r.Runs.Alive(record)) {
			err = errors.Join(err, store.RemoveAll(dir))
		}
	}
	caches, _ := os.ReadDir(r.caches()) // no run of this user's has used one that cannot be listed
	for _, entry := range caches {
		info, statErr := entry.Info()
		if statErr == nil && info.IsDir() && info.ModTime().Before(r.Disk.Now().Add(-cacheLife)) {
			err = errors.Join(err, store.RemoveAll(filepath.Join(r.caches(), entry.Name())))
		}
	}
	return err
}

// modes returns the modes of what is protected. The seal keeps their contents, but not their modes.
func (r *Runner) modes() map[string]fs.FileMode {
	modes := map[string]fs.FileMode{}
	for _, path := range confine.Protected(r.Home, r.Secret) {
		if info, err := os.Stat(path); err == nil {
			modes[path] = info.Mode()
		}
	}
	return modes
}

// reportModes reports the modes that have changed during a run.
func (w *work) reportModes(ctx context.Context, before map[string]fs.FileMode) {
	for path, now := range w.modes() {
		if was, known := before[path]; known && was != now {
			text := fmt.Sprintf("%s: its mode was changed from %#o to %#o while %s ran: chmod %o %s", path, was.Perm(), now.Perm(), w.run.Label(), was.Perm(), path)
			w.warn(errors.New(text))
			w.warn(w.Updates.Add(ctx, text, w.run.ID))
		}
	}
}
