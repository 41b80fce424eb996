package cli

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// tool is a tool that a request offers; the test ends when it does not.
func tool(t *testing.T, q anthropicapi.Request, name string) anthropicapi.Tool {
	t.Helper()
	at := slices.IndexFunc(q.Tools, func(tool anthropicapi.Tool) bool { return tool.Name == name })
	if at < 0 {
		t.Fatalf("the request does not offer %s", name)
	}
	return q.Tools[at]
}

// The final check of a chain that calls follow_up_chain all the same is told what to do instead, also where it works alone.
func TestFinalCheckIsGuided(t *testing.T) {
	t.Parallel()
	const still = "This is the final check of the chain: no follow-up is possible. If it is still open, ping the owner now with `ping_user`"
	for mode, want := range map[string]string{
		"":                                      still + "; otherwise use `report_updates`.",
		"isolated: true\n":                      still + "; otherwise use `report_updates`.",
		"update-main-session: always\n":         still + ". With or without a ping, call `report_updates`.",
		"isolated: true\nallow-ping: false\n":   "If it is still open, say so with `report_updates`.",
		"isolated: true\nmax-chain: 2 # more\n": "", // not the final one
	} {
		w, api := newNativeWorld(t)
		chain := "max-chain: 1\n"
		if want == "" {
			chain = ""
		}
		w.write("reminders/parcel.md", "---\nid: parcel\nrun-at: 2026-03-02T10:00:00Z\n"+mode+chain+"chain-depth: 1\n---\nHas the parcel come?\n")
		api.Reply(anthropicapi.Use("follow_up_chain", map[string]any{"minutes_from_now": 5}),
			anthropicapi.Use("report_updates", map[string]string{"message": "not yet"}), anthropicapi.Reply{Text: "Done."})
		w.must("fire", "parcel")
		if got := api.Requests()[1].ToolResults()[0]; got.IsError != (want != "") || !strings.Contains(got.ResultText, want) {
			t.Errorf("%q: %q, want %q", mode, got.ResultText, want)
		}
	}
}

// add_reminder describes every parameter, names the zone, and offers a run nothing that it would refuse.
func TestAddReminderIsDescribed(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	w.must("config", "set", "timezone", "America/Los_Angeles")
	w.must("routine", "add", "talk", "--cron", "0 9 * * *", "Look.")
	w.must("routine", "add", "branch", "--cron", "0 9 * * *", "--background", "Look.")
	w.must("routine", "add", "alone", "--cron", "0 9 * * *", "--background", "--isolated", "Look.")
	w.must("routine", "add", "silent", "--cron", "0 9 * * *", "--background", "--isolated", "--allow-ping=false",
		"--update-main-session", "blocked", "Look.")
	values := map[string]any{
		"message": "Look again.", "when": "tomorrow 9am", "description": "Second look", "background": false, "plain": true, "isolated": true,
		"allow_ping": false, "update_main_session": "freely", "model": "haiku", "allowed_tools": []string{"Bash(git log)"},
		"skills": []string{}, "max_chain": 2,
	}
	shared := ""
	for _, job := range []string{"talk", "branch", "alone", "silent"} {
		api.Reply(anthropicapi.Reply{Text: "Done."})
		w.must("fire", job)
		requests := api.Requests()
		schema := tool(t, requests[len(requests)-1], "add_reminder").InputSchema
		var offer struct {
			Properties map[string]struct{ Description string }
		}
		if err := json.Unmarshal(schema, &offer); err != nil {
			t.Fatal(err)
		}
		for name, p := range offer.Properties {
			if !strings.HasSuffix(p.Description, ".") || values[name] == nil {
				t.Errorf("%s: %s is described as %q", job, name, p.Description)
			}
		}
		if when := offer.Properties["when"].Description; !strings.Contains(when, "in the zone America/Los_Angeles") {
			t.Errorf("%s: when: %s", job, when)
		}
		names := slices.Sorted(maps.Keys(offer.Properties))
		switch job {
		case "talk":
			shared = string(schema)
			if len(names) != len(values) {
				t.Errorf("%s is offered %q", job, names)
			}
		case "branch":
			if string(schema) != shared {
				t.Errorf("a branch is offered another tool than main")
			}
		default:
			silent := job == "silent"
			if slices.Contains(names, "plain") || slices.Contains(names, "background") || slices.Contains(names, "allow_ping") == silent ||
				slices.Contains(names, "update_main_session") == silent {
				t.Errorf("%s is offered %q", job, names)
			}
			for _, name := range names { // each of them is taken
				input := map[string]any{"message": "Look.", "when": "45m", name: values[name]}
				api.Reply(anthropicapi.Use("add_reminder", input), anthropicapi.Reply{Text: "Done."})
				w.must("fire", job)
				requests := api.Requests()
				if got := requests[len(requests)-1].ToolResults()[0]; got.IsError || !strings.Contains(got.ResultText, " is set for ") {
					t.Errorf("%s: %s: %s", job, name, got.ResultText)
				}
			}
		}
	}
}

// The system prompt of a branch recommends only commands that its run may use.
func TestForkIsRecommendedWhatItMayDo(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	w.must("routine", "add", "branch", "--cron", "0 9 * * *", "--background", "Look.")
	api.Reply(anthropicapi.Reply{Text: "Done."})
	w.must("fire", "branch")
	system := api.Requests()[0].System
	leave := w.inRun()
	help := w.must("help")
	leave()
	recommended := regexp.MustCompile("`(ollim [^`]*)`").FindAllStringSubmatch(system, -1)
	if len(recommended) == 0 {
		t.Fatalf("it recommends no command:\n%s", system)
	}
	for _, match := range recommended {
		if !strings.Contains(help, "\n"+match[1]+" ") {
			t.Errorf("it recommends `%s`; the run may use only\n%s", match[1], help)
		}
	}
}
