package cli

import (
	"context"
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

// sample is a routine to begin with. @ in its texts is what follows its name and a colon in an answer.
type sample struct{ name, about, file, gate string }

func samples() []sample {
	return []sample{
		{name: "disk", about: "tells you when a disk is nearly full", file: `---
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
		{name: "releases", about: "tells you of new releases of a project; a quiet day costs nothing", file: `---
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
		{name: "repository", about: "sums up a repository of yours each morning", file: `---
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

// sampleOf returns the sample that an answer such as repository:PATH names; nil is none.
func sampleOf(d *deps, answer string) (*sample, error) {
	name, rest, given := strings.Cut(answer, ":")
	if name == "" || name == noAnswer {
		return nil, nil
	}
	list := samples()
	i := slices.IndexFunc(list, func(s sample) bool { return s.name == name })
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
		if rest, err = repositoryAt(d, rest); err != nil {
			return nil, err
		}
	}
	s := list[i]
	s.file, s.gate = strings.ReplaceAll(s.file, "@", rest), strings.ReplaceAll(s.gate, "@", rest)
	return &s, nil
}

// repositoryAt returns the absolute path of a working tree.
func repositoryAt(d *deps, path string) (string, error) {
	if rest, below := strings.CutPrefix(path, "~/"); below {
		base, err := d.UserHome()
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
	case !exists(filepath.Join(resolved, ".git")):
		return "", fmt.Errorf("%s: not a git repository", path)
	case strings.ContainsAny(resolved, " \t'\"*\\(){}[]$@,;&|<>"):
		return "", fmt.Errorf("%s: a tool pattern cannot contain the blanks and signs of this path: rename the directory", path)
	}
	return resolved, nil
}

func checkSample(d *deps, answer string) error {
	_, err := sampleOf(d, answer)
	return err
}

func (s *setup) routineGiven() bool { return s.o.routine != "" }

// routineMissing reports whether there is no job of any kind.
func (s *setup) routineMissing(context.Context) (bool, error) {
	set, err := s.h.Jobs.Load()
	return err == nil && len(set.Jobs)+len(set.Faults) == 0, err
}

func (s *setup) askRoutine(ctx context.Context, a *interview) error {
	a.say("A first routine, which you can change later:")
	for _, known := range samples() {
		a.say("  %-11s%s", known.name, known.about)
	}
	a.say("  none       you write one yourself")
	details := map[string]detail{"releases": {"Address of its repository", "https://github.com/golang/go"}, "repository": {"Path of the repository", ""}}
	check := func(answer string) error { return checkSample(s.d, answer) }
	standard := "disk"
	if a.yes {
		standard = noAnswer
	}
	answer, err := a.value(ctx, "Routine", standard, func(answer string) error {
		if _, asked := details[answer]; asked {
			return nil
		}
		return check(answer)
	})
	if err == nil {
		s.o.routine, err = a.completed(ctx, answer, details, check)
	}
	return err
}

// addRoutine writes the files of a sample and approves them: the owner has asked for it. One that exists stays as it is.
func (s *setup) addRoutine(ctx context.Context) error {
	chosen, err := sampleOf(s.d, s.o.routine)
	if err != nil || chosen == nil {
		return err
	}
	path := filepath.Join(s.dir.Routines(), chosen.name+".md")
	j, err := job.Parse(job.Routine, path, []byte(chosen.file))
	if err != nil {
		return err
	}
	s.sample = chosen.name
	if exists(path) {
		s.d.note("%s already exists and was not changed", path)
		return nil
	}
	if chosen.gate != "" {
		gate := s.dir.Gate(chosen.name)
		err = store.Create(gate, []byte(chosen.gate))
		if err == nil {
			err = os.Chmod(gate, 0o700) //nolint:gosec // an executable of the owner
		}
		if errors.Is(err, fs.ErrExist) {
			err = nil // the owner's
		}
	}
	if err == nil {
		err = store.Create(path, []byte(chosen.file))
	}
	if err != nil {
		return err
	}
	s.d.note("created %s", path)
	j.Path = path
	return s.d.approveOwn(ctx, s.h, j)
}

func (s *setup) fireGiven() bool { return s.o.fire }

func (s *setup) fireMissing(ctx context.Context) (bool, error) {
	if s.sample == "" || s.without() || s.mute {
		return false, nil
	}
	missing, err := s.keyMissing(ctx)
	return !missing, err
}

func (s *setup) askFire(ctx context.Context, a *interview) (err error) {
	s.o.fire, err = a.sure(ctx, "Fire "+s.sample+" now, to see it work", !a.yes)
	return err
}

func (s *setup) fireRoutine(ctx context.Context) error {
	if !s.o.fire || s.sample == "" {
		return nil
	}
	err := runFire(ctx, s.d, fireOptions{jobs: []string{s.sample}, print: true, wait: "0"})
	if ctx.Err() != nil {
		return err
	}
	_ = s.d.flush() // a failed write shows at the end
	s.failed.add("fire "+s.sample, err)
	return nil
}
