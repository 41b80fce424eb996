package order_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ollim/ollim/internal/platform/order"
)

func TestSort(t *testing.T) {
	type record struct{ key, at int }
	compare := func(a, b record) int { return a.key - b.key }
	for n := range 200 {
		list := make([]record, n)
		for i := range list {
			list[i] = record{rand.IntN(1 + n/3), i}
		}
		want := slices.Clone(list)
		slices.SortStableFunc(want, compare)
		if order.Sort(list, compare); !slices.Equal(list, want) {
			t.Fatalf("%v, want %v", list, want)
		}
	}
	order.Sort(nil, compare)
}
