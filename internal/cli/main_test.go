package cli

import (
	"os"
	"runtime/debug"
	"testing"

	"github.com/ollim/ollim/internal/testkit"
)

// TestMain lets more tests run at once than there are processors: some only wait. The command line may say another number.
func TestMain(m *testing.M) {
	testkit.InMemory()
	debug.SetGCPercent(400) // there is memory enough
	testkit.Overlap()
	os.Exit(m.Run())
}
