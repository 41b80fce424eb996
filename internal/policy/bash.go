package policy

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
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
	reason := refusal(words, len(words), p.Sealed)
	if words[0] == ollim {
		reason = OllimRefusal(words[1:], p.Ollim)
	}
	if reason != "" {
		return Pattern{}, errors.New(reason)
	}
	var idle error // why a pattern of these words is not in force
	by, err := pick(patterns, "the command", func(pattern Pattern) bool {
		named, reason := matchWords(pattern.words, words), pattern.Unsealed()
		if p.Sealed || reason == "" || !named {
			return named
		}
		idle = fmt.Errorf("%s is in force only in a sealed run: %s", pattern.text, reason)
		return false
	})
	if err != nil || p.Sealed && words[0] != ollim {
		return by, cmp.Or(idle, err)
	}
	g, err := p.Ground()
	if err != nil {
		return Pattern{}, err
	}
	if words[0] == ollim {
		return by, g.ollimWords(words)
	}
	return by, g.otherWords(words)
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

// otherWords looks at the words of any other command, also without percent-encoding: as paths, as options with a path, and at every
// piece of them.
func (g Ground) otherWords(words []string) error {
	between := func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("=:,;@'\"`()<>|&{}[]^!?*\\", r) }
	for _, word := range words {
		plain, _ := url.PathUnescape(word) // "" if it is none
		paths := append(strings.FieldsFunc(word+" "+plain, between), word, plain)
		for _, s := range []string{word, plain} {
			for i := 2; strings.HasPrefix(s, "-") && i < len(s) && !strings.ContainsAny(s[2:max(2, i-1)], "/= \t\n"); i++ {
				paths = append(paths, s[i:]) // -f/path, --file=path, and other options before, however many
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
	if text == "" || len(text) > longest || strings.ContainsRune(text, 0) {
		return nil
	}
	named, parts := g.absolute(text), strings.Split(text, "/")
	real, err := Resolve(named)
	_, noLink := os.Readlink(named)
	if err != nil {
		real = named // a text, or a path that leads nowhere
	}
	switch {
	case slices.Contains(parts, "..") && (around || len(parts) > 1 && !strings.Contains(text, " ")):
		err = errors.New("no .. in a path")
	case named != "/dev/null" && inside(named, []string{"/proc", "/dev"}):
		err = errors.New("it is not a regular file")
	case err != nil && noLink == nil:
	case !filepath.IsAbs(text) && !slices.ContainsFunc(g.roots, func(r realRoot) bool { return within(real, r.real) || within(real, r.named) }):
		err = errors.New("it leads out of the working directory")
	case around && g.Encloses(real) != "":
		err = fmt.Errorf("it contains a protected path (%s); be more specific", g.Encloses(real))
	case g.protects(named, real) != "":
		err = fmt.Errorf("it is in a protected path (%s)", g.protects(named, real))
	default:
		return nil
	}
	return fmt.Errorf("%s: %w", quote(text), err)
}

// heads returns what each word of a pattern begins with, and how many are literal before the first wildcard.
func heads(words [][]string) (begin []string, literal int) {
	for i, w := range words {
		begin = append(begin, w[0])
		if len(w) == 1 && literal == i {
			literal++
		}
	}
	return begin, literal
}

// matchWords matches word by word; a lone * at the end of the pattern takes all the words that are left. None has control characters.
func matchWords(pattern [][]string, words []string) bool {
	const text = "[^\x00]*"
	expression := ""
	for _, w := range pattern {
		expression += strings.ReplaceAll(regexp.QuoteMeta(strings.Join(w, "\x01")), "\x01", text) + "\x00"
	}
	if begin, more := strings.CutSuffix(expression, "\x00"+text+"\x00"); more {
		expression = begin + "\x00(" + text + "\x00)*"
	}
	matched, err := regexp.MatchString("^"+expression+"$", strings.Join(words, "\x00")+"\x00")
	return matched && err == nil
}
