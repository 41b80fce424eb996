package ledger

import (
	"encoding/json"
	"time"
)

// Reducer is a Book with any type of state.
type Reducer interface {
	key() string
	fresh() any
	decode(text json.RawMessage) (any, error)
	apply(state any, l Line)
}

// Book computes a state from facts. S must be the same after encoding to JSON and decoding, because a checkpoint holds the JSON.
type Book[S any] struct {
	name  string
	rules map[string]func(*S, Line)
}

// Rule applies the facts of one kind to a state.
type Rule[S any] struct {
	kind  string
	apply func(*S, Line)
}

// NewBook returns the book of a name. If the rules of a book change, it needs a new name, such as update/2: the state of a new name is
// computed again from the first fact.
func NewBook[S any](name string, rules ...Rule[S]) *Book[S] {
	b := &Book[S]{name, make(map[string]func(*S, Line), len(rules))}
	for _, r := range rules {
		b.rules[r.kind] = r.apply
	}
	return b
}

// On returns the rule for facts of a kind, which F decodes. apply must be correct for every fact that the file may hold. A fact
// that F cannot decode changes nothing.
func On[F, S any](kind string, apply func(s *S, at time.Time, f F)) Rule[S] {
	return Rule[S]{kind, func(s *S, l Line) {
		var f F
		if l.Into(&f) == nil {
			apply(s, l.At, f)
		}
	}}
}

func (b *Book[S]) key() string { return b.name }

func (b *Book[S]) fresh() any { return new(S) }

func (b *Book[S]) decode(text json.RawMessage) (any, error) {
	s := new(S)
	return s, json.Unmarshal(text, s)
}

func (b *Book[S]) apply(state any, l Line) {
	if rule := b.rules[l.Kind]; rule != nil {
		rule(state.(*S), l) //nolint:forcetypeassert // made by fresh or decode
	}
}

// Of returns the state of a book in a view. The caller must not change the state, nor use it after the function that received the view has
// returned.
func Of[S any](v View, b *Book[S]) (*S, error) {
	s, err := v.v.state(b)
	if err != nil {
		return nil, err
	}
	return s.(*S), nil //nolint:forcetypeassert // made by fresh or decode
}
