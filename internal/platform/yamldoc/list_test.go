package yamldoc_test

import (
	"testing"

	"github.com/ollim/ollim/internal/platform/yamldoc"
)

// TestSetList: only the lines of items that differ change; comments, quotes and line ends of the others stay.
func TestSetList(t *testing.T) {
	for name, tc := range map[string]struct {
		text  string
		items []string
		want  string
	}{
		"changed": {"a: 1\nl:\n  # first\n  - x  # of x\n  - 'q'\n# of b\nb: 2\n", []string{"z", "q"},
			"a: 1\nl:\n  # first\n  - z # of x\n  - 'q'\n# of b\nb: 2\n"},
		"added": {"l:\n- x # of x\n\n# of b\nb: 2\n", []string{"x", "y: z"}, "l:\n- x # of x\n- 'y: z'\n\n# of b\nb: 2\n"},
		"both": {"s:\n    l:\n      - x\n      # of y\n      - \"y\"", []string{"w", "v", "u"},
			"s:\n    l:\n      - w\n      # of y\n      - v\n      - u\n"},
		"windows": {"l:\r\n  - x # c\r\n", []string{"w", "z"}, "l:\r\n  - w # c\r\n  - z\r\n"},
		"flow":    {"l: [x] # c\nb: 2\n", []string{"x", "w"}, "l: # c\n  - x\n  - w\nb: 2\n"},
		"folded":  {"l:\n  - x\n    y\n  - z\n", []string{"w", "z"}, "l:\n  - w\n  - z\n"},
		"fewer":   {"l:\n  - x\n  - w\n", []string{"w"}, "l:\n  - w\n"},
		"missing": {"b: 2\n", []string{"x"}, "b: 2\nl:\n  - x\n"},
		"same":    {"l:\n  - x   # c\n", []string{"x"}, "l:\n  - x   # c\n"},
	} {
		doc, err := yamldoc.Parse("f.yaml", []byte(tc.text), 1)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		path := []string{"l"}
		if name == "both" {
			path = []string{"s", "l"}
		}
		edited, err := doc.SetList(path, tc.items)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := string(edited.Text()); got != tc.want {
			t.Errorf("%s:\n got %q\nwant %q", name, got, tc.want)
		}
		if string(doc.Text()) != tc.text {
			t.Errorf("%s: the document itself changed", name)
		}
	}
}
