package outbox

import (
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

func TestEmbedClean(t *testing.T) {
	field := func(name, value string) []Field { return []Field{{Name: name, Value: value}} }
	wide := strings.Repeat("é", 256)
	for name, tc := range map[string]struct{ in, want Embed }{
		"title alone": {Embed{Title: "Hi"}, Embed{Title: "Hi"}},
		"everything": {
			Embed{Title: " Build ", Description: "one\r\ntwo\n", URL: "https://example.org/x", Color: "#2E8b57", Fields: []Field{{"CI", "green\nfast", true}}, Footer: "now"},
			Embed{Title: "Build", Description: "one\ntwo", URL: "https://example.org/x", Color: "#2E8b57", Fields: []Field{{"CI", "green\nfast", true}}, Footer: "now"},
		},
		"control characters": {
			Embed{Title: "a\x00b\x1b[31mc\x7f\u0085d", Description: "\x07a\tb\vc\rd\n\ne", Footer: "x\r\ny", Fields: field("n\nm", "v\x08\nw")},
			Embed{Title: "ab[31mc d", Description: "a\tbcd\n\ne", Footer: "x y", Fields: field("n m", "v\nw")},
		},
		"direction of writing": {Embed{Title: "a\u202eb\u2066c\u2069d"}, Embed{Title: "abcd"}},
		"not UTF-8":            {Embed{Title: "a\xffb", Fields: field("\xc3", "v")}, Embed{Title: "a\ufffdb", Fields: field("\ufffd", "v")}},
		"emoji":                {Embed{Title: "👩‍👩‍👧 日本"}, Embed{Title: "👩‍👩‍👧 日本"}},
		"longest": {
			Embed{Title: wide, Description: strings.Repeat("é", 4096), Fields: field(wide, strings.Repeat("é", 1024))},
			Embed{Title: wide, Description: strings.Repeat("é", 4096), Fields: field(wide, strings.Repeat("é", 1024))},
		},
		"long before it is cleaned": {Embed{Title: strings.Repeat("\x01", 999) + "x" + strings.Repeat(" ", 999)}, Embed{Title: "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			before := append([]Field{}, tc.in.Fields...)
			got, err := tc.in.Clean()
			if tc.want.Fields == nil {
				tc.want.Fields = []Field{}
			}
			if err != nil || !reflect.DeepEqual(got, tc.want) {
				t.Errorf("%v\n got %+v\nwant %+v", err, got, tc.want)
			}
			if len(before) > 0 && !reflect.DeepEqual(before, tc.in.Fields) {
				t.Error("the caller's fields were changed")
			}
		})
	}
}

func many6() (list []action) {
	for n := range 6 {
		list = append(list, action{Label: "a", Action: "task_done:" + strconv.Itoa(n)})
	}
	return list
}

func TestEmbedRefused(t *testing.T) {
	many := func(n int, value string) (fields []Field) {
		for range n {
			fields = append(fields, Field{Name: "n", Value: value})
		}
		return fields
	}
	for want, e := range map[string]Embed{
		"title is empty":  {Description: "x"},
		"title is empty ": {Title: "\x00\x1b \n"},
		"title has 257 characters, the most is 256":                        {Title: strings.Repeat("é", 257)},
		"description has 4097 characters, the most is 4096":                {Title: "x", Description: strings.Repeat("é", 4097)},
		"footer has 2049 characters, the most is 2048":                     {Title: "x", Footer: strings.Repeat("é", 2049)},
		"url has 2049 characters, the most is 2048":                        {Title: "x", URL: strings.Repeat("é", 2049)},
		"the name of a field has 257 characters, the most is 256":          {Title: "x", Fields: []Field{{Name: strings.Repeat("n", 257), Value: "v"}}},
		"the value of n has 1025 characters, the most is 1024":             {Title: "x", Fields: many(1, strings.Repeat("v", 1025))},
		"a field has no name or no value":                                  {Title: "x", Fields: []Field{{Name: "n"}}},
		"a field has no name or no value ":                                 {Title: "x", Fields: []Field{{Name: " \x01", Value: "v"}}},
		"26 fields, the most is 25":                                        {Title: "x", Fields: many(26, "v")},
		"6001 characters in all, the most is 6000":                         {Title: strings.Repeat("t", 250), Fields: many(7, strings.Repeat("v", 820)), Footer: strings.Repeat("f", 4)},
		"url must begin with https://":                                     {Title: "x", URL: "javascript:alert(1)"},
		"url must begin with https:// ":                                    {Title: "x", URL: "example.org"},
		`color "red": write one like #2e8b57`:                              {Title: "x", Color: "red"},
		`color "#12345": write one like #2e8b57`:                           {Title: "x", Color: "#12345"},
		`color "#12345g": write one like #2e8b57`:                          {Title: "x", Color: "#12345g"},
		`color "#12345\n": write one like #2e8b57`:                         {Title: "x", Color: "#12345\n"},
		"the label of a button has 1 to 80 characters":                     {Title: "x", Actions: []action{{Label: " ", Action: "task_done:1"}}},
		"the label of a button has 1 to 80 characters, not \"é":            {Title: "x", Actions: []action{{Label: strings.Repeat("é", 81), Action: "task_done:1"}}},
		`button "a": unknown style "red"`:                                  {Title: "x", Actions: []action{{Label: "a", Action: "task_done:1", Style: "red"}}},
		`button "a": the action must be `:                                  {Title: "x", Actions: []action{{Label: "a", Action: "task_done:x"}}},
		`button "b": the action must be `:                                  {Title: "x", Actions: []action{{Label: "b", Action: "agent: "}}},
		`button "c": the action must be `:                                  {Title: "x", Actions: []action{{Label: "c", Action: "clear:1"}}},
		`button "d": another one has the same action`:                      {Title: "x", Actions: []action{{Label: "a", Action: "task_del:1"}, {Label: "d", Action: "task_del:1"}}},
		"6 buttons, the most is 5":                                         {Title: "x", Actions: many6()},
		"title has 300 characters, the most is 256\nfooter has 2049 chara": {Title: strings.Repeat("t", 300), Footer: strings.Repeat("f", 2049)},
	} {
		if _, err := e.Clean(); err == nil || !strings.HasPrefix(err.Error(), strings.TrimSuffix(want, " ")) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := (Embed{Title: strings.Repeat("t", 250), Fields: many(7, strings.Repeat("v", 820)), Footer: "fff"}).Clean(); err != nil {
		t.Errorf("6000 characters: %v", err)
	}
}

func TestEmbedText(t *testing.T) {
	for want, e := range map[string]Embed{
		"Hi":                      {Title: "Hi", Color: "#000000"},
		"Hi\nhttps://example.org": {Title: "Hi", URL: "https://example.org"},
		"Hi\n\nLong\ntext":        {Title: "Hi", Description: "Long\ntext"},
		"Hi\n\na: b\nc:\nd\ne":    {Title: "Hi", Fields: []Field{{"a", "b", true}, {"c", "d\ne", false}}},
		"Hi\n\nfoot":              {Title: "Hi", Footer: "foot"},
		"Hi\nhttp://x\n\ntext\n\na: b\n\nthe foot": {Title: "Hi", URL: "http://x", Description: "text", Fields: []Field{{Name: "a", Value: "b"}}, Footer: "the foot"},
	} {
		if got := e.Text(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Whatever an agent hands over: what is sent has no character that could move a cursor, keeps Discord's limits, and is the same
// after a stay in the outbox.
func FuzzEmbed(f *testing.F) {
	for _, seed := range []string{
		`{"title":"Hi"}`, `{"title":"a\u0000\u001b[2J","description":"x\r\ny","fields":[{"name":"n","value":"v\u2028w","inline":true}],"color":"#2e8b57"}`,
		`{"title":"\ud800","url":"https://x","footer":"\t"}`, `{"title":1}`, `{}`, `null`, `{"title":"x","fields":[{}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var e Embed
		if json.Unmarshal(data, &e) != nil {
			e = Embed{Title: string(data), Description: string(data), Fields: []Field{{string(data), string(data), false}}, Footer: string(data)}
		}
		clean, err := e.Clean()
		if err != nil {
			return
		}
		text := clean.Text()
		if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }) || strings.ContainsAny(text, "\u202e\u2066") {
			t.Fatalf("%q", text)
		}
		if strings.Contains(clean.Title, "\n") || len(clean.Fields) > maxFields || utf8.RuneCountInString(text) > maxEmbed+3*maxFields+8 {
			t.Fatalf("%+v", clean)
		}
		if again, err := clean.Clean(); err != nil || !reflect.DeepEqual(again, clean) {
			t.Fatalf("%v\n%+v\n%+v", err, clean, again)
		}
		stored, err := json.Marshal(clean)
		if err != nil {
			t.Fatal(err)
		}
		var back Embed
		if err := json.Unmarshal(stored, &back); err != nil || back.Text() != text {
			t.Fatalf("%v\n%q\n%q", err, text, back.Text())
		}
	})
}

// A message's file and embed reach the command and survive the outbox; a foreign file never does.
func TestFileAndEmbed(t *testing.T) {
	o := newOffice(t)
	o.Env = append(o.Env, "OLLIM_FILE=/of/another/message")
	o.script(t, `env > "$data/$OLLIM_MESSAGE_ID"; test ! -e "$data/down" || exit 75`)
	if err := os.WriteFile(o.Home.Path("down"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	m := message("r.1")
	m.File, m.Embed = o.Home.Path("a report é.pdf"), &Embed{Title: "Hi", Fields: []Field{{"a", "b", true}}}
	o.send(t, m, Queued)
	if got := o.pending(t); len(got) != 1 || got[0].File != m.File || !reflect.DeepEqual(got[0].Embed, m.Embed) {
		t.Errorf("%+v", got)
	}
	o.send(t, message("r.2"), Queued)
	if err := errors.Join(os.Remove(o.Home.Path("down")), os.Remove(o.Home.Path("r.1"))); err != nil {
		t.Fatal(err)
	}
	o.now = o.now.Add(time.Hour)
	o.flush(t, Report{Sent: 2})
	if got := o.read(t, "r.1"); !strings.Contains(got, "OLLIM_FILE="+m.File+"\n") {
		t.Errorf("the file is missing in\n%s", got)
	}
	if got := o.read(t, "r.2"); got == "" || strings.Contains(got, "OLLIM_FILE") {
		t.Errorf("a message without a file got\n%s", got)
	}
}
