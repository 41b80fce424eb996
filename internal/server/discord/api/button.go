package api

import (
	"github.com/bwmarrin/discordgo"

	"github.com/ollim/ollim/internal/state/outbox"
)

// inRow is how many buttons a row has.
const inRow = 5

// Buttons returns rows of buttons, 25 at most. Without buttons it is an empty list, which removes those of an existing message.
func Buttons(list ...outbox.Button) []discordgo.MessageComponent {
	rows := []discordgo.MessageComponent{}
	for list = list[:min(len(list), 25)]; len(list) > 0; {
		row := discordgo.ActionsRow{}
		for _, b := range list[:min(len(list), inRow)] {
			row.Components = append(row.Components, discordgo.Button{Label: b.Label, CustomID: b.ID, Style: style(b.Style)})
		}
		rows, list = append(rows, row), list[len(row.Components):]
	}
	return rows
}

func style(name string) discordgo.ButtonStyle {
	switch name {
	case "primary":
		return discordgo.PrimaryButton
	case "success":
		return discordgo.SuccessButton
	case "danger":
		return discordgo.DangerButton
	}
	return discordgo.SecondaryButton
}
