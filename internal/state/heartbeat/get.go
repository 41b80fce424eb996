package heartbeat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Limit is the time limit of one call.
const Limit = 5 * time.Second

// maxBody is how much of an answer is read, in bytes, so that the connection ends in order.
const maxBody = 64 << 10

// CheckURL returns an error if s is not a URL to call.
func CheckURL(s string) error {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return fmt.Errorf("%q is not a URL: write one like https://hc-ping.com/ID", s)
	case u.User != nil || u.Fragment != "":
		return errors.New("want a URL without a password and without a fragment")
	}
	return nil
}

// Get requests a URL with GET. The error is nil if the answer is 2xx, and does not contain the URL, whose path may be a secret.
func Get(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, Limit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return errors.New("the URL is invalid")
	}
	request.Header.Set("User-Agent", "ollim")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("%s: %w", request.URL.Host, bare(err))
	}
	defer func() { _ = answer.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, maxBody)) // the status has arrived
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		return fmt.Errorf("%s: HTTP %s", request.URL.Host, answer.Status)
	}
	return nil
}

// bare removes the method and the URL from an error of a request.
func bare(err error) error {
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %s", Limit)
	}
	return err
}
