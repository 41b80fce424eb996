// Package api is Discord's REST API as ollim uses it: one bot, its owner, and the channels that the owner allows. Carrier sends the
// messages of the outbox by it.
//
// The types are discordgo's; the requests are made here, because discordgo's own wait for a rate limit while they hold a lock,
// ignore the context meanwhile, and repeat what may have been carried out already. A request waits for the rate limit of its
// route, which the answers announce, without keeping others waiting. It is repeated after 429, and after an answer of 5xx or a cut
// connection if a repetition is harmless: a message that is created has a nonce, with which Discord returns the first message
// instead of creating a second one for some minutes. All waits end with the context.
//
// Errors wrap ErrToken, ErrClosed or ErrRefused, which stay as they are until somebody changes something; any other one is
// temporary. No error contains the token, or that of an interaction. A message never notifies anybody whom its text mentions.
package api

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/bwmarrin/discordgo"
)

// discordURL is the address that Options.Base replaces.
const discordURL = "https://discord.com"

// timeout bounds one request with its answer.
const timeout = 20 * time.Second

// Options are the parameters of a Client.
type Options struct {
	Base  string // scheme, host and a path before the API's, without a slash at its end; "" is Discord's
	Token string
	Now   func() time.Time
	Sleep func(context.Context, time.Duration) error // returns early, with an error, when the context ends
	HTTP  http.RoundTripper                          // nil is the default
}

// Client makes requests as one bot. It may be used by several goroutines at once.
type Client struct {
	o      Options
	http   *http.Client
	limits limits

	mu    sync.Mutex
	skew  time.Duration // of our clock against Discord's
	dated bool          // skew is known
}

// New returns a client. It makes no request.
func New(o Options) *Client {
	o.Base = strings.TrimRight(cmp.Or(o.Base, discordURL), "/")
	if o.HTTP == nil {
		o.HTTP = http.DefaultTransport
	}
	return &Client{
		o: o, http: &http.Client{Transport: o.HTTP, Timeout: timeout, CheckRedirect: noRedirect},
		limits: limits{routes: map[string]*route{}},
	}
}

// Of an answer only those keys are read that are used, so that no other one can make it unreadable. (discordgo's types have all.)

// OpenDM opens the channel of the direct messages with a user.
func (c *Client) OpenDM(ctx context.Context, user string) (channel string, err error) {
	var opened named
	err = c.do(ctx, request{
		method: http.MethodPost, route: "/users/@me/channels", path: "/users/@me/channels", safe: true,
		body: map[string]string{"recipient_id": user},
	}, &opened)
	return opened.ID, err
}

type named struct {
	ID string `json:"id"`
}

// Channel is where a channel is.
type Channel struct {
	Guild  string                `json:"guild_id"`  // "": direct messages
	Parent string                `json:"parent_id"` // of a thread its channel, of another one its category
	Type   discordgo.ChannelType `json:"type"`
}

// Channel returns a channel, such as the thread that a message arrived in.
func (c *Client) Channel(ctx context.Context, id string) (Channel, error) {
	return get[Channel](ctx, c, "/channels/"+id)
}

// Thread reports whether the channel is a thread.
func (c Channel) Thread() bool { return (&discordgo.Channel{Type: c.Type}).IsThread() }

// Me returns the id of the bot's user.
func (c *Client) Me(ctx context.Context) (id string, err error) {
	me, err := get[named](ctx, c, "/users/@me")
	return me.ID, err
}

func get[T any](ctx context.Context, c *Client, path string) (found T, err error) {
	err = c.do(ctx, request{method: http.MethodGet, route: path, path: path, safe: true}, &found)
	return found, err
}

// Application is the bot's application.
type Application struct {
	ID     string
	Name   string
	Owners []string // user ids of the owner, or of the members of the team that owns it, its owner first
}

// Application asks whose application the bot is.
func (c *Client) Application(ctx context.Context) (Application, error) {
	app, err := get[struct {
		named

		Name  string `json:"name"`
		Owner *named `json:"owner"`
		Team  *struct {
			Owner   string `json:"owner_user_id"`
			Members []struct {
				User  *named                    `json:"user"`
				State discordgo.MembershipState `json:"membership_state"`
			} `json:"members"`
		} `json:"team"`
	}](ctx, c, "/oauth2/applications/@me")
	if err != nil {
		return Application{}, err
	}
	a := Application{ID: app.ID, Name: app.Name}
	if app.Team == nil {
		if app.Owner != nil {
			a.Owners = []string{app.Owner.ID}
		}
		return a, nil
	}
	a.Owners = []string{app.Team.Owner}
	for _, m := range app.Team.Members {
		if m.User != nil && m.User.ID != app.Team.Owner && m.State == discordgo.MembershipStateAccepted {
			a.Owners = append(a.Owners, m.User.ID)
		}
	}
	return a, nil
}

// Skew returns how far our clock is ahead of Discord's, by the latest answer; known is false before the first.
func (c *Client) Skew() (skew time.Duration, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.skew, c.dated
}

// compare compares our clock with the date of an answer.
func (c *Client) compare(date string) {
	theirs, err := http.ParseTime(date)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.skew, c.dated = c.o.Now().Sub(theirs), true
}

// Gateway is the address of the gateway, and how often a session may begin.
type Gateway struct {
	URL    string `json:"url"`
	Starts struct {
		Total      int `json:"total"`
		Remaining  int `json:"remaining"`
		ResetAfter int `json:"reset_after"` // milliseconds
	} `json:"session_start_limit"`
}

// Gateway asks for the gateway.
func (c *Client) Gateway(ctx context.Context) (Gateway, error) {
	return get[Gateway](ctx, c, "/gateway/bot")
}

// SetCommands replaces the commands of an application.
func (c *Client) SetCommands(ctx context.Context, app string, list []*discordgo.ApplicationCommand) error {
	at := "/applications/" + app + "/commands"
	for _, command := range list {
		command.Options = withoutNull(command.Options)
	}
	if list == nil {
		list = []*discordgo.ApplicationCommand{}
	}
	return c.do(ctx, request{method: http.MethodPut, route: at, path: at, body: list, safe: true}, nil)
}

// withoutNull returns the options with empty lists in place of nil ones, which would become null.
func withoutNull(options []*discordgo.ApplicationCommandOption) []*discordgo.ApplicationCommandOption {
	if options == nil {
		return []*discordgo.ApplicationCommandOption{}
	}
	for _, o := range options {
		o.Options = withoutNull(o.Options)
		if o.Choices == nil {
			o.Choices = []*discordgo.ApplicationCommandOptionChoice{}
		}
		if o.ChannelTypes == nil {
			o.ChannelTypes = []discordgo.ChannelType{}
		}
	}
	return options
}
