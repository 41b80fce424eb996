// Command ollim is a toolkit of small verbs for a personal agent that works on a schedule; see ollim(7).
package main

import (
	"os"
	_ "time/tzdata" // zones, on a machine with nothing but this binary

	"github.com/ollim/ollim/internal/cli"
	_ "github.com/ollim/ollim/internal/platform/stack" // less memory, and less time
)

func main() { os.Exit(cli.Main(os.Args[1:])) }
