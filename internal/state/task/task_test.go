package task

import (
	"encoding/json"
	"reflect"
	"testing"
)

func TestParse(t *testing.T) {
	for line, want := range map[string]Task{
		"(A) Call Mom":            {Priority: "A", Text: "Call Mom"},
		"(A) 2011-03-02 Call Mom": {Priority: "A", Created: "2011-03-02", Text: "Call Mom"},
		"2011-03-02 Document":     {Created: "2011-03-02", Text: "Document"},
		"(A) Call Mom 2011-03-02": {Priority: "A", Text: "Call Mom 2011-03-02"},
		"(b) Get back":            {Text: "(b) Get back"},
		"(B)->Submit":             {Text: "(B)->Submit"},
		"Gotta call (A)":          {Text: "Gotta call (A)"},
		" (A) indented":           {Text: "(A) indented"},
		"2011-02-30 no such day":  {Text: "2011-02-30 no such day"},
		"(Z)   2011-03-02   wide": {Priority: "Z", Created: "2011-03-02", Text: "wide"},
		"two  spaces\tand a tab ": {Text: "two  spaces\tand a tab"},
		"2011-03-02":              {Created: "2011-03-02"},

		"x 2011-03-02 2011-03-01 Review":     {Done: true, Completed: "2011-03-02", Created: "2011-03-01", Text: "Review"},
		"x (A) 2011-03-02 2011-03-01 Review": {Done: true, Priority: "A", Completed: "2011-03-02", Created: "2011-03-01", Text: "Review"},
		"x 2011-03-03 Call Mom":              {Done: true, Completed: "2011-03-03", Text: "Call Mom"},
		"x Call Mom":                         {Done: true, Text: "Call Mom"},
		"xylophone lesson":                   {Text: "xylophone lesson"},
		"X 2012-01-01 Make resolutions":      {Text: "X 2012-01-01 Make resolutions"},
		"(A) x Find ticket prices":           {Priority: "A", Text: "x Find ticket prices"},
		"x":                                  {Text: "x"},

		"#1 in the charts": {Text: "#1 in the charts"},
		"call +Fam @home +Fam @a@b 2+2 me@x.org + @": {
			Projects: []string{"Fam", "Fam"}, Contexts: []string{"home", "a@b"}, Text: "call +Fam @home +Fam @a@b 2+2 me@x.org + @",
		},
		"t due:2026-01-31 due:2026-02-01 rec:+1w pri:B pri:C https://x.org 10:30 h: :v a:b:c": {
			Due: "2026-01-31", Extensions: map[string]string{"rec": "+1w", "pri": "B", "a": "b:c"},
			Text: "t due:2026-01-31 due:2026-02-01 rec:+1w pri:B pri:C https://x.org 10:30 h: :v a:b:c",
		},
		"t due:2026-02-30 due:tomorrow": {Text: "t due:2026-02-30 due:tomorrow", Extensions: map[string]string{"due": "2026-02-30"}},
	} {
		if want.Projects == nil {
			want.Projects, want.Contexts = []string{}, []string{}
		}
		if want.Extensions == nil {
			want.Extensions = map[string]string{}
		}
		if got, ok := parse(line); !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("%q:\n%+v, %v, want\n%+v", line, got, ok, want)
		}
	}
}

func TestNoTask(t *testing.T) {
	for _, line := range []string{"", " ", "\t", "\r", "#", "# Today", "## Later", "#\tx"} {
		if got, ok := parse(line); ok {
			t.Errorf("%q: %+v", line, got)
		}
	}
}

func TestJSON(t *testing.T) {
	task, _ := parse("(A) <b> due:2026-01-31")
	data, err := json.Marshal(task)
	want := `{"number":0,"done":false,"priority":"A","due":"2026-01-31","projects":[],"contexts":[],` +
		`"text":"\u003cb\u003e due:2026-01-31","extensions":{}}`
	if string(data) != want || err != nil {
		t.Errorf("%s, %v", data, err)
	}
}
