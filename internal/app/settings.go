package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/ollim/ollim/internal/state/config"
)

// SetNames keeps names in config.yaml; "" leaves one as it is.
func (h Home) SetNames(user, bot string) error {
	for _, name := range []string{user, bot} { // both are good, or neither is kept
		if err := config.CheckName(name); name != "" && err != nil {
			return &BadArgument{err.Error()}
		}
	}
	var err error
	if user != "" {
		err = h.Set(context.Background(), "names.user", user)
	}
	if bot != "" && err == nil {
		err = h.Set(context.Background(), "names.bot", bot)
	}
	return err
}

// Set changes one setting of config.yaml.
func (h Home) Set(ctx context.Context, key string, values ...string) error {
	held, err := h.Disk.Lock(ctx, h.Dir.Lock("config"))
	if err != nil {
		return err
	}
	defer held.Release()
	path := h.app.ConfigFile(h.Dir)
	err = config.Set(path, key, values)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", path, ErrNoConfig)
	}
	return err
}
