package cli

import (
	"runtime/debug"
	"testing"

	"github.com/ollim/ollim/internal/testkit"
)

// TestMain lets more tests run at once than there are processors: some only wait. The command line may say another number.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // there is memory enough
	testkit.Overlap()
	testkit.Run(m)
}
