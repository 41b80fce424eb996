// Command month lives a month of ollim with its owner, with a clock that nobody waits for, prints what it came to, and fails when a limit
// is broken. Run it from the repository:
//
//	go run ./bench/month            # 37 days
//	go run ./bench/month -days 7    # the week of the tests
//
// The month is a story of the tests of internal/cli, which has the set-up, the incidents, the model service, the oracle of slots and the
// limits: see internal/cli/month_test.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

func main() {
	days := flag.Int("days", 37, "how many days to live, from 7; the incidents of a month need 37")
	report := flag.Bool("report", false, "report the broken limits, and do not fail for them")
	verbose := flag.Bool("v", false, "print what the tests say, too")
	flag.Parse()
	if err := live(os.Stdout, *days, *report, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "month:", err)
		os.Exit(1)
	}
}

// errBroken is the error of a month with a broken limit, or with a slot or a dollar that is unaccounted for.
var errBroken = errors.New("the month is not as it should be")

func live(out io.Writer, days int, report, verbose bool) error {
	scratch, err := os.MkdirTemp("", "ollim-month-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	file := filepath.Join(scratch, "report")
	cmd := exec.CommandContext(context.Background(), "go", "test", "-count=1", "-timeout=30m", "-run=^TestMonth", "./internal/cli")
	cmd.Env = append(os.Environ(), "OLLIM_TEST_MONTH="+strconv.Itoa(days), "OLLIM_TEST_MONTH_REPORT="+file)
	if !report {
		cmd.Env = append(cmd.Env, "OLLIM_TEST_MONTH_LIMITS=1")
	}
	said, testErr := cmd.CombinedOutput()
	text, err := os.ReadFile(filepath.Clean(file))
	if err != nil || verbose {
		_, _ = out.Write(said)
	}
	if err != nil {
		return errors.Join(err, testErr)
	}
	if _, err := out.Write(text); err != nil {
		return err
	}
	if testErr != nil {
		for line := range strings.Lines(string(said)) {
			if strings.Contains(line, "month_") && !strings.Contains(line, "a limit is broken") && strings.TrimSpace(line) != "" {
				_, _ = io.WriteString(out, line)
			}
		}
		return errBroken
	}
	return nil
}
