package outbox

import (
	"bytes"
	"encoding/json"
	"path/filepath"

	"github.com/ollim/ollim/internal/platform/plaintext"
)

// maxAnswer is how much of the command's output is read, in bytes.
const maxAnswer = 64 << 10

// maxOutside is the longest id that the command can print, in bytes.
const maxOutside = 100

// sendLine is a message as the line that a command with Post.JSON gets: the line "send" of ollim-door(5).
type sendLine struct {
	Type    string     `json:"type"` // send
	Text    string     `json:"text"`
	Buttons []Button   `json:"buttons,omitempty"`
	Files   []sendFile `json:"files,omitempty"`
	Nonce   string     `json:"nonce"` // the message's id
}

type sendFile struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

// jsonLine returns a message as one line.
func jsonLine(m Message) []byte {
	l := sendLine{Type: "send", Text: m.Text, Buttons: m.Buttons, Nonce: m.ID}
	if m.File != "" {
		l.Files = []sendFile{{filepath.Base(m.File), m.File}}
	}
	text, _ := json.Marshal(l) // texts: it cannot fail
	return append(text, '\n')
}

// printed returns the id in the output of a command that gets JSON: the line "done" of ollim-door(5). An output without one is no error: the
// message was sent.
func (p Post) printed(m Message, output []byte) (id string) {
	if !p.JSON || len(bytes.TrimSpace(output)) == 0 {
		return ""
	}
	var done struct {
		ID string `json:"id"`
	}
	err := json.Unmarshal(output, &done)
	switch {
	case err != nil, done.ID != "" && (len(done.ID) > maxOutside || !plaintext.IsWord(done.ID, "._-")):
		p.Disk.Warn("message " + m.ID + ": the delivery command printed no line like {\"type\":\"done\",\"id\":\"17\"}: a reply to it is not recognised")
		return ""
	}
	return done.ID
}
