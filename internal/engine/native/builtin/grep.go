package builtin

import (
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

//go:embed grep.md
var grepText string

func grepTool() tool {
	return tool{
		name:        "Grep",
		description: grepText,
		schema: `{"type":"object","properties":{"pattern":{"type":"string","minLength":1},"path":{"type":"string","minLength":1},` +
			`"glob":{"type":"string","minLength":1},"type":{"type":"string"},` +
			`"output_mode":{"type":"string","enum":["files_with_matches","content","count"]},` +
			`"-A":{"type":"integer","minimum":0},"-B":{"type":"integer","minimum":0},"-C":{"type":"integer","minimum":0},` +
			`"context":{"type":"integer","minimum":0},"-n":{"type":"boolean"},"-i":{"type":"boolean"},"-o":{"type":"boolean"},` +
			`"head_limit":{"type":"integer","minimum":0},"offset":{"type":"integer","minimum":0},"multiline":{"type":"boolean"}},` +
			`"required":["pattern"],"additionalProperties":false}`,
		call: callGrep,
	}
}

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
	g := grep{in: in}
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
	g.before, g.after = around(in)
	const farthest = 1_000_000 // lines
	g.out.skip, g.out.most = min(int(in.Offset), farthest), int(in.Head)
	return soon(ctx, func(ctx context.Context) (string, error) { return b.grep(ctx, &g, search) })
}

// around is how many lines before and after a match are wanted; the special wish counts more than the common one.
func around(in grepInput) (before, after int) {
	const most = 1000
	for _, n := range []*count{in.Context, in.Around} {
		if n != nil {
			before, after = int(*n), int(*n)
		}
	}
	if in.Before != nil {
		before = int(*in.Before)
	}
	if in.After != nil {
		after = int(*in.After)
	}
	return min(before, most), min(after, most)
}

// compile reads the pattern. Its size bounds the time that one match can take.
func compile(in grepInput) (*regexp.Regexp, error) {
	const (
		longest = 4 << 10
		most    = 2000 // instructions
	)
	flags := syntax.Perl
	if in.Fold {
		flags |= syntax.FoldCase
	}
	text := in.Pattern
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
	prefix := "(?:"
	switch {
	case in.Fold && in.Multiline:
		prefix = "(?ims:"
	case in.Fold:
		prefix = "(?i:"
	case in.Multiline:
		prefix = "(?ms:"
	}
	return regexp.Compile(prefix + text + ")")
}

func (b *Box) grep(ctx context.Context, g *grep, search policy.Search) (string, error) {
	ground, err := b.ground()
	if err != nil {
		return "", err
	}
	from, err := b.begin(ground, "Grep", g.in.Path, search)
	if err != nil {
		return "", err
	}
	defer func() { _ = from.dir.Close() }()
	s := searching{g: ground, search: search}
	s.file = func(dir *os.Root, name, at string) error {
		if !g.wants(name) {
			return nil
		}
		return g.look(ctx, ground, dir, name, at)
	}
	if from.file != "" {
		err = g.look(ctx, ground, from.dir, from.file, filepath.Join(from.path, from.file))
	} else {
		err = s.all(ctx, from.dir, from.path, nil)
	}
	if err != nil && !errors.Is(err, errEnough) {
		return "", err
	}
	return strings.Join(append(g.out.result(), append(g.unsearched(), s.unread()...)...), "\n"), nil
}

// wants reports whether the file is of the type that is searched.
func (g *grep) wants(name string) bool {
	return g.names == nil || slices.ContainsFunc(g.names, func(pattern string) bool {
		ok, err := filepath.Match(pattern, name)
		return ok && err == nil
	})
}

// namesOf is what files of a type are called; nil for every file.
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
