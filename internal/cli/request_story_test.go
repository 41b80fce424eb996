package cli

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
	"github.com/ollim/ollim/internal/testkit/openaiapi"
)

// printsRequests fails unless run show prints these bodies of the latest run, byte for byte.
func (w *world) printsRequests(bodies [][]byte) {
	w.t.Helper()
	for i, body := range bodies {
		r := w.run("run", "show", "last", "--request", fmt.Sprint(i+1))
		if r.status != 0 || r.errOut != "" || r.out != string(body) {
			w.t.Errorf("request %d: %d %s\n%s\nwant\n%s", i+1, r.status, r.errOut, r.out, body)
		}
	}
	if len(bodies) > 0 {
		lines := w.must("run", "show", "last", "--requests", "--json")
		if n := strings.Count(lines, `"status":`); n != len(bodies) || strings.Count(lines, "\n") != n {
			w.t.Errorf("%d answers are listed, not %d:\n%s", n, len(bodies), lines)
		}
		if body := w.must("run", "show", "last", "--answer", fmt.Sprint(len(bodies))); !strings.Contains(body, "data:") {
			w.t.Errorf("the last answer is %q", body)
		}
	}
	r := w.run("run", "show", "last", "--request", fmt.Sprint(len(bodies)+1))
	if want := fmt.Sprintf("request %d: not kept: the run has %d", len(bodies)+1, len(bodies)); r.status != int(statusNoJob) || !strings.Contains(r.errOut, want) {
		w.t.Errorf("%+v, want %q", r, want)
	}
}

func sentTo(api *anthropicapi.Server, from int) (bodies [][]byte) {
	for _, q := range api.Requests()[from:] {
		bodies = append(bodies, q.Raw)
	}
	return bodies
}

// noise is a picture whose base64 is long.
func noise(t *testing.T) (path string) {
	t.Helper()
	picture := image.NewGray(image.Rect(0, 0, 100, 100))
	rand.New(rand.NewSource(1)).Read(picture.Pix)
	var content bytes.Buffer
	if err := png.Encode(&content, picture); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "noise.png")
	if err := os.WriteFile(path, content.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestRequestsAreKept: run show prints what the server of the model received, in each kind of conversation: with files, tools, an
// answer that the service refused to give, a subagent, and a compaction.
func TestRequestsAreKept(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	w.write("notes.md", "<b>oats</b> & \"rye\"\u2028\n")
	from := 0
	prints := func(want int) {
		t.Helper()
		bodies := sentTo(api, from)
		if from += len(bodies); len(bodies) != want {
			t.Errorf("%d requests, want %d", len(bodies), want)
		}
		w.printsRequests(bodies)
	}
	read := anthropicapi.Reply{ToolUses: []anthropicapi.ToolUse{{Name: "Read", Input: map[string]string{"file_path": "notes.md"}}}}
	api.Reply(read, anthropicapi.Reply{Status: 529}, anthropicapi.Reply{Text: "oats"})
	w.must("chat", "-f", noise(t), "what is in the notes?")
	prints(3)
	api.Reply(anthropicapi.Reply{Text: "yes"})
	w.must("chat", "sure?")
	prints(1)
	w.must("routine", "add", "daily", "--cron", "0 9 * * *", "--background", "--session", "persistent", "--allowed-tools", "Task", "Work.")
	task := anthropicapi.Reply{ToolUses: []anthropicapi.ToolUse{{Name: "Task", Input: map[string]string{"prompt": "read the notes"}}}}
	api.Reply(task, read, anthropicapi.Reply{Text: "read"}, anthropicapi.Reply{Text: "done"})
	w.must("fire", "daily")
	prints(4)
	api.Reply(anthropicapi.Reply{Text: "the summary"})
	w.must("session", "compact", "routine:daily", "keep oats")
	prints(1)
	if v := api.Violations(); len(v) > 0 {
		t.Error(v)
	}
}

// TestRequestsOfOtherServices: so does it for a service of OpenAI's kind.
func TestRequestsOfOtherServices(t *testing.T) {
	t.Parallel()
	w, api := newWorld(t, "--engine", "native"), openaiapi.New(t)
	for key, value := range map[string]string{"env": "OPENAI_API_KEY=k", "native.provider": "openai", "native.model": "local", "native.base-url": api.URL()} {
		w.must("config", "set", key, value)
	}
	w.write("notes.md", "<b>oats</b>\n")
	api.Reply(openaiapi.Reply{ToolCalls: []openaiapi.ToolCall{{Name: "Read", Arguments: `{"file_path":"notes.md"}`}}}, openaiapi.Reply{Text: "oats"})
	w.must("chat", "-f", noise(t), "what is in the notes?")
	var bodies [][]byte
	for _, q := range api.Requests() {
		bodies = append(bodies, q.Raw)
	}
	if len(bodies) != 2 {
		t.Errorf("%d requests", len(bodies))
	}
	w.printsRequests(bodies)
}

// TestRequestsThatAreNotKept: those with a secret are kept without it, those of a private conversation and of other engines not at
// all.
func TestRequestsThatAreNotKept(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	w.secrets("delivery.TOKEN=" + token + "\n")
	w.must("ask", "-n", "the token is "+token)
	r := w.run("run", "show", "last", "--request", "1")
	want := strings.ReplaceAll(string(lastOf(api).Raw), token, "[secret]")
	if r.status != 0 || r.out != want || !strings.Contains(r.errOut, "values of secrets are replaced by [secret]") {
		t.Errorf("%+v, want %s", r, want)
	}
	if found := w.holding("state", token); len(found) > 0 {
		t.Errorf("the token is in %q", found)
	}
	for _, n := range []string{"0", "-1"} {
		if r := w.run("run", "show", "last", "--request", n); r.status != int(statusUsage) {
			t.Errorf("%+v", r)
		}
	}
	w.must("ask", "-n", "--no-session", "okapi?")
	w.printsRequests(nil)
	w.script("turns:\n- - text: hi\n")
	w.must("config", "set", "engine", "script:script.yaml")
	w.must("ask", "-n", "hello")
	if r := w.run("run", "show", "last", "--request", "1"); r.status != int(statusNoJob) || !strings.Contains(r.errOut, "its engine, script:script.yaml, asks no model") {
		t.Errorf("%+v", r)
	}
}

// TestRequestsGoWithTheirRun: what a request shows stays as long as the record of its run, also when its transcript is deleted.
func TestRequestsGoWithTheirRun(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	w.must("config", "set", "keep.runs", "30d")
	w.must("ask", "-n", "-f", noise(t), "what?")
	first := w.last()
	w.pass(time.Hour)
	w.must("session", "rm", first["session_after"].(string))
	w.must("tick")
	for range 3 {
		w.pass(9 * 24 * time.Hour)
		w.must("tick")
	}
	w.printsRequests(sentTo(api, 0))
	for range 4 {
		w.pass(9 * 24 * time.Hour)
		w.must("tick")
	}
	if r := w.run("run", "show", first["id"].(string), "--request", "1"); r.status != int(statusNoJob) {
		t.Errorf("%+v", r)
	}
	if left, _ := os.ReadDir(filepath.Join(w.dir, "state/objects")); len(left) != 0 {
		t.Errorf("%d objects are left", len(left))
	}
}
