package engine_test

import (
	"errors"
	"testing"

	"github.com/ollim/ollim/internal/engine"
)

// TestAffordable: small amounts keep their digits; nothing is left when the limit is reached; 0 is none.
func TestAffordable(t *testing.T) {
	for want, amounts := range map[string][2]float64{
		"cost limit reached: 2.00 of 1.00 USD":         {2, 1},
		"cost limit reached: 0.0021 of 0.0010 USD":     {0.0021, 0.001},
		"cost limit reached: 0.000040 of 0.000030 USD": {0.00004, 0.00003},
		"cost limit reached: 0.12 of 0.10 USD":         {0.12, 0.1},
	} {
		l := engine.Limits{Spent: amounts[0] / 2, MaxCost: amounts[1]}
		if err := l.Affordable(amounts[0] / 2); err == nil || err.Error() != want || !errors.Is(err, engine.ErrMaxCost) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for _, l := range []engine.Limits{{}, {Spent: 5}, {Spent: 0.5, MaxCost: 1}} {
		if err := l.Affordable(0.25); err != nil {
			t.Errorf("%+v: %v", l, err)
		}
	}
	if err := (engine.Limits{Spent: 0.75, MaxCost: 1}).Affordable(0.25); err == nil {
		t.Error("the limit itself")
	}
}
