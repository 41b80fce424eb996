package app

import (
	"errors"
	"fmt"
)

// Errors that a caller acts on.
var (
	ErrNoConfig    = errors.New("no configuration")
	ErrNoDirectory = errors.New("not a directory") // the path of the data directory
	ErrNotAllowed  = errors.New("not allowed")     // to an agent
	ErrNoSession   = errors.New("no session")
)

// ConfigFault is anything wrong with config.yaml or with the secrets file.
type ConfigFault struct{ error }

func (e *ConfigFault) Unwrap() error { return e.error }

// BadArgument is an argument that makes no sense.
type BadArgument struct{ Reason string }

func (e *BadArgument) Error() string { return e.Reason }

// Hinted is an error with a command that helps.
type Hinted struct {
	error
	Hint string
}

func (e *Hinted) Unwrap() error { return e.error }

// Hint adds to an error what its reader can do.
func Hint(err error, format string, args ...any) error {
	return &Hinted{err, fmt.Sprintf(format, args...)}
}
