package cli

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/shell"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/server/webhook"
	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/job"
)

type webhookCallOptions struct {
	hook, file, url string
	curl            bool
}

func newWebhookCall(d *deps) *cobra.Command {
	var o webhookCallOptions
	cmd := command(agentNever(refused), "call JOB [FILE | -]", "Sign a payload and post it to the webhook server, as a sender would",
		inHome(d, func(ctx context.Context, h app.Home, args []string) error {
			o.hook, o.file = args[0], strings.Join(args[1:], "") // one at most
			return runWebhookCall(ctx, d, h, o)
		}))
	cmd.Args = cobra.RangeArgs(1, 2)
	cmd.Flags().StringVar(&o.url, "url", "", "post to this address (default that of the server on this machine)")
	cmd.Flags().BoolVar(&o.curl, "curl", false, "print a curl command that does the same, and send nothing")
	return cmd
}

func runWebhookCall(ctx context.Context, d *deps, h app.Home, o webhookCallOptions) error {
	s, _, err := d.jobSet(o.hook)
	if err != nil {
		return err
	}
	j, err := s.Only(job.Webhook).Find(o.hook)
	if err != nil {
		return explainFor(job.Webhook, err)
	}
	values, err := h.HookKeys(*j.Hook)
	if err != nil {
		return &withStatus{err, statusConfig}
	}
	body, err := o.payload(ctx, d)
	if err != nil {
		return err
	}
	header := http.Header{"Content-Type": {"application/json"}}
	sent, err := webhook.Keys{Scheme: j.Hook.Signature, Values: values}.Sign(header, "call_"+rand.Text(), body, d.Now())
	if err != nil {
		return &withStatus{fmt.Errorf("%s: %w", cmp.Or(o.file, "payload"), err), statusData}
	}
	if !bytes.Equal(sent, body) {
		o.file = "" // its text is not what is sent
	}
	local := h.Config.Webhook
	local.URL = ""
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, cmp.Or(o.url, local.Address(j.ID)), bytes.NewReader(sent))
	if err != nil {
		return usage("--url %q: %v", o.url, err)
	}
	r.Header = header
	if o.curl {
		command, err := o.command(r, sent, d.SecretsFile(), *j.Hook)
		return d.answer(command, err)
	}
	return d.call(r)
}

func (o *webhookCallOptions) payload(ctx context.Context, d *deps) (body []byte, err error) {
	switch o.file {
	case "":
		return []byte("{}"), nil
	case "-":
		body, err = io.ReadAll(io.LimitReader(d.In, config.MaxBody+1))
	default:
		body, err = d.readGiven(ctx, o.file, config.MaxBody)
	}
	if err != nil {
		return nil, &withStatus{fmt.Errorf("%s: %s", o.file, store.Cause(err)), statusData}
	}
	if len(body) > config.MaxBody {
		return nil, fmt.Errorf("%s: %w: more than %d MiB", o.file, errTooLong, config.MaxBody>>20)
	}
	return body, nil
}

const callTime = 30 * time.Second

func (d *deps) call(r *http.Request) error {
	client := &http.Client{
		Timeout: callTime, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(r)
	if err != nil {
		return hint(&withStatus{fmt.Errorf("%s: %w", r.URL.Host, systemError(err)), statusUnavailable}, "does the server run? ollim webhook serve")
	}
	defer func() { _ = response.Body.Close() }()
	const most = 64 << 10
	text, err := io.ReadAll(io.LimitReader(response.Body, most))
	if err != nil {
		return &withStatus{err, statusUnavailable}
	}
	var answer struct{ Run, Error string }
	if json.Unmarshal(text, &answer) != nil {
		answer.Error = plaintext.Short(plaintext.Line(string(text)), 200)
	}
	if response.StatusCode/100 == 2 && answer.Run != "" {
		return d.answer(answer.Run, nil)
	}
	failure := &withStatus{fmt.Errorf("%s: %s", response.Status, answer.Error), callStatus(response.StatusCode)}
	if response.StatusCode == http.StatusUnauthorized {
		return hint(failure, "the log of the server says why")
	}
	return failure
}

func callStatus(code int) status {
	return cmp.Or(map[int]status{
		http.StatusBadRequest: statusData, http.StatusConflict: statusData, http.StatusRequestEntityTooLarge: statusData,
		http.StatusUnsupportedMediaType: statusData, http.StatusUnauthorized: statusRefused, http.StatusTooManyRequests: statusTempFail,
		http.StatusServiceUnavailable: statusTempFail,
	}[code], statusUnavailable)
}

const maxArgument = 100_000

func (o *webhookCallOptions) command(r *http.Request, body []byte, secrets string, hook job.Hook) (string, error) {
	words := []string{"curl", "-sS", "--data-raw", shellWord(string(body))}
	if o.file != "" && o.file != "-" {
		words = []string{"curl", "-sS", "--data-binary", shellWord("@" + o.file)}
	} else if len(body) > maxArgument || bytes.IndexByte(body, 0) >= 0 {
		return "", usage("--curl: such a payload fits into no command line: name the file instead of -")
	}
	for _, header := range slices.Sorted(maps.Keys(r.Header)) {
		value := shellWord(header + ": " + r.Header.Get(header))
		if hook.Signature.Kind == job.Token && header == http.CanonicalHeaderKey(hook.Signature.Header) {
			line := `s/^[[:space:]]*webhook\.` + regexp.QuoteMeta(hook.SecretName()) + `=[[:space:]]*\([^[:space:]]*\).*/\1/p`
			value = shellWord(header+": "+hook.Signature.Prefix) + `"$(sed -n ` + shellWord(line) + ` ` + shellWord(secrets) + ` | head -n 1)"`
		}
		words = append(words, "-H", value)
	}
	return strings.Join(append(words, shellWord(r.URL.String())), " "), nil
}

func shellWord(s string) string {
	if s != "" && plaintext.IsWord(s, "@%+=:,./_-") {
		return s
	}
	return shell.Quote(s)
}
