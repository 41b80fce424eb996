package process

import "testing"

func TestElsewhere(t *testing.T) {
	for _, c := range []struct {
		name, host string
		want       bool
	}{
		{"", "a", false},
		{"", "", false},
		{"a", "a", false},
		{"A", "a", false},
		{"a", "a.example.org", false},
		{"a.example.org", "A.example.org", false},
		{"a.example.org", "a", true},
		{"a.example.org", "a.example.com", true},
		{"a", "b", true},
		{"a", "ab.example.org", true},
		{"a", "", true},
	} {
		if got := Elsewhere(c.name, c.host); got != c.want {
			t.Errorf("%q on %q: %v, want %v", c.name, c.host, got, c.want)
		}
	}
}
