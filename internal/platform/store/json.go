package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
)

// Disk is what a state package needs besides its paths to change state.
type Disk struct {
	Now   func() time.Time     // for the names of files that are set aside
	Warn  func(message string) // reports them: one line, no newline; never nil
	Locks *lock.Table          // shared by all parts of a process; nil: each waits for a lock on its own
}

// Lock takes the data-file lock at path; see lock.Table.WaitShort.
func (d Disk) Lock(ctx context.Context, path string) (*lock.Held, error) {
	return d.Locks.WaitShort(ctx, path)
}

// Locked calls do under the data-file lock at path.
func (d Disk) Locked(ctx context.Context, path string, do func() error) error {
	held, err := d.Lock(ctx, path)
	if err != nil {
		return err
	}
	defer held.Release()
	return do()
}

// PeekJSON reads the document at path. It needs no lock, because documents are replaced as a whole. A missing file is the
// zero T, and so is one that is not valid JSON of that shape; invalid is its error.
func PeekJSON[T any](path string) (v T, invalid, err error) {
	data, err := Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return v, nil, nil
	}
	if err == nil {
		if invalid = json.Unmarshal(data, &v); invalid != nil {
			v = *new(T) // a part of it may have been decoded
		}
	}
	return v, invalid, err
}

// ReadJSON is PeekJSON for a caller that holds the file's lock: an invalid file is moved aside and reported through Warn.
func ReadJSON[T any](d Disk, path string) (T, error) {
	v, invalid, err := PeekJSON[T](path)
	if err != nil || invalid == nil {
		return v, err
	}
	aside, err := SetAside(path, d.Now())
	if err == nil {
		d.Warn(fmt.Sprintf("%s: not valid (%v): kept as %s, and a new one was started", path, invalid, aside))
	}
	return v, err
}

// Misfit returns an error of decoding foreign data in plain words: the key and the value expected there.
func Misfit(err error) error {
	if typ := (*json.UnmarshalTypeError)(nil); errors.As(err, &typ) {
		wanted := "want " + wantedOf(typ.Type.Kind())
		if typ.Field != "" { // a path, in which an embedded struct has its Go name
			wanted = typ.Field[strings.LastIndexByte(typ.Field, '.')+1:] + ": " + wanted
		}
		return errors.New(wanted)
	}
	if reason, ok := strings.CutPrefix(err.Error(), "json: "); ok {
		return errors.New(reason)
	}
	return err
}

func wantedOf(kind reflect.Kind) string {
	switch kind {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "a JSON object"
	}
	return "a whole number"
}

// WriteJSON replaces the document at path, indented for people. The caller holds the file's lock.
func WriteJSON(path string, v any, d Durability) error {
	data, err := marshal(v, "  ")
	if err != nil {
		return &NotWritten{path, err}
	}
	return Write(path, data, d)
}

// marshal returns v as JSON and a newline; with an indent, over many lines. <, > and & are unescaped, so that the files
// can be searched for literal text.
func marshal(v any, indent string) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	err := e.Encode(v)
	return out.Bytes(), err
}

// What the edit of EditJSON returns for a document that is not to be written.
var (
	ErrUnchanged = errors.New("the file stays as it is")
	ErrEmpty     = errors.New("the file is removed")
)

// EditJSON reads the document at path (see ReadJSON), applies edit and replaces it, under the lock at lockPath. If edit
// returns an error, nothing is written, and the error is returned unless it is ErrUnchanged or ErrEmpty.
func EditJSON[T any](ctx context.Context, d Disk, lockPath, path string, edit func(*T) error) error {
	return d.Locked(ctx, lockPath, func() error {
		v, err := ReadJSON[T](d, path)
		if err == nil {
			err = edit(&v)
		}
		switch {
		case errors.Is(err, ErrUnchanged):
			return nil
		case errors.Is(err, ErrEmpty):
			return Remove(path)
		case err != nil:
			return err
		}
		return WriteJSON(path, v, Synced)
	})
}
