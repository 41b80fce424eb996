package ui_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/ui"
)

// smallTerminal is a terminal of 20 columns and 5 rows.
type smallTerminal struct{ bytes.Buffer }

func (*smallTerminal) IsTerminal() bool { return true }

func (*smallTerminal) Size() (columns, rows int) { return 20, 5 }

// TestPager: only output that does not fit the terminal, with a row for the next prompt, goes through the pager. A line that fills its
// row takes one, whatever colours it has, and one that is written in pieces is one.
func TestPager(t *testing.T) {
	full := ui.Paint(strings.Repeat("x", 18), ui.Red) + "日\n"
	for name, c := range map[string]struct {
		pieces []string
		env    string
		paged  bool
	}{
		"fits":        {pieces: []string{full, full, full, full}},
		"in pieces":   {pieces: []string{"one ", "line\n", "\n\n\n"}},
		"a row more":  {pieces: []string{full, full, full, full, "x\n"}, paged: true},
		"long lines":  {pieces: []string{full, full, strings.Repeat("x", 41) + "\n"}, paged: true},
		"wide":        {pieces: []string{full, full, full, strings.Repeat("x", 20) + "x\n"}, paged: true},
		"turned off":  {pieces: []string{full, full, full, full, full, full}, env: "cat"},
		"no terminal": {pieces: []string{full, full, full, full, full, full}, env: "dumb"},
	} {
		t.Run(name, func(t *testing.T) {
			var tty smallTerminal
			p := ui.NewPager(&tty, &tty, func(variable string) (string, bool) {
				switch {
				case variable == "TERM" && c.env != "dumb":
					return "xterm", true
				case variable == "OLLIM_PAGER" && c.env != "cat":
					return "sed s/^/paged:/", true
				}
				return map[string]string{"PAGER": "cat"}[variable], variable == "PAGER"
			})
			p.Page()
			for _, piece := range c.pieces {
				if !p.Pages() {
					tty.WriteString(piece)
				} else if _, err := p.Write([]byte(piece)); err != nil {
					t.Error(err)
				}
			}
			if err := p.End(); err != nil {
				t.Error(err)
			}
			want := strings.Join(c.pieces, "")
			if c.paged {
				want = "paged:" + strings.ReplaceAll(strings.TrimSuffix(want, "\n"), "\n", "\npaged:") + "\n"
			}
			if tty.String() != want {
				t.Errorf("the terminal got %q, want %q", tty.String(), want)
			}
		})
	}
}
