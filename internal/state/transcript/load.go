package transcript

import (
	"fmt"
)

// Load reads all messages. Malformed lines are skipped and counted in *bad, which may be nil; a last line that is torn
// or being written is omitted.
func (t Transcript) Load(bad *int) ([]Entry, error) {
	f, err := openFile(t.Path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var entries []Entry
	for line, err := range forward(f) {
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.Path, err)
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
