package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/platform/yamldoc"
	"github.com/ollim/ollim/internal/state/job"
)

func newWebhook(d *deps) *cobra.Command {
	return group("webhook", "Manage webhooks: jobs that run for each event posted over HTTP",
		newList(d, agentAll(), "list", "List webhooks: id, name, signature, rate limit, mode, fields, address, description",
			"ID NAME SIGNATURE LIMIT MODE FIELDS ADDRESS DESCRIPTION", func(context.Context) (rows []webhookRow, err error) {
				s, h, err := d.jobSet()
				for _, j := range s.Only(job.Webhook).Jobs {
					rows = append(rows, webhookRow{
						ID: j.ID, Name: j.Name(), Signature: j.Hook.Signature.Label(), Secret: j.Hook.SecretName(), RateLimit: j.Hook.RateLimit.String(),
						Mode: j.Mode(), Fields: j.Hook.Fields.Names(), URL: h.Config.Webhook.Address(j.ID), Description: j.Description, Path: j.Path,
					})
				}
				return rows, err
			}, func(r webhookRow) []any {
				return []any{r.ID, brief(r.Name), r.Signature, r.RateLimit, string(r.Mode), brief(strings.Join(r.Fields, " ")), r.URL, brief(r.Description)}
			}), newJobShow(d, job.Webhook), newWebhookAdd(d), newJobEdit(d, job.Webhook),
		newJobRm(d, job.Webhook, "Delete webhook files; their secrets are kept"),
		withJSON(d, command(agentNever(nested), "serve", "Accept events for webhooks over HTTP, until it is stopped",
			inHome(d, func(ctx context.Context, h app.Home, _ []string) error { return runWebhookServe(ctx, d, h) })), "log one JSON object per line"), newWebhookCall(d))
}

type webhookRow struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Signature   string   `json:"signature"` // the name of the scheme, or the kind of one that the file describes
	Secret      string   `json:"secret"`    // its name
	RateLimit   string   `json:"rate_limit"`
	Mode        job.Mode `json:"mode"`
	Fields      []string `json:"fields"`
	URL         string   `json:"url"`
	Description string   `json:"description"`
	Path        string   `json:"path"`
}

type webhookAddOptions struct {
	jobAdd
	some []string // NAME[=POINTER]
}

func newWebhookAdd(d *deps) *cobra.Command {
	var o webhookAddOptions
	cmd := command(agentNever(refused), "add [NAME] BODY|-", "Add a webhook and print its address and its secret",
		func(cmd *cobra.Command, args []string) error {
			o.words(args)
			return runWebhookAdd(cmd.Context(), d, o)
		})
	o.fields.flags(cmd.Flags(), job.Webhook)
	isolated := cmd.Flags().Lookup("isolated")
	isolated.DefValue = "true" // of a new file; in a file without the key it is false
	fieldFlag(cmd.Flags(), &o.some)
	return withJSON(d, cmd, "print one JSON object")
}

func runWebhookAdd(ctx context.Context, d *deps, o webhookAddOptions) error {
	more, err := o.properties()
	if err != nil {
		return err
	}
	if !o.fields.set("isolated") {
		more = append(more, yamldoc.Pair{Key: "isolated", Value: true})
	}
	h, j, err := o.read(d, more...)
	if err != nil {
		return err
	}
	if j.Hook.Secret == "" {
		j.Hook.Secret = cmp.Or(o.name, j.ID)
	}
	if j, err = o.create(ctx, d, h, j); err != nil {
		return err
	}
	secret, err := d.hookSecret(ctx, h, *j.Hook)
	if err != nil {
		return errors.Join(err, store.Remove(j.Path))
	}
	err = o.print(d, added{ID: j.ID, URL: h.Config.Webhook.Address(j.ID), Secret: secret, Path: j.Path})
	if err = d.created(h, j, err); err != nil || secret != "" {
		return err
	}
	if _, missing := h.HookKeys(*j.Hook); missing != nil {
		d.warn(fmt.Sprintf("%v: store the one that the sender shows: ollim secret set webhook.%s", missing, j.Hook.SecretName()))
	} else if !d.json {
		d.note("its secret is in %s already", d.SecretsFile())
	}
	return nil
}

func (o *webhookAddOptions) properties() ([]yamldoc.Pair, error) {
	switch given := o.fields.set("fields"); {
	case given == (len(o.some) > 0):
		return nil, usage("want --field, for each value that the agent gets, or --fields")
	case given:
		return nil, nil
	}
	var properties []yamldoc.Pair
	for _, text := range o.some {
		name, pointer, has, err := splitField(text)
		if err != nil {
			return nil, err
		}
		p := yamldoc.Pair{Key: name, Value: []yamldoc.Pair{}}
		if has {
			p.Value = []yamldoc.Pair{{Key: "from", Value: pointer}}
		}
		properties = append(properties, p)
	}
	return []yamldoc.Pair{{Key: "fields", Value: []yamldoc.Pair{{Key: "properties", Value: properties}}}}, nil
}

func fieldFlag(f *pflag.FlagSet, to *[]string) {
	f.StringArrayVar(to, "field", nil, "a value that the agent gets, as NAME or NAME=JSON_POINTER (repeatable)")
}

// splitField takes NAME or NAME=JSON_POINTER.
func splitField(text string) (name, pointer string, has bool, err error) {
	if name, pointer, has = strings.Cut(text, "="); name == "" {
		err = usage("--field %s: want NAME or NAME=JSON_POINTER", text)
	}
	return name, pointer, has, err
}

// hookSecret returns the secret that it makes for a hook, or "" if there is one already or the sender makes it.
func (d *deps) hookSecret(ctx context.Context, h app.Home, hook job.Hook) (string, error) {
	if hook.Signature.Secret.Issued {
		return "", nil
	}
	random := make([]byte, 32)
	if _, err := io.ReadFull(d.Random, random); err != nil {
		return "", err
	}
	secret := hook.Signature.NewSecret(random)
	isNew, err := d.AddHookSecret(ctx, hook.SecretName(), secret)
	if err != nil || isNew {
		return secret, err
	}
	_, err = h.HookKeys(hook) // the line is there
	return "", err
}

// added is what the owner enters at the sender of a webhook.
type added struct {
	ID     string `json:"id"`
	URL    string `json:"url"`
	Secret string `json:"secret,omitempty"`
	Path   string `json:"path"`
}

func (o *webhookAddOptions) print(d *deps, a added) error {
	if d.json {
		return d.emit(a)
	}
	return d.facts([]string{"id", a.ID}, []string{"url", a.URL}, []string{"secret", a.Secret})
}
