// Package stack makes the stack of the main goroutine large enough for most commands while it is almost empty. To grow a stack the
// runtime looks up each function on it, in tables of which every look-up brings another 64 KiB into memory: 1.3 MiB for
// ollim update list, and as much again for a fire, which needs more than 32 KiB.
//
// It imports nothing, so that it is initialized before the packages whose own initialization would grow the stack.
package stack

// Grown is the result of growing the stack. Nobody needs it.
var Grown = grow(false) //nolint:gochecknoglobals // a program can run code before other packages only so

// grow needs a stack for its frame whatever use is; the frame itself is left alone, as to clear it would bring it into memory.
//
//go:noinline
func grow(use bool) byte {
	if !use {
		return 0
	}
	var frame [40 << 10]byte
	fill(&frame)
	return frame[0]
}

//go:noinline
func fill(frame *[40 << 10]byte) { frame[0] = 1 }
