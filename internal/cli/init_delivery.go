package cli

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/ollim/ollim/internal/app/setup"
)

func (w *initWalk) askDelivery(ctx context.Context, a *interview) (err error) {
	if w.Home.Post().Configured() {
		a.say("Messages are sent by %s. This was not tested since it was set.", w.DeliveryName())
		w.o.testDelivery, err = a.sure(ctx, "Send a test message", !a.yes)
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
	if _, err := io.ReadFull(w.d.Random, topic); err != nil {
		return err
	}
	base, err := w.d.UserHome()
	if err != nil {
		return err
	}
	user, _ := w.d.Lookup("USER")
	details := map[string]detail{
		"file": {"File", filepath.Join(base, "ollim-messages.txt")}, "mail": {"Address", cmp.Or(user, "root")},
		"ntfy": {"Topic; anyone who knows it can read your messages", "ollim-" + hex.EncodeToString(topic)},
	}
	w.o.delivery, err = a.completed(ctx, "Send messages by", setup.None, details, func(answer string) error { _, err := setup.Delivery(answer); return err })
	if token, _ := w.Home.DiscordToken(); err == nil && w.o.delivery == setup.Discord && token == "" {
		if token, err = a.hidden(ctx, "Token of the bot, not shown"); err == nil && token != "" {
			err = w.d.SetSecret(ctx, setup.DiscordToken, token)
		}
	}
	w.o.testDelivery = w.o.delivery != setup.None
	return err
}

// setDelivery sets and tests how messages are sent. A delivery by which nothing arrived is not kept, unless the owner wants it.
func (w *initWalk) setDelivery(ctx context.Context) error {
	if w.o.delivery == setup.None {
		return nil
	}
	return w.retry(ctx, "the test message", func() error { return w.tryDelivery(ctx) }, func() (bool, error) {
		again, err := w.asks.sure(ctx, "Try another way", true)
		if err != nil || !again {
			return false, err
		}
		if err := w.ForgetDelivery(ctx, w.o.delivery); err != nil {
			return false, err
		}
		err = w.askDelivery(ctx, w.asks)
		return err == nil && w.o.delivery != setup.None, err
	})
}

// tryDelivery sets how messages are sent, sends a test message if that is wanted, and asks whether it has arrived.
func (w *initWalk) tryDelivery(ctx context.Context) error {
	err := w.SetDelivery(ctx, w.o.delivery)
	if err == nil && w.o.testDelivery {
		if err = w.SendTest(ctx); err != nil {
			err = &withStatus{err, checkStatus(err)}
		}
	}
	if err != nil || !w.o.testDelivery {
		return err
	}
	if w.asks != nil && !w.asks.yes {
		w.asks.say("A test message was sent: %s.", w.DeliveryName())
		if seen, err := w.asks.sure(ctx, "Did it arrive", true); err != nil || !seen {
			return cmp.Or(err, errNotSeen)
		}
	}
	return w.Home.SeeDelivery()
}

func (w *initWalk) askRoutine(ctx context.Context, a *interview) error {
	a.say("A first routine, which you can change later:")
	for _, known := range setup.Samples() {
		a.say("  %-11s%s", known.Name, known.About)
	}
	a.say("  none       you write one yourself")
	details := map[string]detail{"releases": {"Address of its repository", "https://github.com/golang/go"}, "repository": {"Path of the repository", ""}}
	standard := "disk"
	if a.yes {
		standard = setup.None
	}
	answer, err := a.completed(ctx, "Routine", standard, details, func(answer string) error { _, err := w.Sample(answer); return err })
	if w.o.routine = answer; err == nil && !a.yes && answer != setup.None {
		name, _, _ := strings.Cut(answer, ":")
		err = w.leave(func(open *setup.Open) { open.Fire = name })
	}
	return err
}

// addRoutine writes the files of a sample and approves them: the owner has asked for it. An existing routine stays as it is.
func (w *initWalk) addRoutine(ctx context.Context) error {
	sample, err := w.Sample(w.o.routine)
	if err != nil || sample == nil {
		return err
	}
	j, err := w.AddRoutine(sample)
	if errors.Is(err, fs.ErrExist) {
		w.d.note("%s already exists and was not changed", j.Path)
		return nil
	}
	if err != nil {
		return err
	}
	w.d.note("created %s", j.Path)
	return w.d.approveOwn(ctx, w.Home, j)
}

func (w *initWalk) askFire(ctx context.Context, a *interview) (err error) {
	w.o.fire, err = a.sure(ctx, "Fire "+w.Open().Fire+" now, to see it work", !a.yes)
	return err
}

func (w *initWalk) fireRoutine(ctx context.Context) error {
	name, _, _ := strings.Cut(w.o.routine, ":")
	if name = cmp.Or(strings.TrimPrefix(name, setup.None), w.Open().Fire); w.o.fire && name != "" {
		err := runFire(ctx, w.d, fireOptions{jobs: []string{name}, print: true, wait: "0"})
		if ctx.Err() != nil {
			return err
		}
		_ = w.d.flush() // a failed write shows at the end
		w.failed.add("fire "+name, err)
	}
	return w.leave(func(open *setup.Open) { open.Fire = "" })
}
