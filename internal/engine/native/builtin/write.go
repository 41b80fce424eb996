package builtin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

func callWrite(ctx context.Context, b *Box, in struct {
	Path    string `json:"file_path"`
	Content string `json:"content"`
}) (string, error) {
	return b.at(in.Path, toWrite, func(s spot) (string, error) {
		was, err := look(s.g, s.dir, s.name, s.place.Real)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		if err := s.replace(ctx, []byte(in.Content), was); err != nil {
			return "", err
		}
		what := "replaced"
		if was == nil {
			what = "new"
		}
		return fmt.Sprintf("Wrote %s (%s, %d bytes).", nameOf(s.g, s.place.Real), what, len(in.Content)), nil
	})
}

var (
	errReadOnly = errors.New("it is read-only")
	errChanged  = errors.New("it has just been changed by another process; read it again")
)

// replace writes data as the whole content of a file: all of it or nothing, even in a power failure. It keeps the permissions. was is nil
// for a new file.
func (s spot) replace(ctx context.Context, data []byte, was fs.FileInfo) error {
	mode := fs.FileMode(0) // 0 leaves a new file the mode that it is made with
	if was != nil {
		if mode = was.Mode().Perm(); mode&0o200 == 0 {
			return errReadOnly // a rename would replace it all the same
		}
	}
	temp, err := s.draft(data, mode)
	if err != nil {
		return err
	}
	if err = s.same(was); err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		err = s.dir.Rename(temp, s.name)
	}
	if err != nil {
		_ = s.dir.Remove(temp)
		return err
	}
	return s.sync()
}

// draft writes data to a new file in the same directory, under a name that store.IsDraft recognizes.
func (s spot) draft(data []byte, mode fs.FileMode) (string, error) {
	const (
		most    = 10000 // most drafts in a directory, of killed and of present writers
		longest = 200   // longest part of the name, in bytes, so that the addition fits
	)
	perm := s.fresh
	if mode != 0 {
		perm = 0o600
	}
	for i := range most {
		temp := fmt.Sprintf(".%s.tmp-%d", strings.ToValidUTF8(s.name[:min(len(s.name), longest)], ""), i)
		f, err := s.dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = f.Write(data)
		if err == nil {
			err = f.Sync()
		}
		if err == nil && mode != 0 {
			err = f.Chmod(mode)
		}
		if err = errors.Join(err, f.Close()); err != nil {
			_ = s.dir.Remove(temp)
			return "", err
		}
		return temp, nil
	}
	return "", fmt.Errorf("too many unfinished files .%s.tmp-* beside it", s.name)
}

// same returns an error if the file is not the one that was found before.
func (s spot) same(was fs.FileInfo) error {
	now, err := look(s.g, s.dir, s.name, s.place.Real)
	switch {
	case errors.Is(err, fs.ErrNotExist) && was == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return errChanged
	case err != nil:
		return err
	case was == nil || !os.SameFile(was, now) || was.Size() != now.Size() || !was.ModTime().Equal(now.ModTime()):
		return errChanged
	}
	return nil
}

// sync makes the new name durable. A file system that cannot sync a directory (EINVAL) is not an error, because the change is made.
func (s spot) sync() error {
	dir, err := s.dir.Open(".")
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	if err := dir.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) {
		return fmt.Errorf("written, but may be lost in a power failure: %w", err)
	}
	return nil
}
