//go:build !linux

package process

import "syscall"

// tie does nothing: only Linux supports it.
func tie(*syscall.SysProcAttr) {}
