package store

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
)

// Durability says what of a change survives a power cut.
type Durability int

const (
	// Buffered survives the death of the process, not of the machine; it takes a fiftieth of the time.
	Buffered Durability = iota
	// Whole is for a file that is replaced: after a power cut it has its old content or the new one.
	Whole
	// Synced survives a power cut.
	Synced
)

// AppendJSON appends each value as one line of JSON to the file at path, all in one write. The caller holds the lock of that
// file. A torn last line of an earlier crash is ended first, so that it spoils only itself; after a failed write the file
// has its old length.
func AppendJSON(path string, d Durability, values ...any) error {
	var lines []byte
	for _, v := range values {
		line, err := marshal(v, "")
		if err != nil {
			return &NotWritten{path, err}
		}
		lines = append(lines, line...)
	}
	f, err := inDir(path, func() (*os.File, error) { return Open(path, os.O_CREATE|os.O_RDWR|os.O_APPEND) })
	if err != nil {
		return &NotWritten{path, err}
	}
	err = appendLine(f, lines, d)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return &NotWritten{path, err}
	}
	return nil
}

func appendLine(f *os.File, line []byte, d Durability) error {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if size > 0 {
		last := make([]byte, 1)
		if _, err := f.ReadAt(last, size-1); err != nil {
			return err
		}
		if last[0] != '\n' {
			line = append([]byte{'\n'}, line...)
		}
	}
	_, err = f.Write(line)
	if err == nil && d == Synced {
		err = f.Sync()
	}
	if err == nil && d == Synced && size == 0 {
		err = SyncDir(f.Name()) // the file may be new
	}
	if err != nil {
		err = errors.Join(err, f.Truncate(size))
	}
	return err
}

// Lines reads the JSON lines of a file into T, oldest first, with their numbers from 1. Lines that are torn or
// malformed are skipped and counted in *bad, which may be nil. A missing file has no lines. Reading stops at the first
// I/O error, which is yielded with the zero T.
func Lines[T any](path string, bad *int) iter.Seq2[T, error] {
	return Selected[T](path, bad, func([]byte) bool { return true })
}

// Selected is Lines with only the lines whose text fits selects; the others are not parsed.
func Selected[T any](path string, bad *int, fits func(line []byte) bool) iter.Seq2[T, error] {
	return opened(path, func(f *os.File, size int64, yield func(T, error) bool) {
		scanJSON(bufio.NewReaderSize(f, int(min(size+1, 64<<10))), bad, fits, yield)
	})
}

// Newest is Lines with the last line first; it reads the file from its end, as far as it is asked to.
func Newest[T any](path string) iter.Seq2[T, error] {
	return opened(path, func(f *os.File, size int64, yield func(T, error) bool) {
		for line, err := range Backward(f, 0, size) {
			var v T
			if err == nil && json.Unmarshal(line, &v) != nil {
				continue
			}
			if !yield(v, err) {
				return
			}
		}
	})
}

// opened reads an open file of so many bytes. A missing one has no lines.
func opened[T any](path string, read func(f *os.File, size int64, yield func(T, error) bool)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		f, err := Open(path, os.O_RDONLY)
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		var info fs.FileInfo
		if err == nil {
			defer func() { _ = f.Close() }()
			info, err = f.Stat()
		}
		if err != nil {
			var zero T
			yield(zero, err)
			return
		}
		read(f, info.Size(), yield)
	}
}

// MaxLine is how long a line may be, in bytes: four times what a model's API accepts. An engine that is sealed can write anything into
// its transcript, also a hole of terabytes, which takes no space on the disk.
const MaxLine = 128 << 20

// ReadLine appends the next line to a buffer, with its line break. With io.EOF there is none.
func ReadLine(r *bufio.Reader, line []byte) ([]byte, error) {
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > MaxLine:
			return nil, fmt.Errorf("a line of more than %d MiB", MaxLine>>20)
		case !errors.Is(err, bufio.ErrBufferFull):
			return line, err
		}
	}
}

func scanJSON[T any](r *bufio.Reader, bad *int, fits func(line []byte) bool, yield func(T, error) bool) {
	var line []byte
	for {
		var err error
		line, err = ReadLine(r, line[:0])
		if trimmed := bytes.TrimSpace(line); len(trimmed) > 0 && fits(trimmed) {
			var v T
			if json.Unmarshal(trimmed, &v) == nil {
				if !yield(v, nil) {
					return
				}
			} else if bad != nil {
				*bad++
			}
		}
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			var zero T
			yield(zero, err)
			return
		}
	}
}

// Backward yields the lines between two offsets of a file, the last first, without their line breaks. A line that
// begins before from is skipped.
func Backward(f io.ReaderAt, from, end int64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		var buf []byte // read and not yet yielded, up to end
		step := int64(16 << 10)
		for at := end; ; {
			for len(buf) > 0 {
				begin := bytes.LastIndexByte(buf[:len(buf)-1], '\n') + 1
				if begin == 0 && at > 0 {
					break
				}
				if !yield(bytes.TrimSuffix(buf[begin:], []byte("\n")), nil) {
					return
				}
				buf = buf[:begin]
			}
			n := min(step, at-from)
			if n == 0 {
				return
			}
			more := make([]byte, n, n+int64(len(buf)))
			if _, err := f.ReadAt(more, at-n); err != nil {
				yield(nil, err)
				return
			}
			buf, at, step = append(more, buf...), at-n, min(2*step, max(1<<20, int64(len(buf))))
		}
	}
}
