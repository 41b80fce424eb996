package turn

import (
	"testing"

	"github.com/ollim/ollim/internal/testkit"
)

func TestMain(m *testing.M) {
	testkit.Run(m)
}
