package backtest

import (
	"testing"

	"github.com/ollim/ollim/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m, nil) }
