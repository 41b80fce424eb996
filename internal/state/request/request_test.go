package request

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/object"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/testkit"
	"github.com/ollim/ollim/internal/testkit/storetest"
)

const run = "20260302T090000.000Z-abcdef"

func at(dir string, warn func(string)) Book {
	home, disk := paths.Dir(dir), store.Disk{Now: time.Now, Warn: warn}
	return Book{Home: home, Disk: disk, Objects: object.Box{Home: home, Disk: disk}}
}

func newBook(t testing.TB) Book {
	return at(testkit.MemoryDir(t), func(text string) { t.Error(text) })
}

// Writers that are killed leave no line that cannot be rebuilt.
func TestConformance(t *testing.T) {
	storetest.Run(t, storetest.Store{
		File: func(dir string) string { return paths.Dir(dir).Requests(run) },
		Lock: func(dir string) string { return paths.Dir(dir).Run(run, "lock") },
		Busy: lock.ErrBusy,
		Add: func(ctx context.Context, dir string, warn func(string), item string) error {
			_, err := at(dir, warn).Log(run).Add(ctx, conversation(item))
			return err
		},
		Count: func(dir string, warn func(string)) (int, error) {
			for n := 1; ; n++ {
				if _, _, err := at(dir, warn).Read(run, n); errors.Is(err, ErrNone) {
					return n - 1, nil
				} else if err != nil {
					return n - 1, err
				}
			}
		},
	})
}

// conversation is the body of a request as the native engine makes it: the last two messages of the user have the mark.
func conversation(texts ...string) []byte {
	var messages []string
	for i, text := range texts {
		role, mark := "user", ""
		if i%2 == 1 {
			role = "assistant"
		} else if i >= len(texts)-3 {
			mark = `,"cache_control":{"type":"ephemeral","ttl":"1h"}`
		}
		messages = append(messages, fmt.Sprintf(`{"role":%q,"content":[{"type":"text","text":%q%s}]}`, role, text, mark))
	}
	return fmt.Appendf(nil, `{"model":"tiny","max_tokens":8192,"tools":[{"name":"Read"}],"system":[{"type":"text","text":"Be brief."}],"messages":[%s]}`+"\n",
		strings.Join(messages, ","))
}

func add(t testing.TB, log *runLog, body []byte) {
	t.Helper()
	if _, err := log.Add(context.Background(), body); err != nil {
		t.Fatal(err)
	}
}

func wants(t testing.TB, b Book, n int, want []byte) {
	t.Helper()
	body, _, err := b.Read(run, n)
	if err != nil || !bytes.Equal(body, want) {
		t.Fatalf("request %d: %v\n%s\nwant\n%s", n, err, body, want)
	}
}

// What is added is read byte for byte, whatever it is.
func TestRoundTrip(t *testing.T) {
	b := newBook(t)
	log, added := b.Log(run), [][]byte{}
	picture := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("\x89PNG"), 2000))
	for _, body := range []string{
		"", "no JSON", "[1,2]\n", "{}\n", "{}", `{"messages":"x"}` + "\n", `{"messages":[]}` + "\n", `{ "model" : "spaced" }` + "\n", `{"messages":[1],"messages":[2]}` + "\n",
		`{"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + picture + `"}},{"text":"` + picture + `"}]}]}` + "\n",
		`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + picture + `"}}]}]}` + "\n",
		`{"messages":[{"content":"` + strings.Repeat("x", 9999) + `","cache_control":{"type":"ephemeral"}}]}` + "\n",
		`{"object":"x","messages":[{"object":"x","content":[{"a":"\",\"cache_control\":{}}]}","cache_control":{}}]}]}` + "\n",
		`{"messages":[{"content":[{"cache_control":{"a":{}},"cache_control":{"a":"` + strings.Repeat("é<>&\u2028", 4) + `"}}]}]}` + "\n",
	} {
		add(t, log, []byte(body))
		added = append(added, []byte(body))
	}
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(rapid.String(), 0, 90).Draw(t, "texts")
		body := conversation(texts...)
		if !json.Valid(body) { // %q is not always JSON
			t.Skip("the text is not JSON")
		}
		added = append(added, body)
		if _, err := log.Add(context.Background(), body); err != nil {
			t.Fatal(err)
		}
	})
	for n, body := range added {
		wants(t, b, n+1, body)
	}
	if _, _, err := b.Read(run, len(added)+1); !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), fmt.Sprint(len(added))) {
		t.Errorf("%v", err)
	}
}

// sizes returns how many objects there are, and the bytes of the lines and of the objects.
// TestAnswers: each answer belongs to its request, whatever order they come in, and survives a second writer of the run. A body without a
// line break, with a system prompt in parts, is rebuilt as it was; parts that do not change are stored once.
func TestAnswers(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	ctx := context.Background()
	body := func(n int) []byte {
		return fmt.Appendf(nil, `{"model":"m","system":[{"type":"text","text":"request %d"},{"type":"text","text":%q,"cache_control":{"type":"ephemeral"}}],"messages":[]}`,
			n, strings.Repeat("a long prompt ", 1000))
	}
	for round := range 2 {
		log := b.Log(run)
		for i := range 2 {
			if n, err := log.Add(ctx, body(2*round+i+1)); err != nil || n != 2*round+i+1 {
				t.Fatalf("number %d, %v", n, err)
			}
		}
		for i := 1; i >= 0; i-- {
			n := 2*round + i + 1
			if err := log.AddAnswer(ctx, Answer{To: n, Status: 200, Usage: &runlog.Usage{In: n}, Cost: 0.5, Body: fmt.Appendf(nil, "answer %d", n)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	all, err := b.Exchanges(run)
	if err != nil || len(all) != 4 {
		t.Fatalf("%+v, %v", all, err)
	}
	for i, x := range all {
		wants(t, b, i+1, body(i+1))
		answer, _, err := b.ReadAnswer(run, i+1)
		if err != nil || x.Answer == nil || x.Answer.Usage.In != i+1 || string(answer) != fmt.Sprintf("answer %d", i+1) {
			t.Errorf("request %d: %+v %q %v", i+1, x, answer, err)
		}
	}
	if _, _, err := b.ReadAnswer(run, 5); !errors.Is(err, ErrNone) {
		t.Error(err)
	}
	if _, _, content := sizes(t, b); content > 16000 {
		t.Errorf("the objects have %d bytes: the same part is stored again", content)
	}
	named, err := b.Named([]string{run})
	if objects, _, _ := sizes(t, b); err != nil || len(named) != objects {
		t.Errorf("%d of %d objects are named, %v", len(named), objects, err)
	}
}

// TestSpreadSecret: a secret whose pieces are in several events of an answer is not stored; the rest of the answer is.
func TestSpreadSecret(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.Secrets = func() plaintext.Secrets { return plaintext.NewSecrets("sk-very-secret") }
	log := b.Log(run)
	add(t, log, conversation("a"))
	body := `data: {"delta":{"text":"it is sk-ver"}}` + "\n" + `data: {"delta":{"text":"y-secret"}}` + "\n"
	if err := log.AddAnswer(context.Background(), Answer{To: 1, Status: 200, Body: []byte(body)}); err != nil {
		t.Fatal(err)
	}
	all, err := b.Exchanges(run)
	if err != nil || len(all) != 1 || all[0].Answer == nil || all[0].Answer.Status != 200 {
		t.Errorf("%+v, %v", all, err)
	}
	if kept, _, err := b.ReadAnswer(run, 1); err != nil || len(kept) > 0 {
		t.Errorf("%q is kept, %v", kept, err)
	}
}

func sizes(t testing.TB, b Book) (objects int, lines, content int64) {
	t.Helper()
	list, err := os.ReadDir(b.Home.Objects())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		content += info.Size()
	}
	info, err := os.Stat(b.Home.Requests(run))
	if err != nil {
		t.Fatal(err)
	}
	return len(list), info.Size(), content
}

// A long conversation that is sent again after every message takes the place of its messages: each is one object, wherever the marks are
// and whichever process adds it.
func TestMessagesAreStoredOnce(t *testing.T) {
	b := newBook(t)
	var texts []string
	count := testkit.Full(401, 241)
	for i := range count {
		texts = append(texts, fmt.Sprintf("%d: %s", i, strings.Repeat("word ", 200)))
	}
	sent := 0
	for i := 1; i <= len(texts); i += 2 {
		log := b.Log(run) // another process each time
		body := conversation(texts[:i]...)
		sent += len(body)
		add(t, log, body)
	}
	wants(t, b, (count+1)/2, conversation(texts...))
	whole := len(conversation(texts...))
	objects, lines, content := sizes(t, b)
	if lists := count / 32; objects != count+lists+2 { // the system prompt and the tools
		t.Errorf("%d objects", objects)
	}
	if content > int64(whole)*11/10 || lines > int64(sent)/50 {
		t.Errorf("%d bytes of objects and %d of lines for a conversation of %d that was sent in %d", content, lines, whole, sent)
	}
}

// A file is the object that a transcript refers to, and not stored once more in base64.
func TestFilesAreStoredOnce(t *testing.T) {
	b := newBook(t)
	file := bytes.Repeat([]byte("%PDF-1.7 "), 100_000)
	hash, err := b.Objects.Put(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	body := []byte(`{"messages":[{"role":"user","content":[{"type":"document","source":{"type":"base64","data":"` +
		base64.StdEncoding.EncodeToString(file) + `"},"cache_control":{"type":"ephemeral"}}]}]}` + "\n")
	add(t, b.Log(run), body)
	wants(t, b, 1, body)
	if objects, _, content := sizes(t, b); objects != 2 || content > int64(len(file))+1000 {
		t.Errorf("%d objects of %d bytes", objects, content)
	}
	if named, err := b.Named([]string{run}); err != nil || !named[hash] {
		t.Errorf("%v, %v", named, err)
	}
}

// The value of a secret is stored nowhere, not even as the hash of a body that holds it.
func TestSecretsAreReplaced(t *testing.T) {
	b := newBook(t)
	b.Secrets = func() plaintext.Secrets { return plaintext.NewSecrets("sup3r-s3cret-t0ken") }
	body := conversation("the token is sup3r-s3cret-t0ken")
	add(t, b.Log(run), body)
	got, hidden, err := b.Read(run, 1)
	if err != nil || !hidden || !bytes.Equal(got, conversation("the token is [secret]")) {
		t.Errorf("%v, %v\n%s", hidden, err, got)
	}
	add(t, b.Log(run), conversation("nothing"))
	if _, hidden, err := b.Read(run, 2); hidden || err != nil {
		t.Errorf("%v, %v", hidden, err)
	}
	sum := sha256.Sum256(body)
	err = filepath.WalkDir(string(b.Home), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if strings.Contains(string(content), "sup3r") || strings.Contains(string(content), hex.EncodeToString(sum[:])) {
			t.Errorf("%s: %s", path, content)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// A torn line and a lost object cost the requests that need them. A truncated object is replaced when it is added again.
func TestDamage(t *testing.T) {
	b := newBook(t)
	log := b.Log(run)
	first, second := conversation("one"), conversation("one", "two", "three")
	add(t, log, first)
	f, err := os.OpenFile(b.Home.Requests(run), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"at":"2026-03-02T09:00:00Z","body":{"mes`); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	add(t, log, second)
	wants(t, b, 1, first)
	wants(t, b, 2, second)
	named, err := b.Named([]string{run, "20260101T090000.000Z-000000"})
	if err != nil || len(named) < 5 {
		t.Fatalf("%v, %v", named, err)
	}
	for hash := range named {
		if err := os.WriteFile(filepath.Join(b.Home.Objects(), hash), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for n := 1; n <= 2; n++ {
		if body, _, err := b.Read(run, n); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s, %v", body, err)
		}
	}
	add(t, b.Log(run), second)
	for n, body := range [][]byte{first, second, second} {
		wants(t, b, n+1, body)
	}
}

// BenchmarkAdd adds the requests of one run: a conversation that grows by two messages of 2 KB.
func BenchmarkAdd(b *testing.B) {
	for _, n := range []int{1, 101, 1001} {
		b.Run(fmt.Sprintf("%d messages", n), func(b *testing.B) {
			book := newBook(b)
			texts := make([]string, n)
			for i := range texts {
				texts[i] = fmt.Sprint(i, strings.Repeat(" word", 400))
			}
			log := book.Log(run)
			add(b, log, conversation(texts...))
			i := 0
			for b.Loop() {
				b.StopTimer()
				i++
				body := conversation(append(texts[:n:n], fmt.Sprint("question ", i), fmt.Sprint("answer ", i))...)
				b.StartTimer()
				add(b, log, body)
			}
		})
	}
}
