package testkit

import (
	"os"
	"syscall"
)

// WriteFile is os.WriteFile for a file that may be executed afterwards. A child that another test forks meanwhile would hold the file open for
// writing until it executes its own program, and the file could not be executed: "text file busy".
func WriteFile(path string, data []byte, mode os.FileMode) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, data, mode)
}
