// Command mutate changes the program in one place at a time and reports which changes no test notices. Run it from the
// repository:
//
//	go run ./bench/mutate -n 20 internal/agent/run internal/agent/conversation
//
// The program is built once, with all changes in it and each of them off; a file says which is on. A change that does not compile
// is left out. A change is caught by the tests of its own package, by those of the command line, which run in process, or by the
// scripts; only tests that reach the change run. The sources stay as they are: the changed ones are an overlay of the go command.
// All of it runs over a copy of the file system, in memory, because a changed program may remove or overwrite anything: it needs root.
package main

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
)

func main() {
	n := flag.Int("n", 20, "changes of each package, chosen at random; 0 is all")
	seed := flag.Uint64("seed", 1, "of the choice")
	only := flag.String("only", "", "test only the changes whose text contains this")
	own := flag.Bool("own", false, "only the tests of the package itself judge a change")
	most := flag.Int("most", 0, "of each suite so many tests judge a change, those that reach the fewest changes; 0 is all")
	kept := flag.String("reach", "", "`file` that keeps which changes each test reaches, for the next run")
	flag.Parse()
	if os.Getenv(apartVariable) == "" {
		if err := apart(*kept); err != nil {
			fmt.Fprintln(os.Stderr, "mutate:", err)
			os.Exit(1)
		}
		return
	}
	if *kept != "" {
		*kept = "/tmp/shared"
	}
	if err := mutate(os.Stdout, flag.Args(), choice{*n, *seed, *only}, judges{*own, *most}, *kept); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// choice says which changes are tested.
type choice struct {
	n    int
	seed uint64
	only string
}

// judges says which tests judge a change.
type judges struct {
	own  bool
	most int
}

// mutate tests changes of the packages in the directories dirs and writes a line for each that survives, and the sums.
func mutate(out io.Writer, dirs []string, c choice, j judges, kept string) error {
	scratch, err := os.MkdirTemp("", "ollim-mutate-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	b, err := built(scratch, dirs, j)
	if err != nil {
		return err
	}
	if err := b.reach(kept); err != nil {
		return err
	}
	for _, dir := range dirs {
		numbers := slices.DeleteFunc(b.in(dir), func(i int) bool { return !strings.Contains(b.all[i].String(), c.only) })
		of := len(numbers)
		random := rand.New(rand.NewPCG(c.seed, 0))
		random.Shuffle(of, func(i, j int) { numbers[i], numbers[j] = numbers[j], numbers[i] })
		if c.n > 0 {
			numbers = numbers[:min(c.n, of)]
		}
		s, err := b.sumsOf(out, numbers)
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(out, "%s: %d caught, %d of them because a test did not end, %d survived of %d (%.0f %% caught)\n",
			dir, s.caught, s.hangs, s.survived, of, 100*float64(s.caught)/float64(max(1, s.caught+s.survived)))
	}
	return nil
}

// sums are what became of changes.
type sums struct{ caught, hangs, survived int }

// sumsOf tests changes and writes a line for each that survives.
func (b *build) sumsOf(out io.Writer, numbers []int) (s sums, err error) {
	var mu sync.Mutex
	err = b.each(len(numbers), func(w *worker, at int) error {
		i := numbers[at]
		caught, hung, err := w.caught(i)
		mu.Lock()
		defer mu.Unlock()
		_, _ = fmt.Fprintf(os.Stderr, "%s: caught: %t, hung: %t\n", b.all[i], caught, hung)
		switch {
		case err != nil:
			return err
		case !caught:
			s.survived++
			_, _ = fmt.Fprintf(out, "survived: %s (%d tests reach it)\n", b.all[i], b.tests(i))
			return nil
		case hung:
			s.hangs++
		}
		s.caught++
		return nil
	})
	return s, err
}
