// Package model is the table of models: their aliases, context windows and prices, in the lines of models.txt and of the
// owner's settings. A model that is not in the table can be used; its window and price are then unknown and not guessed.
package model

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Model is one model.
type Model struct {
	ID      string // name that is sent to the service
	Entry   string // the id of its line; "" if it has none. It differs from ID for anthropic/claude-… and dated ids
	Known   bool   // the table has a line for it
	Aliases []string
	Window  int    // tokens in a conversation, including the answer; 0 if unknown
	Output  int    // tokens in one answer; 0 if unknown
	Retires string // day, as in 2027-01-31, from which the service no longer has the model; "" if none is known

	Priced    bool // the price is known
	Price     rates
	Long      int // a request of more tokens is charged at LongPrice; 0: none
	LongPrice rates
}

// rates are in USD for a million tokens. CacheHour is the price of writing to the one-hour cache, 0 if unknown.
type rates struct{ In, Out, CacheRead, CacheWrite, CacheHour float64 }

// Hourly returns the model with the prices of the one-hour cache, and reports whether they are known.
func (m Model) Hourly() (hourly Model, known bool) {
	known = m.Priced && m.Price.CacheHour > 0 && (m.Long == 0 || m.LongPrice.CacheHour > 0)
	m.Price.CacheWrite, m.LongPrice.CacheWrite = m.Price.CacheHour, m.LongPrice.CacheHour
	return m, known
}

// Tokens is the token usage of one answer; In excludes cache reads and writes. A run.Usage converts to it.
type Tokens struct{ In, Out, CacheRead, CacheWrite int }

// Cost returns the cost of one answer in USD, and reports whether it is known. The price may depend on the length of
// the request, so Cost is called for each answer, not for a sum of them.
func (m Model) Cost(t Tokens) (usd float64, known bool) {
	p := m.Price
	if m.Long > 0 && t.In+t.CacheRead+t.CacheWrite > m.Long {
		p = m.LongPrice
	}
	sum := float64(t.In)*p.In + float64(t.Out)*p.Out + float64(t.CacheRead)*p.CacheRead + float64(t.CacheWrite)*p.CacheWrite
	return sum / 1e6, m.Priced
}

// Question returns the highest cost of a request, in USD, with that many tokens in the service's cache.
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

// Resolve finds a model by any name: an alias, an id, an id with its date (claude-sonnet-4-5-20250929), or one with its
// provider (anthropic/claude-sonnet-4.5, as on OpenRouter). Any name but an alias is sent to the service unchanged. An
// alias takes precedence over an id, so an old id can be redirected to another model.
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

// variants returns the ids that a name may mean, the name itself first.
func variants(name string) []string {
	list := []string{name}
	for rest, more := name, true; more; {
		if _, rest, more = strings.Cut(rest, "/"); more {
			list = append(list, rest)
		}
	}
	for _, v := range slices.Clone(list) {
		list = append(list, Undated(v))
	}
	for _, v := range slices.Clone(list) {
		list = append(list, strings.ReplaceAll(v, ".", "-")) // claude-sonnet-4.5
	}
	return list
}

// Undated removes a date at the end of an id: -20250929, @20250929 or -2025-09-29.
func Undated(id string) string {
	for _, form := range []string{"-00000000", "@00000000", "-0000-00-00"} {
		if rest := len(id) - len(form); rest > 0 && like(id[rest:], form) {
			return id[:rest]
		}
	}
	return id
}

// like reports whether text matches form, in which 0 matches any digit.
func like(text, form string) bool {
	for i := range len(form) {
		if digit := '0' <= text[i] && text[i] <= '9'; digit != (form[i] == '0') || !digit && text[i] != form[i] {
			return false
		}
	}
	return true
}

// LikeMain is a value of thinking for a branch of the main conversation: as much as there, so that the messages that the service has cached
// for main serve the branch as well.
const LikeMain = "main"

// CheckName returns an error for a text that is not the name of a model at any service.
func CheckName(s string) error {
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }) {
		return fmt.Errorf("%q is not the name of a model", s)
	}
	return nil
}

// ParseThinking returns a setting of how much to think in its one spelling: true, false, off, adaptive or a number of tokens.
func ParseThinking(text string) (string, error) {
	word := strings.ToLower(text)
	if n, err := strconv.Atoi(text); err == nil && n > 0 {
		return strconv.Itoa(n), nil
	}
	if slices.Contains([]string{"true", "false", "off", "adaptive"}, word) {
		return word, nil
	}
	return "", fmt.Errorf("%q: want true, false, off, adaptive or a number of tokens", text)
}
