package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/server/discord/api"
	"github.com/ollim/ollim/internal/state/budget"
	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
	"github.com/ollim/ollim/internal/state/update"
)

type pingOptions struct {
	text     string
	embed    string
	file     string
	critical bool

	ask     bool
	choices []string
	expires string
}

func newPing(d *deps) *cobra.Command {
	var o pingOptions
	cmd := command(agentOwn("ping_user"), "ping [TEXT...|-]", "Send the owner a message",
		inAnyHome(d, func(ctx context.Context, h app.Home, args []string) error {
			o.text = strings.Join(args, " ")
			return runPing(ctx, d, h, o)
		}))
	cmd.Flags().StringVar(&o.embed, "embed", "", "send structured data, as JSON with title, description, url, color, fields, "+
		"footer and buttons; - reads it from standard input")
	cmd.Flags().StringVar(&o.file, "file", "", "attach this file, at most 10 MiB")
	cmd.Flags().BoolVar(&o.ask, "ask", false, "inside a run: ask the owner TEXT; when the turn ends, the run waits for the answer")
	cmd.Flags().StringArrayVar(&o.choices, "choice", nil, "with --ask: an answer to choose from (repeatable)")
	cmd.Flags().StringVar(&o.expires, "expires", "", "with --ask: end the run if no answer comes within this time, 1m to 7d (default 24h)")
	cmd.Flags().BoolVar(&o.critical, "critical", false, "inside a run: send even if the main conversation is busy or the "+
		"budget is empty")
	return cmd
}

func runPing(ctx context.Context, d *deps, h app.Home, o pingOptions) error {
	if err := o.read(d); err != nil {
		return err
	}
	if d.inside() {
		text, err := o.inside(ctx, d, h)
		switch {
		case err == nil && o.ask:
			d.line("info", text) // the agent must read that its turn is to end
		case err == nil:
			d.note("%s", text)
		}
		return err
	}
	m, err := o.message()
	if err != nil {
		return err
	}
	post := h.Post()
	if !post.Configured() {
		d.note("no delivery is configured: the message becomes a pending update")
		if m.File != "" {
			m.Text += " (file: " + m.File + ")"
		}
		return h.Updates.Add(ctx, m.Text, "owner")
	}
	id, err := runlog.NewID(d.Now(), d.Random)
	if err != nil {
		return err
	}
	if m.Embed != nil {
		if m.Buttons, err = tools.Buttons(ctx, h.Questions, m.Embed); err != nil {
			return err
		}
	}
	m.ID, m.Label, m.Kind, m.Created = session.MessageID(id, 1), "ollim", outbox.Ping, d.Now()
	receipt, err := post.Send(ctx, m)
	switch receipt.Fate {
	case outbox.Queued:
		why := ""
		if receipt.Reason != nil {
			why = ": " + printable(strings.Join(strings.Fields(receipt.Reason.Error()), " "))
		}
		d.note("not delivered%s; the message waits in %s, and ollim tick tries again", why, h.Dir.Outbox())
		if errors.Is(receipt.Reason, api.ErrToken) { // waiting does not help
			d.warn(receipt.Reason.Error() + ": ollim discord check")
		}
	case outbox.Refused:
		refusal := errors.New("the delivery command refused it") // its own reason is reported by the outbox
		if len(post.Order) > 0 {
			refusal = errors.New("it was refused by " + strings.Join(post.Order, " and "))
		}
		if e, ok := errors.AsType[*api.Error](receipt.Reason); ok {
			refusal = e
		}
		err = errors.Join(refusal, err)
	}
	return err
}

// read completes the options from standard input, which only one of them can have.
func (o *pingOptions) read(d *deps) (err error) {
	switch {
	case !o.ask && (len(o.choices) > 0 || o.expires != ""):
		return usage("--choice and --expires need --ask")
	case o.ask && (o.embed != "" || o.file != "" || o.critical):
		return usage("--ask takes TEXT alone")
	case o.ask && !d.inside():
		return usage("--ask works only inside a run")
	case o.text != "" && o.embed != "":
		return usage("TEXT and --embed exclude each other: an embed has its own description")
	case o.embed != "" && o.file != "":
		return usage("--embed and --file exclude each other")
	case o.text == "" && o.embed == "" && o.file == "":
		return usage("nothing to send: give TEXT, - or --embed")
	case o.text == "-":
		o.text, err = readInput(d.In)
		if err == nil && strings.TrimSpace(o.text) == "" {
			err = &withStatus{errors.New("standard input is empty"), statusData}
		}
	case o.embed == "-":
		o.embed, err = readInput(d.In)
	}
	return err
}

func (o *pingOptions) inside(ctx context.Context, d *deps, h app.Home) (string, error) {
	switch {
	case o.ask:
		return d.useTool(ctx, h, runlog.AskOwner, map[string]any{"question": o.text, "choices": o.choices, "expires": o.expires})
	case o.embed != "":
		e, err := o.parts()
		if err != nil {
			return "", err
		}
		return d.useTool(ctx, h, "discord_embed", struct {
			outbox.Embed
			Critical bool `json:"critical"`
		}{e, o.critical})
	case o.file != "":
		path, err := d.path(o.file)
		if err != nil {
			return "", err
		}
		return d.useTool(ctx, h, "send_file", map[string]any{"path": path, "message": o.text, "critical": o.critical})
	}
	return d.useTool(ctx, h, "ping_user", map[string]any{"message": o.text, "critical": o.critical})
}

func (o *pingOptions) parts() (e outbox.Embed, err error) {
	decoder := json.NewDecoder(strings.NewReader(o.embed))
	decoder.DisallowUnknownFields()
	if err = decoder.Decode(&e); err == nil {
		e, err = e.Clean()
	} else {
		err = store.Misfit(err)
	}
	if _, more := decoder.Token(); err == nil && !errors.Is(more, io.EOF) {
		err = errors.New("more than one JSON value")
	}
	if err != nil {
		return e, usage("--embed: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return e, nil
}

func (o *pingOptions) message() (outbox.Message, error) {
	m := outbox.Message{Text: update.Clean(o.text), Critical: o.critical}
	if o.embed != "" {
		e, err := o.parts()
		if err != nil {
			return m, err
		}
		m.Embed, m.Text = &e, e.Text()
	}
	if o.file != "" {
		var err error
		if m.File, err = filepath.Abs(o.file); err != nil {
			return m, err
		}
		if err := outbox.CheckFile(m.File); err != nil {
			return m, &withStatus{err, statusData}
		}
		m.Text = cmp.Or(m.Text, plaintext.Line(filepath.Base(m.File)))
	}
	if m.Text == "" {
		return m, usage("the message is empty")
	}
	return m, nil
}

type budgetRow struct {
	Capacity     int       `json:"capacity"`
	Available    float64   `json:"available"`
	Rate         int       `json:"refill_rate_minutes"`
	NextRefill   time.Time `json:"next_refill,omitzero"`
	DailyUsed    int       `json:"daily_used"`
	CriticalUsed int       `json:"critical_used"`
}

func newBudget(d *deps) *cobra.Command {
	cmd := command(agentAll(), "budget", "Show the ping budget",
		inAnyHome(d, func(_ context.Context, h app.Home, _ []string) error { return runBudget(d, h) }))
	cmd.Aliases = []string{"budgets"}
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			return usage("unknown command %q: want set", args[0])
		}
		return nil
	}
	cmd.AddCommand(newBudgetSet(d))
	return withJSON(d, cmd, "print one JSON object")
}

func runBudget(d *deps, h app.Home) error {
	s, err := h.Budget.Status()
	if err != nil {
		return err
	}
	if !d.json {
		return d.answer(s.Full(), nil)
	}
	row := budgetRow{
		Capacity: s.Capacity, Available: s.Available, Rate: int(s.RefillEvery / time.Minute),
		DailyUsed: s.DailyUsed, CriticalUsed: s.CriticalUsed,
	}
	if s.NextRefill > 0 { // rounded up, so that the ping is there at that second
		row.NextRefill = d.Now().Add(s.NextRefill + time.Second).Truncate(time.Second).In(h.Config.Zone)
	}
	return d.emit(row)
}

func newBudgetSet(d *deps) *cobra.Command {
	var capacity, rate int
	cmd := command(agentNever(nested), "set [--capacity N] [--rate MINUTES]", "Change the capacity and the refill rate of the ping budget",
		func(cmd *cobra.Command, _ []string) error {
			given := func(name string, value *int) *int {
				if cmd.Flags().Changed(name) {
					return value
				}
				return nil
			}
			return runBudgetSet(cmd.Context(), d, given("capacity", &capacity), given("rate", &rate))
		})
	cmd.Args = cobra.NoArgs
	cmd.Flags().IntVar(&capacity, "capacity", 0, "maximum number of tokens, 0 to 1000")
	cmd.Flags().IntVar(&rate, "rate", 0, "minutes until a token is refilled, 1 to 10080")
	return cmd
}

func runBudgetSet(ctx context.Context, d *deps, capacity, rate *int) error {
	if capacity == nil && rate == nil {
		return usage("nothing to set: want --capacity or --rate")
	}
	h, err := d.AnyHome()
	if err != nil {
		return err
	}
	err = h.Budget.Set(ctx, capacity, rate)
	if errors.Is(err, budget.ErrCapacity) || errors.Is(err, budget.ErrRate) {
		return usage("--%v", err)
	}
	return err
}
