package cli

import (
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/engine"
)

// attachments returns the files of a message: those of -f, then those that its words name. A word cannot name a file that no agent
// may reach, because the message may have been pasted.
func attachments(text string, files []string, hides func(file string) bool) (list []engine.Attachment, err error) {
	for _, name := range files {
		if name == "-" || name == "" {
			return nil, hint(usage("-f %q: want a file", name), "standard input is read without it")
		}
	}
	for _, name := range append(slices.Clone(files), slices.DeleteFunc(mentioned(text), hides)...) {
		a, err := engine.Attach(name, name)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(list, func(b engine.Attachment) bool { return b.Path == a.Path }) {
			list = append(list, a)
		}
	}
	return list, nil
}

// mentioned returns the regular files that words such as @notes.txt or @"my notes.txt" name. A character before the @ that
// belongs to a word, as in an e-mail address, makes it part of that word; punctuation behind a name is not part of it.
func mentioned(text string) (names []string) {
	words := regexp.MustCompile(`(?:^|[\s("'\[])@(?:"([^"\n]+)"|([^\s"]+))`)
	for rest := text; ; {
		at := words.FindStringSubmatchIndex(rest)
		if at == nil {
			return names
		}
		switch {
		case at[2] >= 0:
			names = append(names, existing(rest[at[2]:at[3]])...)
		default:
			word := rest[at[4]:at[5]]
			names = append(names, existing(word, strings.TrimRight(word, ".,;:!?)]}'"))...)
		}
		rest = rest[at[1]:]
	}
}

func existing(names ...string) []string {
	for _, name := range names {
		if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
			return []string{name}
		}
	}
	return nil
}
