package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// api makes calls of the Bot API: https://core.telegram.org/bots/api
type api struct {
	server string
	token  string
	client *http.Client
}

const (
	mostFile = 20 << 20         // bytes of a file that a bot can download
	pollTime = 50 * time.Second // of one call of getUpdates
	callTime = pollTime + 20*time.Second
	mostBody = 32 << 20 // bytes of an answer
)

func newAPI(server, token string) *api {
	return &api{server: strings.TrimRight(server, "/"), token: token, client: &http.Client{}}
}

// failure is an answer that says why a call failed.
type failure struct {
	Code        int    `json:"error_code"`
	Description string `json:"description"`
	Parameters  struct {
		RetryAfter float64 `json:"retry_after"` // seconds
		Migrated   int64   `json:"migrate_to_chat_id"`
	} `json:"parameters"`
}

func (f *failure) Error() string {
	if f.Parameters.Migrated != 0 {
		return fmt.Sprintf("Telegram: %s: the group is now %d; change doors.telegram.allow", f.Description, f.Parameters.Migrated)
	}
	return "Telegram: " + f.Description
}

func (f *failure) wait() time.Duration {
	return time.Duration(f.Parameters.RetryAfter * float64(time.Second))
}

// final reports whether no call at all can succeed with this token.
func (f *failure) final() bool {
	return f.Code == http.StatusUnauthorized || f.Code == http.StatusNotFound // the latter if it does not look like a token
}

// refused reports whether the same call would fail again.
func (f *failure) refused() bool {
	switch f.Code {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusRequestEntityTooLarge:
		return true
	}
	return false
}

// says reports whether the description has a part.
func says(err error, part string) bool {
	f := (*failure)(nil)
	return errors.As(err, &f) && strings.Contains(strings.ToLower(f.Description), part)
}

// call calls a method. The result may be nil.
func (a *api) call(ctx context.Context, method string, params map[string]any, result any) error {
	if params == nil {
		params = map[string]any{}
	}
	body, err := json.Marshal(params)
	if err != nil {
		return err
	}
	return a.post(ctx, method, "application/json", bytes.NewReader(body), result)
}

// upload calls a method with a file as one of its parameters.
func (a *api) upload(ctx context.Context, method, field string, f file, params map[string]any, result any) error {
	content, err := os.Open(f.Path)
	if err != nil {
		return err
	}
	defer content.Close() //nolint:errcheck // it is only read
	reader, writer := io.Pipe()
	defer reader.Close() //nolint:errcheck // it ends the writer
	form := multipart.NewWriter(writer)
	go func() { writer.CloseWithError(fill(form, field, f.Name, content, params)) }()
	return a.post(ctx, method, form.FormDataContentType(), reader, result)
}

// fill writes the form of an upload. Parameters that are no strings are written as JSON.
func fill(form *multipart.Writer, field, name string, content io.Reader, params map[string]any) error {
	for key, value := range params {
		text, is := value.(string)
		if !is {
			encoded, err := json.Marshal(value)
			if err != nil {
				return err
			}
			text = string(encoded)
		}
		if err := form.WriteField(key, text); err != nil {
			return err
		}
	}
	part, err := form.CreateFormFile(field, name)
	if err == nil {
		_, err = io.Copy(part, content)
	}
	return errors.Join(err, form.Close())
}

func (a *api) post(ctx context.Context, method, kind string, body io.Reader, result any) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.server+"/bot"+a.token+"/"+method, body)
	if err != nil {
		return withoutURL(method, err)
	}
	r.Header.Set("Content-Type", kind)
	answer, err := a.client.Do(r)
	if err != nil {
		return withoutURL(method, err)
	}
	defer answer.Body.Close() //nolint:errcheck // it is only read
	text, err := io.ReadAll(io.LimitReader(answer.Body, mostBody))
	if err != nil {
		return withoutURL(method, err)
	}
	var said struct {
		failure
		OK     bool            `json:"ok"`
		Result json.RawMessage `json:"result"`
	}
	if err := json.Unmarshal(text, &said); err != nil { // a gateway before the server
		return fmt.Errorf("Telegram: %s: status %s", method, answer.Status) //nolint:staticcheck // a name
	}
	if !said.OK {
		if said.Code == 0 {
			said.Code = answer.StatusCode
		}
		if said.Description == "" {
			said.Description = method + ": status " + answer.Status
		}
		return &said.failure
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(said.Result, result); err != nil {
		return fmt.Errorf("Telegram: %s: %w", method, err) //nolint:staticcheck // a name
	}
	return nil
}

// download writes the content of a file to a path.
func (a *api) download(ctx context.Context, id, path string, most int64) error {
	var found struct {
		Path string `json:"file_path"`
		Size int64  `json:"file_size"`
	}
	if err := a.call(ctx, "getFile", map[string]any{"file_id": id}, &found); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, a.server+"/file/bot"+a.token+"/"+found.Path, nil)
	if err != nil {
		return withoutURL("a file", err)
	}
	answer, err := a.client.Do(r)
	if err != nil {
		return withoutURL("a file", err)
	}
	defer answer.Body.Close() //nolint:errcheck // it is only read
	if answer.StatusCode != http.StatusOK {
		return &failure{Code: http.StatusBadRequest, Description: "the file cannot be downloaded: " + answer.Status}
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(answer.Body, most+1))
	if err = errors.Join(withoutURL("a file", err), f.Close()); err == nil && n > most {
		err = &failure{Code: http.StatusRequestEntityTooLarge, Description: fmt.Sprintf("the file has more than %d bytes", most)}
	}
	return err
}

// withoutURL returns an error of net/http without the URL, which has the token.
func withoutURL(method string, err error) error {
	if e := (*url.Error)(nil); errors.As(err, &e) {
		err = e.Err
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("Telegram: %s: %w", method, err) //nolint:staticcheck // a name
}
