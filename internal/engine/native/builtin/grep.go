package builtin

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/policy"
)

type grepInput struct {
	Pattern   string `json:"pattern"`
	Path      string `json:"path"`
	Type      string `json:"type"`
	Mode      string `json:"output_mode"`
	After     *count `json:"-A"`
	Before    *count `json:"-B"`
	Around    *count `json:"-C"`
	Context   *count `json:"context"`
	Numbers   bool   `json:"-n"`
	Fold      bool   `json:"-i"`
	Only      bool   `json:"-o"`
	Head      count  `json:"head_limit"`
	Offset    count  `json:"offset"`
	Multiline bool   `json:"multiline"`
}

func callGrep(ctx context.Context, b *Box, input json.RawMessage) (string, error) {
	in := grepInput{Path: ".", Mode: "files_with_matches", Numbers: true}
	if err := decode(input, &in); err != nil {
		return "", err
	}
	search, err := policy.Searched("Grep", input)
	if err != nil {
		return "", badInput(err)
	}
	g := grep{in: in, searching: searching{search: search}}
	if g.re, err = compile(in); err != nil {
		return "", badInput(err)
	}
	if g.names, err = namesOf(in.Type); err != nil {
		return "", badInput(err)
	}
	if !slices.Contains([]string{"files_with_matches", "content", "count"}, in.Mode) {
		return "", badInput(errors.New("output_mode is files_with_matches, content or count"))
	}
	g.literal, _ = g.re.LiteralPrefix()
	const (
		widest   = 1000      // most lines before and after a match
		farthest = 1_000_000 // most lines to skip
	)
	g.before = min(int(*cmp.Or(in.Before, in.Around, in.Context, new(count))), widest)
	g.after = min(int(*cmp.Or(in.After, in.Around, in.Context, new(count))), widest)
	g.out.skip, g.out.most = min(int(in.Offset), farthest), int(in.Head)
	return soon(ctx, func(ctx context.Context) (string, error) { return g.find(ctx, b) })
}

// compile compiles the pattern. It limits the pattern's size, and with it the time of one match.
func compile(in grepInput) (*regexp.Regexp, error) {
	const (
		longest = 4 << 10
		most    = 2000 // limit of the instructions of a compiled pattern
	)
	flags, named, text := syntax.Perl, "", in.Pattern
	if in.Fold {
		flags, named = flags|syntax.FoldCase, "i"
	}
	if in.Multiline {
		named += "ms"
	}
	if len(text) > longest {
		return nil, fmt.Errorf("the pattern is longer than %d bytes", longest)
	}
	parsed, err := syntax.Parse(text, flags)
	if err != nil {
		return nil, fmt.Errorf("the pattern: %w", err)
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, fmt.Errorf("the pattern: %w", err)
	}
	if len(prog.Inst) > most {
		return nil, errors.New("the pattern is too complicated")
	}
	return regexp.Compile("(?" + named + ":" + text + ")")
}

func (g *grep) find(ctx context.Context, b *Box) (string, error) {
	g.only = func(dir *os.Root, name, at string) error { return g.look(ctx, dir, name, at) }
	g.file = func(dir *os.Root, name, at string) error {
		if !g.wants(name) {
			return nil
		}
		return g.look(ctx, dir, name, at)
	}
	if err := g.run(ctx, b, "Grep", g.in.Path); err != nil && !errors.Is(err, errEnough) {
		return "", err
	}
	return strings.Join(slices.Concat(g.out.result(), g.unsearched(), g.unread()), "\n"), nil
}

// wants reports whether a file has the type to search.
func (g *grep) wants(name string) bool {
	return g.names == nil || slices.ContainsFunc(g.names, func(pattern string) bool {
		ok, err := filepath.Match(pattern, name)
		return ok && err == nil
	})
}

// namesOf returns the name patterns of a file type; nil for every file.
func namesOf(kind string) ([]string, error) {
	if kind == "" {
		return nil, nil
	}
	for line := range strings.Lines(fileTypes) {
		name, patterns, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == kind {
			return strings.Fields(patterns), nil
		}
	}
	return nil, fmt.Errorf("unknown type %q; use glob, such as \"*.%s\"", kind, kind)
}

//go:embed grep_types.txt
var fileTypes string
