package cli

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/app/doctor"
	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
)

const (
	byDiscord   = "discord"
	tokenSecret = "discord.TOKEN"
)

// deliveryOf returns the shell command that an answer means, or that messages go by Discord.
func deliveryOf(answer string) (command string, discord bool, err error) {
	kind, rest, _ := strings.Cut(answer, ":")
	switch kind {
	case "", noAnswer:
		return "", false, nil
	case byDiscord:
		return "", true, nil
	case "notify": // cron gives no address of the session bus
		return `DBUS_SESSION_BUS_ADDRESS="${DBUS_SESSION_BUS_ADDRESS:-unix:path=/run/user/$(id -u)/bus}" notify-send "$OLLIM_LABEL" "$(cat)"`, false, nil
	case "mail":
		command = `mail -s "$OLLIM_LABEL" ` + quoted(rest)
	case "ntfy":
		command = `curl -fsS -o /dev/null -H "Title: $OLLIM_LABEL" --data-binary @- ` + quoted("https://ntfy.sh/"+rest)
	case "file":
		command = `umask 077; { echo "$OLLIM_LABEL, $(date):"; cat; echo; } >>` + quoted(rest)
	default:
		return answer, false, nil
	}
	switch {
	case rest == "":
		return "", false, errors.New(kind + ": write the rest after a colon: file:/home/you/messages, mail:you@example.org or ntfy:TOPIC")
	case kind == "file" && !filepath.IsAbs(rest):
		return "", false, errors.New("file: write an absolute path")
	case kind == "mail" && strings.HasPrefix(rest, "-") || kind == "ntfy" && strings.ContainsAny(rest, "/?# "):
		return "", false, errors.New(kind + ": not a valid address or topic")
	}
	return command, false, nil
}

// quoted is a word of a shell command.
func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

func (s *setup) deliveryGiven() bool { return s.o.delivery != "" || s.o.testDelivery }

func (s *setup) deliveryMissing(context.Context) (bool, error) {
	return !s.h.Post().Configured() || !s.h.DeliverySeen(), nil
}

func (s *setup) askDelivery(ctx context.Context, a *interview) error {
	if post := s.h.Post(); post.Configured() {
		a.say("Messages are sent by %s. This was not tested since it was set.", s.deliveryName())
		var err error
		s.o.testDelivery, err = a.sure(ctx, "Send a test message", !a.yes)
		return err
	}
	a.say("How ollim sends you messages:\n" +
		"  file     appends them to a file\n" +
		"  mail     sends mail by the mail command\n" +
		"  notify   shows them on this desktop by notify-send\n" +
		"  ntfy     sends them to your phone by ntfy.sh\n" +
		"  discord  direct messages of a Discord bot; you can answer them\n" +
		"  COMMAND  any shell command; it gets the text on standard input\n" +
		"  none     they wait for your next ollim chat")
	topic := make([]byte, 6)
	if _, err := io.ReadFull(s.d.Random, topic); err != nil {
		return err
	}
	base, err := s.d.UserHome()
	if err != nil {
		return err
	}
	user, _ := s.d.Lookup("USER")
	check := func(answer string) error {
		_, _, err := deliveryOf(answer)
		return err
	}
	details := map[string]detail{
		"file": {"File", filepath.Join(base, "ollim-messages.txt")}, "mail": {"Address", cmp.Or(user, "root")},
		"ntfy": {"Topic; anyone who knows it can read your messages", "ollim-" + hex.EncodeToString(topic)},
	}
	s.o.delivery, err = a.value(ctx, "Send messages by", noAnswer, func(answer string) error {
		if _, asked := details[answer]; asked {
			return nil
		}
		return check(answer)
	})
	if err == nil {
		s.o.delivery, err = a.completed(ctx, s.o.delivery, details, check)
	}
	if token, _ := s.h.DiscordToken(); err == nil && s.o.delivery == byDiscord && token == "" {
		if token, err = a.hidden(ctx, "Token of the bot, not shown"); err == nil && token != "" {
			err = s.d.SetSecret(ctx, tokenSecret, token)
		}
	}
	s.o.testDelivery = s.o.delivery != noAnswer
	return err
}

// setDelivery sets and tests how messages are sent. A way on which nothing arrived is not kept, unless the owner says so.
func (s *setup) setDelivery(ctx context.Context) error {
	if s.o.delivery == noAnswer {
		return nil
	}
	return s.retry(ctx, "the test message", func() error { return s.tryDelivery(ctx) }, func(error) (bool, error) {
		again, err := s.asks.sure(ctx, "Try another way", true)
		if err != nil || !again {
			return false, err
		}
		if s.o.delivery == byDiscord {
			_, err = s.d.RemoveSecret(ctx, tokenSecret) // another one is asked for
		} else {
			err = s.h.Set(ctx, "delivery.command")
		}
		if err == nil {
			err = s.refresh()
		}
		if err == nil {
			err = s.askDelivery(ctx, s.asks)
		}
		return err == nil && s.o.delivery != noAnswer, err
	})
}

// tryDelivery sets how messages are sent, sends a test message if that is wanted, and asks whether it has arrived.
func (s *setup) tryDelivery(ctx context.Context) error {
	command, discord, err := deliveryOf(s.o.delivery)
	if err == nil && command != "" {
		words := []string{"sh", "-c", command}
		if _, err = s.h.ReadSetting("delivery.command", words, false); err == nil { // its program exists
			err = s.h.Set(ctx, "delivery.command", words...)
		}
	}
	if err == nil {
		err = s.refresh()
	}
	if token, tokenErr := s.h.DiscordToken(); err == nil && discord && token == "" {
		err = cmp.Or(tokenErr, hint(&withStatus{errors.New("no Discord token"), statusConfig}, "ollim secret set %s", tokenSecret))
	}
	if err != nil || !s.o.testDelivery {
		return err
	}
	if err := s.sendTest(ctx); err != nil {
		return err
	}
	if s.asks != nil && !s.asks.yes {
		s.asks.say("A test message was sent: %s.", s.deliveryName())
		if seen, err := s.asks.sure(ctx, "Did it arrive", true); err != nil || !seen {
			return cmp.Or(err, errNotSeen)
		}
	}
	return s.h.SeeDelivery()
}

// sendTest sends a test message, once: one that fails is not tried again later.
func (s *setup) sendTest(ctx context.Context) error {
	post := s.h.Post()
	if !post.Configured() {
		return usage("--test-delivery: no way to send messages is configured")
	}
	id, err := runlog.NewID(s.d.Now(), s.d.Random)
	if err != nil {
		return err
	}
	m := outbox.Message{ID: session.MessageID(id, 1), Label: "ollim", Kind: outbox.Ping, Created: s.d.Now(), Text: "This is a test message of ollim init."}
	if len(post.Command) > 0 {
		return post.Try(ctx, m)
	}
	for _, f := range (doctor.Doctor{App: s.d.App}).Discord(ctx, s.h) {
		if f.Result == doctor.Fail {
			return hint(&withStatus{errors.New(join(f.What, f.Text)), checkStatus(f.Err)}, "%s", f.Remedy)
		}
	}
	receipt, err := post.Send(ctx, m)
	if err = cmp.Or(err, receipt.Reason); err == nil && receipt.Fate != outbox.Sent {
		err = &withStatus{errors.New("not sent"), statusUnavailable}
	}
	return err
}

// deliveryName names the way that messages take.
func (s *setup) deliveryName() string {
	command := s.h.Config.Delivery.Command
	if len(command) == 0 && s.h.Post().Configured() {
		return "Discord"
	}
	text := strings.Join(command[min(len(command), 2):], " ")
	if !slices.Equal(command[:min(len(command), 2)], []string{"sh", "-c"}) {
		text = strings.Join(command, " ")
	}
	word := strings.Trim(text[strings.LastIndex(text, " ")+1:], ">'")
	for _, known := range []string{"file:" + word, "mail:" + word, "ntfy:" + strings.TrimPrefix(word, "https://ntfy.sh/"), "notify"} {
		if same, _, err := deliveryOf(known); err == nil && same == text && text != "" {
			return strings.Replace(known, ":", " ", 1)
		}
	}
	return text
}
