package job

import (
	"encoding/base64"
	"reflect"
	"strings"
	"testing"
	"time"
)

const hookFile = `---
id: ci
fields:
  required: [action]
  properties:
    branch: {from: /workflow_run/head_branch, type: string}
    action: true
secret: builds
signature: github
rate-limit: 10/h
isolated: true
allowed-tools: [WebSearch]
---
Look at {branch}.
`

func TestHookFile(t *testing.T) {
	j, err := Parse(Webhook, "webhooks/ci.md", []byte(hookFile))
	if err != nil {
		t.Fatal(err)
	}
	h := j.Hook
	if j.Mode() != Isolated || h.Secret != "builds" || h.Signature.Name != "github" || h.RateLimit != (Rate{N: 10, Per: time.Hour}) {
		t.Errorf("%+v, %+v", j, h)
	}
	if got := h.Fields.Names(); !reflect.DeepEqual(got, []string{"branch", "action"}) {
		t.Errorf("fields %q", got)
	}
	data, err := Format(j)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse(Webhook, "webhooks/ci.md", data)
	if err != nil || !reflect.DeepEqual(again.Hook.Fields.Lines(), h.Fields.Lines()) || again.Hook.RateLimit != h.RateLimit || again.Body != j.Body {
		t.Errorf("%v\n%s", err, data)
	}
	plain, err := Parse(Webhook, "x.md", []byte("---\nid: x\nfields: {properties: {a: true}}\n---\nGo.\n"))
	if err != nil || plain.Mode() != Forked || plain.Hook.SecretName() != "default" || plain.Hook.Signature.Name != "bearer" || plain.Hook.RateLimit.String() != "30/m" {
		t.Errorf("%v, %+v", err, plain.Hook)
	}
}

func TestHookFaults(t *testing.T) {
	for change, want := range map[string]string{
		"secret: builds > secret: a/b":                 `FILE:8: secret: "a/b" is not a name`,
		"signature: github > signature: hmac":          `FILE:9: signature: "hmac" is not one of: bearer, github, standard, stripe, slack, gitlab, linear, shopify, sentry, telegram, svix, pagerduty`,
		"signature: github > signatur: github":         "FILE:9: signatur: unknown key (did you mean signature?)",
		"rate-limit: 10/h > rate-limit: 10":            `FILE:10: rate-limit: "10": want 1 to 10000 starts`,
		"rate-limit: 10/h > rate-limit: 0":             `FILE:10: rate-limit: "0": want`,
		"isolated: true > background: true":            "FILE:11: background: unknown key",
		"isolated: true > enabled: false":              "FILE:11: enabled: unknown key",
		"isolated: true > gate: x":                     "FILE:11: gate: unknown key",
		"isolated: true > run-at: 2026-03-07T09:00":    "FILE:11: run-at: unknown key",
		"    action: true >     action: {typ: string}": "FILE:7: fields.properties.action.typ: unknown keyword (did you mean type?)",
	} {
		from, to, _ := strings.Cut(change, " > ")
		_, err := Parse(Webhook, "FILE", []byte(strings.Replace(hookFile, from, to, 1)))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", change, err, want)
		}
	}
	if _, err := Parse(Routine, "FILE", []byte("---\nid: a\ncron: '@daily'\nsignature: github\n---\nGo.\n")); err == nil {
		t.Error("a routine with a signature")
	}
	if _, err := Parse(Webhook, "FILE", []byte("---\nid: a\n---\nGo.\n")); err == nil || !strings.Contains(err.Error(), "fields: is missing") {
		t.Errorf("without fields: %v", err)
	}
}

func TestKeys(t *testing.T) {
	const one, two = "0123456789abcdef01234567", "another-secret-of-24-byte"
	raw := strings.Repeat("\x00\xff\x10", 8)
	encoded := base64.StdEncoding.EncodeToString([]byte(raw))
	for _, c := range []struct {
		hook    Hook
		entries string // one a line
		want    string // keys, else the error
	}{
		{Hook{}, "default=" + one, one},
		{Hook{Secret: "a"}, "default=" + two + "\na=" + one, one},
		{Hook{Secret: "a"}, "ab=" + one, "no line webhook.a=… in the secrets file"},
		{Hook{Secret: "a"}, "a=" + one + " " + two, one + "|" + two},
		{Hook{Secret: "a"}, "a=" + one + " " + two + " " + one, "webhook.a: want one secret, or two"},
		{Hook{Secret: "a"}, "a=", "webhook.a: want one secret, or two"},
		{Hook{Secret: "a"}, "a=" + one + "\na=" + two, "webhook.a: 2 lines in the secrets file, want one"},
		{Hook{Secret: "a", Signature: scheme(t, "github")}, "a=" + one[:23], "webhook.a: the secret has 23 bytes, fewer than 24"},
		{Hook{Secret: "a", Signature: scheme(t, "github")}, "a=" + one + " " + one[:23], "webhook.a: the secret has 23 bytes, fewer than 24"},
		{Hook{Secret: "a", Signature: scheme(t, "standard")}, "a=whsec_" + encoded, raw},
		{Hook{Secret: "a", Signature: scheme(t, "standard")}, "a=" + encoded, raw},
		{Hook{Secret: "a", Signature: scheme(t, "standard")}, "a=whsec_", "webhook.a: the secret has 0 bytes, fewer than 24"},
		{Hook{Secret: "a", Signature: scheme(t, "standard")}, "a=whsec_" + encoded[:28], "webhook.a: the secret has 21 bytes, fewer than 24"},
		{Hook{Secret: "a", Signature: scheme(t, "standard")}, "a=whsec_?", "webhook.a: the secret is not whsec_ and base64"},
	} {
		keys, err := c.hook.Keys(strings.Split(c.entries, "\n"))
		var got []string
		for _, key := range keys {
			got = append(got, string(key))
		}
		text := strings.Join(got, "|")
		if err != nil {
			text = err.Error()
			if strings.Contains(text, one[:20]) || strings.Contains(text, encoded[:20]) {
				t.Errorf("%q: the error quotes a secret: %s", c.entries, text)
			}
		}
		if !strings.HasPrefix(text, c.want) {
			t.Errorf("%q: %q, want %q", c.entries, text, c.want)
		}
	}
	for _, s := range Schemes() {
		hook := Hook{Signature: s}
		keys, err := hook.Keys([]string{"default=" + s.NewSecret([]byte(one+one[:8]))})
		if err != nil || len(keys[0]) < 32 {
			t.Errorf("%s: a new secret: %q, %v", s.Name, keys, err)
		}
	}
}
