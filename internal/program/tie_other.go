//go:build !linux

package program

import "syscall"

// tie does nothing: only Linux can.
func tie(*syscall.SysProcAttr) {}
