package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/config"
	models "github.com/ollim/ollim/internal/state/model"
)

// Listed is a model in a service's list of its models.
type Listed struct {
	ID      string   `json:"id"`
	Aliases []string `json:"aliases,omitempty"`
	Retires string   `json:"retires,omitempty"` // day, as in 2027-01-31, from which the service no longer has it; "": none is given
	Ending  bool     `json:"ending,omitempty"`  // the list marks it as deprecated or inactive, with or without a day
	Price   *Price   `json:"price,omitempty"`   // nil: the list gives none
}

// Price is what a list says about prices, in USD for a million tokens. A CacheRead below 0 is not given.
type Price struct {
	In        float64 `json:"in"`
	Out       float64 `json:"out"`
	CacheRead float64 `json:"cache_read"`
}

// ErrNoList is the error of a service that has no list of models.
var ErrNoList = errors.New("the service has no list of models")

// Limits of a list. The largest known one, of OpenRouter, has 600 kB.
const (
	listTime  = 15 * time.Second // for all pages
	listBytes = 8 << 20          // of all pages
	listPages = 50
	pageSize  = 1000 // models that are asked for at once, the most that Anthropic's service gives
)

// Models asks the service for the list of its models, which costs nothing. api is config.Anthropic or config.OpenAI. A redirect is not
// followed. The error is ErrNoList, or one of those of [Provider.Ask].
func (o Options) Models(ctx context.Context, api string) ([]Listed, error) {
	o = o.withDefaults(Vendor(api))
	o.Idle, o.limit = min(o.Idle, listTime), min(o.limit, listBytes)
	late := fmt.Errorf("%w: the list of models did not arrive within %s", ErrUnreached, listTime)
	ctx, cancel := context.WithTimeoutCause(ctx, listTime, late)
	defer cancel()
	l := lister{x: open(ctx, o, "", nil), header: (&completions{o}).header(), next: o.BaseURL + "/models", seen: map[string]bool{}}
	defer l.x.close()
	if api != config.OpenAI {
		l.header, l.cursor = (&messages{o}).header(), "after_id"
		l.next = fmt.Sprintf("%s/v1/models?limit=%d", strings.TrimSuffix(o.BaseURL, "/v1"), pageSize)
	}
	return l.all()
}

// lister reads the pages of a list.
type lister struct {
	x      *exchange
	header map[string]string
	cursor string // parameter that takes the last id of a page; "" if pages name the next one by its address only
	next   string // address of the next page; "" after the last one
	seen   map[string]bool
	read   int64 // bytes of all pages so far
}

func (l *lister) all() (list []Listed, err error) {
	for pages := 0; l.next != ""; pages++ {
		if pages == listPages || l.seen[l.next] {
			return nil, fmt.Errorf("%w: the list of models of %s has no end", ErrGarbled, l.x.host)
		}
		l.seen[l.next] = true
		page, err := l.get(l.next)
		if err != nil {
			return nil, err
		}
		for _, m := range page.Data {
			if m.ID != "" {
				list = append(list, m.listed())
			}
		}
		if l.next, err = l.after(page); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// after returns the address of the page after this one. A page on another host would get the key, so it is an error.
func (l *lister) after(p listPage) (string, error) {
	at, err := url.Parse(l.next)
	if err != nil {
		return "", err
	}
	switch {
	case l.cursor != "" && p.More && p.Last != "":
		query := at.Query()
		query.Set(l.cursor, p.Last)
		at.RawQuery = query.Encode()
		return at.String(), nil
	case l.cursor == "" && p.Links.Next != "":
		to, err := at.Parse(p.Links.Next)
		if err != nil || to.Host != at.Host || to.Scheme != at.Scheme {
			return "", fmt.Errorf("%w: the list of models of %s continues elsewhere", ErrGarbled, l.x.host)
		}
		return to.String(), nil
	}
	return "", nil
}

// get reads one page.
func (l *lister) get(address string) (page listPage, err error) {
	x := l.x
	req, err := http.NewRequestWithContext(x.ctx, http.MethodGet, address, nil)
	if err != nil {
		return page, unreachable("", err)
	}
	for name, value := range l.header {
		req.Header.Set(name, value)
	}
	req.Header.Set("User-Agent", "ollim")
	x.host = req.URL.Host
	x.timer.Reset(x.o.Idle)
	resp, err := x.client.Do(req)
	x.timer.Stop()
	if err != nil {
		return page, x.ended(unreachable(x.host, err))
	}
	limited := &body{ReadCloser: resp.Body, of: x, read: l.read}
	resp.Body = limited
	defer func() { _ = resp.Body.Close() }()
	defer func() { l.read = limited.read }()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return page, fmt.Errorf("%s: %w", x.host, ErrNoList)
	default:
		return page, x.ended(x.refused(resp, ""))
	}
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return page, x.ended(err)
	}
	if raw = bytes.TrimSpace(raw); len(raw) > 0 && raw[0] == '[' { // Together sends the list alone
		raw = slices.Concat([]byte(`{"data":`), raw, []byte("}"))
	}
	if err := json.Unmarshal(raw, &page); err != nil || page.Data == nil && page.Object != "list" {
		return page, fmt.Errorf("%w: %s sent no list of models, as a proxy or a network's login page does", ErrGarbled, x.host)
	}
	return page, nil
}

// ended returns the cause of the end of the time, if that is why a request failed.
func (x *exchange) ended(err error) error {
	switch cause := context.Cause(x.ctx); {
	case errors.Is(cause, errIdle):
		return fmt.Errorf("%w: no data from %s for %s", ErrCut, x.host, x.o.Idle)
	case cause != nil:
		return cause
	}
	return err
}

// listPage is a page of a list.
type listPage struct {
	Object string       `json:"object"`
	Data   []listedWire `json:"data"` // null for an empty list, with Ollama
	More   bool         `json:"has_more"`
	Last   string       `json:"last_id"`
	Links  struct {
		Next string `json:"next"`
	} `json:"links"` // OpenRouter
}

// listedWire is a model with the fields that services add to the vendors' forms.
type listedWire struct {
	ID         string          `json:"id"`
	Aliases    []string        `json:"aliases"`         // Mistral
	Deprecated json.RawMessage `json:"deprecation"`     // Mistral: an instant
	Expires    string          `json:"expiration_date"` // OpenRouter
	Retires    string          `json:"retirement_date"`
	Flag       json.RawMessage `json:"deprecated"` // true, or a day
	Active     *bool           `json:"active"`     // Groq
	Pricing    struct {
		Prompt     amount `json:"prompt"` // OpenRouter: USD for a token, as a text; below 0 if it depends on the request
		Completion amount `json:"completion"`
		CacheRead  amount `json:"input_cache_read"`
	} `json:"pricing"`
}

func (w listedWire) listed() Listed {
	m := Listed{ID: w.ID, Aliases: w.Aliases, Ending: w.Active != nil && !*w.Active || plain(w.Flag) == "true"}
	for _, text := range []string{w.Retires, w.Expires, plain(w.Deprecated), plain(w.Flag)} {
		if day, ok := dayOf(text); ok && m.Retires == "" {
			m.Retires = day
		}
	}
	if p := w.Pricing; p.Prompt.given && p.Completion.given && p.Prompt.usd >= 0 && p.Completion.usd >= 0 {
		m.Price = &Price{In: p.Prompt.million(), Out: p.Completion.million(), CacheRead: -1}
		if p.CacheRead.given {
			m.Price.CacheRead = p.CacheRead.million()
		}
	}
	return m
}

// dayOf returns the day of a date or an instant.
func dayOf(text string) (string, bool) {
	for _, form := range []string{time.DateOnly, time.RFC3339, "2006-01-02T15:04:05"} {
		if at, err := time.Parse(form, text); err == nil {
			return at.Format(time.DateOnly), true
		}
	}
	return "", false
}

// amount is a price for one token: a number, or a text that is one. Anything else is not given.
type amount struct {
	usd   float64
	given bool
}

// UnmarshalJSON implements [json.Unmarshaler].
func (a *amount) UnmarshalJSON(raw []byte) error {
	n, err := strconv.ParseFloat(plain(raw), 64)
	*a = amount{n, err == nil && !math.IsNaN(n) && math.Abs(n) < 1}
	return nil
}

// million returns the price of a million tokens, without the noise of the conversion.
func (a amount) million() float64 { return math.Round(a.usd*1e12) / 1e6 }

// Find returns the entry of a list that a name is served by: the model itself, its dated form, or the form that the service's short name
// stands for.
func Find(list []Listed, name string) (Listed, bool) {
	forms := []func(Listed) bool{
		func(m Listed) bool { return m.ID == name || slices.Contains(m.Aliases, name) },
		func(m Listed) bool { return m.ID == name+":latest" },       // Ollama
		func(m Listed) bool { return models.Undated(m.ID) == name }, // claude-sonnet-4-5, gpt-4.1
	}
	for _, end := range []string{"-latest", "-0"} { // claude-3-5-haiku-latest, claude-sonnet-4-0
		if short, cut := strings.CutSuffix(name, end); cut {
			forms = append(forms, func(m Listed) bool { return models.Undated(m.ID) == short })
		}
	}
	variants := []string{"nitro", "floor", "online", "exacto"} // of OpenRouter, which does not list them
	if base, variant, cut := strings.Cut(name, ":"); cut && slices.Contains(variants, variant) {
		forms = append(forms, func(m Listed) bool { return m.ID == base })
	}
	for _, fits := range forms {
		if i := slices.IndexFunc(list, fits); i >= 0 {
			return list[i], true
		}
	}
	return Listed{}, false
}

// Unavailable reports whether an error of Models says that the service cannot be asked now, or not with this key.
func Unavailable(err error) bool {
	_, overloaded := errors.AsType[*engine.Overloaded](err)
	return overloaded || slices.ContainsFunc([]error{engine.ErrUnavailable, ErrCut, ErrGarbled, ErrRejected}, func(target error) bool {
		return errors.Is(err, target)
	})
}
