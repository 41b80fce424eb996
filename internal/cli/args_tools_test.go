package cli

import (
	"strings"
	"testing"
)

// TestSpreadTools: --allowed-tools of a job takes several patterns, as the claude command does, and leaves the text of the job alone.
func TestSpreadTools(t *testing.T) {
	for line, want := range map[string]string{
		"routine|add|x|--allowed-tools|Read|Grep|Do it.":                 "routine|add|x|--allowed-tools|Read|--allowed-tools=Grep|Do it.",
		"routine|add|x|--allowed-tools|Bash(df -h)|WebFetch|Do it.":      "routine|add|x|--allowed-tools|Bash(df -h)|--allowed-tools=WebFetch|Do it.",
		"routine|add|x|--allowed-tools=Read|Bash(ls)|Do it.":             "routine|add|x|--allowed-tools=Read|--allowed-tools=Bash(ls)|Do it.",
		"reminders|add|--in|1h|--allowed-tools|Bash(ls)|Read":            "reminders|add|--in|1h|--allowed-tools|Bash(ls)|Read",
		"routine|add|x|Do it.|--allowed-tools|Read,Grep|Bash(ls)":        "routine|add|x|Do it.|--allowed-tools|Read,Grep|--allowed-tools=Bash(ls)",
		"routine|add|x|--allowed-tools|Read|--cron|@daily|Do it.":        "routine|add|x|--allowed-tools|Read|--cron|@daily|Do it.",
		"routine|add|x|--|--allowed-tools|Read|Bash(ls)":                 "routine|add|x|--|--allowed-tools|Read|Bash(ls)",
		"task|add|--allowed-tools|Read|Bash(ls)|x":                       "task|add|--allowed-tools|Read|Bash(ls)|x",
		"routine|add|x|--allowed-tools|Read|Read all files, please.|now": "routine|add|x|--allowed-tools|Read|Read all files, please.|now",
	} {
		if got := strings.Join(spreadTools(strings.Split(line, "|")), "|"); got != want {
			t.Errorf("%s\n got %s\nwant %s", line, got, want)
		}
	}
}
