package mail_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/contrib/doors/doortest"
)

// TestStory is the door with the real `ollim door serve`.
func TestStory(t *testing.T) {
	s := start(t)
	script, err := filepath.Abs("mail.py")
	if err != nil {
		t.Fatal(err)
	}
	cmd := s.command(t)
	argv := append([]string{cmd.Path, script}, cmd.Args[2:]...)
	o := doortest.New(t, "mail", argv, []string{"SSL_CERT_FILE=" + s.cert}, []string{"PASSWORD=" + password})
	said := 0
	say := func(text, replyTo string) {
		said++
		h := header(fmt.Sprintf("<say%d@home.example>", said))
		if replyTo != "" {
			h += "In-Reply-To: " + replyTo + "\r\nReferences: " + replyTo + "\r\n"
		}
		s.post(t, ann, h, text)
	}
	o.Story(doortest.Owner{
		Say: say,
		Sees: func(text string) string {
			for late := time.Now().Add(doortest.Patience); time.Now().Before(late); time.Sleep(50 * time.Millisecond) {
				for _, m := range s.received(t, 0) {
					if strings.Contains(m.text, text) {
						return m.Header.Get("Message-ID")
					}
				}
			}
			t.Fatalf("no mail with %q", text)
			return ""
		},
		Choose: func(id string) { say("2", id) },
	})
}
