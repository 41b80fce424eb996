package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/server/discord/api"
)

// discordLimit bounds all requests to Discord.
const discordLimit = 30 * time.Second

// Discord makes the checks of the messenger, with those of the listener and of the outbox.
func (d Doctor) Discord(ctx context.Context, h app.Home) []Finding {
	e := &examination{Doctor: d, home: h}
	e.messenger(ctx)
	e.name = "outbox"
	if well := e.outbox(ctx); well != "" {
		e.pass("outbox", well)
	}
	return e.list
}

// discord makes the same checks where a token is configured, except for the outbox. Secrets that cannot be read are the business of
// the check "secrets".
func (e *examination) discord(ctx context.Context) string {
	if token, err := e.home.DiscordToken(); err != nil || token == "" {
		return ""
	}
	before := len(e.list)
	e.messenger(ctx)
	for i := range e.list[before:] {
		e.list[before+i].What = "discord " + e.list[before+i].What
	}
	return ""
}

func (e *examination) pass(what, text string) {
	e.add(Finding{Result: Pass, What: what, Text: text})
}

// messenger checks the token, the owner, the direct messages, the gateway, the clock and the listener.
func (e *examination) messenger(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, discordLimit)
	defer cancel()
	e.requests(ctx)
	e.name = "listener"
	if lock.Free(e.home.Dir.Lock("discord")) {
		e.warn(e.start("discord listen", "ollim-discord", ".service"), "not running: messages to the bot are not answered")
	} else {
		e.pass("listener", "running")
	}
}

func (e *examination) requests(ctx context.Context) {
	e.name = "token"
	client, err := e.home.Discord()
	if err != nil {
		e.fault(err, "")
		return
	}
	application, err := client.Application(ctx)
	switch {
	case errors.Is(err, api.ErrToken):
		e.fault(err, "copy it from the application's page Bot at https://discord.com/developers/applications")
		return
	case err != nil:
		e.name = "API"
		e.fault(err, "check the network; then: ollim discord check")
		return
	}
	e.pass("API", "reached")
	e.pass("token", "accepted, application "+application.Name+" ("+application.ID+")")
	e.name = "owner"
	if owner := e.owner(application); owner != "" {
		e.messages(ctx, client, owner)
	}
	e.gateway(ctx, client)
	e.skew(client)
}

// owner finds the user to whom messages go, "" if there is none.
func (e *examination) owner(a api.Application) string {
	owner := e.home.Config.Discord.Owner
	switch {
	case owner != "" && slices.Contains(a.Owners, owner):
		e.pass("owner", owner+", of discord.owner")
	case owner != "":
		e.warn("check that this is your user id", "%s, of discord.owner, who does not own the application", owner)
	case len(a.Owners) > 0:
		owner = a.Owners[0]
		e.pass("owner", owner+", who owns the application")
	default:
		e.fault(errors.New("the application has no owner"), "set discord.owner")
	}
	return owner
}

// messages tries to reach the owner's direct messages, without sending one.
func (e *examination) messages(ctx context.Context, client *api.Client, owner string) {
	e.name = "messages"
	channel, err := client.OpenDM(ctx, owner)
	if err == nil {
		err = client.Typing(ctx, channel)
	}
	if err != nil {
		e.fault(err, "")
		return
	}
	e.pass("messages", "direct messages are open")
}

// fewSessions is the number of sessions left below which a listener may soon be kept out.
const fewSessions = 100

func (e *examination) gateway(ctx context.Context, client *api.Client) {
	e.name = "gateway"
	g, err := client.Gateway(ctx)
	switch limit := g.SessionStartLimit; {
	case err != nil:
		e.fault(err, "")
	case limit.Remaining < fewSessions:
		until := e.home.Disk.Now().Add(time.Duration(limit.ResetAfter) * time.Millisecond).In(e.home.Config.Zone)
		e.warn("find out why the listener starts so often", "%d of %d sessions left until %s", limit.Remaining, limit.Total, until.Format("Mon 2006-01-02 15:04 MST"))
	default:
		e.pass("gateway", fmt.Sprintf("%d of %d sessions left today", limit.Remaining, limit.Total))
	}
}

// largestSkew is how wrong the clock may be. Beyond it schedules fire at other times than people expect.
const largestSkew = 10 * time.Second

func (e *examination) skew(client *api.Client) {
	e.name = "clock"
	skew, known := client.Skew()
	switch {
	case !known:
		e.warn("", "Discord's answers have no date to compare with")
	case skew.Abs() > largestSkew:
		word := "ahead of"
		if skew < 0 {
			word = "behind"
		}
		e.warn("set it, such as by timedatectl set-ntp true", "%s %s Discord's", skew.Abs().Round(time.Second), word)
	default:
		e.pass("clock", "agrees with Discord's")
	}
}
