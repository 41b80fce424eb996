// Package model is the table of models: their aliases, context windows and prices, in the lines of models.txt and of the
// owner's settings. A model that is not in the table can be used; its window and price are then unknown and not guessed.
package model

import (
	"slices"
	"strings"
)

// Model is one model.
type Model struct {
	ID      string // what the service is asked for
	Entry   string // the id of its line; "" when there is none. They differ for anthropic/claude-… and for dated ids
	Known   bool   // it has a line
	Aliases []string
	Window  int // tokens of a conversation, answer included; 0 is not known
	Output  int // tokens of one answer; 0 is not known

	Priced    bool // Price is known
	Price     Price
	Long      int // a question of more tokens is charged at LongPrice; 0 is none
	LongPrice Price
}

// Price is in USD for a million tokens. CacheHour is that of what is written to the cache for an hour, 0 if that is not known.
type Price struct{ In, Out, CacheRead, CacheWrite, CacheHour float64 }

// Hourly is the model with the prices of a cache that lasts an hour. pays reports whether writing a conversation to that and
// reading it once costs less than writing it twice to the cache that lasts some minutes.
func (m Model) Hourly() (hourly Model, pays bool) {
	pays = m.Priced
	for _, p := range []*Price{&m.Price, &m.LongPrice} {
		if p == &m.LongPrice && m.Long == 0 {
			continue
		}
		pays = pays && p.CacheHour > 0 && p.CacheHour+p.CacheRead < 2*p.CacheWrite
		p.CacheWrite = p.CacheHour
	}
	return m, pays
}

// Tokens is what one answer used; In does not hold what was read from or written to the cache. A run.Usage converts to it.
type Tokens struct{ In, Out, CacheRead, CacheWrite int }

// Cost is what one answer cost in USD, and whether that is known. The price may depend on the length of the question, so it is
// asked for answer by answer, not for a sum of them.
func (m Model) Cost(t Tokens) (usd float64, known bool) {
	p := m.Price
	if m.Long > 0 && t.In+t.CacheRead+t.CacheWrite > m.Long {
		p = m.LongPrice
	}
	sum := float64(t.In)*p.In + float64(t.Out)*p.Out + float64(t.CacheRead)*p.CacheRead + float64(t.CacheWrite)*p.CacheWrite
	return sum / 1e6, m.Priced
}

// Question is the most that a question costs, in USD, of which the service has so many tokens in its cache.
func (m Model) Question(tokens, cached int) float64 {
	anew, _ := m.Cost(Tokens{In: tokens - cached, CacheRead: cached})
	written, _ := m.Cost(Tokens{CacheWrite: tokens - cached, CacheRead: cached})
	return max(anew, written)
}

// Models lists the table, in its order.
func (t Table) Models() []Model {
	var list []Model
	for _, e := range t.entries {
		list = append(list, e.model())
	}
	return list
}

// Resolve finds a model by any name: an alias, an id, an id with its date (claude-sonnet-4-5-20250929), or one with its provider
// (anthropic/claude-sonnet-4.5, as OpenRouter has it). A name that is more than an alias stays what the service is asked for. An
// alias beats an id, so one can send an old id to another model.
func (t Table) Resolve(name string) Model {
	for _, e := range t.entries {
		if slices.Contains(e.aliases, name) {
			return e.model()
		}
	}
	for _, id := range variants(name) {
		if i := t.find(id); i >= 0 {
			m := t.entries[i].model()
			m.ID = name
			return m
		}
	}
	return Model{ID: name}
}

// variants are the ids that a name may stand for, the name itself first.
func variants(name string) []string {
	list := []string{name}
	for rest, more := name, true; more; {
		if _, rest, more = strings.Cut(rest, "/"); more {
			list = append(list, rest)
		}
	}
	for _, v := range slices.Clone(list) {
		list = append(list, undated(v))
	}
	for _, v := range slices.Clone(list) {
		list = append(list, strings.ReplaceAll(v, ".", "-")) // claude-sonnet-4.5
	}
	return list
}

// undated leaves out a date at the end: -20250929, @20250929 or -2025-09-29.
func undated(id string) string {
	for _, form := range []string{"-00000000", "@00000000", "-0000-00-00"} {
		if rest := len(id) - len(form); rest > 0 && like(id[rest:], form) {
			return id[:rest]
		}
	}
	return id
}

// like reports whether text has the form, whose zeros stand for any digit.
func like(text, form string) bool {
	for i := range len(form) {
		if digit := '0' <= text[i] && text[i] <= '9'; digit != (form[i] == '0') || !digit && text[i] != form[i] {
			return false
		}
	}
	return true
}
