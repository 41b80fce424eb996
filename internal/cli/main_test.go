package cli

import (
	"flag"
	"os"
	"runtime"
	"strconv"
	"testing"
)

// TestMain lets more tests run at once than there are processors: most of their time they wait for the disk. The command line may say
// another number.
func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", strconv.Itoa(runtime.GOMAXPROCS(0)+6))
	os.Exit(m.Run())
}
