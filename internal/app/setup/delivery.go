package setup

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/app/doctor"
	"github.com/ollim/ollim/internal/platform/shell"
	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
)

// Messages that go by Discord.
const (
	Discord      = "discord"       // the answer that sends messages by a bot
	DiscordToken = "discord.TOKEN" // the secret of that bot
)

// Delivery returns the shell command that an answer means; "" if messages go by Discord, or not at all.
func Delivery(answer string) (command string, err error) {
	kind, rest, _ := strings.Cut(answer, ":")
	switch kind {
	case "", None, Discord:
		return "", nil
	case "notify": // cron gives no address of the session bus
		return `DBUS_SESSION_BUS_ADDRESS="${DBUS_SESSION_BUS_ADDRESS:-unix:path=/run/user/$(id -u)/bus}" notify-send "$OLLIM_LABEL" "$(cat)"`, nil
	case "mail":
		command = `mail -s "$OLLIM_LABEL" ` + shell.Quote(rest)
	case "ntfy":
		command = `curl -fsS -o /dev/null -H "Title: $OLLIM_LABEL" --data-binary @- ` + shell.Quote("https://ntfy.sh/"+rest)
	case "file":
		command = `umask 077; { echo "$OLLIM_LABEL, $(date):"; cat; echo; } >>` + shell.Quote(rest)
	default:
		return answer, nil
	}
	switch {
	case rest == "":
		return "", errors.New(kind + ": write the rest after a colon: file:/home/you/messages, mail:you@example.org or ntfy:TOPIC")
	case kind == "file" && !filepath.IsAbs(rest):
		return "", errors.New("file: write an absolute path")
	case kind == "mail" && strings.HasPrefix(rest, "-") || kind == "ntfy" && strings.ContainsAny(rest, "/?# "):
		return "", errors.New(kind + ": not a valid address or topic")
	}
	return command, nil
}

const deliveryCommand = "delivery.command"

// SetDelivery sets how messages are sent. The program of the command must exist, or the bot have a token.
func (s *Setup) SetDelivery(ctx context.Context, answer string) error {
	command, err := Delivery(answer)
	if err == nil && command != "" {
		words := []string{"sh", "-c", command}
		if _, err = s.Home.ReadSetting(deliveryCommand, words, false); err == nil {
			err = s.Home.Set(ctx, deliveryCommand, words...)
		}
	}
	if err == nil {
		err = s.Refresh()
	}
	if err == nil && answer == Discord {
		_, err = s.Home.Discord()
	}
	return err
}

// ForgetDelivery undoes SetDelivery.
func (s *Setup) ForgetDelivery(ctx context.Context, answer string) (err error) {
	if answer == Discord {
		_, err = s.App.RemoveSecret(ctx, DiscordToken)
	} else {
		err = s.Home.Set(ctx, deliveryCommand)
	}
	return errors.Join(err, s.Refresh())
}

// SendTest sends a test message. A message that fails is not tried again later.
func (s *Setup) SendTest(ctx context.Context) error {
	post := s.Home.Post()
	if !post.Configured() {
		return &app.BadArgument{Reason: "--test-delivery: no way to send messages is configured"}
	}
	id, err := runlog.NewID(s.App.Now(), s.App.Random)
	if err != nil {
		return err
	}
	m := outbox.Message{ID: session.MessageID(id, 1), Label: "ollim", Kind: outbox.Ping, Created: s.App.Now(), Text: "This is a test message of ollim init."}
	if len(post.Order) == 0 {
		if len(post.Command) > 0 {
			return post.Try(ctx, m)
		}
		for _, f := range s.Doctor.Discord(ctx, s.Home) {
			if f.Result == doctor.Fail {
				return app.Hint(fault(f), "%s", f.Remedy)
			}
		}
	}
	receipt, err := post.Send(ctx, m)
	if err = cmp.Or(err, receipt.Reason); err == nil && receipt.Fate != outbox.Sent {
		err = ErrNotSent
	}
	return err
}

// ErrNotSent is the error of a test message that was not sent in any way.
var ErrNotSent = errors.New("not sent")

// fault is a finding as an error.
type fault doctor.Finding

func (f fault) Error() string { return f.What + ": " + f.Text }

func (f fault) Unwrap() error { return f.Err }

// DeliveryName returns the name of the delivery; "" if there is none.
func (s *Setup) DeliveryName() string {
	if order := s.Home.DeliveryOrder(); order != "" {
		return order
	}
	text := s.Home.DeliveryLine()
	if text == "" && s.Home.Post().Configured() {
		return "Discord"
	}
	word := strings.Trim(text[strings.LastIndex(text, " ")+1:], ">'")
	for _, known := range []string{"file:" + word, "mail:" + word, "ntfy:" + strings.TrimPrefix(word, "https://ntfy.sh/"), "notify"} {
		if same, err := Delivery(known); err == nil && same == text && text != "" {
			return strings.Replace(known, ":", " ", 1)
		}
	}
	return text
}
