package job

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/yamldoc"
	"github.com/ollim/ollim/internal/state/payload"
)

// Hook says how a webhook is called.
type Hook struct {
	Secret    string // NAME of the lines webhook.NAME=… in the secrets file; "" is defaultSecret
	Signature Scheme
	RateLimit Rate // limits how often the webhook starts runs
	Fields    *payload.Fields
}

// defaultSecret is the name of the secret of hooks that name none.
const defaultSecret = "default"

// Rate is a number of starts in a period.
type Rate struct {
	N   int
	Per time.Duration
}

// String returns the rate as it is written in a file, such as 30/m.
func (r Rate) String() string {
	unit := strings.TrimPrefix(FormatDuration(r.Per), "1")
	return strconv.Itoa(r.N) + "/" + unit
}

// parseRate parses N/s, N/m, N/h or N/d.
func parseRate(s string) (Rate, error) {
	number, unit, _ := strings.Cut(s, "/")
	n, err := strconv.Atoi(number)
	units := map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}
	const most = 10000
	if units[unit] == 0 || err != nil || n < 1 || n > most {
		return Rate{}, fmt.Errorf("%q: want 1 to %d starts in a second, minute, hour or day, such as 10/m", s, most)
	}
	return Rate{n, units[unit]}, nil
}

// Limits of secrets.
const (
	minSecret  = 24 // least length of a key, in bytes
	MaxSecrets = 2  // most secrets at once, which there are while one replaces the other
)

// Keys returns the keys that may sign a request, the current one first. There are two while one replaces the other. entries are those of
// the part webhook of the secrets file. The error says which line is wrong, and does not quote a secret.
func (h Hook) Keys(entries []string) ([][]byte, error) {
	name := h.SecretName()
	var found []string
	for _, entry := range entries {
		if value, ours := strings.CutPrefix(entry, name+"="); ours {
			found = append(found, value)
		}
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("no line webhook.%s=… in the secrets file", name)
	case 1:
	default:
		return nil, fmt.Errorf("webhook.%s: %d lines in the secrets file, want one", name, len(found))
	}
	values := strings.Fields(found[0])
	if len(values) == 0 || len(values) > MaxSecrets {
		return nil, fmt.Errorf("webhook.%s: want one secret, or two separated by a space while it is being changed", name)
	}
	keys := make([][]byte, 0, MaxSecrets)
	for _, value := range values {
		key, err := h.Signature.key(value)
		if err != nil {
			return nil, fmt.Errorf("webhook.%s: %w", name, err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// SecretName returns the NAME of the hook's lines in the secrets file.
func (h Hook) SecretName() string { return cmp.Or(h.Secret, defaultSecret) }

func secretName() field {
	const help = "NAME of the line webhook.NAME=… of the secrets file (default " + defaultSecret + ")"
	return text("secret", help, func(j *Job) *string { return &j.Hook.Secret }, checkName)
}

func rateLimit() field {
	normal := New(Webhook).Hook.RateLimit
	help := fmt.Sprintf("maximum number of starts, such as 10/m (default %s)", normal)
	return parsed("rate-limit", help, func(j *Job, s string) (err error) {
		j.Hook.RateLimit, err = parseRate(s)
		return err
	}, func(j Job) any { return unless(j.Hook.RateLimit == normal, j.Hook.RateLimit.String()) })
}

func schema() field {
	return field{
		key: "fields", kind: Section, help: "JSON Schema of the data that the agent gets",
		read: func(j *Job, v yamldoc.Value) (err error) {
			j.Hook.Fields, err = payload.Read(v)
			return err
		},
		write: func(j Job) any { return j.Hook.Fields.Source() },
	}
}
