package cli

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
)

// A tool server that is running follows a change of config.yaml; while the file cannot be used it keeps the settings it has.
func TestToolServerFollowsTheSettings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script("turns:\n  - - text: one\n")
	w.must("routine", "add", "talk", "--cron", "0 9 * * *", "Look.")
	w.must("reminder", "add", "--at", "2026-03-03T12:00:00Z", "look")
	w.must("fire", "talk")
	defer w.inRun()()
	in, client := io.Pipe()
	answers, out := io.Pipe()
	ended := make(chan error, 1)
	var warned strings.Builder
	go func() {
		d := w.deps(in, out, &warned)
		d.Warn = d.warn
		ended <- runMCPServe(t.Context(), d)
		out.Close()
	}()
	reminders := func() string {
		t.Helper()
		const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_reminders","arguments":{}}}` + "\n"
		if _, err := io.WriteString(client, call); err != nil {
			t.Fatal(err)
		}
		var answer struct {
			Result struct {
				Content []struct{ Text string }
			}
		}
		if err := json.NewDecoder(answers).Decode(&answer); err != nil || len(answer.Result.Content) != 1 {
			t.Fatal(answer, err)
		}
		return answer.Result.Content[0].Text
	}
	settings := w.read("config.yaml")
	if got := reminders(); !strings.Contains(got, "12:00") {
		t.Errorf("in UTC: %s", got)
	}
	w.replace("config.yaml", strings.Replace(settings, "timezone: UTC", "timezone: Asia/Tokyo", 1))
	if got := reminders(); !strings.Contains(got, "21:00") {
		t.Errorf("in Tokyo: %s", got)
	}
	w.replace("config.yaml", "timezon: UTC\n")
	if got := reminders() + reminders(); strings.Count(got, "21:00") != 2 {
		t.Errorf("beside a broken file: %s", got)
	}
	w.replace("config.yaml", settings)
	if got := reminders(); !strings.Contains(got, "12:00") {
		t.Errorf("after the repair: %s", got)
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got := strings.Count(warned.String(), "warning: "); got != 1 {
		t.Errorf("%d warnings: %s", got, warned.String())
	}
}
