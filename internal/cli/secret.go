package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/state/config"
)

func newSecret(d *deps) *cobra.Command {
	set := command(agentNever(refused), "set NAME", "Store a secret, read at a hidden prompt or from standard input",
		func(cmd *cobra.Command, args []string) error { return runSecretSet(cmd.Context(), d, args[0]) })
	set.Args = func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return usage("want: ollim secret set NAME")
		case len(args) > 1 || strings.Contains(args[0], "="):
			return &ran{hint(usage("the value must not be an argument: other processes can see it, and the shell keeps it in its history"),
				"ollim secret set NAME asks for the value; from a pipe: pass show KEY | ollim secret set NAME")}
		}
		return nil
	}
	return group("secret", "Manage the keys and tokens in secrets.env", set,
		newList(d, agentNever(refused), "list", "List the names of secrets, who gets each, and when it was set; never a value", "NAME USER SINCE",
			func(context.Context) ([]config.SecretName, error) { return d.Secrets() },
			func(s config.SecretName) []any { return []any{s.Name, s.User, past(s.Since)} }),
		command(agentNever(refused), "rm NAME...", "Delete secrets", func(cmd *cobra.Command, args []string) error {
			return d.each("secret rm", args, func(name string) error {
				removed, err := d.RemoveSecret(cmd.Context(), name)
				if err == nil && !removed {
					err = hint(&withStatus{errors.New("no such secret"), statusNoJob}, "ollim secret list")
				}
				return err
			})
		}))
}

func runSecretSet(ctx context.Context, d *deps, name string) error {
	if err := config.CheckSecretName(name); err != nil {
		return usage("%v", err)
	}
	var value string
	var err error
	if isTerminal(d.In) {
		value, err = newAsker(d.In).askHidden(ctx, d.Stderr, name+", not shown: ")
	} else {
		value, err = firstLine(d.In)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err := d.SetSecret(ctx, name, value); err != nil {
		return err
	}
	d.note("stored %s in %s", name, d.SecretsFile())
	return nil
}

// firstLine reads the first line of an input. A line that is longer than maxInput is an error, because a part of a key is not a key.
func firstLine(in io.Reader) (string, error) {
	line, err := bufio.NewReader(io.LimitReader(in, maxInput+1)).ReadString('\n')
	if len(line) > maxInput {
		return "", &withStatus{fmt.Errorf("the first line is longer than %d KiB", maxInput>>10), statusData}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return "", &withStatus{fmt.Errorf("standard input: %w", err), statusData}
	}
	return strings.TrimSpace(line), nil
}

// printed runs a command of the owner's shell, which may ask on the terminal, and returns the first line that it prints.
func (d *deps) printed(ctx context.Context, script string) (string, error) {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", script)
	cmd.Stdout, cmd.Stderr = &out, d.Stderr
	if f, ok := d.In.(*os.File); ok { // another input would be read to its end
		cmd.Stdin = f
	}
	if err := cmd.Run(); err != nil {
		return "", &withStatus{fmt.Errorf("the command that prints the key: %w", err), statusUnavailable}
	}
	line, err := firstLine(&out)
	if err == nil && line == "" {
		err = &withStatus{errors.New("the command that prints the key printed nothing"), statusUnavailable}
	}
	return line, err
}

// secretNames completes the names that are in the secrets file.
func secretNames(d *deps) (names []string) {
	list, _ := d.Secrets()
	for _, s := range list {
		names = append(names, s.Name)
	}
	return names
}
