package config

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/ollim/ollim/internal/platform/yamldoc"
)

// recipes are examples of delivery commands for common tools. The command gets the text on its standard input and
// OLLIM_LABEL, OLLIM_JOB, OLLIM_KIND (ping, text, failure or notice), OLLIM_CRITICAL and OLLIM_MESSAGE_ID in its environment.
const recipes = `Command that sends you a message; it gets the text on standard input. Examples:
command: [sh, -c, 'notify-send "$OLLIM_LABEL" "$(cat)"']
command: [sh, -c, 'mail -s "$OLLIM_LABEL" you@example.org']
command: [sh, -c, 'curl -fsS -H "Title: $OLLIM_LABEL" --data-binary @- https://ntfy.sh/your-topic']
command: [sh, -c, 'curl -fsS "https://api.telegram.org/bot$TOKEN/sendMessage" -d chat_id=ID --data-urlencode text@-']
(TOKEN is a secret: ollim secret set delivery.TOKEN)`

// Template returns the text of a new config.yaml: every key with its default, commented out, except those of set, whose
// values are in the form of Check.
func Template(set map[string]string) string {
	var b strings.Builder
	b.WriteString("# Settings of ollim, see `ollim config list`. Flags take precedence over OLLIM_<KEY>, which takes precedence over this file.\n")
	section := ""
	for _, k := range keys(new(Config)) {
		indent := ""
		if s, _, nested := strings.Cut(k.name, "."); nested {
			indent = "  "
			if s != section {
				fmt.Fprintf(&b, "\n%s:\n", s)
			}
			section = s
		} else {
			b.WriteString("\n")
		}
		k.write(&b, indent, set)
	}
	return b.String() + serverTemplate + doorTemplate + agentTemplate
}

func (k key) write(b *strings.Builder, indent string, set map[string]string) {
	comment := func(text string) {
		for line := range strings.Lines(text) {
			fmt.Fprintf(b, "%s# %s\n", indent, strings.TrimSuffix(line, "\n"))
		}
	}
	comment(k.about)
	value, ok := set[k.name]
	if !ok {
		comment(cmp.Or(k.example, k.last()+": "+k.standard))
		return
	}
	line := fmt.Sprintf("%s: %s\n", k.last(), value)
	if quoted, err := yamldoc.Encode([]yamldoc.Pair{{Key: k.last(), Value: value}}); !k.list() && err == nil {
		line = string(quoted)
	}
	b.WriteString(indent + line)
}
