package outbox

import (
	"fmt"
	"os"

	"github.com/ollim/ollim/internal/platform/store"
)

// MaxFile is Discord's limit for a file without a subscription, in bytes.
const MaxFile = 10 << 20

// CheckFile returns the reason why the file at path cannot be sent, or nil.
func CheckFile(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %s", path, store.Cause(err))
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s: not a file", path)
	case info.Size() > MaxFile:
		return TooLarge(path)
	}
	return nil
}

// TooLarge returns the error of a file with more than MaxFile bytes.
func TooLarge(path string) error { return fmt.Errorf("%s: larger than %d MiB", path, MaxFile>>20) }
