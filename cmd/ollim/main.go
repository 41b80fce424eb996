// Command ollim is a toolkit of small verbs for a personal agent that works on a schedule; see ollim(7).
package main

import (
	"os"
	_ "time/tzdata" // zones, on a machine with nothing but this binary

	"github.com/ollim/ollim/internal/cli"
)

func main() {
	growStack(false)
	os.Exit(cli.Main(os.Args[1:]))
}

// growStack makes the stack large enough for most commands while it is still almost empty. To grow a stack the runtime looks up
// each function on it, in tables of which every look-up brings another 64 KiB into memory: 1.3 MiB for ollim update list.
//
//go:noinline
func growStack(use bool) byte {
	if !use {
		return 0
	}
	var frame [20 << 10]byte
	fill(&frame)
	return frame[0]
}

//go:noinline
func fill(frame *[20 << 10]byte) { frame[0] = 1 }
