package model

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/plaintext"
)

//go:embed models.txt
var known string

// Table is a table of models. It is immutable.
type Table struct{ entries []entry }

// entry is a line with only the keys that it sets, so that a later line can change some of them.
type entry struct {
	id      string
	aliases []string
	named   bool // it sets aliases, perhaps to none
	retires string
	dated   bool // it sets retires, perhaps to none
	numbers map[string]float64
}

// Keys of a line that are not numbers.
const (
	alias   = "alias"
	retires = "retires"
)

// Keys of a line that are numbers.
const (
	window     = "window"
	output     = "output"
	in         = "in"
	out        = "out"
	cacheRead  = "cache-read"
	cacheWrite = "cache-write"
	cacheHour  = "cache-write-1h"
	long       = "long"
	above      = "long-" // before in, out, cache-read and cache-write
)

func counts() []string { return []string{window, output, long} }

func prices() []string {
	return []string{
		in, out, cacheRead, cacheWrite, cacheHour, above + in, above + out, above + cacheRead, above + cacheWrite, above + cacheHour,
	}
}

// mostTokens and mostPrice are plausibility limits.
const (
	mostTokens = 1e9
	mostPrice  = 1e6 // USD for a million tokens
)

// Known returns the built-in table. It is parsed on each call.
func Known() Table {
	t, _ := parseTable("models.txt", known) // checked by a test
	return t
}

// parseTable parses a table in which every id and every alias occurs once. The error names file and line.
func parseTable(name, text string) (Table, error) {
	var t Table
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		e, err := parse(line)
		if err == nil {
			err = t.clash(e)
		}
		if err == nil {
			err = e.complete()
		}
		if err != nil {
			return Table{}, fmt.Errorf("%s:%d: %w", name, number, err)
		}
		t.entries = append(t.entries, e)
	}
	return t, nil
}

// With returns the table overlaid with lines of the same form, each of which adds a model or changes keys of one. The
// error quotes the invalid line; lines that are valid one by one are valid together.
func (t Table) With(lines []string) (Table, error) {
	t.entries = slices.Clone(t.entries)
	for _, line := range lines {
		e, err := parse(line)
		if err != nil {
			return Table{}, err
		}
		i := t.find(e.id)
		if i < 0 {
			i = len(t.entries)
			t.entries = append(t.entries, entry{id: e.id})
		}
		e = t.entries[i].changed(e)
		if err := e.complete(); err != nil {
			return Table{}, err
		}
		t.entries[i] = e
		for j := range t.entries {
			if j != i {
				t.entries[j].aliases = without(t.entries[j].aliases, e.aliases)
			}
		}
	}
	return t, nil
}

// without returns a new list, because tables share theirs.
func without(list, gone []string) (rest []string) {
	for _, s := range list {
		if !slices.Contains(gone, s) {
			rest = append(rest, s)
		}
	}
	return rest
}

func (t Table) find(id string) int {
	return slices.IndexFunc(t.entries, func(e entry) bool { return e.id == id })
}

// clash returns an error if a name of the line is in the table already.
func (t Table) clash(e entry) error {
	for _, other := range t.entries {
		for _, name := range append([]string{e.id}, e.aliases...) {
			if name == other.id || slices.Contains(other.aliases, name) {
				return fmt.Errorf("%s: the name %s is already used by %s", e.id, name, other.id)
			}
		}
	}
	return nil
}

// parse parses one line.
func parse(line string) (entry, error) {
	words := strings.Fields(line)
	if len(words) == 0 {
		return entry{}, fmt.Errorf("want a line such as `claude-sonnet-4-5 window=200000 in=3 out=15`, not an empty one")
	}
	e := entry{id: words[0], numbers: map[string]float64{}}
	if err := checkName(e.id); err != nil {
		return entry{}, err
	}
	for _, word := range words[1:] {
		if err := e.set(word); err != nil {
			return entry{}, fmt.Errorf("%s: %w", e.id, err)
		}
	}
	return e, nil
}

func (e *entry) set(word string) error {
	key, value, found := strings.Cut(word, "=")
	if !found {
		return fmt.Errorf("%q is not KEY=VALUE", word)
	}
	if _, twice := e.numbers[key]; twice || key == alias && e.named || key == retires && e.dated {
		return fmt.Errorf("%s: given twice", key)
	}
	var n float64
	var err error
	switch {
	case key == alias:
		e.named = true
		e.aliases, err = names(e.id, value)
		return err
	case key == retires:
		e.dated = true
		e.retires, err = date(value)
		return err
	case slices.Contains(counts(), key):
		n, err = count(value)
	case slices.Contains(prices(), key):
		n, err = price(value)
	default:
		return unknownKey(key)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	e.numbers[key] = n
	return nil
}

func unknownKey(key string) error {
	all := slices.Concat([]string{alias}, counts(), prices(), []string{retires})
	if near := plaintext.Similar(key, all); len(near) > 0 {
		return fmt.Errorf("%q: unknown key%s", key, plaintext.Suggestion(near[0]))
	}
	return fmt.Errorf("%q: unknown key, want one of %s", key, strings.Join(all, ", "))
}

// names parses a list of aliases; "" is an empty list.
func names(id, text string) (list []string, err error) {
	if text == "" {
		return nil, nil
	}
	for name := range strings.SplitSeq(text, ",") {
		if err := checkName(name); err != nil {
			return nil, fmt.Errorf("alias: %w", err)
		}
		if name == id || slices.Contains(list, name) {
			return nil, fmt.Errorf("alias: %s: given twice", name)
		}
		list = append(list, name)
	}
	return list, nil
}

// checkName allows the characters that services use in ids, and none of this format's separators.
func checkName(s string) error {
	const signs = "-_.:/@+~"
	letters := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune(signs, r)
	}
	if s == "" || len(s) > 200 || strings.TrimFunc(s, letters) != "" {
		return fmt.Errorf("%q is not the name of a model: want letters, digits and %s", s, signs)
	}
	return nil
}

// date checks a date; "" is none.
func date(text string) (string, error) {
	if _, err := time.Parse(time.DateOnly, text); err != nil && text != "" {
		return "", fmt.Errorf("%s: %q is not a date: write one like 2027-01-31", retires, text)
	}
	return text, nil
}

func count(text string) (float64, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n == 0 || n > mostTokens {
		return 0, fmt.Errorf("%q is not a number of tokens: write one like 200000", text)
	}
	return float64(n), nil
}

func price(text string) (float64, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || strings.Trim(text, "0123456789.") != "" || n > mostPrice {
		return 0, fmt.Errorf("%q is not a price: want USD per million tokens, like 0.30", text)
	}
	return n, nil
}

// changed returns the entry overlaid with the keys of another.
func (e entry) changed(by entry) entry {
	numbers := maps.Clone(e.numbers)
	if numbers == nil {
		numbers = map[string]float64{}
	}
	maps.Copy(numbers, by.numbers)
	e.numbers = numbers
	if by.named {
		e.aliases, e.named = by.aliases, true
	}
	if by.dated {
		e.retires, e.dated = by.retires, true
	}
	return e
}

// complete returns an error if a key is missing. A union of keys that pass also passes.
func (e entry) complete() error {
	for _, need := range [][2]string{
		{in, out},
		{out, in},
		{cacheRead, in},
		{cacheWrite, in},
		{cacheHour, in},
		{long, above + in},
		{above + in, above + out},
		{above + out, above + in},
		{above + in, long},
		{above + cacheRead, above + in},
		{above + cacheWrite, above + in},
		{above + cacheHour, above + in},
		{above + in, in},
	} {
		_, given := e.numbers[need[0]]
		if _, ok := e.numbers[need[1]]; given && !ok {
			return fmt.Errorf("%s: %s without %s", e.id, need[0], need[1])
		}
	}
	return nil
}

func (e entry) model() Model {
	_, priced := e.numbers[in]
	return Model{
		ID: e.id, Entry: e.id, Known: true, Aliases: slices.Clone(e.aliases),
		Window: int(e.numbers[window]), Output: int(e.numbers[output]),
		Retires: e.retires, Priced: priced, Price: e.price(""),
		Long: int(e.numbers[long]), LongPrice: e.price(above),
	}
}

// price returns one of the two prices of a line.
func (e entry) price(prefix string) rates {
	p := rates{In: e.numbers[prefix+in], Out: e.numbers[prefix+out], CacheHour: e.numbers[prefix+cacheHour]}
	p.CacheRead, p.CacheWrite = p.In, 1.25*p.In
	if n, ok := e.numbers[prefix+cacheRead]; ok {
		p.CacheRead = n
	}
	if n, ok := e.numbers[prefix+cacheWrite]; ok {
		p.CacheWrite = n
	}
	return p
}
