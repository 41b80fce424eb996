package transcript

import (
	"bytes"
	"errors"
	"io/fs"
	"regexp"
)

// Objects returns the hashes of all files that transcripts name as shown to a model.
func (d Dir) Objects() (map[string]bool, error) {
	all, err := d.newest("")
	if err != nil {
		return nil, err
	}
	named := map[string]bool{}
	for _, f := range all {
		if err := objects(f.path, named); err != nil {
			return nil, err
		}
	}
	return named, nil
}

// Objects returns the hashes of the files that the transcript names as shown to a model.
func (t Transcript) Objects() (map[string]bool, error) {
	named := map[string]bool{}
	return named, objects(t.Path, named)
}

// objects adds the hashes in one file. It does not decode lines: text that looks like a hash only makes a file be kept longer.
func objects(path string, named map[string]bool) error {
	const key = `"sha256":"`
	hash := regexp.MustCompile(key + `([0-9a-f]{64})"`)
	f, err := openFile(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrForeign) {
		return nil
	}
	if err != nil {
		return err // files named in an unreadable transcript must be kept
	}
	defer func() { _ = f.Close() }()
	for line, err := range forward(f) {
		if err != nil {
			return err
		}
		if !bytes.Contains(line, []byte(key)) {
			continue
		}
		for _, found := range hash.FindAllSubmatch(line, -1) {
			named[string(found[1])] = true
		}
	}
	return nil
}
