// Package transcript stores conversations as lines of JSON, one file each, under
//
//	sessions/--home-ada-project--/2026-02-24T14-30-00_n-a1b2c3d4e5f6.jsonl
//
// in a directory for the directory that the conversation is about: a header line and a line for each message, nothing else.
//
//	{"type":"session","id":"…","cwd":"/home/ada/project","provider":"anthropic","model":"…","timestamp":"…","parent_id":"…"}
//	{"type":"message","timestamp":"…","message":{"role":"user","content":"…"}}
//
// A message of the user that a run has said names the run, and an answer that the model was not finished with says "more". From
// these the reader knows which turns were cut off; nothing is written when that happens. See Settled and Branch.
//
// Files are only appended to. A branch or a compaction is a new file whose header names the one it came from; a summary is an
// ordinary message of the user. A torn last line is not a message: readers skip it, and the next append cuts it off.
//
// Appending needs the session's lock; reading needs none.
package transcript

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/platform/timeparse"
)

var (
	// ErrUnknown is the error of a missing transcript.
	ErrUnknown = errors.New("no such session")
	// ErrAmbiguous is the error of a prefix that fits more than one session.
	ErrAmbiguous = errors.New("more than one session")
	// ErrForeign is the error of a file that is not a transcript, or whose header cannot be read.
	ErrForeign = errors.New("not a transcript")
)

// Header is the first line of a transcript.
type Header struct {
	ID        string    `json:"id"`
	Cwd       string    `json:"cwd"` // what the conversation is about; absolute
	Provider  string    `json:"provider"`
	Model     string    `json:"model"`
	Timestamp time.Time `json:"timestamp"`
	ParentID  string    `json:"parent_id,omitempty"` // the session that this is a branch or a compaction of
	Compacted bool      `json:"compacted,omitempty"` // a compaction: it begins with a summary and continues its parent
	MidTurn   bool      `json:"mid_turn,omitempty"`  // the summary holds the beginning of an unfinished turn
}

// Dir is the directory of all transcripts.
type Dir string

// Transcript is the file of a conversation and its header.
type Transcript struct {
	Path string `json:"path"`
	Form string `json:"-"` // the name of the program that wrote the file in a form of its own, which this package does not read
	Header
}

const (
	suffix    = ".jsonl"
	nameTime  = "2006-01-02T15-04-05" // UTC
	maxName   = 255                   // bytes of a file's name
	maxID     = 200                   // of a session id: it fits a file name with the time and the suffix of a draft
	headBytes = 16 << 10              // read of a file's beginning; a header is shorter
)

// folder returns the directory of the transcripts about cwd: /Users/foo/myproject has --Users-foo-myproject--.
// Different directories may share one, so that only the header identifies the directory of a transcript. A name that is
// too long is cut and ends in a hash of the directory.
func (d Dir) folder(cwd string) string {
	cwd = clean(cwd)
	name := strings.Map(func(r rune) rune {
		if r == '/' || r == '\\' || r == utf8.RuneError || !unicode.IsPrint(r) {
			return '-'
		}
		return r
	}, strings.TrimPrefix(cwd, "/"))
	if len(name)+4 > maxName {
		sum := sha256.Sum256([]byte(cwd))
		end := "-" + hex.EncodeToString(sum[:6])
		cut := maxName - 4 - len(end)
		for !utf8.RuneStart(name[cut]) {
			cut--
		}
		name = name[:cut] + end
	}
	return filepath.Join(string(d), "--"+name+"--")
}

// Place returns the path of the transcript that a header begins.
func (d Dir) Place(h Header) string {
	return filepath.Join(d.folder(h.Cwd), h.Timestamp.UTC().Format(nameTime)+"_"+h.ID+suffix)
}

// clean returns a directory as headers store it: JSON allows only UTF-8.
func clean(cwd string) string { return string([]rune(filepath.Clean(cwd))) }

// Open reads the header of the transcript at path, which may be a link. The error wraps ErrForeign, or is the operating
// system's.
func Open(path string) (Transcript, error) {
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return Transcript{}, err
	}
	f, err := openFile(target)
	if err != nil {
		return Transcript{}, err
	}
	defer func() { _ = f.Close() }()
	t, _, err := readHead(f)
	return t, err
}

// readHead returns a file's header and its first bytes, which include the header.
func readHead(f *os.File) (Transcript, []byte, error) {
	head := make([]byte, headBytes)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return Transcript{}, nil, err
	}
	head = head[:n]
	h, ok := header(head[:bytes.IndexByte(head, '\n')+1])
	if !ok {
		return Transcript{}, nil, fmt.Errorf("%s: %w", f.Name(), ErrForeign)
	}
	return Transcript{Path: f.Name(), Header: h}, head, nil
}

// openFile opens a transcript for reading; the error is ErrForeign if it is not a regular file.
func openFile(path string) (*os.File, error) {
	f, err := store.Open(path, os.O_RDONLY)
	if errors.Is(err, store.ErrNoFile) || errors.Is(err, syscall.EISDIR) {
		return nil, fmt.Errorf("%s: %w", path, ErrForeign)
	}
	return f, err
}

// headerLine is written in the order of its fields.
type headerLine struct {
	Type string `json:"type"`
	Header
}

// header parses a first line, with its line break. Unknown fields are skipped.
func header(line []byte) (Header, bool) {
	var l struct {
		headerLine
		Timestamp string          `json:"timestamp"` // other software leaves out the zone
		Version   json.RawMessage `json:"version"`   // of a session of other software, whose messages have another form
		ModelID   json.RawMessage `json:"modelId"`   // of an old one
	}
	if len(line) == 0 || json.Unmarshal(line, &l) != nil || l.Version != nil || l.ModelID != nil {
		return Header{}, false
	}
	h := l.Header
	h.Timestamp = stamp(l.Timestamp)
	return h, l.Type == "session" && plaintext.IsName(h.ID) && h.Cwd != ""
}

// stamp parses a time; one without a zone is UTC, an invalid one the zero time.
func stamp(s string) time.Time {
	at, _, _ := timeparse.ISO(s)
	return at
}
