package transcript

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"sync"
)

// pieceSize is the amount that one worker decodes at a time, in bytes; a longer line makes a longer piece.
const pieceSize = 256 << 10

// part is the content of one piece of a file.
type part struct {
	entries []Entry
	bad     int
}

// Load reads all messages. Malformed lines are skipped and counted in *bad, which may be nil; a last line that is torn
// or being written is omitted.
func (t Transcript) Load(bad *int) ([]Entry, error) {
	f, err := openFile(t.Path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	parts, err := decodeAll(f, int(min(info.Size()+1, pieceSize)))
	if err != nil {
		return nil, err
	}
	entries, malformed := joined(parts)
	if bad != nil {
		*bad += malformed
	}
	return entries, nil
}

// joined returns the entries of all parts and the number of malformed lines.
func joined(parts []*part) (entries []Entry, bad int) {
	n := 0
	for _, p := range parts {
		n += len(p.entries)
		bad += p.bad
	}
	entries = make([]Entry, 0, n)
	for _, p := range parts {
		entries = append(entries, p.entries...)
	}
	return entries, bad
}

// decodeAll decodes pieces on every processor. There are as many buffers as workers: the reader waits for a free one.
func decodeAll(f io.Reader, size int) (parts []*part, err error) {
	workers := runtime.GOMAXPROCS(0)
	free := make(chan []byte, workers)
	for range workers {
		free <- nil
	}
	var working sync.WaitGroup
	defer working.Wait()
	for l := (lines{from: f}); ; {
		buf := <-free
		if buf == nil {
			buf = make([]byte, 0, size)
		}
		piece, err := l.next(buf)
		if errors.Is(err, io.EOF) {
			return parts, nil
		}
		if err != nil {
			return nil, err
		}
		p := &part{}
		parts = append(parts, p)
		working.Go(func() {
			p.decode(piece)
			free <- piece
		})
	}
}

func (p *part) decode(piece []byte) {
	p.entries = make([]Entry, 0, bytes.Count(piece, []byte("\n")))
	for line := range bytes.Lines(piece) {
		e, ok, bad := decode(line[:len(line)-1])
		if ok {
			p.entries = append(p.entries, e)
		}
		if bad {
			p.bad++
		}
	}
}
