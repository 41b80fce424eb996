package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/store"
)

func TestReadAndWriteJSON(t *testing.T) {
	d, warned := disk()
	path := filepath.Join(t.TempDir(), "new", "f.json")
	got, err := store.ReadJSON[map[string]string](d, path)
	if got != nil || err != nil {
		t.Errorf("not there: %v, %v", got, err)
	}
	want := map[string]string{"a": "x <&> \n ☃", "b": ""}
	if err := store.WriteJSON(path, want, store.Synced); err != nil {
		t.Fatal(err)
	}
	if got := read(t, path); got != "{\n  \"a\": \"x <&> \\n ☃\",\n  \"b\": \"\"\n}\n" {
		t.Errorf("%s", got)
	}
	permissions(t, path, 0o600)
	if got, err = store.ReadJSON[map[string]string](d, path); !maps.Equal(got, want) || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	if err := store.WriteJSON(path, func() {}, store.Synced); !errors.As(err, new(*store.NotWritten)) {
		t.Errorf("what is no JSON: %v", err)
	}
	if got, err := store.ReadJSON[map[string]string](d, path); !maps.Equal(got, want) || err != nil {
		t.Errorf("after that %v, %v", got, err)
	}
	if got, err := store.ReadJSON[int](d, filepath.Dir(path)); err == nil {
		t.Errorf("a folder is %v", got)
	}
	if len(*warned) > 0 {
		t.Errorf("warned %q", *warned)
	}
	only(t, filepath.Dir(path), "f.json")
}

func TestCorruptIsSetAside(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "torn": "[1, 2", "trailing": "[1] x", "other shape": `{"a": 1}`, "half right": `[1, "2"]`, "zeros": "\x00\x00",
	} {
		t.Run(name, func(t *testing.T) {
			d, warned := disk()
			dir := t.TempDir()
			path := filepath.Join(dir, "f.json")
			write(t, path, text)
			got, err := store.ReadJSON[[]int](d, path)
			if got != nil || err != nil {
				t.Errorf("%v, %v", got, err)
			}
			const aside = "f.json.corrupt-20260224T110000.123456Z"
			only(t, dir, aside)
			if got := read(t, filepath.Join(dir, aside)); got != text {
				t.Errorf("set aside as %q", got)
			}
			if len(*warned) != 1 || !strings.HasPrefix((*warned)[0], path+": not valid (") || !strings.Contains((*warned)[0], aside) {
				t.Errorf("warned %q", *warned)
			}
		})
	}
}

func TestEditJSON(t *testing.T) {
	d, warned := disk()
	dir := t.TempDir()
	path, lockPath := filepath.Join(dir, "f.json"), filepath.Join(dir, "locks", "f.lock")
	ctx := context.Background()
	add := func(list *[]int) error { *list = append(*list, len(*list)); return nil }
	for range 3 {
		if err := store.EditJSON(ctx, d, lockPath, path, add); err != nil {
			t.Fatal(err)
		}
	}
	failure := errors.New("no")
	err := store.EditJSON(ctx, d, lockPath, path, func(list *[]int) error { *list = nil; return failure })
	if !errors.Is(err, failure) {
		t.Errorf("%v", err)
	}
	if got := read(t, path); got != "[\n  0,\n  1,\n  2\n]\n" {
		t.Errorf("%s", got)
	}
	write(t, path, "nonsense")
	if err := store.EditJSON(ctx, d, lockPath, path, add); err != nil {
		t.Fatal(err)
	}
	if got := read(t, path); got != "[\n  0\n]\n" || len(*warned) != 1 {
		t.Errorf("after nonsense %s, warned %q", got, *warned)
	}
	if !lock.Free(lockPath) {
		t.Error("the lock is still held")
	}
}

func TestEditJSONExcludes(t *testing.T) {
	d, _ := disk()
	dir := t.TempDir()
	path, lockPath := filepath.Join(dir, "f.json"), filepath.Join(dir, "f.lock")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				if err := store.EditJSON(context.Background(), d, lockPath, path, func(n *int) error { *n++; return nil }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if got := read(t, path); got != "160\n" {
		t.Errorf("counted to %s", got)
	}
}

func TestEditJSONWaitsForTheLock(t *testing.T) {
	d, _ := disk()
	dir := t.TempDir()
	path, lockPath := filepath.Join(dir, "f.json"), filepath.Join(dir, "f.lock")
	held, err := lock.Try(lockPath)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	err = store.EditJSON(ctx, d, lockPath, path, func(*int) error { t.Error("edited without the lock"); return nil })
	if !errors.Is(err, lock.ErrBusy) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("it was written")
	}
}

func TestMisfit(t *testing.T) {
	type inner struct {
		On bool `json:"on"`
	}
	type shape struct {
		inner
		Number int      `json:"number"`
		Cost   *float64 `json:"cost"`
		Text   string   `json:"text"`
		List   []inner  `json:"list"`
		Part   inner    `json:"part"`
	}
	for input, want := range map[string]string{
		`[]`:                  "want a JSON object",
		`{"number":0.5}`:      "number: want a whole number",
		`{"cost":"x"}`:        "cost: want a number",
		`{"text":1}`:          "text: want text",
		`{"list":"x"}`:        "list: want a list",
		`{"list":[{"on":1}]}`: "on: want true or false",
		`{"part":[]}`:         "part: want a JSON object",
		`{"other":1}`:         `unknown field "other"`,
		`{"number":1,}`:       "invalid character '}' looking for beginning of object key string",
	} {
		decoder := json.NewDecoder(strings.NewReader(input))
		decoder.DisallowUnknownFields()
		if err := store.Misfit(decoder.Decode(&shape{})); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", input, err, want)
		}
	}
}
