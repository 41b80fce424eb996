package job

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/yamldoc"
)

func scheme(t testing.TB, name string) Scheme {
	t.Helper()
	s, err := Named(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// hookWith returns the text of a webhook file with a section signature.
func hookWith(section string) []byte {
	return []byte("---\nid: a\nfields: {properties: {b: true}}\nsignature:\n  " + strings.ReplaceAll(section, "\n", "\n  ") + "\n---\nGo.\n")
}

// TestSchemesAreData: each named scheme can be written in a file as a section, which has the same effect as its name.
func TestSchemesAreData(t *testing.T) {
	for _, s := range Schemes() {
		text, err := yamldoc.Encode(s.Pairs())
		if err != nil {
			t.Fatal(err)
		}
		j, err := Parse(Webhook, "a.md", hookWith(strings.TrimSpace(string(text))))
		if err != nil {
			t.Errorf("%s: %v\n%s", s.Name, err, text)
			continue
		}
		got := j.Hook.Signature
		if got.Name = s.Name; got != s {
			t.Errorf("%s:\n%+v\nwant\n%+v", s.Name, got, s)
		}
		again, err := Format(j)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := Parse(Webhook, "a.md", again); err != nil || back.Hook.Signature != j.Hook.Signature {
			t.Errorf("%s, written again: %v\n%s", s.Name, err, again)
		}
	}
}

func TestOwnScheme(t *testing.T) {
	j, err := Parse(Webhook, "a.md", hookWith(`kind: hmac
header: X-Acme-Signature
separator: ","
prefix: v1=
encoding: base64
hash: sha512
signed: "v0:{timestamp}:{body}:{id}"
timestamp: {part: t=}
unit: ms
tolerance: 90s
id: {header: X-Acme-Id}
key: base64
key-prefix: acme_
issued: true
ping: "X-Acme-Event: hello"
challenge: url_verification
accepted: 204`))
	want := Scheme{
		Kind: HMAC, Place: Place{"X-Acme-Signature", ",", "v1=", Base64}, Hash: SHA512, Signed: "v0:{timestamp}:{body}:{id}",
		Timestamp: Source{Part: "t="}, Unit: Milliseconds, Tolerance: 90 * time.Second, ID: Source{Header: "X-Acme-Id"},
		Secret: SecretForm{"acme_", Base64, true}, Setup: Setup{"X-Acme-Event", "hello", "url_verification"},
		Accepted: 204,
	}
	if err != nil || j.Hook.Signature != want {
		t.Errorf("%v, %+v", err, j.Hook.Signature)
	}
	const line = `kind="hmac" header="X-Acme-Signature" separator="," prefix="v1=" encoding="base64" hash="sha512" signed="v0:{timestamp}:{body}:{id}" ` +
		`timestamp="part t=" unit="ms" tolerance="1m30s" id="header X-Acme-Id" key="base64" key-prefix="acme_" issued="true" ` +
		`ping="X-Acme-Event: hello" challenge="url_verification" accepted="204"`
	if got := want.Line(); got != line {
		t.Errorf("line %s", got)
	}
	j, err = Parse(Webhook, "a.md", hookWith("kind: hmac\nheader: X-Sign\ntimestamp: {body: /at}"))
	want = Scheme{
		Kind: HMAC, Place: Place{Header: "X-Sign", Encoding: Hex}, Hash: SHA256, Signed: "{body}", Timestamp: Source{Body: "/at"}, Unit: Seconds,
		Tolerance: 5 * time.Minute,
	}
	if err != nil || j.Hook.Signature != want {
		t.Errorf("defaults: %v, %+v", err, j.Hook.Signature)
	}
}

func TestSchemeFaults(t *testing.T) {
	const hmac = "kind: hmac\nheader: X-Sign\n"
	for section, want := range map[string]string{
		"header: X-Sign":                                               "5: signature: kind is missing: want token or hmac",
		"kind: rsa\nheader: X-Sign":                                    `5: signature.kind: "rsa" is not one of: token, hmac`,
		"kind: hmac":                                                   "5: signature: header is missing",
		"kind: hmac\nheader: X Sign":                                   `6: signature.header: "X Sign" is not the name of a header`,
		hmac + "hash: sha1":                                            `7: signature.hash: "sha1" is not one of: sha256, sha512`,
		hmac + "encoding: rot13":                                       `7: signature.encoding: "rot13" is not one of: hex, base64`,
		hmac + "tolerances: 5m":                                        "7: signature.tolerances: unknown key (did you mean tolerance?)",
		hmac + "separator: ab\nprefix: v1=":                            "7: signature.separator: want a space or one of",
		hmac + "separator: \",\"":                                      "7: signature.separator: needs a prefix",
		hmac + "prefix: \"\"":                                          "7: signature.prefix: want 1 to 200 ASCII characters",
		hmac + "prefix: é":                                             "7: signature.prefix: want 1 to 200 ASCII characters",
		hmac + "signed: \"{timestamp}\"":                               "7: signature.signed: has no {body}",
		hmac + "signed: \"{body}{id}\"":                                "7: signature.signed: has no character between",
		hmac + "signed: \"{body}.{body}\"":                             "7: signature.signed: has {body} twice",
		hmac + "signed: \"{body}.{ip}\"":                               "7: signature.signed: {ip} is not one of: {timestamp}, {id}, {body}",
		hmac + "signed: \"{body}.{id\"":                                "7: signature.signed: has a { without }",
		hmac + "signed: \"{id}.{body}\"":                               "7: signature.signed: has {id}: add id",
		hmac + "signed: \"{id}.{body}\"\nid: {body: /id}":              "7: signature.signed: has {id}, which is a part of the body",
		hmac + "timestamp: {header: X-Time}":                           "7: signature.timestamp: is not signed, so anybody could change it",
		hmac + "timestamp: X-Time":                                     "7: signature.timestamp: want a section",
		hmac + "timestamp: {header: X-Time, body: /a}":                 "7: signature.timestamp: want one of header, part and body",
		hmac + "timestamp: {}":                                         "7: signature.timestamp: want one of header, part and body",
		hmac + "timestamp: {cookie: a}":                                "7: signature.timestamp.cookie: unknown key",
		hmac + "signed: \"{timestamp}.{body}\"\ntimestamp: {part: t=}": "8: signature.timestamp: is a part of the header",
		hmac + "timestamp: {body: at}":                                 `7: signature.timestamp.body: "at": want a JSON pointer`,
		hmac + "timestamp: {body: \"\"}":                               `7: signature.timestamp.body: "": want a JSON pointer`,
		hmac + "tolerance: 5m":                                         "7: signature.tolerance: is only for a timestamp",
		hmac + "unit: ms":                                              "7: signature.unit: is only for a timestamp",
		hmac + "timestamp: {body: /at}\ntolerance: 2h":                 "8: signature.tolerance: want 1s to 1h",
		hmac + "timestamp: {body: /at}\ntolerance: soon":               `8: signature.tolerance: "soon" is not a duration`,
		hmac + "ping: X-Event":                                         `7: signature.ping: "X-Event": want a header and its value`,
		hmac + "accepted: 404":                                         "7: signature.accepted: want a status from 200 to 299",
		hmac + "key: hex":                                              `7: signature.key: "hex" is not one of: base64`,
		"kind: token\nheader: X-Token\nhash: sha256":                   "7: signature.hash: is only for kind: hmac",
		"kind: token\nheader: X-Token\nseparator: \",\"\nprefix: k=":   "7: signature.separator: is only for kind: hmac",
		"kind: token\nheader: X-Token\nid: {part: i=}":                 "7: signature.id: is a part of the header",
		"kind: token\nheader: X-Token\ntimestamp: {body: /at}":         "7: signature.timestamp: is only for kind: hmac",
	} {
		_, err := Parse(Webhook, "FILE", hookWith(section))
		if err == nil || !strings.HasPrefix(err.Error(), "FILE:"+want) {
			t.Errorf("%s\n%v, want %s", section, err, want)
		}
	}
}

// FuzzScheme: any section is either refused with a line, or read, written and read again as the same scheme.
func FuzzScheme(f *testing.F) {
	for _, s := range Schemes() {
		text, err := yamldoc.Encode(s.Pairs())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Add("kind: hmac\nheader: X-Sign\nsigned: '{id}{{timestamp}}.{body}'\nid: {part: \"i=\"}\nseparator: '&'")
	f.Fuzz(func(t *testing.T, section string) {
		doc, err := yamldoc.Parse("FILE", []byte(section), 1)
		if err != nil {
			return
		}
		s, err := readScheme(doc.Root())
		if err != nil {
			return
		}
		if s.Kind == HMAC && (s.Hash == "" || s.Encoding == "" || strings.Count(s.Signed, BodyPlace) != 1) || s.Header == "" {
			t.Errorf("%q: %+v", section, s)
		}
		text, err := yamldoc.Encode(s.Pairs())
		if err != nil {
			t.Fatal(err)
		}
		again, err := yamldoc.Parse("FILE", text, 1)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if back, err := readScheme(again.Root()); err != nil || !reflect.DeepEqual(s, back) {
			t.Errorf("%q: %v\n%+v\n%+v", text, err, s, back)
		}
	})
}
