package irc_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/ollim/ollim/contrib/doors/doortest"
)

// TestStory is the door with the real `ollim door serve`.
func TestStory(t *testing.T) {
	t.Parallel()
	server := ngircd(t)
	script, err := filepath.Abs("irc.py")
	if err != nil {
		t.Fatal(err)
	}
	cmd := door(t, "--plain", "--trust-nicks", server, "ollim")
	argv := append([]string{cmd.Path, script}, cmd.Args[2:]...)
	o := doortest.New(t, "irc", argv, nil, []string{"PASSWORD=" + password})
	o.OK("config", "set", "doors.irc.owner", "ann")
	ann := connect(t, server, "ann")
	say := func(text, replyTo string) {
		ann.awaits("ollim", true) // a message to a nick that is not there is lost
		if replyTo != "" {
			text = "re " + replyTo + ": " + text
		}
		ann.tell("PRIVMSG ollim :" + text)
	}
	o.Story(doortest.Owner{
		Say: say,
		Sees: func(text string) string {
			ann.read(" PRIVMSG ann :" + text)
			if !strings.HasPrefix(text, "The") && !strings.HasPrefix(text, "Which") { // an answer has no id to reply to
				return ""
			}
			id, _, _ := strings.Cut(ann.read(" PRIVMSG ann :[re "), ":")
			return id
		},
		Left:   func() { ann.awaits("ollim", false) },
		Choose: func(id string) { say("2", id) },
	})
}
