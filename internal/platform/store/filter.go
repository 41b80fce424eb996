package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
)

// FilterLines rewrites a file of lines of JSON with those that keep accepts, byte for byte. Lines that are not a T stay. A file from which
// nothing is removed is not written. The caller holds the lock of the file.
func FilterLines[T any](path string, keep func(T) bool) error {
	data, err := Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var kept []byte
	for line := range bytes.Lines(data) {
		var v T
		if json.Unmarshal(line, &v) != nil || keep(v) {
			kept = append(kept, line...)
		}
	}
	if len(kept) == len(data) {
		return nil
	}
	return Write(path, kept, Synced)
}
