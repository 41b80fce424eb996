package tools

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/ollim/ollim/internal/state/inquiry"
	"github.com/ollim/ollim/internal/state/outbox"
)

//go:embed discord_embed.md
var discordEmbedText string

func discordEmbed() tool {
	const text = `{"type":"string","minLength":1}`
	return tool{
		name:        "discord_embed",
		description: discordEmbedText,
		schema: `{"type":"object","properties":{"title":` + text + `,"description":` + text + `,"url":` + text +
			`,"color":{"type":"string","pattern":"^#[0-9a-fA-F]{6}$"},"fields":{"type":"array","maxItems":25,"items":{"type":"object","properties":{"name":` +
			text + `,"value":` + text + `,"inline":{"type":"boolean"}},"required":["name","value"],"additionalProperties":false}},"footer":` + text +
			`,"buttons":{"type":"array","maxItems":5,"items":{"type":"object","properties":{"label":{"type":"string","minLength":1,"maxLength":80},` +
			`"action":{"type":"string","pattern":"^(task_done|task_del|agent):."},"style":{"enum":["primary","success","danger"]}},` +
			`"required":["label","action"],"additionalProperties":false}},"critical":{"type":"boolean"}},"required":["title"],"additionalProperties":false}`,
		may:  pings,
		call: takes(callEmbed),
	}
}

func callEmbed(ctx context.Context, b *Set, in struct {
	outbox.Embed
	Critical bool `json:"critical"`
}) (string, error) {
	embed, err := in.Clean()
	if err != nil {
		return "", fmt.Errorf("bad arguments: %w", err)
	}
	buttons, err := Buttons(ctx, b.Inquiries, &embed)
	if err != nil {
		return "", err
	}
	return b.reach(ctx, outbox.Message{Text: embed.Text(), Embed: &embed, Buttons: buttons, Critical: in.Critical})
}

// Buttons takes the buttons out of an embed, whose prompts it keeps.
func Buttons(ctx context.Context, inquiries inquiry.Book, e *outbox.Embed) (list []outbox.Button, err error) {
	for _, a := range e.Actions {
		verb, arg, _ := strings.Cut(a.Action, ":")
		if verb == outbox.ButtonAgent {
			if arg, err = inquiries.Keep(ctx, arg); err != nil {
				return nil, err
			}
		}
		list = append(list, outbox.Button{Label: a.Label, ID: outbox.ButtonID(verb, arg), Style: a.Style})
	}
	e.Actions = nil
	return list, nil
}
