package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/ollim/ollim/internal/platform/store"
)

// lost is the fact that facts of the ledger were missing when a change was written. It has the position up to which there were facts.
// Without a position, head.json was missing, without which it cannot be told whether facts are. Only the head shows that facts are missing,
// and the change replaces it.
type lost struct {
	Day    string `json:"day,omitempty"`
	Offset int64  `json:"offset,omitempty"`
}

func (lost) Fact() string { return "ledger.lost" }

// String says what is missing.
func (f lost) String() string {
	if f.Day == "" {
		return "head.json was missing or not valid before this fact: facts may have been removed"
	}
	return fmt.Sprintf("before this fact, facts up to byte %d of %s%s were removed", f.Offset, f.Day, ext)
}

func (l *Ledger) headPath() string { return l.home.Ledger("head.json") }

// head is head.json, open for writing. Its position is zero if it is missing or not valid.
type head struct {
	at         position
	file       *os.File // nil: it is missing
	unreadable bool
}

// openHead opens head.json. The caller closes it.
func (l *Ledger) openHead() (h head, err error) {
	f, err := store.Open(l.headPath(), os.O_RDWR)
	if errors.Is(err, fs.ErrNotExist) {
		return head{}, nil
	}
	if err != nil {
		return head{}, err
	}
	text, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<10))
	if err != nil {
		return head{}, errors.Join(err, f.Close())
	}
	if json.Unmarshal(text, &h.at) != nil {
		h.at = position{}
	}
	h.file = f
	return h, nil
}

func (h head) close() {
	if h.file != nil {
		_ = h.file.Close()
	}
}

// headText has a constant length, so that the file is replaced in place.
func headText(at position) []byte {
	return fmt.Appendf(nil, "{\"day\":%q,\"offset\":%14d,\"hash\":%q}\n", at.Day, at.Offset, at.Hash)
}

// writeHead notes the position after what was synced. After an error Verify cannot detect that the last facts were removed.
func (l *Ledger) writeHead(h head, at position) {
	text := headText(at)
	if h.unreadable {
		return
	}
	if h.file == nil { // a new file is never empty
		_ = store.Write(l.headPath(), text, store.Buffered)
		return
	}
	if _, err := h.file.WriteAt(text, 0); err == nil && h.at.Day == "" {
		_ = h.file.Truncate(int64(len(text))) // what it had may be longer
	}
}

// raiseHead is writeHead unless another process has synced more. It does nothing if facts are missing: the next change notes that.
func (l *Ledger) raiseHead(at position) {
	h, err := l.openHead()
	if err != nil {
		return
	}
	defer h.close()
	if there, err := l.holds(h.at); h.at.Day != "" && there && err == nil && h.at.before(at) {
		l.writeHead(h, at)
	}
}

// before reports whether a position is earlier than another one.
func (at position) before(other position) bool {
	return at.Day < other.Day || at.Day == other.Day && at.Offset < other.Offset
}

// makeHead makes the first head, before the first fact, so that from then on a missing head means that it was removed.
func (l *Ledger) makeHead(day string) (head, error) {
	if err := store.MkdirOwn(l.folder()); err != nil {
		return head{}, err
	}
	if err := store.Write(l.headPath(), headText(position{Day: day, Hash: first}), store.Synced); err != nil {
		return head{}, err
	}
	return l.openHead()
}

// missing returns what the ledger lacks of the facts that its head knows, or its checkpoint if there is no fact at all; nil if nothing.
func (l *Ledger) missing(h head) (*lost, error) {
	if h.at == l.view.at {
		return nil, nil
	}
	return l.lacks(h.at, l.view.at.Day == "")
}

// lacks is missing for the position of a head in a ledger that has facts, or is empty.
func (l *Ledger) lacks(at position, empty bool) (*lost, error) {
	if at.Day != "" {
		there, err := l.holds(at)
		if there || err != nil {
			return nil, err
		}
		base, err := l.loadBase()
		if err != nil || at.Day <= base.At.Day { // Trim has removed it
			return nil, err
		}
		return &lost{at.Day, at.Offset}, nil
	}
	if !empty {
		return &lost{}, nil
	}
	if c, _, _ := store.PeekJSON[checkpoint](l.checkpointPath()); c.At.Offset > 0 { // zero if it cannot be read
		return &lost{c.At.Day, c.At.Offset}, nil
	}
	return nil, nil
}

// checkHead opens the head for a change that is synced, or is the first, and returns what the change has to note. A head that cannot be
// read stays as it is, and Verify reports it. The first fact needs one.
func (l *Ledger) checkHead(day string) (h head, gap *lost, err error) {
	h, err = l.openHead()
	if err == nil {
		gap, err = l.missing(h)
	}
	isFirst := l.view.at.Day == ""
	switch {
	case err != nil && isFirst:
		h.close()
		err = &store.NotWritten{Path: l.headPath(), Err: err}
	case err != nil:
		h.close()
		h, err = head{unreadable: true}, nil
	case h.file == nil && isFirst:
		h, err = l.makeHead(day)
	}
	return h, gap, err
}
