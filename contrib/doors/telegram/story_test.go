package main

import (
	"os"
	"strings"
	"testing"

	"github.com/ollim/ollim/contrib/doors/doortest"
	"github.com/ollim/ollim/internal/testkit/telegramapi"
)

// TestStory is the door with the real `ollim door serve`.
func TestStory(t *testing.T) {
	s := telegramapi.Start(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o := doortest.New(t, "telegram", []string{self, "-api", s.URL}, []string{"OLLIM_TEST_DOOR=1"}, []string{"TOKEN=" + telegramapi.Token})
	o.OK("config", "set", "doors.telegram.owner", "42")
	o.Story(doortest.Owner{
		Say: func(text, replyTo string) {
			fields := line{"text": text}
			if replyTo != "" {
				_, number, _ := split(replyTo)
				fields["reply_to_message"] = line{"message_id": number, "chat": line{"id": ann}, "from": line{"id": telegramapi.Bot}}
			}
			s.Say(ann, fields)
		},
		Sees: func(text string) (id string) {
			s.Wait(t, text, func() bool {
				for at, m := range s.Messages {
					if strings.Contains(m.Text, text) {
						id = at
					}
				}
				return id != ""
			})
			return id
		},
		Choose: func(id string) {
			var data string
			s.Do(func() {
				for _, row := range s.Messages[id].Keyboard {
					for _, b := range row.([]any) {
						if b := b.(line); b["text"] == "only new ones" {
							data = b["callback_data"].(string)
						}
					}
				}
			})
			s.Press(7, id, data, "1") // a stranger's press has no effect
			s.Press(ann, id, data, "2")
			s.Wait(t, "the press is answered", func() bool { return len(s.Answers) > 0 })
		},
	})
	s.Wait(t, "all is confirmed", func() bool { return s.Open() == 0 || s.Answers[0] == "2" })
}
