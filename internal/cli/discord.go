package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/server/discord/api"
)

func newDiscord(d *Deps) *cobra.Command {
	return group("discord", "discords", "Connect the agent to Discord", newDiscordListen(d), newDiscordCheck(d), newDiscordSync(d))
}

func newDiscordCheck(d *Deps) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Annotations: agentNever(refused),
		Use:         "check",
		Short:       "Check the connection with Discord, and say what to fix",
		Long: "Check asks Discord about the token, the owner, the direct messages and the gateway, and looks at the listener, the clock " +
			"and the outbox. It prints one line per check: PASS, WARN or FAIL, what was checked, what was found, and what to do. It sends " +
			"no message. It exits 78 if the token is missing or not accepted, 69 if Discord cannot be reached or direct messages " +
			"are closed, and 1 for any other FAIL.",
		Args: checked(cobra.NoArgs),
		RunE: inHome(d, func(ctx context.Context, h app.Home, _ []string) error { return runDiscordCheck(ctx, d, h, asJSON) }),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per line")
	return cmd
}

// checkLimit bounds all requests of a check.
const checkLimit = 30 * time.Second

func runDiscordCheck(ctx context.Context, d *Deps, h app.Home, asJSON bool) error {
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	e := &examination{h: h}
	e.run(ctx)
	if err := records(d, asJSON, "RESULT CHECK FINDING", e.list, func(v verdict) []any { return []any{state(v.Result), v.What, v.Text} }); err != nil {
		return err
	}
	return e.err()
}

// Results of a check.
const (
	pass = "PASS"
	warn = "WARN"
	fail = "FAIL"
)

// verdict is the result of one check.
type verdict struct {
	Result string `json:"result"`
	What   string `json:"what"`
	Text   string `json:"text"`
}

// examination is a run of the checks.
type examination struct {
	h        app.Home
	list     []verdict
	statuses []status // of those that failed
}

func (e *examination) add(result, what, format string, args ...any) {
	e.list = append(e.list, verdict{result, what, fmt.Sprintf(format, args...)})
}

func (e *examination) fail(what string, err error, remedy string) {
	s := statusOf(err)
	if errors.Is(err, api.ErrUnreachable) || api.Temporary(err) {
		s = statusUnavailable
	}
	text := err.Error()
	if hinted := (*app.Hinted)(nil); remedy == "" && errors.As(err, &hinted) {
		remedy = hinted.Hint
	}
	if remedy != "" {
		text += ": " + remedy
	}
	e.add(fail, what, "%s", text)
	e.statuses = append(e.statuses, s)
}

// err returns the first failure's status.
func (e *examination) err() error {
	if len(e.statuses) == 0 {
		return nil
	}
	return &reported{e.statuses[0]}
}

func (e *examination) run(ctx context.Context) {
	defer func() {
		e.listener()
		e.outbox()
	}()
	client, err := e.h.Discord()
	if err != nil {
		e.fail("token", err, "")
		return
	}
	application, err := client.Application(ctx)
	switch {
	case errors.Is(err, api.ErrToken):
		e.fail("token", err, "copy it from the application's page Bot at https://discord.com/developers/applications")
		return
	case err != nil:
		e.fail("API", err, "")
		return
	}
	e.add(pass, "API", "reached")
	e.add(pass, "token", "accepted, application %s (%s)", application.Name, application.ID)
	if owner := e.owner(application); owner != "" {
		e.messages(ctx, client, owner)
	}
	e.gateway(ctx, client)
	e.clock(client)
}

// owner finds the user to whom messages go, "" if there is none.
func (e *examination) owner(a api.Application) string {
	owner := e.h.Config.Discord.Owner
	switch {
	case owner != "" && slices.Contains(a.Owners, owner):
		e.add(pass, "owner", "%s, of discord.owner", owner)
	case owner != "":
		e.add(warn, "owner", "%s, of discord.owner, who does not own the application: check that this is your user id", owner)
	case len(a.Owners) > 0:
		owner = a.Owners[0]
		e.add(pass, "owner", "%s, who owns the application", owner)
	default:
		e.fail("owner", errors.New("the application has no owner"), "set discord.owner")
	}
	return owner
}

// messages tries to reach the owner's direct messages, without sending one.
func (e *examination) messages(ctx context.Context, client *api.Client, owner string) {
	channel, err := client.OpenDM(ctx, owner)
	if err == nil {
		err = client.Typing(ctx, channel)
	}
	if err != nil {
		e.fail("messages", err, "")
		return
	}
	e.add(pass, "messages", "direct messages are open")
}

// fewSessions is the number of sessions left below which a listener may soon be kept out.
const fewSessions = 100

func (e *examination) gateway(ctx context.Context, client *api.Client) {
	g, err := client.Gateway(ctx)
	switch limit := g.SessionStartLimit; {
	case err != nil:
		e.fail("gateway", err, "")
	case limit.Remaining < fewSessions:
		e.add(warn, "gateway", "%d of %d sessions left until %s: find out why the listener starts so often", limit.Remaining, limit.Total,
			clock(e.h.Disk.Now().Add(time.Duration(limit.ResetAfter)*time.Millisecond).In(e.h.Config.Zone)))
	default:
		e.add(pass, "gateway", "%d of %d sessions left today", limit.Remaining, limit.Total)
	}
}

// largestSkew is how wrong the clock may be. Beyond it schedules fire at other times than people expect.
const largestSkew = 10 * time.Second

func (e *examination) clock(client *api.Client) {
	skew, known := client.Skew()
	switch {
	case !known:
		e.add(warn, "clock", "Discord's answers have no date to compare with")
	case skew.Abs() > largestSkew:
		word := "ahead of"
		if skew < 0 {
			word = "behind"
		}
		e.add(warn, "clock", "%s %s Discord's: set it, such as by timedatectl set-ntp true", skew.Abs().Round(time.Second), word)
	default:
		e.add(pass, "clock", "agrees with Discord's")
	}
}

// listener tells whether messages to the bot are answered.
func (e *examination) listener() {
	if lock.Free(e.h.Dir.Lock("discord")) {
		e.add(warn, "listener", "not running: start ollim discord listen, or its service, to have messages to the bot answered")
		return
	}
	e.add(pass, "listener", "running")
}

// outbox counts what waits for delivery.
func (e *examination) outbox() {
	waiting, err := e.h.Post().Pending()
	if err != nil {
		e.fail("outbox", err, "")
		return
	}
	stuck := 0
	for _, m := range waiting {
		if m.Stuck {
			stuck++
		}
	}
	switch n := len(waiting); n {
	case 0:
		e.add(pass, "outbox", "empty")
	default:
		text := fmt.Sprintf("%d waiting", n)
		if stuck > 0 {
			text += fmt.Sprintf(", %d of them given up after a week: delete them from state/outbox", stuck)
		}
		if last := strings.TrimSpace(waiting[0].LastError); last != "" {
			text += ": " + last
		}
		e.add(warn, "outbox", "%s", text)
	}
}
