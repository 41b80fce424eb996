package approval

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"

	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/policy"
)

// Limits of a skill's directory. It holds text and small programs, and every fire reads all of it.
const (
	maxEntries = 1000
	maxBytes   = 32 << 20
)

// Unfit is the error of a file that cannot be approved, because its content cannot be determined.
type Unfit struct {
	Path   string // in the data directory
	Reason string
}

func (e *Unfit) Error() string { return e.Path + ": cannot be approved: " + e.Reason }

// openFlags avoid blocking on a named pipe.
const openFlags = os.O_RDONLY | syscall.O_NONBLOCK

// file adds the digest of one file. The path may be a symbolic link.
func (b Book) file(files map[string]string, path string) error {
	name := b.relative(path)
	f, err := os.OpenFile(path, openFlags, 0)
	if errors.Is(err, fs.ErrNotExist) {
		files[name] = missingFile
		return nil
	}
	if err == nil {
		files[name], _, err = digest(f, io.Discard)
	}
	return unfit(name, err)
}

// CopyGate writes an executable of gates/ to w. It returns the digest of the written bytes, to be compared with Subject.Gate, the digest of
// the approved bytes.
func (b Book) CopyGate(name string, w io.Writer) (sum string, err error) {
	f, err := os.OpenFile(b.Home.Gate(name), openFlags, 0)
	if err != nil {
		return "", err
	}
	info, err := f.Stat()
	if err == nil && info.Mode()&0o111 == 0 {
		err = &fs.PathError{Op: "open", Path: f.Name(), Err: syscall.EACCES}
	}
	if err != nil {
		return "", errors.Join(err, f.Close())
	}
	sum, _, err = digest(f, w)
	return sum, err
}

// Gate returns the digest of an executable of gates/ that is part of the subject; "" if it is not.
func (s Subject) Gate(name string) string { return s.Files["gates/"+name] }

// mentioned adds the digests of the files that Bash patterns and the commands of MCP servers name literally. Files that the commands only
// read are data, and may change.
func (b Book) mentioned(s *Subject, patterns []string, roots []policy.Root) error {
	var names []string
	s.roots = roots
	for _, text := range patterns {
		p, err := policy.Parse(text)
		if err != nil { // an invalid pattern grants nothing
			continue
		}
		if files, onlyData := p.Files(); onlyData {
			s.data = append(s.data, files...)
		} else {
			names = append(names, files...)
		}
	}
	for _, name := range policy.Servers(patterns) {
		server, _ := b.Servers.Find(name)
		names = append(names, server.Command...)
	}
	return b.words(s.Files, names, roots)
}

// words adds the digests of the files in the data directory and the roots that words of a command name. A name without a file is
// omitted: when the file appears, the subject changes.
func (b Book) words(files map[string]string, names []string, roots []policy.Root) error {
	for _, name := range names {
		path := filepath.Clean(name)
		if !filepath.IsAbs(path) {
			path = b.Home.Path(path)
		}
		if !b.inside(path, roots) {
			continue
		}
		info, err := os.Stat(path)
		if err == nil && info.IsDir() || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ENAMETOOLONG) {
			continue
		}
		if err := b.file(files, path); err != nil {
			return err
		}
	}
	return nil
}

// inside reports whether a clean path lies in the data directory or a root.
func (b Book) inside(path string, roots []policy.Root) bool {
	for _, r := range append([]policy.Root{{Dir: filepath.Clean(string(b.Home))}}, roots...) {
		if _, ok := policy.Below(path, r.Dir); ok {
			return true
		}
	}
	return false
}

// Altered returns the first file named literally by the pattern whose present content was never approved; "" if there is none.
func (b Book) Altered(p policy.Pattern, roots []policy.Root) (name string, err error) {
	files := map[string]string{}
	named, onlyData := p.Files()
	if onlyData {
		return "", nil
	}
	if err := b.words(files, named, roots); err != nil || len(files) == 0 {
		return "", err
	}
	approved, err := b.read()
	if err != nil {
		return "", err
	}
	for _, name := range sortedKeys(files) {
		if !approved.has(name, files[name]) {
			return legible(name), nil
		}
	}
	return "", nil
}

// folder adds the digests of all files of a skill. The directory may be a symbolic link; it may contain none, since
// their targets could change unseen.
func (b Book) folder(files map[string]string, dir string) error {
	name := b.relative(dir)
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		files[name] = missingFile
		return nil
	}
	if err != nil {
		return unfit(name, err)
	}
	defer func() { _ = root.Close() }()
	entries, size := 0, int64(0)
	return fs.WalkDir(root.FS(), ".", func(p string, e fs.DirEntry, err error) error {
		at := path.Join(name, p)
		if err != nil {
			return unfit(at, err)
		}
		if entries++; entries > maxEntries {
			return &Unfit{name, fmt.Sprintf("more than %d files", maxEntries)}
		}
		if e.IsDir() {
			return nil
		}
		if !e.Type().IsRegular() {
			return &Unfit{at, "not a file, or a link to one"}
		}
		f, err := root.OpenFile(p, openFlags, 0)
		if err != nil {
			return unfit(at, err)
		}
		sum, n, err := digest(f, io.Discard)
		if size += n; err == nil && size > maxBytes {
			return &Unfit{name, fmt.Sprintf("larger than %d bytes", maxBytes)}
		}
		files[at] = sum
		return unfit(at, err)
	})
}

// digest returns the digest and size of f, copies it to w, and closes it.
func digest(f *os.File, w io.Writer) (sum string, size int64, err error) {
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a file")
	}
	if err != nil {
		return "", 0, err
	}
	h := sha256.New()
	size, err = io.Copy(io.MultiWriter(h, w), f)
	return hex.EncodeToString(h.Sum(nil)), size, err
}

func (b Book) relative(path string) string {
	if rel, err := filepath.Rel(string(b.Home), path); err == nil {
		return filepath.ToSlash(rel)
	}
	return path
}

// unfit returns err as an *Unfit, without the operating system's path.
func unfit(name string, err error) error {
	if err == nil {
		return nil
	}
	return &Unfit{name, store.Cause(err)}
}
