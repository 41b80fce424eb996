package request

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"

	"github.com/ollim/ollim/internal/platform/store"
)

// ref refers to an object, or to an object that is a list of references.
type ref struct {
	Object string   `json:"object,omitempty"`
	List   string   `json:"list,omitempty"`
	Insert []insert `json:"insert,omitempty"`
}

// insert is a part of a text that is not in its object.
type insert struct {
	At     int    `json:"at"` // the offset in the object
	Text   string `json:"text,omitempty"`
	Base64 string `json:"base64,omitempty"` // object whose content is inserted, in base64
}

const (
	perList = 32
	// largeFile is the length of base64 text from which a file becomes an object of its own.
	largeFile = 4 << 10
)

var (
	errShape  = errors.New("not the body of a request")
	errNoList = errors.New("not a list of messages")
)

// folder splits a body into objects.
type folder struct {
	objects map[string][]byte // by hash
}

func (f *folder) put(content []byte) string {
	hash := hashOf(content)
	f.objects[hash] = content
	return hash
}

// fold returns a body with references in place of the tools, each part of the system prompt and each message, in the same order. bare says
// that the body has no line break at its end. The error is an errShape for a body that would not be rebuilt byte for byte.
func (f *folder) fold(body []byte) (folded json.RawMessage, bare bool, err error) {
	text, lined := bytes.CutSuffix(body, []byte("\n"))
	split, err := mapValues(text, func(key string, value []byte) ([]byte, error) {
		switch {
		case key == messagesKey, key == systemKey && isList(value):
			return f.list(value)
		case key == systemKey, key == toolsKey:
			return json.Marshal(f.ref(value))
		}
		return value, nil
	})
	if err != nil {
		return nil, false, err
	}
	var compact bytes.Buffer // the form in which it is stored
	if err := json.Compact(&compact, split); err != nil {
		return nil, false, err
	}
	again, err := unfold(compact.Bytes(), !lined, func(hash string) ([]byte, error) { return f.objects[hash], nil })
	if err != nil || !bytes.Equal(again, body) {
		return nil, false, errShape
	}
	return compact.Bytes(), !lined, nil
}

// Keys of the parts of a body that are stored as objects, as encoding/json writes them.
const (
	systemKey   = `"system"`
	toolsKey    = `"tools"`
	messagesKey = `"messages"`
)

// unfold reverses fold. Earlier versions stored the system prompt as one reference.
func unfold(folded []byte, bare bool, get func(hash string) ([]byte, error)) ([]byte, error) {
	body, err := mapValues(folded, func(key string, value []byte) ([]byte, error) {
		switch {
		case key == toolsKey, key == systemKey && !isList(value):
			var r ref
			if err := json.Unmarshal(value, &r); err != nil {
				return nil, err
			}
			return r.content(get)
		case key == systemKey, key == messagesKey:
			var refs []ref
			if err := json.Unmarshal(value, &refs); err != nil {
				return nil, err
			}
			return join(refs, get)
		}
		return value, nil
	})
	if !bare {
		body = append(body, '\n')
	}
	return body, err
}

func isList(value []byte) bool { return bytes.HasPrefix(value, []byte("[")) }

// mapValues returns a JSON object with its values replaced by those that change returns.
func mapValues(object []byte, change func(key string, value []byte) ([]byte, error)) ([]byte, error) {
	var members [][]byte
	var err error
	if !store.Parts(object, '{', '}', func(member []byte) bool {
		key, value, _ := bytes.Cut(member, []byte(":"))
		value, err = change(string(key), value)
		members = append(members, slices.Concat(key, []byte(":"), value))
		return err == nil
	}) {
		return nil, cmp.Or(err, errShape)
	}
	return slices.Concat([]byte("{"), bytes.Join(members, []byte(",")), []byte("}")), nil
}

// list returns references to the elements of an array, in lists if there are many. An element with a cache mark is not part of a list,
// because the next request has it without the mark.
func (f *folder) list(array []byte) ([]byte, error) {
	var refs []ref
	if !store.Parts(array, '[', ']', func(element []byte) bool { refs = append(refs, f.ref(element)); return true }) {
		return nil, errShape
	}
	short := []ref{}
	for len(refs) >= perList && !slices.ContainsFunc(refs[:perList], ref.marked) {
		content, err := json.Marshal(refs[:perList])
		if err != nil {
			return nil, err
		}
		short, refs = append(short, ref{List: f.put(content)}), refs[perList:]
	}
	return json.Marshal(append(short, refs...))
}

func (r ref) marked() bool {
	return slices.ContainsFunc(r.Insert, func(i insert) bool { return i.Text != "" })
}

// ref stores a value without its cache mark and its files.
func (f *folder) ref(value []byte) (r ref) {
	var rest []byte
	from := 0
	cut := func(begin, end int, i insert) {
		rest = append(rest, value[from:begin]...)
		i.At, from = len(rest), end
		r.Insert = append(r.Insert, i)
	}
	for begin, end := range files(value) {
		if content, err := base64.StdEncoding.Strict().DecodeString(string(value[begin:end])); err == nil {
			cut(begin, end, insert{Base64: f.put(content)})
		}
	}
	if begin, end := markIn(value); begin >= from {
		cut(begin, end, insert{Text: string(value[begin:end])})
	}
	if from > 0 {
		value = append(rest, value[from:]...)
	}
	r.Object = f.put(value)
	return r
}

// files yields the ranges of a value that may be base64 of a file: strings without escapes, perhaps after the head of a data URL.
func files(value []byte) func(yield func(begin, end int) bool) {
	return func(yield func(begin, end int) bool) {
		const head, longestHead = ";base64,", 100
		for at := 0; len(value)-at >= largeFile; {
			n := bytes.IndexByte(value[at:], '"')
			if n < 0 {
				return
			}
			begin := at
			if i := bytes.Index(value[at:at+min(n, longestHead)], []byte(head)); i >= 0 {
				begin += i + len(head)
			}
			if at+n-begin >= largeFile && !yield(begin, at+n) {
				return
			}
			at += n + 1
		}
	}
}

// markIn returns the range of the cache mark at the end of a message: the last field of its last block. begin is negative if there is
// none.
func markIn(message []byte) (begin, end int) {
	const mark, tail, longest = `,"cache_control":{`, `}]}`, 100
	before := max(0, len(message)-longest)
	begin = bytes.LastIndex(message[before:], []byte(mark))
	if begin < 0 {
		return -1, 0
	}
	begin += before
	end = begin + len(mark) + bytes.IndexByte(message[begin+len(mark):], '}') + 1
	if string(message[end:]) != tail {
		return -1, 0
	}
	return begin, end
}

// content returns the value that a reference stands for.
func (r ref) content(get func(hash string) ([]byte, error)) ([]byte, error) {
	stored, err := get(r.Object)
	if err != nil || len(r.Insert) == 0 {
		return stored, err
	}
	var out bytes.Buffer
	from := 0
	for _, i := range r.Insert {
		if i.At < from || i.At > len(stored) {
			return nil, errShape
		}
		out.Write(stored[from:i.At])
		out.WriteString(i.Text)
		from = i.At
		if i.Base64 == "" {
			continue
		}
		file, err := get(i.Base64)
		if err != nil {
			return nil, err
		}
		out.WriteString(base64.StdEncoding.EncodeToString(file))
	}
	out.Write(stored[from:])
	return out.Bytes(), nil
}

// join returns the array of what references stand for.
func join(refs []ref, get func(hash string) ([]byte, error)) ([]byte, error) {
	var values [][]byte
	for _, r := range refs {
		group, err := r.expanded(get)
		if err != nil {
			return nil, err
		}
		for _, r := range group {
			value, err := r.content(get)
			if err != nil {
				return nil, err
			}
			values = append(values, value)
		}
	}
	return slices.Concat([]byte("["), bytes.Join(values, []byte(",")), []byte("]")), nil
}

func listed(hash string, get func(hash string) ([]byte, error)) (refs []ref, err error) {
	content, err := get(hash)
	if err == nil && json.Unmarshal(content, &refs) != nil {
		err = errNoList
	}
	return refs, err
}

// refsIn returns the references of a folded body, lists as they are. A line in another form has none.
func refsIn(folded json.RawMessage) []ref {
	refs, _ := sequence(folded, func(r ref) ([]ref, error) { return []ref{r}, nil })
	return refs
}

// sequence returns the references of a folded body in the order in which a service caches what they stand for: the tools, the system
// prompt, the messages. Each goes through expand.
func sequence(folded json.RawMessage, expand func(ref) ([]ref, error)) (refs []ref, err error) {
	var b struct {
		Tools    *ref
		System   json.RawMessage
		Messages []ref
	}
	if err := json.Unmarshal(folded, &b); err != nil {
		return nil, err
	}
	if b.Tools != nil {
		refs = append(refs, *b.Tools)
	}
	if len(b.System) > 0 {
		var system []ref
		if !isList(b.System) {
			b.System = slices.Concat([]byte("["), b.System, []byte("]"))
		}
		if err := json.Unmarshal(b.System, &system); err != nil {
			return nil, err
		}
		refs = append(refs, system...)
	}
	var all []ref
	for _, r := range append(refs, b.Messages...) {
		group, err := expand(r)
		if err != nil {
			return nil, err
		}
		all = append(all, group...)
	}
	return all, nil
}

// expanded returns the references of a list, or the reference itself.
func (r ref) expanded(get func(hash string) ([]byte, error)) ([]ref, error) {
	if r.List == "" {
		return []ref{r}, nil
	}
	return listed(r.List, get)
}
