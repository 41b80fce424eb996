package ui_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/ui"
)

func cell(text string, fit ui.Fit) ui.Cell { return ui.Cell{Text: text, Fit: fit} }

// sample returns records with an id, a name, a number and a text; the last has a remedy below.
func sample(width int) *ui.Table {
	t := &ui.Table{Width: width, Header: []string{"ID", "NAME", "COST", "REASON"}}
	for _, row := range [][4]string{
		{"20261122T145811.070Z-60a38f", "disk", "$0.02", ""},
		{"20261122T145811.071Z-60a38f", "日本語の長い名前のルーチン", "$10.00", "the service is overloaded, and nobody knows until when"},
	} {
		t.Add(cell(row[0], ui.Whole), cell(row[1], ui.Brief), cell(row[2], ui.Whole), cell(row[3], ui.Prose))
	}
	return t
}

func TestTable(t *testing.T) {
	for width, want := range map[int]string{
		0: `
ID                           NAME                        COST    REASON
20261122T145811.070Z-60a38f  disk                        $0.02
20261122T145811.071Z-60a38f  日本語の長い名前のルーチン  $10.00  the service is overloaded, and nobody knows until when`,
		90: `
ID                           NAME                       COST    REASON
20261122T145811.070Z-60a38f  disk                       $0.02
20261122T145811.071Z-60a38f  日本語の長い名前のルーチ…  $10.00  the service is overloaded,
                                                                and nobody knows until
                                                                when`,
		60: `
ID                           NAME                     COST
  REASON
20261122T145811.070Z-60a38f  disk                     $0.02
20261122T145811.071Z-60a38f  日本語の長い名前のルー…  $10.00
  the service is overloaded, and nobody knows until when`,
		40: `
ID
  NAME  COST  REASON
20261122T145811.070Z-60a38f
  disk  $0.02
20261122T145811.071Z-60a38f
  日本語の長い名前のルーチン  $10.00
  the service is overloaded, and nobody
  knows until when`,
		24: `
ID
  NAME  COST  REASON
20261122T145811.070Z-60a38f
  disk  $0.02
20261122T145811.071Z-60a38f
  日本語の長い名前のル…
  $10.00
  the service is
  overloaded, and nobody
  knows until when`,
	} {
		if got := "\n" + strings.Join(sample(width).Lines(), "\n"); got != want {
			t.Errorf("%d columns:%s\nwant%s", width, got, want)
		}
	}
}

// A text that is to stand below does so however wide the terminal is, and nothing is aligned with the end of a short record.
func TestTableBelow(t *testing.T) {
	table := &ui.Table{Width: 44}
	table.Add(ui.Cell{Text: "FAIL", Colour: ui.Red}, cell("delivery", ui.Whole), cell("nothing is configured", ui.Prose), cell("run `ollim config set delivery.command COMMAND` and try again", ui.Below))
	table.Add(cell("a short record may be as long as its line", ui.Prose))
	table.Add(cell("", ui.Whole), cell("id-1", ui.Whole), cell("", ui.Prose))
	want := ui.Red + "FAIL\x1b[0m  delivery  nothing is configured\n" +
		"  run\n  `ollim config set delivery.command COMMAND`\n  and try again\n" +
		"a short record may be as long as its line\n      id-1"
	if got := strings.Join(table.Lines(), "\n"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A column has no name where that would take a line: if it has no texts, or only texts that stand below; and a table without records has none.
func TestTableHeader(t *testing.T) {
	table := &ui.Table{Width: 12, Header: []string{"NUMBER", "TEXT", "NOTES", "REMEDY"}}
	if got := table.Lines(); len(got) > 0 {
		t.Errorf("%q", got)
	}
	table.Add(cell("1", ui.Whole), cell("text", ui.Prose), cell("", ui.Prose), cell("remedy", ui.Below))
	if got, want := strings.Join(table.Lines(), "\n"), "NUMBER  TEXT\n1       text\n  remedy"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Where there is too little room for a column, all of its cells have their short texts, before anything else is shortened.
func TestTableShortTexts(t *testing.T) {
	table := &ui.Table{Width: 24}
	for _, at := range []string{"09:00", "10:00"} {
		table.Add(cell("id", ui.Whole), ui.Cell{Text: at + " (in " + at[:2] + " hours)", Short: at}, cell("a long name 14", ui.Brief))
	}
	want := "id  09:00  a long name…\nid  10:00  a long name…"
	if table.Width = 25; strings.Join(table.Lines(), "\n") != strings.ReplaceAll(want, "name…", "name 14") {
		t.Errorf("25 columns: %q", table.Lines())
	}
	if table.Width = 23; strings.Join(table.Lines(), "\n") != want {
		t.Errorf("23 columns: %q", table.Lines())
	}
	if table.Width = 8; table.Lines()[1] != "  09:00" {
		t.Errorf("8 columns: %q", table.Lines())
	}
}

// At no width a line is too long, an id cut, or a text lost.
func TestTableFits(t *testing.T) {
	for width := 30; width < 200; width++ {
		text := strings.Join(sample(width).Lines(), "\n")
		for line := range strings.Lines(text) {
			if ui.Width(strings.TrimSuffix(line, "\n")) > width {
				t.Errorf("%d columns: %q", width, line)
			}
		}
		for _, part := range append(strings.Fields("the service is overloaded, and nobody knows until when"), "20261122T145811.071Z-60a38f", "$10.00") {
			if !strings.Contains(text, part) {
				t.Errorf("%d columns: %q is missing in\n%s", width, part, text)
			}
		}
	}
}

func BenchmarkTable(b *testing.B) {
	for b.Loop() {
		t := ui.Table{Width: 80}
		for i := range 1000 {
			t.Add(cell(fmt.Sprint("id", i), ui.Whole), cell("日本語の名前のルーチン", ui.Brief), cell(strings.Repeat("word ", 20), ui.Prose))
		}
		t.Lines()
	}
}
