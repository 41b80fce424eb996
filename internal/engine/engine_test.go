package engine_test

import (
	"errors"
	"testing"

	"github.com/ollim/ollim/internal/engine"
)

// TestOverCost: small amounts keep their digits.
func TestOverCost(t *testing.T) {
	for want, amounts := range map[string][2]float64{
		"cost limit reached: 2.00 of 1.00 USD":     {2, 1},
		"cost limit reached: 0.0021 of 0.0010 USD": {0.0021, 0.001},
		"cost limit reached: 0.12 of 0.10 USD":     {0.12, 0.1},
	} {
		if err := engine.OverCost(amounts[0], amounts[1]); err.Error() != want || !errors.Is(err, engine.ErrMaxCost) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
