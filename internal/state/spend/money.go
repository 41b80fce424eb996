package spend

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// errCost is the error of an invalid cost: negative, NaN, or above a thousand million USD.
var errCost = errors.New("not a cost in USD")

// money is an amount in whole millionths of a USD, so that sums are exact. Amounts that are read or computed are capped
// at highest, so that thousands of them can be added.
type money int64

const (
	dollar    money = 1_000_000
	highest         = 1_000_000_000 * dollar
	unlimited money = math.MaxInt64
)

func toMoney(usd float64) (money, error) {
	if usd >= 0 && usd <= highest.usd() {
		return money(math.Round(usd * float64(dollar))), nil
	}
	return 0, fmt.Errorf("%v: %w", usd, errCost)
}

func (m money) usd() float64 {
	if m == unlimited {
		return math.Inf(1)
	}
	return float64(m) / float64(dollar)
}

// limited returns an amount, or 0 instead of unlimited.
func (m money) limited() money {
	if m == unlimited {
		return 0
	}
	return m
}

func (m money) MarshalJSON() ([]byte, error) { return json.Marshal(m.usd()) }

func (m *money) UnmarshalJSON(data []byte) error {
	var usd float64
	err := json.Unmarshal(data, &usd)
	if err == nil {
		*m, err = toMoney(usd)
	}
	return err
}

type sum struct {
	spent, reserved money
	runs, typed     int // number of runs; typed are those that the owner started
}

func (s sum) usd() amounts { return amounts{s.spent.usd(), s.reserved.usd()} }

// unspent returns what remains below a limit, ignoring reservations.
func (s sum) unspent(limit money) money { return sum{spent: s.spent}.left(limit) }

// left returns what remains below a limit.
func (s sum) left(limit money) money {
	if limit == unlimited {
		return unlimited
	}
	return max(0, limit-s.spent-s.reserved)
}
