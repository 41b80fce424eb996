package claudecode

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"unicode/utf8"

	"github.com/ollim/ollim/internal/platform/store"
)

// skimPast is readPast for a search. It decodes few of the contents, and does not validate the parts of a line that it does not need.
func skimPast(path string) (list []record, err error) {
	f, err := store.Open(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewReaderSize(f, 64<<10)
	for {
		line, err := store.ReadLine(lines, nil) // the records refer to the bytes of the line, so each line has a buffer of its own
		if r, ok := skimmed(bytes.TrimSpace(line)); ok {
			list = append(list, r)
		}
		if errors.Is(err, io.EOF) {
			return unsided(list), nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// skimmed reads a line. It decodes the whole line if skim cannot parse it.
func skimmed(line []byte) (r record, ok bool) {
	if r.skim(line) {
		return r, true
	}
	r = record{}
	err := json.Unmarshal(line, &r)
	return r, err == nil
}

// skim reads the parts of a line that a conversation needs. It reports false for a line that it cannot parse.
func (r *record) skim(line []byte) bool {
	return members(line, func(key, value []byte) bool {
		switch string(key) {
		case `"type"`:
			return readText(&r.Type, value)
		case `"cwd"`:
			return readText(&r.Cwd, value)
		case `"uuid"`:
			return readText(&r.UUID, value)
		case `"sessionId"`:
			return readText(&r.SessionID, value)
		case `"parentUuid"`:
			return readText(&r.Parent, value)
		case `"logicalParentUuid"`:
			return readText(&r.Before, value)
		case `"timestamp"`:
			return json.Unmarshal(value, &r.Timestamp) == nil
		case `"isSidechain"`:
			return json.Unmarshal(value, &r.Sidechain) == nil
		case `"isMeta"`:
			return json.Unmarshal(value, &r.Meta) == nil
		case `"isCompactSummary"`:
			return json.Unmarshal(value, &r.Summary) == nil
		case `"isApiErrorMessage"`:
			return json.Unmarshal(value, &r.APIError) == nil
		case `"message"`:
			return members(value, r.skimMessage)
		}
		return bytes.IndexByte(key, '\\') < 0
	})
}

func (r *record) skimMessage(key, value []byte) bool {
	switch string(key) {
	case `"id"`:
		return readText(&r.Message.ID, value)
	case `"role"`:
		return readText(&r.Message.Role, value)
	case `"model"`:
		return readText(&r.Message.Model, value)
	case `"content"`:
		r.Message.Content = value
	}
	return bytes.IndexByte(key, '\\') < 0
}

// readText reads a string or null.
func readText(to *string, value []byte) bool {
	if len(value) > 1 && value[0] == '"' && bytes.IndexByte(value, '\\') < 0 && utf8.Valid(value) {
		*to = string(value[1 : len(value)-1])
		return true
	}
	return json.Unmarshal(value, to) == nil
}

// members calls member for the keys, in quotes, and the values of a JSON object, until it returns false. It reports whether the whole
// object was read.
func members(object []byte, member func(key, value []byte) bool) bool {
	return store.Parts(object, '{', '}', func(part []byte) bool {
		key, value, ok := bytes.Cut(part, []byte(":"))
		return ok && member(bytes.TrimSpace(key), bytes.TrimSpace(value))
	})
}
