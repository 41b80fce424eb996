// Command mutate changes the program in one place at a time and reports which changes no test notices. Run it from the
// repository:
//
//	go run ./bench/mutate -n 20 internal/agent/run internal/agent/conversation
//
// The program is built once, with all changes in it and each of them off; a file says which is on. A change that does not compile
// is left out. A change is caught by the tests of its own package, by those of the command line, which run in process, or by the
// scripts; only tests that reach the change run. The sources stay as they are: the changed ones are an overlay of the go command.
package main

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
)

func main() {
	n := flag.Int("n", 20, "changes of each package, chosen at random; 0 is all")
	seed := flag.Uint64("seed", 1, "of the choice")
	only := flag.String("only", "", "test only the changes whose text contains this")
	flag.Parse()
	if err := mutate(os.Stdout, flag.Args(), *n, *seed, *only); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// mutate tests changes of the packages in the directories dirs and writes a line for each that survives, and the sums.
func mutate(out io.Writer, dirs []string, n int, seed uint64, only string) error {
	scratch, err := os.MkdirTemp("", "ollim-mutate-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	b, err := built(scratch, dirs)
	if err != nil {
		return err
	}
	if err := b.reach(); err != nil {
		return err
	}
	for _, dir := range dirs {
		numbers := b.in(dir)
		random := rand.New(rand.NewPCG(seed, 0))
		random.Shuffle(len(numbers), func(i, j int) { numbers[i], numbers[j] = numbers[j], numbers[i] })
		caught, survived := 0, 0
		for _, i := range numbers {
			if n > 0 && caught+survived == n {
				break
			}
			if !strings.Contains(b.all[i].String(), only) {
				continue
			}
			ok, err := b.caught(i)
			_, _ = fmt.Fprintf(os.Stderr, "%s: caught: %t\n", b.all[i], ok)
			switch {
			case err != nil:
				return err
			case ok:
				caught++
			default:
				survived++
				_, _ = fmt.Fprintf(out, "survived: %s (%d tests reach it)\n", b.all[i], b.tests(i))
			}
		}
		_, _ = fmt.Fprintf(out, "%s: %d caught, %d survived of %d (%.0f %% caught)\n",
			dir, caught, survived, len(numbers), 100*float64(caught)/float64(max(1, caught+survived)))
	}
	return nil
}
