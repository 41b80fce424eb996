//go:build !linux

package process

import "syscall"

// tie does nothing: only Linux can.
func tie(*syscall.SysProcAttr) {}
