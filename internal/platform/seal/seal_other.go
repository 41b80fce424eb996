//go:build !linux || !(amd64 || arm64)

package seal

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
)

// Seal is the seal of platforms without one.
type Seal struct{}

// Check returns ErrUnsupported.
func Check() (abi int, err error) {
	return 0, fmt.Errorf("%w: needs Linux with Landlock ABI %d on amd64 or arm64, and this is %s on %s", ErrUnsupported, MinABI, runtime.GOOS, runtime.GOARCH)
}

// New returns a seal whose Start fails.
func New(func() (Rules, error), func(error)) *Seal { return &Seal{} }

// With returns the seal.
func (s *Seal) With(Rules) *Seal { return s }

// Start returns ErrUnsupported.
func (s *Seal) Start(*exec.Cmd) error {
	_, err := Check()
	return err
}

// Close does nothing.
func (s *Seal) Close() error { return nil }

// File returns ErrUnsupported.
func File() (*os.File, error) { return nil, ErrUnsupported }
