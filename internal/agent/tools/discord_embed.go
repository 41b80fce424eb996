package tools

import (
	"context"
	_ "embed"
	"fmt"

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
			`,"critical":{"type":"boolean"}},"required":["title"],"additionalProperties":false}`,
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
	return b.reach(ctx, outbox.Message{Text: embed.Text(), Embed: &embed, Critical: in.Critical})
}
