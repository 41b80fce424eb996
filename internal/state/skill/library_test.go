package skill

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/plaintext"
)

const good = "---\ndescription: Talks\n---\nTalk.\n"

// fixture is a data directory with these files; a name that ends in / is a directory, a text "-> x" a link, "|" a pipe.
func fixture(t *testing.T, files map[string]string) paths.Dir {
	t.Helper()
	dir := paths.Dir(t.TempDir())
	for name, text := range files {
		path := dir.Path(name)
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		target, link := strings.CutPrefix(text, "-> ")
		switch {
		case err != nil:
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(path, 0o700)
		case link:
			err = os.Symlink(target, path)
		case text == "|":
			err = syscall.Mkfifo(path, 0o600)
		default:
			err = os.WriteFile(path, []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestLoad(t *testing.T) {
	outside := fixture(t, map[string]string{"SKILL.md": good})
	dir := fixture(t, map[string]string{
		"skills/weekly/SKILL.md": good,
		"skills/daily/SKILL.md":  good,
		"skills/README.md":       "about",
		"skills/.git/SKILL.md":   good,
		"skills/also":            "-> README.md",
		"skills/again":           "-> daily",
		"skills/away":            "-> " + string(outside),
		"skills/bad/SKILL.md":    "Talk.\n",
		"skills/dangling":        "-> nowhere",
		"skills/empty/":          "",
		"skills/folder/SKILL.md": "-> ../daily",
		"skills/huge/SKILL.md":   good + strings.Repeat("x", 1<<20),
		"skills/link/SKILL.md":   "-> ../daily/SKILL.md",
		"skills/my skill/a":      good,
		"skills/pipe/SKILL.md":   "|",
		"skills/up":              "-> ../skills",
	})
	skills, faults, err := Library{Home: dir}.Load()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range skills {
		names = append(names, s.Name)
	}
	if want := []string{"again", "daily", "weekly"}; !slices.Equal(names, want) {
		t.Errorf("skills %q, want %q", names, want)
	}
	want := `skills/away/SKILL.md: cannot be read: its directory is a link that leads out of skills
skills/bad/SKILL.md:1: does not open with a --- line (frontmatter)
skills/dangling/SKILL.md: cannot be read: no such file or directory
skills/empty/SKILL.md: cannot be read: no such file or directory
skills/folder/SKILL.md: cannot be read: a symbolic link
skills/huge/SKILL.md: cannot be read: larger than 1048576 bytes
skills/link/SKILL.md: cannot be read: a symbolic link
skills/my skill/SKILL.md: cannot be read: "my skill" is not a name: want letters and digits and, after the first character, . _ -
skills/pipe/SKILL.md: cannot be read: not a file
skills/up/SKILL.md: cannot be read: its directory is a link that leads out of skills`
	if got := lines(faults); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

func TestLoadNothing(t *testing.T) {
	if skills, faults, err := (Library{Home: fixture(t, nil)}).Load(); skills != nil || faults != nil || err != nil {
		t.Error(skills, faults, err)
	}
	if _, _, err := (Library{Home: fixture(t, map[string]string{"skills": "a file"})}).Load(); err == nil {
		t.Error("a file for a folder is no error")
	}
}

func TestFind(t *testing.T) {
	dir := fixture(t, map[string]string{
		"skills/daily/SKILL.md": good, "skills/bad/SKILL.md": "Talk.\n", "SKILL.md": good, "skills/.x/SKILL.md": good, "skills/note": "",
		"skills/pipe/SKILL.md": "|",
	})
	l := Library{Home: dir}
	want := skillFile{Name: "daily", Description: "Talks", Body: "Talk.", Path: dir.Skill("daily")}
	if s, err := l.Find("daily"); err != nil || !reflect.DeepEqual(s, want) {
		t.Errorf("got %+v, %v", s, err)
	}
	for name, want := range map[string]string{
		"dayly": `no skill "dayly" (did you mean daily?)`, "xyzzy": `no skill "xyzzy"`, "": `no skill ""`, "..": `no skill ".."`, ".x": `no skill ".x"`,
		"../skills/daily": `no skill "../skills/daily"`, "daily/": `no skill "daily/" (did you mean daily?)`, strings.Repeat("x", 65): `no skill "` + strings.Repeat("x", 65) + `"`,
	} {
		var unknown *plaintext.Unknown
		if _, err := l.Find(name); !errors.As(err, &unknown) || unknown.Name != name || err.Error() != want {
			t.Errorf("Find(%q): %v, want %s", name, err, want)
		}
		if _, err := l.Text(name); !errors.As(err, &unknown) {
			t.Errorf("Text(%q): %v", name, err)
		}
	}
	for name, want := range map[string]string{
		"bad":  "skills/bad/SKILL.md:1: does not open with a --- line (frontmatter)",
		"note": "skills/note/SKILL.md: cannot be read: not a directory",
		"pipe": "skills/pipe/SKILL.md: cannot be read: not a file",
	} {
		if _, err := l.Find(name); lines(err) != want {
			t.Errorf("Find(%q): %v, want %s", name, err, want)
		}
	}
	if text, err := l.Text("bad"); string(text) != "Talk.\n" || err != nil {
		t.Errorf("Text of a bad one: %q, %v", text, err)
	}
	if _, err := l.Text("pipe"); lines(err) == "" {
		t.Error("Text of a pipe is no fault")
	}
}
