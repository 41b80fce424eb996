package skill

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/platform/yamldoc"
)

// Library is the skills of one data directory.
type Library struct{ Home paths.Dir }

// Load reads every skill, by name. A bad one is among the faults and affects no other; only a directory that cannot be listed
// is an error.
func (l Library) Load() (skills []skillFile, faults yamldoc.Faults, err error) {
	names, err := l.names()
	for _, name := range names {
		s, err := l.read(name)
		var bad yamldoc.Faults
		if errors.As(err, &bad) {
			faults = append(faults, bad...)
			continue
		}
		skills = append(skills, s)
	}
	return skills, faults, err
}

// Find reads one skill. Errors: *plaintext.Unknown, or the yamldoc.Faults of its file.
func (l Library) Find(name string) (skillFile, error) {
	if err := l.known(name); err != nil {
		return skillFile{}, err
	}
	return l.read(name)
}

// Text is a skill's file as it is, also when something is wrong in it. Errors: *plaintext.Unknown, or yamldoc.Faults when it cannot
// be read at all.
func (l Library) Text(name string) ([]byte, error) {
	if err := l.known(name); err != nil {
		return nil, err
	}
	return l.text(name)
}

// known refuses a name that no directory has. Only names that could be ones become part of a path.
func (l Library) known(name string) error {
	if checkName(name) == nil {
		if _, err := os.Lstat(l.folder(name)); !errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	names, _ := l.names() // for a suggestion
	return &plaintext.Unknown{What: "skill", Name: name, Near: plaintext.Similar(name, names)}
}

// names are those of the directories in skills/, good ones or not. Files and what is hidden lie there for other reasons.
func (l Library) names() (names []string, err error) {
	entries, err := store.List(l.Home.Skills())
	for _, e := range entries {
		link := e.Type() == fs.ModeSymlink
		if info, err := os.Stat(l.folder(e.Name())); link && err == nil {
			link = info.IsDir()
		}
		if (e.IsDir() || link) && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names, err
}

func (l Library) folder(name string) string { return filepath.Join(l.Home.Skills(), name) }

// shown is the file's name in errors.
func shown(name string) string { return filepath.Join("skills", name, "SKILL.md") }

// read reads one skill; the error is always a yamldoc.Faults.
func (l Library) read(name string) (skillFile, error) {
	data, err := l.text(name)
	if err != nil {
		return skillFile{}, err
	}
	s, err := Parse(name, shown(name), data)
	s.Path = l.Home.Skill(name)
	return s, err
}

func (l Library) text(name string) ([]byte, error) {
	data, err := []byte(nil), checkName(name)
	if err == nil {
		err = l.inside(name)
	}
	if err == nil {
		data, err = store.ReadText(l.Home.Skill(name), maxFile, true) // what a link leads to could change unseen
	}
	if err != nil {
		return nil, yamldoc.Faults{{File: shown(name), Reason: "cannot be read: " + store.Cause(err)}}
	}
	return data, nil
}

// inside refuses a directory that is a link to somewhere else: what lies there is not among what the owner looks at.
func (l Library) inside(name string) error {
	skills, err := filepath.EvalSymlinks(l.Home.Skills())
	if err != nil {
		return err
	}
	folder, err := filepath.EvalSymlinks(l.folder(name))
	if err != nil {
		return err
	}
	if rel, err := filepath.Rel(skills, folder); err != nil || !filepath.IsLocal(rel) || rel == "." {
		return errors.New("its directory is a link that leads out of skills")
	}
	return nil
}
