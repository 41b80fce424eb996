package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strconv"
	"time"
)

// Line is a fact in the ledger.
type Line struct {
	At   time.Time
	Kind string
	JSON []byte // the object

	more int    // how many lines of its change follow
	hash string // of the line
}

// Into decodes the fact. Keys that v does not have are ignored.
func (l Line) Into(v any) error { return json.Unmarshal(l.JSON, v) }

const (
	atLayout = "2006-01-02T15:04:05.000000Z"
	hashLen  = 16
	tailLen  = len(`,"hash":"`) + hashLen + len(`"}`)
	// first is the hash before the first line.
	first = "0000000000000000"
)

var errMalformed = errors.New("not a line of the ledger")

// body returns the JSON of a fact.
func body(f Fact) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false) // so that the files can be searched for literal text
	if err := e.Encode(f); err != nil {
		return nil, err
	}
	text := bytes.TrimSuffix(out.Bytes(), []byte("\n"))
	if len(text) < 2 || text[0] != '{' {
		return nil, errors.New("a fact must be a JSON object")
	}
	return text, nil
}

// encode returns the lines of one change and the position after them.
func encode(facts []Line, from position) (text []byte, end position) {
	end = from
	for i, f := range facts {
		begin := len(text)
		text = append(text, `{"at":"`...)
		text = f.At.AppendFormat(text, atLayout)
		text = append(append(append(text, `","fact":"`...), f.Kind...), '"')
		if len(f.JSON) > len("{}") {
			text = append(append(text, ','), f.JSON[1:len(f.JSON)-1]...)
		}
		if more := len(facts) - 1 - i; more > 0 {
			text = strconv.AppendInt(append(text, `,"more":`...), int64(more), 10)
		}
		end.Hash = chain(end.Hash, text[begin:])
		text = append(append(append(text, `,"hash":"`...), end.Hash...), "\"}\n"...)
	}
	end.Offset += int64(len(text))
	return text, end
}

// chain returns the hash of a line. before is the hash of the previous line, text the line up to its own hash.
func chain(before string, text []byte) string {
	h := sha256.New()
	h.Write([]byte(before))
	h.Write(text)
	return hex.EncodeToString(h.Sum(nil))[:hashLen]
}

// parse reads a line without its line break. It checks the form that encode writes, but not the hash, nor that the whole line is JSON.
func parse(text []byte) (l Line, err error) {
	const head, middle = `{"at":"`, `","fact":"`
	kindAt := len(head) + len(atLayout) + len(middle)
	if len(text) < kindAt+tailLen || string(text[:len(head)]) != head || string(text[kindAt-len(middle):kindAt]) != middle {
		return l, errMalformed
	}
	rest := text[len(text)-tailLen:]
	if !bytes.HasPrefix(rest, []byte(`,"hash":"`)) || !bytes.HasSuffix(rest, []byte(`"}`)) {
		return l, errMalformed
	}
	l.hash = string(rest[len(`,"hash":"`) : len(rest)-len(`"}`)])
	if l.At, err = time.Parse(atLayout, string(text[len(head):len(head)+len(atLayout)])); err != nil {
		return l, errMalformed
	}
	kind, _, ok := bytes.Cut(text[kindAt:], []byte{'"'})
	if !ok {
		return l, errMalformed
	}
	l.Kind, l.JSON, l.more = string(kind), text, moreOf(text[:len(text)-tailLen])
	return l, nil
}

// moreOf returns the number of lines that follow, from the text before the hash. No JSON string contains the key in this form.
func moreOf(text []byte) int {
	at := bytes.LastIndex(text, []byte(`,"more":`))
	if at < 0 {
		return 0
	}
	n, err := strconv.ParseUint(string(text[at+len(`,"more":`):]), 10, 31)
	if err != nil {
		return 0
	}
	return int(n)
}
