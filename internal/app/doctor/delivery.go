package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/agent/notify"
	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/server/discord/api"
	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/notice"
	"github.com/ollim/ollim/internal/state/outbox"
)

// delivery checks whether messages can reach the owner, without sending one.
func (e *examination) delivery(context.Context) string {
	post := e.home.Post()
	if !post.Configured() {
		e.fail("ollim config set delivery.command COMMAND; or: ollim secret set discord.TOKEN",
			"no delivery is configured: pings wait for your next conversation")
		return ""
	}
	e.undelivered(post)
	e.ways(post)
	if len(post.Command) > 0 {
		if err := process.Find(post.Command[0], string(e.home.Dir), post.Env); err != nil {
			e.fault(fmt.Errorf("delivery.command: %w", err), "ollim config set delivery.command COMMAND")
		}
	}
	switch {
	case len(post.Order) > 0:
		return "by " + e.home.DeliveryOrder()
	case len(post.Command) == 0:
		return "by Discord"
	}
	return "by " + plaintext.Short(e.home.DeliveryLine(), shownLine)
}

// ways looks for the ways of delivery.to and delivery.critical that do not exist.
func (e *examination) ways(post outbox.Post) {
	for _, name := range app.DoorsOf(post) {
		if err := e.home.DoorFault(name); err != nil {
			e.fault(fmt.Errorf("door %s: %w", name, err), "")
		}
	}
	named := slices.Concat(post.Order, post.Urgent)
	if slices.Contains(named, config.ByCommand) && len(post.Command) == 0 {
		e.fail("ollim config set delivery.command COMMAND", "delivery.to names command, and there is no delivery.command")
	}
	if slices.Contains(named, config.ByDiscord) && len(post.Carriers) == 0 {
		e.fail("ollim secret set discord.TOKEN", "delivery.to names discord, and there is no token")
	}
}

// shownLine is how much of the delivery command is shown.
const shownLine = 60

// undelivered reports that messages did not reach the owner when they were last tried.
func (e *examination) undelivered(post outbox.Post) {
	waiting, err := post.Pending()
	e.fault(err, "")
	failing := 0
	var first outbox.Message
	var why string
	for _, m := range waiting {
		if m.Attempts == 0 {
			continue
		}
		if failing++; failing == 1 {
			first, why = m.Message, m.LastError
		}
	}
	if failing > 0 {
		e.fail("ollim doctor --send sends a test message and shows the error; ollim tick tries again", "%s could not be delivered since %s: %s",
			plaintext.Count(failing, "message"), e.clockText(first.Created), why)
	}
}

// soonSent is how long a message may wait for the tick that first tries it.
const soonSent = 5 * time.Minute

// outbox counts what waits for delivery. The check "delivery" reports failed attempts.
func (e *examination) outbox(context.Context) string {
	waiting, err := e.home.Post().Pending()
	if err != nil {
		e.fault(err, "")
		return ""
	}
	late, stuck, now := waiting[:0], 0, e.App.Now()
	for _, m := range waiting {
		if m.NotBefore.After(now) || m.Attempts == 0 && now.Sub(m.Created) < soonSent {
			continue // quiet hours hold it, or the next tick sends it
		}
		if late = append(late, m); m.Stuck {
			stuck++
		}
	}
	if len(late) == 0 {
		switch held, err := e.home.Held(); {
		case err == nil && held.Count > 0:
			return held.String()
		case held.Others > 0:
			return fmt.Sprintf("%d waiting for the next tick", held.Others)
		}
		return "empty"
	}
	text := fmt.Sprintf("%d waiting", len(late))
	if stuck > 0 {
		text += fmt.Sprintf(", %d of them given up after a week: delete them from state/outbox", stuck)
	}
	if last := strings.TrimSpace(late[0].LastError); last != "" {
		text += ": " + last
	}
	e.warn("ollim tick tries again; ollim doctor --send shows why it fails", "%s", text)
	return ""
}

// heartbeats looks for monitors that did not answer the last call.
func (e *examination) heartbeats(context.Context) string {
	calls := map[string]string{} // the name in a remedy by caller
	if e.home.Config.Heartbeat != "" {
		calls["tick"] = "config.yaml"
	}
	for _, j := range e.enabled() {
		if j.Heartbeat != "" {
			calls[j.ID] = j.Name()
		}
	}
	open := e.open()
	for _, caller := range slices.Sorted(maps.Keys(calls)) {
		if c, lasts := open[notice.Key(string(notify.Monitor), caller)]; lasts {
			e.warn("check the network and heartbeat in "+calls[caller], "the monitor of %s has not answered since %s", caller, e.clockText(c.Since))
		}
	}
	if len(calls) == 0 {
		return ""
	}
	return plaintext.Count(len(calls), "monitor")
}

const (
	dialLimit = 2 * time.Second
	longWait  = time.Hour // of an event in the inbox: the rate limit, the runs at once or a spending limit hold it back
)

// webhooks looks at the secrets of webhooks, at their server, and at events that wait.
func (e *examination) webhooks(ctx context.Context) string {
	called := 0
	for _, j := range e.enabled() {
		if j.Kind != job.Webhook {
			continue
		}
		called++
		if _, err := e.home.HookKeys(*j.Hook); err != nil {
			e.fault(fmt.Errorf("no call of %s is accepted: %w", j.Name(), err), "ollim secret set webhook."+j.Hook.SecretName())
		}
	}
	if called > 0 && !e.served(ctx) {
		e.warn(e.start("webhook serve", "ollim-webhook", ".socket", ".service"), "no server accepts calls at %s", e.home.Config.Webhook.Listen)
	}
	e.waiting()
	if called == 0 {
		return ""
	}
	return plaintext.Count(called, "webhook")
}

// served reports whether the server runs, or a socket of systemd would start it.
func (e *examination) served(ctx context.Context) bool {
	if !lock.Free(e.home.Dir.Lock("inbox")) {
		return true
	}
	c, err := (&net.Dialer{Timeout: dialLimit}).DialContext(ctx, "tcp", e.home.Config.Webhook.Listen)
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}

// waiting looks at the events that wait for their runs.
func (e *examination) waiting() {
	list, err := e.home.Events()
	e.fault(err, "")
	for _, w := range list {
		events := plaintext.Count(w.Count, "event")
		switch {
		case w.Gone:
			e.warn("restore or correct its file; else they are removed after keep.runs", "%s wait for the webhook %s, which does not exist", events, w.Hook)
		case e.App.Now().Sub(w.Since) > longWait:
			e.warn("ollim tick; see rate-limit of the webhook, webhook.jobs and the spending limits", "%s of the webhook %s wait since %s", events, w.Hook, e.clockText(w.Since))
		}
	}
}

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

// discord makes the same checks where a token is configured, except for the outbox. The check "secrets" reports secrets that cannot be
// read.
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

// fewSessions is the number of remaining gateway sessions below which a listener may soon be refused.
const fewSessions = 100

func (e *examination) gateway(ctx context.Context, client *api.Client) {
	e.name = "gateway"
	g, err := client.Gateway(ctx)
	switch limit := g.Starts; {
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
