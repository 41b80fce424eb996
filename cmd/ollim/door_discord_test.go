package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit/discordapi"
	"github.com/ollim/ollim/internal/testkit/doorapi"
)

// queued returns what is in the queue.
func (d *served) queued() string {
	files, _ := filepath.Glob(filepath.Join(d.data, "state/queue/*.json"))
	var all strings.Builder
	for _, f := range files {
		text, _ := os.ReadFile(f)
		all.Write(text)
	}
	return all.String()
}

// TestDoorBesideDiscord: with a door and Discord at once each answer goes where its message came from. What the owner edits or deletes while
// it waits is answered in its new form, or not at all, at both; the message whose turn has begun stays as it is.
func TestDoorBesideDiscord(t *testing.T) {
	t.Parallel()
	d, s := withDoor(t, doorapi.Options{}), discordapi.New(t, discordapi.Options{})
	d.write("play.yaml", "turns:\n"+strings.Repeat("  - - text: An answer.\n", 9))
	d.ok("config", "set", "engine", "script:play.yaml")
	d.ok("config", "set", "discord.api", s.URL())
	d.serve()
	defer d.listen(s)()
	release := d.holdMain()

	begun := d.Say("<begun>", nil)
	d.Wait("its turn", func() bool { return strings.Contains(d.queued(), `"run"`) })
	byDoor, deletedByDoor := d.Say("<by the door>", nil), d.Say("<deleted by the door>", nil)
	d.Wait("the door's messages", func() bool { return strings.Contains(d.queued(), "deleted by the door") })
	onDiscord := s.Say(discordapi.Post{Text: "<on Discord>"})
	deletedOnDiscord := s.Say(discordapi.Post{Text: "<deleted on Discord>"})
	d.Wait("Discord's messages", func() bool { return strings.Contains(d.queued(), "deleted on Discord") })

	edit := func(id, text string) {
		d.Line(map[string]any{"type": "edited", "id": id, "channel": doorapi.Channel, "user": doorapi.Owner, "text": text})
	}
	edit(begun, "<too late>")
	edit(byDoor, "<edited by the door>")
	d.Line(map[string]any{"type": "deleted", "id": deletedByDoor, "channel": doorapi.Channel})
	s.Edit(onDiscord, "<edited on Discord>")
	s.Delete(deletedOnDiscord)
	d.Wait("the changes", func() bool {
		all := d.queued()
		return strings.Contains(all, "edited by the door") && strings.Contains(all, "edited on Discord") && !strings.Contains(all, "deleted")
	})
	release()
	answered := map[string]int{}
	d.Wait("the answers", func() bool {
		clear(answered)
		for _, m := range d.Messages() {
			if m.Own && m.Text == "An answer." {
				answered[m.ReplyTo]++
			}
		}
		for _, m := range s.Messages(discordapi.DM) {
			if m.Reference != nil && m.Content == "An answer." {
				answered[m.Reference.Message]++
			}
		}
		return len(answered) >= 3 && d.settled() && !strings.Contains(d.read("state/discord.json"), `"open"`)
	})
	if len(answered) != 3 || answered[begun] != 1 || answered[byDoor] != 1 || answered[onDiscord] != 1 {
		t.Errorf("answered %v", answered)
	}
	for text, want := range map[string]bool{
		"<begun>": true, "<edited by the door>": true, "<edited on Discord>": true,
		"<too late>": false, "<deleted": false, "<by the door>": false, "<on Discord>": false,
	} {
		if got := strings.Contains(d.prompts(), text); got != want {
			t.Errorf("%s is asked: %t", text, got)
		}
	}
}
