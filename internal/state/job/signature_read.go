package job

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/yamldoc"
	"github.com/ollim/ollim/internal/state/payload"
)

// signature returns the field signature: the name of a scheme, or a section that describes one.
func signature() field {
	names := SchemeNames()
	return field{
		key: "signature", kind: TextOrSection, help: strings.Join(names, ", ") + ", or a section: how requests are signed",
		read: func(j *Job, v yamldoc.Value) (err error) {
			name, notText := v.Text()
			if notText == nil {
				j.Hook.Signature, err = Named(name)
				return err
			}
			j.Hook.Signature, err = readScheme(v)
			return err
		},
		write: func(j Job) any {
			if s := j.Hook.Signature; s.Name == "" {
				return s.Pairs()
			}
			return unless(j.Hook.Signature.Name == bearer, j.Hook.Signature.Name)
		},
	}
}

// Limits of a scheme that a file describes.
const (
	maxSchemeText = 200 // bytes of one of its texts
	leastWindow   = time.Second
	mostWindow    = time.Hour // events are recognised for a day, so an older one could be replayed
)

// readScheme reads the section signature.
func readScheme(v yamldoc.Value) (Scheme, error) {
	var s Scheme
	if err := v.Decode(schemeFields(&s)); err != nil {
		return s, err
	}
	has := func(key string) bool { _, has := v.Get(key); return has }
	switch {
	case s.Kind == "":
		return s, v.Wrong("kind is missing: want token or hmac, or the name of a scheme")
	case s.Header == "":
		return s, v.Wrong("header is missing: name the header that has the token or the signature")
	}
	if s.Kind == Token {
		for _, key := range []string{"separator", "encoding", "hash", "signed", "timestamp", "unit", "tolerance", "key"} {
			if value, has := v.Get(key); has {
				return s, value.Wrong("is only for kind: hmac")
			}
		}
	} else {
		s.complete(has)
	}
	return s, s.check(v)
}

// complete fills in the defaults of an HMAC.
func (s *Scheme) complete(has func(string) bool) {
	if !has("encoding") {
		s.Encoding = Hex
	}
	if !has("hash") {
		s.Hash = SHA256
	}
	if !has("signed") {
		s.Signed = BodyPlace
	}
	if has("timestamp") && !has("unit") {
		s.Unit = Seconds
	}
	if has("timestamp") && !has("tolerance") {
		s.Tolerance = normalTolerance
	}
}

// check refuses a scheme whose keys contradict one another, or that would prove less than it seems to.
func (s *Scheme) check(v yamldoc.Value) error {
	wrong := func(key, reason string) error {
		if value, has := v.Get(key); has {
			return value.Wrong(reason)
		}
		return v.Wrong(key + " " + reason)
	}
	for i, from := range []Source{s.Timestamp, s.ID} {
		key := []string{"timestamp", "id"}[i]
		filled := s.Fills("{" + key + "}")
		switch {
		case from.Part != "" && s.Separator == "":
			return wrong(key, "is a part of the header, which has parts only with a separator")
		case filled && from == (Source{}):
			return wrong("signed", "has {"+key+"}: add "+key+", with the header or the part that it is in")
		case filled && from.Body != "":
			return wrong("signed", "has {"+key+"}, which is a part of the body: {body} alone signs it")
		}
	}
	switch {
	case s.Timestamp == (Source{}) && s.Unit != "":
		return wrong("unit", "is only for a timestamp")
	case s.Timestamp == (Source{}) && s.Tolerance != 0:
		return wrong("tolerance", "is only for a timestamp")
	case s.Timestamp != (Source{}) && s.Timestamp.Body == "" && !s.Fills(TimestampPlace):
		return wrong("timestamp", "is not signed, so anybody could change it: add {timestamp} to signed, or remove it")
	case s.Kind == HMAC && s.Separator != "" && s.Prefix == "":
		return wrong("separator", "needs a prefix, which tells the signatures from the other parts")
	}
	return nil
}

// schemeFields returns the keys of the section signature, in the order in which they are written.
func schemeFields(s *Scheme) []yamldoc.Field {
	word := func(key string, at *string, check func(string) error) yamldoc.Field {
		return yamldoc.Field{Key: key, Read: func(v yamldoc.Value) error { return readChecked(v, at, check) }}
	}
	return []yamldoc.Field{
		word("kind", (*string)(&s.Kind), oneOf(string(Token), string(HMAC))),
		word("header", &s.Header, checkHeader),
		word("separator", &s.Separator, checkSeparator),
		word("prefix", &s.Prefix, checkASCII),
		word("encoding", (*string)(&s.Encoding), oneOf(string(Hex), string(Base64))),
		word("hash", (*string)(&s.Hash), oneOf(string(SHA256), string(SHA512))),
		word("signed", &s.Signed, checkTemplate),
		{Key: "timestamp", Read: s.Timestamp.read},
		word("unit", (*string)(&s.Unit), oneOf(string(Seconds), string(Milliseconds))),
		{Key: "tolerance", Read: s.readTolerance},
		{Key: "id", Read: s.ID.read},
		word("key", (*string)(&s.Secret.Encoding), oneOf(string(Base64))),
		word("key-prefix", &s.Secret.Prefix, checkASCII),
		{Key: "issued", Read: func(v yamldoc.Value) (err error) { s.Secret.Issued, err = v.Bool(); return err }},
		{Key: "ping", Read: s.Setup.readPing},
		word("challenge", &s.Setup.Challenge, checkASCII),
		{Key: "accepted", Read: func(v yamldoc.Value) (err error) {
			if s.Accepted, err = v.Int(); err == nil && (s.Accepted < 200 || s.Accepted > 299) {
				err = errors.New("want a status from 200 to 299")
			}
			return err
		}},
	}
}

func (from *Source) read(v yamldoc.Value) error {
	entries, err := v.Entries()
	if err != nil {
		return err
	}
	if len(entries) != 1 {
		return v.Wrong("want one of header, part and body, such as {header: X-Timestamp}")
	}
	return v.Decode([]yamldoc.Field{
		{Key: "header", Read: func(v yamldoc.Value) (err error) { return readChecked(v, &from.Header, checkHeader) }},
		{Key: "part", Read: func(v yamldoc.Value) (err error) { return readChecked(v, &from.Part, checkASCII) }},
		{Key: "body", Read: func(v yamldoc.Value) (err error) { return readChecked(v, &from.Body, payload.CheckPointer) }},
	})
}

func readChecked(v yamldoc.Value, to *string, check func(string) error) (err error) {
	if *to, err = v.Text(); err == nil {
		err = check(*to)
	}
	return err
}

func (s *Scheme) readTolerance(v yamldoc.Value) error {
	text, err := v.Text()
	if err != nil {
		return err
	}
	if s.Tolerance, err = ParseDuration(text); err != nil {
		return err
	}
	if s.Tolerance < leastWindow || s.Tolerance > mostWindow {
		return fmt.Errorf("want %s to %s", FormatDuration(leastWindow), FormatDuration(mostWindow))
	}
	return nil
}

// readPing reads a header as it is sent: NAME: VALUE.
func (s *Setup) readPing(v yamldoc.Value) error {
	text, err := v.Text()
	if err != nil {
		return err
	}
	name, value, _ := strings.Cut(text, ":")
	s.PingHeader, s.PingValue = name, strings.TrimSpace(value)
	if err := checkHeader(name); err != nil || s.PingValue == "" {
		return fmt.Errorf("%q: want a header and its value, such as \"X-Event: ping\"", plaintext.Short(text, maxSchemeText))
	}
	return checkASCII(s.PingValue)
}

func checkHeader(name string) error {
	if name == "" || len(name) > maxSchemeText || !plaintext.IsWord(name, "-_") {
		return fmt.Errorf("%q is not the name of a header", plaintext.Short(name, maxSchemeText))
	}
	return nil
}

func checkASCII(text string) error {
	if text == "" || len(text) > maxSchemeText || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
		return fmt.Errorf("want 1 to %d ASCII characters", maxSchemeText)
	}
	return nil
}

func checkSeparator(text string) error {
	if len(text) != 1 || strings.Trim(text, " ,;&|") != "" {
		return errors.New("want a space or one of , ; & |")
	}
	return nil
}

// checkTemplate checks what is signed. Two placeholders that touch would let a sender move characters from one value to the other.
func checkTemplate(text string) error {
	if err := checkASCII(text); err != nil {
		return err
	}
	rest, counts := text, map[string]int{}
	for touching := false; rest != ""; {
		open := strings.IndexByte(rest, '{')
		if open < 0 {
			break
		}
		end := strings.IndexByte(rest[open:], '}') + open + 1
		if end <= open {
			return errors.New("has a { without }")
		}
		place := rest[open:end]
		counts[place]++
		switch {
		case place != TimestampPlace && place != IDPlace && place != BodyPlace:
			return fmt.Errorf("%s is not one of: %s, %s, %s", place, TimestampPlace, IDPlace, BodyPlace)
		case counts[place] > 1:
			return errors.New("has " + place + " twice")
		case touching && open == 0:
			return errors.New("has no character between two placeholders, so what is signed would be ambiguous")
		}
		rest, touching = rest[end:], true
	}
	if counts[BodyPlace] == 0 {
		return errors.New("has no " + BodyPlace + ", so anybody could change the body")
	}
	return nil
}

// Pairs returns the section that describes the scheme.
func (s Scheme) Pairs() (pairs []yamldoc.Pair) {
	add := func(key, value string) {
		if value != "" {
			pairs = append(pairs, yamldoc.Pair{Key: key, Value: value})
		}
	}
	source := func(key string, from Source) {
		for _, f := range []yamldoc.Pair{{Key: "header", Value: from.Header}, {Key: "part", Value: from.Part}, {Key: "body", Value: from.Body}} {
			if f.Value != "" {
				pairs = append(pairs, yamldoc.Pair{Key: key, Value: []yamldoc.Pair{f}})
			}
		}
	}
	add("kind", string(s.Kind))
	add("header", s.Header)
	add("separator", s.Separator)
	add("prefix", s.Prefix)
	add("encoding", string(s.Encoding))
	add("hash", string(s.Hash))
	add("signed", s.Signed)
	source("timestamp", s.Timestamp)
	add("unit", string(s.Unit))
	if s.Tolerance > 0 {
		add("tolerance", FormatDuration(s.Tolerance))
	}
	source("id", s.ID)
	add("key", string(s.Secret.Encoding))
	add("key-prefix", s.Secret.Prefix)
	if s.Secret.Issued {
		pairs = append(pairs, yamldoc.Pair{Key: "issued", Value: true})
	}
	if s.Setup.PingHeader != "" {
		add("ping", s.Setup.PingHeader+": "+s.Setup.PingValue)
	}
	add("challenge", s.Setup.Challenge)
	if s.Accepted != 0 {
		pairs = append(pairs, yamldoc.Pair{Key: "accepted", Value: s.Accepted})
	}
	return pairs
}

// Line describes the scheme in one line, for an approval.
func (s Scheme) Line() string {
	if s.Name != "" {
		return s.Name
	}
	var words []string
	for _, p := range s.Pairs() {
		value := p.Value
		if from, nested := value.([]yamldoc.Pair); nested {
			value = fmt.Sprintf("%s %s", from[0].Key, from[0].Value)
		}
		words = append(words, fmt.Sprintf("%s=%q", p.Key, fmt.Sprint(value)))
	}
	return strings.Join(words, " ")
}
