package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
)

func newModelUpdate(d *deps) *cobra.Command {
	return command(agentNever(refused), "update FILE|-", "Merge lines of models and prices into the setting models; - reads standard input",
		inHome(d, func(ctx context.Context, h app.Home, args []string) error { return runModelUpdate(ctx, d, h, args[0]) }))
}

func runModelUpdate(ctx context.Context, d *deps, h app.Home, file string) error {
	name, text := file, ""
	if file == "-" {
		var err error
		if text, err = readInput(d.In); err != nil {
			return err
		}
		name = "standard input"
	} else {
		data, err := d.readGiven(ctx, file, maxInput)
		if err != nil {
			return &withStatus{err, statusData}
		}
		if len(data) > maxInput {
			return fmt.Errorf("%s: %w: more than %d KiB", file, errTooLong, maxInput>>10)
		}
		text = string(data)
	}
	return h.UpdateModels(ctx, name, strings.TrimPrefix(text, "\ufeff"))
}
