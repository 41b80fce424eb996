package api

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/server/listener/messenger"
)

// errTooLarge is the error of a file that is larger than the caller wants.
var errTooLarge = &messenger.Permanent{Text: "the file is too large"}

// Download returns a file that somebody attached. It is asked only of Discord's hosts for files, or of the address that replaces
// Discord's, and without the token.
func (c *Client) Download(ctx context.Context, address string, most int64) ([]byte, error) {
	at, err := url.Parse(address)
	if err != nil || !c.hasFiles(at) {
		return nil, fmt.Errorf("%w: it is not one of Discord's files", ErrRefused)
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, withoutAddress(err)
	}
	q.Header.Set("User-Agent", c.Agent())
	a, err := c.http.Do(q)
	if err != nil {
		return nil, withoutAddress(err)
	}
	defer func() { _ = a.Body.Close() }() // it was read as far as anybody wants it
	switch {
	case a.StatusCode != http.StatusOK:
		failed := errorOf(a.StatusCode, a.Header, nil)
		if a.StatusCode == http.StatusNotFound || a.StatusCode == http.StatusForbidden {
			failed.kind = ErrRefused
		}
		return nil, failed
	case a.ContentLength > most:
		return nil, errTooLarge
	}
	data, err := io.ReadAll(io.LimitReader(a.Body, most+1))
	switch {
	case err != nil:
		return nil, withoutAddress(err)
	case int64(len(data)) > most:
		return nil, errTooLarge
	}
	return data, nil
}

// hasFiles reports whether files are downloaded from an address.
func (c *Client) hasFiles(at *url.URL) bool {
	if base, err := url.Parse(c.o.Base); err == nil && c.o.Base != discordURL {
		return at.Scheme == base.Scheme && at.Host == base.Host
	}
	return at.Scheme == "https" && slices.Contains([]string{"cdn.discordapp.com", "media.discordapp.net"}, strings.ToLower(at.Host))
}
