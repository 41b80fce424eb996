package discord

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/bwmarrin/discordgo"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/server/discord/api"
)

// registered is the content of state/discord_commands.json: which commands an application has.
type registered struct {
	Application string `json:"application"`
	Digest      string `json:"digest"`
}

// definitions are the commands in Discord's form. They can be used in the DM with the bot.
func definitions() (list []*discordgo.ApplicationCommand) {
	contexts := []discordgo.InteractionContextType{discordgo.InteractionContextBotDM}
	types := []discordgo.ApplicationIntegrationType{discordgo.ApplicationIntegrationGuildInstall, discordgo.ApplicationIntegrationUserInstall}
	for _, c := range commands() {
		list = append(list, &discordgo.ApplicationCommand{
			Type: discordgo.ChatApplicationCommand, Name: c.name, Description: c.about, Options: c.options, Contexts: &contexts, IntegrationTypes: &types,
		})
	}
	return list
}

// SyncCommands registers the commands with an application, if they are not those that were registered last, or again is set. It
// returns how many there are, 0 if nothing was to do.
func SyncCommands(ctx context.Context, client *api.Client, home paths.Dir, disk store.Disk, app string, again bool) (n int, err error) {
	list := definitions()
	data, err := json.Marshal(list)
	if err != nil {
		return 0, err
	}
	sum := sha256.Sum256(data)
	now := registered{app, hex.EncodeToString(sum[:])}
	path := home.State("discord_commands.json")
	held, err := disk.Lock(ctx, home.Lock("discord-commands"))
	if err != nil {
		return 0, err
	}
	before, err := store.ReadJSON[registered](disk, path)
	held.Release() // not kept during a request
	if err != nil || before == now && !again {
		return 0, err
	}
	if err := client.SetCommands(ctx, app, list); err != nil {
		return 0, err
	}
	if held, err = disk.Lock(ctx, home.Lock("discord-commands")); err != nil {
		return 0, err
	}
	defer held.Release()
	return len(list), store.WriteJSON(path, now, store.Synced)
}
