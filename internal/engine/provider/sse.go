package provider

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
)

// lines is a stream whose lines end with \n alone, without a byte order mark before the first. The standard allows the mark,
// and \r with and without \n.
type lines struct {
	io.ReadCloser
	mark string // what may still come of the mark
	cr   bool   // the last byte was \r
}

func (l *lines) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p)
	kept := p[:0]
	for _, c := range p[:n] {
		if l.mark != "" && c == l.mark[0] {
			l.mark = l.mark[1:]
			continue
		}
		l.mark = ""
		switch {
		case c == '\r':
			kept = append(kept, '\n')
		case c != '\n' || !l.cr:
			kept = append(kept, c)
		}
		l.cr = c == '\r'
	}
	return len(kept), err
}

// feed is a stream of server-sent events.
type feed struct{ *bufio.Reader }

// next is the data of the next event, never empty; failed says that the event is called an error. At [DONE] it is at its end.
// What is whole after one line is not kept waiting for the empty line behind it, which some servers leave out.
func (f feed) next() (data []byte, failed bool, err error) {
	for {
		line, err := f.ReadBytes('\n') // as long as Options.limit at most
		if err != nil {
			return nil, false, err
		}
		line = bytes.TrimSpace(line)
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		first := len(data) == 0
		switch {
		case len(line) == 0 && !first:
			return data, failed, nil
		case len(line) == 0:
			failed = false
		case string(name) == "event":
			failed = string(value) == "error"
		case string(name) == "error" && len(value) > 0: // llama.cpp
			return value, true, nil
		case first && line[0] == '{': // an error that is no event
			data = line
		case string(name) == "data" && first:
			data = value
		case string(name) == "data":
			data = append(append(data, '\n'), value...)
		}
		switch {
		case !first || len(data) == 0:
		case string(data) == "[DONE]":
			return nil, false, io.EOF
		case json.Valid(data):
			return data, failed, nil
		}
	}
}
