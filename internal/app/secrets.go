package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/platform/yamldoc"
	"github.com/ollim/ollim/internal/state/config"
)

// Secrets describes the lines of the secrets file.
func (a *App) Secrets() ([]config.SecretName, error) {
	s, err := a.loadSecrets()
	if err != nil {
		return nil, &ConfigFault{err}
	}
	return s.List(), nil
}

// SetSecret gives a secret a value in the secrets file, which is made with its folder if there is none.
func (a *App) SetSecret(ctx context.Context, name, value string) error {
	if err := config.CheckSecretName(name); err != nil {
		return &BadArgument{err.Error()}
	}
	if err := config.CheckSecretValue(value); err != nil {
		return &BadArgument{name + ": " + err.Error()}
	}
	return a.editSecrets(ctx, func(path string) error { return config.SetSecret(path, name, value, a.Now()) })
}

// RemoveSecret deletes a secret from the secrets file. It reports false when there is none of that name.
func (a *App) RemoveSecret(ctx context.Context, name string) (removed bool, err error) {
	err = a.editSecrets(ctx, func(path string) error {
		removed, err = config.RemoveSecret(path, name)
		return err
	})
	return removed, err
}

// AddHookSecret adds a line webhook.NAME=… to the secrets file. It reports false when there is one already.
func (a *App) AddHookSecret(ctx context.Context, name, value string) (added bool, err error) {
	name = "webhook." + name
	err = a.editSecrets(ctx, func(path string) error {
		s, err := config.LoadSecrets(path, false)
		added = !slices.ContainsFunc(s.List(), func(n config.SecretName) bool { return n.Name == name })
		if err == nil && added {
			err = config.SetSecret(path, name, value, a.Now())
		}
		return err
	})
	return added && err == nil, err
}

// editSecrets calls edit under the lock of the secrets file. The lock is beside the file: all data directories of a user share it.
func (a *App) editSecrets(ctx context.Context, edit func(path string) error) error {
	path := a.SecretsFile()
	switch {
	case path == "":
		_, err := a.UserHome()
		return err
	case filepath.Base(path) == credential:
		return Hint(fmt.Errorf("%w: the secrets are a credential of the service manager: %s", ErrNotAllowed, path), "change it where the unit takes it from")
	}
	disk := store.Disk{Now: a.Now, Warn: a.warn, Locks: &a.whole().memory.locks}
	err := disk.Locked(ctx, filepath.Join(filepath.Dir(path), ".secrets.lock"), func() error { return edit(path) })
	if errors.As(err, new(yamldoc.Faults)) {
		return &ConfigFault{err}
	}
	return err
}
