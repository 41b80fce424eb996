package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/policy"
)

// inside reports whether a run has started this command: then the gates of the run's tools hold.
func (d *Deps) inside() bool { return d.RunID() != "" }

// useTool runs a command typed by an agent as the tool of the same purpose, with the same answers.
func (d *Deps) useTool(ctx context.Context, h app.Home, tool string, input any) (string, error) {
	set, err := h.Tools()
	if err != nil {
		return "", err
	}
	data, err := json.Marshal(input)
	if err != nil {
		return "", err
	}
	answer, err := set.Use(ctx, tool, data)
	if err == nil {
		return answer, nil
	}
	if reason, bad := strings.CutPrefix(err.Error(), "bad arguments: "); bad {
		return "", &withStatus{errors.New(reason), statusUsage}
	}
	if as[*tools.Refused](err) {
		return "", fmt.Errorf("%w: %w", app.ErrNotAllowed, err)
	}
	return "", err
}

// helpInside lists what a run may use: the commands of ollim that its patterns allow, and its tools.
func helpInside(root *cobra.Command, set *tools.Set) error {
	var lines []string
	walk(root, func(cmd *cobra.Command) {
		if spelling := allowed(cmd, set); spelling != "" {
			usage := strings.TrimPrefix(strings.TrimSuffix(cmd.UseLine(), " [flags]"), cmd.CommandPath())
			lines = append(lines, fmt.Sprintf("%-52s %s\n", spelling+usage, cmd.Short))
		}
	})
	text := "Commands of ollim that this run may use; all except help take --help:\n" + strings.Join(lines, "")
	if names := set.Usable(); len(names) > 0 {
		text += "\nTools of ollim that this run may use: " + strings.Join(names, ", ") + "\n"
	}
	_, err := io.WriteString(root.OutOrStdout(), text)
	return err
}

// allowed is the command's words in the spelling that the run may use, as a noun may stand in the plural; "" when it may not
// use the command.
func allowed(cmd *cobra.Command, set *tools.Set) string {
	if cmd.Annotations[onlyVerbs] != "" || !cmd.HasParent() || accessOf(cmd) == policy.Never || unusable(cmd, set) {
		return ""
	}
	nouns, verb := []string{cmd.Name()}, ""
	if group := cmd.Parent(); group.HasParent() {
		nouns, verb = append([]string{group.Name()}, group.Aliases...), " "+cmd.Name()
	}
	for _, noun := range nouns {
		words := "ollim " + noun + verb
		if set.MayRun(words) || cmd.Name() != "help" && set.MayRun(words+" x") {
			return words
		}
	}
	return ""
}

// unusable reports whether a command is one of the agent's tools, which the run may not use.
func unusable(cmd *cobra.Command, set *tools.Set) bool {
	if verbOf(cmd) == "remind" && !set.Run.Foreground {
		return true
	}
	tool := cmd.Annotations[toolKey]
	return tool != "" && !slices.Contains(set.Usable(), tool)
}
