package process

import (
	"os"
	"testing"

	"github.com/ollim/ollim/internal/testkit"
)

func TestMain(m *testing.M) {
	testkit.Overlap()
	os.Exit(m.Run())
}
