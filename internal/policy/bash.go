package policy

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/ollim/ollim/internal/platform/shell"
)

// decideBash decides a command: what it is, what it may never be, which pattern has its words, where its words lead. What a sealed
// program can reach is not looked at here; ollim's own commands are executed outside of the seal.
func (p Policy) decideBash(in fields, patterns []Pattern) (Pattern, error) {
	words, err := shell.Words(in.text("command"))
	if err != nil {
		return Pattern{}, err
	}
	if reason := refusal(wilds(words), p.Sealed); reason != "" {
		return Pattern{}, errors.New(reason)
	}
	if words[0] == ollim {
		if p.Ollim == nil {
			p.Ollim = Verbs{}.Access
		}
		if reason := OllimRefusal(words[1:], p.Ollim); reason != "" {
			return Pattern{}, errors.New(reason)
		}
	}
	by, err := p.inForce(patterns, words)
	if err != nil || p.Sealed && words[0] != ollim {
		return by, err
	}
	g, err := p.Ground()
	if err != nil {
		return Pattern{}, err
	}
	if words[0] == ollim {
		return by, g.ollimWords(words)
	}
	if name := g.Encloses(g.cwd); name != "" && walks(words) {
		return Pattern{}, fmt.Errorf("%s could read a protected path (%s); use Glob or Grep with a path", quoteless(words[0]), name)
	}
	for _, word := range words {
		if err := g.word(word); err != nil {
			return Pattern{}, err
		}
	}
	return by, nil
}

// inForce returns the pattern that allows a command.
func (p Policy) inForce(patterns []Pattern, words []string) (Pattern, error) {
	named := func(pattern Pattern) bool { return matchWords(pattern.words, words) }
	by, err := pick(patterns, "the command", func(pattern Pattern) bool { return named(pattern) && (p.Sealed || pattern.unsealed == "") })
	if i := slices.IndexFunc(patterns, named); err != nil && i >= 0 {
		err = fmt.Errorf("%s is in force only in a sealed run: %s", patterns[i].text, patterns[i].unsealed)
	}
	return by, err
}

// ollimWords looks at ollim's arguments. They are text and names more often than paths, so only a word that is a path as a whole
// counts, and a bare word that is no file (as in "ollim sessions list") only as an option's value.
func (g Ground) ollimWords(words []string) error {
	for i, word := range words[1:] {
		value := strings.HasPrefix(words[i], "-") && !slices.Contains(quietFlags(), words[i])
		if !value && !strings.ContainsAny(word, "/.=") && !isFile(filepath.Join(g.named, word)) {
			continue
		}
		attached := ""
		if strings.HasPrefix(word, "-") {
			_, attached, _ = strings.Cut(word, "=")
		}
		if err := cmp.Or(g.whole(word, false), g.whole(attached, false)); err != nil {
			return err
		}
	}
	return nil
}

// isFile reports whether there is anything but a directory.
func isFile(path string) bool {
	_, err := os.Lstat(path)
	info, statErr := os.Stat(path)
	return err == nil && (statErr != nil || !info.IsDir())
}

// word looks at an argument of any other program, also without percent-encoding: as a path, as an option with a path, and at every
// piece of it.
func (g Ground) word(word string) error {
	plain, _ := url.PathUnescape(word) // "" if it is none
	for _, s := range []string{word, plain} {
		pieces := strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("=:,;@'\"`()<>|&{}[]^!?*\\", r) })
		paths := append([]string{s}, pieces...)
		if strings.HasPrefix(s, "-") {
			_, value, _ := strings.Cut(s, "=")
			paths = append(paths, value)
			for i := 2; i < len(s) && !strings.ContainsAny(s[2:i], "/= \t\n"); i++ { // -f/path, and other options before, however many
				paths = append(paths, s[i:])
			}
		}
		for _, path := range paths {
			if err := g.whole(path, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// whole refuses text that, taken as a path, leads into a protected place or to the machinery in which one can be reached by
// other names; with around also a directory that contains one, and any climbing.
func (g Ground) whole(text string, around bool) error {
	if text == "" || len(text) > longestPath || strings.ContainsRune(text, 0) {
		return nil
	}
	path := around || strings.Contains(text, "/") && !strings.Contains(text, " ")
	if path && slices.Contains(strings.Split(text, "/"), "..") {
		return fmt.Errorf("%s: no .. in a path", quote(text))
	}
	named := g.absolute(text)
	if named != "/dev/null" && (within(named, "/proc") || within(named, "/dev")) {
		return fmt.Errorf("%s is not a regular file", quote(text))
	}
	real, err := Resolve(named)
	if err != nil {
		if info, err := os.Lstat(named); err == nil && info.Mode()&os.ModeSymlink != 0 {
			return fmt.Errorf("%s: %w", quote(text), errLink)
		}
		real = named // a text, or a path that leads nowhere
	}
	if name := g.protects(named, real); name != "" {
		return fmt.Errorf("%s is in a protected path (%s)", quote(text), name)
	}
	if !filepath.IsAbs(text) && !slices.ContainsFunc(g.roots, func(r realRoot) bool { return within(real, r.real) || within(real, r.named) }) {
		return fmt.Errorf("%s leads out of the working directory", quote(text))
	}
	if name := g.Encloses(real); around && name != "" {
		return fmt.Errorf("%s contains a protected path (%s); be more specific", quote(text), name)
	}
	return nil
}
