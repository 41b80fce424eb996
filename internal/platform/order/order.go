// Package order sorts lists of records. Of slices.SortFunc and slices.SortStableFunc the compiler makes a copy for each type of record,
// 20 kB of the program each; of Sort it copies the exchange of the records alone.
package order

import (
	"cmp"
	"slices"
)

// Sort sorts a list. Records that compare as equal keep their order.
func Sort[T any](list []T, compare func(a, b T) int) {
	before := slices.Clone(list)
	for to, from := range ranks(len(list), func(i, k int) int { return compare(before[i], before[k]) }) {
		list[to] = before[from]
	}
}

// ranks returns the numbers below n, sorted.
func ranks(n int, compare func(i, k int) int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	slices.SortFunc(all, func(i, k int) int { return cmp.Or(compare(i, k), i-k) })
	return all
}
