package setup

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/job"
)

// Sample is a routine to begin with. @ in its texts stands for what follows the name and a colon in an answer.
type Sample struct{ Name, About, file, gate string }

// Samples lists the routines to begin with.
func Samples() []Sample {
	return []Sample{
		{Name: "disk", About: "tells you when a disk is nearly full", file: `---
id: disk
description: Disk space
# Minute, hour, day, month, weekday: Monday to Friday at 9:00.
cron: "0 9 * * 1-5"
# It runs beside your conversation, and begins anew each time, which is cheap.
background: true
isolated: true
# What the agent may run. After a change of this line: ollim approve disk
allowed-tools: ["Bash(df -h)"]
---
Run df -h. If a file system of a disk is more than 90 % full, ping me: which one, and how much is left.
Otherwise end without a message.
`},
		{Name: "releases", About: "tells you of new releases of a project; a quiet day costs nothing", file: `---
id: releases
description: New releases
# Minute, hour, day, month, weekday: each day at 9:00.
cron: "0 9 * * *"
background: true
isolated: true
# gates/releases decides whether there is anything to do. If not, no model is asked.
# After a change of that file: ollim approve releases
gate: releases
---
GATE OUTPUT shows how the list of the tags of @ has changed: new ones begin with +.
Ping me with the new releases, in one sentence. On the first day, name only the latest one.
`, gate: `#!/bin/sh
# Prints how the tags differ from those of the last run, and exits 0. Without a difference it exits 1: then the run costs nothing.
GIT_CONFIG_GLOBAL=/dev/null GIT_TERMINAL_PROMPT=0 git ls-remote --tags --refs '@' |
	sed 's,.*refs/tags/,,' | sort -V | tail -n 20 | ollim changed releases
`},
		{Name: "repository", About: "sums up a repository of yours each morning", file: `---
id: repository
description: Morning summary
# Minute, hour, day, month, weekday: Monday to Friday at 8:00.
cron: "0 8 * * 1-5"
background: true
# It remembers what it has told you before.
session: persistent
# The directory whose files it may read, and what it may run. After a change: ollim approve repository
dirs: ["@"]
allowed-tools:
  - "Bash(git -C @ log --since=1.day --stat)"
  - "Bash(git -C @ status --short --branch)"
---
Look at what changed in the repository @ since yesterday: git -C @ log --since=1.day --stat, and
git -C @ status --short --branch. Ping me with a summary of at most five lines. If nothing changed, end without a message.
`},
	}
}

// Sample returns the routine that an answer such as repository:PATH names; nil if the answer is none.
func (s *Setup) Sample(answer string) (*Sample, error) {
	name, rest, given := strings.Cut(answer, ":")
	if name == "" || name == None {
		return nil, nil
	}
	list := Samples()
	i := slices.IndexFunc(list, func(s Sample) bool { return s.Name == name })
	if i < 0 || name == "disk" && given {
		return nil, fmt.Errorf("%q: write disk, releases:URL, repository:PATH or none", answer)
	}
	switch name {
	case "releases":
		if err := config.CheckURL(rest); err != nil || strings.ContainsAny(rest, "'\" ") {
			return nil, fmt.Errorf("%q is not the address of a repository: write one like https://github.com/golang/go", rest)
		}
	case "repository":
		var err error
		if rest, err = s.repositoryAt(rest); err != nil {
			return nil, err
		}
	}
	found := &list[i]
	found.file, found.gate = strings.ReplaceAll(found.file, "@", rest), strings.ReplaceAll(found.gate, "@", rest)
	return found, nil
}

// repositoryAt returns the absolute path of a working tree.
func (s *Setup) repositoryAt(path string) (string, error) {
	if rest, below := strings.CutPrefix(path, "~/"); below {
		base, err := s.App.UserHome()
		if err != nil {
			return "", err
		}
		path = filepath.Join(base, rest)
	}
	resolved, err := filepath.EvalSymlinks(path)
	switch {
	case !filepath.IsAbs(path):
		return "", fmt.Errorf("%q: write an absolute path, or one that begins with ~/", path)
	case err != nil:
		return "", fmt.Errorf("%s: %s", path, store.Cause(err))
	case !store.Exists(filepath.Join(resolved, ".git")):
		return "", fmt.Errorf("%s: not a git repository", path)
	case strings.ContainsAny(resolved, " \t'\"*\\(){}[]$@,;&|<>"):
		return "", fmt.Errorf("%s: a tool pattern cannot contain the blanks and signs of this path: rename the directory", path)
	}
	return resolved, nil
}

func (s *Setup) routinePath(name string) string { return filepath.Join(s.Dir.Routines(), name+".md") }

// AddRoutine writes the files of a sample, and returns the job. An existing routine stays as it is; the error is then an fs.ErrExist.
func (s *Setup) AddRoutine(sample *Sample) (job.Job, error) {
	path := s.routinePath(sample.Name)
	j, err := job.Parse(job.Routine, path, []byte(sample.file))
	if err != nil || store.Exists(path) {
		return j, cmp.Or(err, fs.ErrExist)
	}
	j.Path = path
	if sample.gate != "" {
		gate := s.Dir.Gate(sample.Name)
		err = store.Create(gate, []byte(sample.gate))
		if err == nil {
			err = os.Chmod(gate, 0o700) //nolint:gosec // an executable of the owner
		}
		if errors.Is(err, fs.ErrExist) {
			err = nil // the existing file is the owner's
		}
	}
	if err == nil {
		err = store.Create(path, []byte(sample.file))
	}
	return j, err
}
