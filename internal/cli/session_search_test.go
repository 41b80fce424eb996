package cli

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestLatest: whoever stops as soon as nothing newer can come has the same hits as one who looks at all of them.
func TestLatest(t *testing.T) {
	t.Parallel()
	at := func(second int) time.Time { return time.Unix(int64(second), 0) }
	rapid.Check(t, func(t *rapid.T) {
		type file struct {
			changed int
			hits    []int
		}
		files := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) file {
			hits := rapid.SliceOfN(rapid.IntRange(1, 60), 0, 30).Draw(t, "hits")
			slices.SortFunc(hits, func(a, b int) int { return b - a })
			return file{slices.Max(append(hits, 0)) + rapid.IntRange(0, 5).Draw(t, "later"), hits}
		}), 0, 12).Draw(t, "files")
		slices.SortStableFunc(files, func(a, b file) int { return b.changed - a.changed })
		most := rapid.IntRange(0, 5).Draw(t, "most")

		found := latest{most: most}
		var want []int
		for i, f := range files {
			for j, second := range f.hits {
				if !found.done(at(f.changed)) {
					found.add(hit{At: at(second), Session: fmt.Sprint(i), Message: j, Excerpt: fmt.Sprint(i, j)})
				}
				want = append(want, second)
			}
		}
		slices.SortFunc(want, func(a, b int) int { return b - a })
		if most > 0 {
			want = want[:min(most, len(want))]
		}
		var got []int
		for _, h := range found.sorted() {
			got = append(got, int(h.At.Unix()))
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}
