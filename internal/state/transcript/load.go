package transcript

import (
	"fmt"
	"io"
)

// Load reads all messages. Malformed lines are skipped and counted in *bad, which may be nil; a last line that is torn
// or being written is omitted.
func (t Transcript) Load(bad *int) ([]Entry, error) {
	f, err := openFile(t.Path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	entries, err := decodeAll(f, bad)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Path, err)
	}
	return entries, nil
}

func decodeAll(f io.Reader, bad *int) (entries []Entry, err error) {
	for line, err := range forward(f) {
		if err != nil {
			return nil, err
		}
		e, ok, malformed := decode(line)
		if ok {
			entries = append(entries, e)
		}
		if malformed && bad != nil {
			*bad++
		}
	}
	return entries, nil
}
