package man

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What one page of section 7 says no other page repeats.
func TestNoSentenceTwice(t *testing.T) {
	t.Parallel()
	const long = 8 // words; a shorter sentence may be a name of something
	said := map[string]string{}
	count := 0
	for _, e := range Section("7") {
		for _, s := range sections(e.File) {
			for _, l := range s.lines {
				if l.verbatim || s.Title == "SEE ALSO" {
					continue
				}
				for sentence := range strings.SplitSeq(strings.TrimSuffix(l.text, "."), ". ") {
					if sentence = strings.Join(strings.Fields(sentence), " "); strings.Count(sentence, " ") < long-1 {
						continue
					}
					count++
					if before := said[sentence]; before != "" {
						t.Errorf("%s and %s both say: %s", before, s.Page, sentence)
					}
					said[sentence] = s.Page
				}
			}
		}
	}
	if count < 800 {
		t.Errorf("only %d sentences", count)
	}
}

// A page leads to sections that exist: TITLE in PAGE, and "see TITLE" within a page. The same holds for what the program, its scripts
// and the README say.
func TestReferredSections(t *testing.T) {
	t.Parallel()
	elsewhere := regexp.MustCompile("([A-Z][A-Z ]{3,}[A-Z]) (?:in|of) `?(ollim[a-z-]*\\([157]\\))")
	within := regexp.MustCompile(`\bsee ([A-Z][A-Z ]{3,}[A-Z])\b( in| of)?`)
	page := regexp.MustCompile(`\bollim(?:-[a-z]+)*\([157]\)`)
	titles := map[string][]string{}
	found := 0
	check := func(where, text string) {
		for _, m := range elsewhere.FindAllStringSubmatch(text, -1) {
			found++
			if !slices.Contains(titles[m[2]], m[1]) {
				t.Errorf("%s: %s has no section %s", where, m[2], m[1])
			}
		}
		for _, name := range page.FindAllString(text, -1) {
			found++
			if titles[name] == nil {
				t.Errorf("%s names %s, which does not exist", where, name)
			}
		}
	}
	names, err := fs.Glob(pages, "*.[157]")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		for _, s := range sections(name) {
			titles[s.Page] = append(titles[s.Page], s.Title)
		}
	}
	for _, name := range names {
		for _, s := range sections(name) {
			text := strings.Join(strings.Fields(s.Text), " ")
			check(s.Page, text)
			for _, m := range within.FindAllStringSubmatch(text, -1) {
				if m[2] == "" && !slices.Contains(titles[s.Page], m[1]) {
					t.Errorf("%s has no section %s", s.Page, m[1])
				}
			}
		}
	}
	for _, file := range sources(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		check(file, string(text))
	}
	if found < 300 {
		t.Errorf("only %d references", found)
	}
}

// sources returns the files outside this directory that may name a page.
func sources(t *testing.T) (files []string) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, e fs.DirEntry, err error) error {
		switch name := e.Name(); {
		case err != nil:
			return err
		case e.IsDir() && path != ".." && (strings.HasPrefix(name, ".") || name == "man"):
			return filepath.SkipDir
		case e.Type().IsRegular() && !strings.HasSuffix(name, "_test.go") &&
			slices.Contains([]string{".go", ".md", ".txtar", ".sh", ".service", ".socket"}, filepath.Ext(name)):
			files = append(files, path)
		}
		return nil
	})
	if err != nil || len(files) < 100 {
		t.Fatal(len(files), err)
	}
	return files
}

// Each page is found by its subject, and the list of pages in ollim(7) is complete.
func TestSubjects(t *testing.T) {
	t.Parallel()
	var listed string
	for _, s := range sections("ollim.7") {
		if s.Title == "PAGES" {
			listed = s.Text
		}
	}
	for _, e := range append(Section("7"), Section("5")...) {
		if e.Summary == "" || e.File != "ollim.7" && !strings.Contains(listed, "  "+e.Name()+" ") {
			t.Errorf("ollim(7) does not list %s under PAGES", e.Name())
		}
		if words := len(strings.Fields(Plain(e.File, 0))); strings.HasSuffix(e.File, ".7") && (words > 4000 || words > 2500 && e.File != "ollim.7") {
			t.Errorf("%s has %d words: move a subject to a page of its own", e.Name(), words)
		}
		if file, found := Find(e.Name()); !found || file != e.File {
			t.Errorf("%s: %q", e.Name(), file)
		}
	}
	for command, want := range map[string]string{"ollim session list": "sessions", "ollim routine add": "5 routine", "ollim session": "", "ollim xyzzy": ""} {
		got := ""
		for _, e := range About(command) {
			got = e.Topic()
			if got == want {
				break
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
	if got := Titled("quiet"); !slices.Equal(got, []string{"messages"}) {
		t.Errorf("quiet is in %q", got)
	}
	if text := Contents("5"); strings.Count(text, "\n") != len(Section("5")) || !strings.HasPrefix(text, "ollim-door(5)  ") {
		t.Error(text)
	}
}
