package model

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestMerge(t *testing.T) {
	own := []string{"mine window=8192 in=1 out=2", "claude-opus-5-5 in=3.50"}
	got, err := Merge("new.txt", "# prices of today\n\nclaude-opus-5-5 out=18 in=4.5 \r\nnext in=1 out=1\nmine\tin=3\nnext alias=n\n", own)
	want := []string{"mine window=8192 in=3 out=2", "claude-opus-5-5 in=4.5 out=18", "next in=1 out=1 alias=n"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	if own[0] != "mine window=8192 in=1 out=2" {
		t.Errorf("the owner's lines changed: %q", own)
	}
	got, err = Merge("x", "a window=1", []string{"a in=1 out=1", "b", "a in=2 out=2"})
	if err != nil || got[2] != "a in=2 out=2 window=1" || len(got) != 3 {
		t.Errorf("%q, %v", got, err)
	}
	for text, want := range map[string]string{
		"a in=1 out=1\n\nb in=3,5 out=1": `f:3: b: in: "3,5" is not a price: want USD per million tokens, like 0.30`,
		"a in=1":                         "f:1: a: in without out",
		"a windw=1":                      `f:1: a: "windw": unknown key (did you mean window?)`,
		"a retires=soon":                 `f:1: a: retires: "soon" is not a date: write one like 2027-01-31`,
		"a retires=2027-02-30":           `f:1: a: retires: "2027-02-30" is not a date: write one like 2027-01-31`,
		"a retires= retires=2027-01-01":  "f:1: a: retires: given twice",
	} {
		if got, err := Merge("f", text, own); err == nil || err.Error() != want || got != nil {
			t.Errorf("%q: %q, %v, want %s", text, got, err, want)
		}
	}
}

// The merged lines mean what the lines mean one after the other.
func TestMergeIsWith(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		good := func(label string) (list []string) {
			for _, line := range lines().Draw(t, label) {
				_, err := Known().With([]string{line})
				if err == nil && !strings.Contains(line, "alias") { // whose owner follows from the order
					list = append(list, line)
				}
			}
			return list
		}
		own, more := good("own"), good("more")
		merged, err := Merge("f", strings.Join(more, "\n"), own)
		if err != nil {
			t.Fatalf("%q, %q: %v", own, more, err)
		}
		got, err := Known().With(merged)
		if err != nil {
			t.Fatalf("%q: %v", merged, err)
		}
		want, err := Known().With(slices.Concat(own, more))
		if err != nil || !reflect.DeepEqual(got.Models(), want.Models()) {
			t.Fatalf("%q, %q: merged %q\n%+v, %v, want\n%+v", own, more, merged, got.Models(), err, want.Models())
		}
	})
}

func TestRetires(t *testing.T) {
	tab := with(t, table(t, "a retires=2027-01-31 in=1 out=1\nb"), "a in=2 out=2", "b retires=2028-02-29")
	if a, b := tab.Resolve("a-20250929"), tab.Resolve("b"); a.Retires != "2027-01-31" || b.Retires != "2028-02-29" {
		t.Errorf("%+v %+v", a, b)
	}
	if a := with(t, tab, "a retires=").Resolve("a"); a.Retires != "" || a.Price.In != 2 {
		t.Errorf("%+v", a)
	}
}
