package cli

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/app/doctor"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
	"github.com/ollim/ollim/internal/testkit/openaiapi"
)

// modelFaults runs `ollim model check --json` and returns what it found, as model, fault and uses.
func (w *world) modelFaults() (found []string, r result) {
	w.t.Helper()
	r = w.run("model", "check", "--json")
	for line := range strings.Lines(r.out) {
		var f app.ModelFault
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			w.t.Fatalf("%s: %v", line, err)
		}
		if f.Text == "" || f.Remedy == "" || f.Engine == "" {
			w.t.Errorf("incomplete: %s", line)
		}
		found = append(found, f.Model+" "+f.Fault+" "+strings.Join(f.UsedBy, ","))
	}
	return found, r
}

// listsOf counts the requests for a list of models.
func listsOf(hits []string) (n int) {
	for _, hit := range hits {
		if strings.HasPrefix(hit, "GET /v1/models") {
			n++
		}
	}
	return n
}

// TestModelCheck: a model that the service does not list, that the table says retires, or that has no price is named with what uses it.
func TestModelCheck(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	api.List("claude-sonnet-5-5-20260219", "claude-opus-5-5", "house-1")
	w.write("routines/old.md", routineText("old", "0 9 * * *", "model: claude-haiku-4-5\n"))
	w.write("routines/off.md", routineText("off", "0 9 * * *", "model: gone-1\nenabled: false\n"))
	w.write("routines/new.md", routineText("new", "0 9 * * *", "model: opus\n"))
	w.write("routines/plain.md", routineText("plain", "0 9 * * *", ""))
	w.write("routines/front.md", strings.Replace(routineText("front", "0 9 * * *", ""), "background: true\n", "", 1))
	w.write("agents/cook.md", "---\ndescription: cooks\nmodel: claude-haiku-4-5\n---\nCook.\n")
	w.write("agents/same.md", "---\ndescription: cooks\nmodel: inherit\n---\nCook.\n")
	w.must("config", "set", "chat.model", "house-1")
	found, r := w.modelFaults()
	want := []string{"claude-haiku-4-5 unlisted old,agents/cook.md"} // house-1 is on this machine, where it costs nothing
	if !slices.Equal(found, want) || r.status != int(statusFailed) || r.errOut != "" {
		t.Errorf("%q, %+v, want %q", found, r, want)
	}
	if n := len(api.Requests()); n != 0 {
		t.Errorf("a model was asked %d times", n)
	}

	if r := w.run("model", "check"); !strings.HasPrefix(r.out, "claude-haiku-4-5\tunlisted\told,agents/cook.md\t"+
		"is not in the list of models of 127.0.0.1:") ||
		!strings.HasSuffix(r.out, "\tollim routine edit old\n") {
		t.Errorf("%+v", r)
	}
	w.write("routines/old.md", routineText("old", "0 9 * * *", "model: sonnet\n"))
	w.remove("agents/cook.md")
	if found, r := w.modelFaults(); found != nil || r.status != 0 || r.errOut != "" {
		t.Errorf("%q, %+v", found, r)
	}

	// the table knows of retirements
	for day, want := range map[string]string{"2026-03-02": "retired", "2026-03-03": "retiring"} {
		if r := w.pipe("claude-sonnet-5-5 retires="+day, "model", "update", "-"); r.status != 0 {
			t.Fatalf("%+v", r)
		}
		if found, _ := w.modelFaults(); !slices.Equal(found, []string{"claude-sonnet-5-5 " + want + " native.model,old,plain"}) {
			t.Errorf("%s: %q", day, found)
		}
	}
}

// TestModelCheckPrices: OpenRouter's list has prices and days of retirement; a remedy takes them over.
func TestModelCheckPrices(t *testing.T) {
	t.Parallel()
	type obj = map[string]any
	api := openaiapi.New(t)
	w := newWorld(t, "--engine", "native")
	w.must("config", "set", "native.provider", "openai")
	w.must("config", "set", "native.base-url", api.URL())
	w.must("config", "set", "native.model", "z-ai/glm-5.3")
	w.write("routines/b.md", routineText("b", "0 9 * * *", "model: anthropic/claude-opus-4.5\n"))
	api.List(
		obj{
			"id": "z-ai/glm-5.3", "expiration_date": nil,
			"pricing": obj{"prompt": "0.0000014", "completion": "0.0000044", "input_cache_read": "0.00000026"},
		},
		obj{
			"id": "anthropic/claude-opus-4.5", "expiration_date": "2026-04-01",
			"pricing": obj{"prompt": "0.000004", "completion": "0.000025"},
		},
	)
	found, r := w.modelFaults()
	want := []string{"anthropic/claude-opus-4.5 retiring b", "anthropic/claude-opus-4.5 repriced b"}
	if !slices.Equal(found, want) || r.status != int(statusFailed) {
		t.Fatalf("%q, %+v, want %q", found, r, want)
	}
	w.wants(r.out, `"retires":"2026-04-01"`, "will be retired on 2026-04-01",
		"costs $4 in and $25 out for a million tokens by the list of 127.0.0.1:",
		"$5 in and $25 out, $0.5 from the cache for a million tokens by the table")
	_, line, _ := strings.Cut(r.out, "echo '")
	line, _, _ = strings.Cut(line, "'")
	if line != "anthropic/claude-opus-4.5 output=64000 window=200000 in=4 out=25" {
		t.Errorf("%q", line)
	}
	if r := w.pipe(line, "model", "update", "-"); r.status != 0 {
		t.Fatalf("%+v", r)
	}
	if found, _ := w.modelFaults(); !slices.Equal(found, []string{"anthropic/claude-opus-4.5 retiring b"}) {
		t.Errorf("%q", found)
	}
	w.wants(w.must("model", "list"), "anthropic/claude-opus-4.5\t\t200000\t64000\t4\t25\t4\t5\tyes\t2026-04-01\tb\n",
		"gpt-5.4\t\t", "\tno\t\t\n",
		"z-ai/glm-5.3\t\t1048576\t131072\t1.4\t4.4\t0.26\t1.75\tyes\t\tnative.model\n")
}

// TestModelCheckUnavailable: a service that cannot be asked is exit status 69; the list of the last time is used for what it shows.
func TestModelCheckUnavailable(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	w.must("config", "set", "native.model", "claude-opus-4-5")
	const noList = "native: the list of models is not checked: 127.0.0.1:"
	if found, r := w.modelFaults(); found != nil || r.status != 0 || !strings.Contains(r.errOut, noList) {
		t.Errorf("no list: %q, %+v", found, r)
	}
	api.List("claude-opus-5-5")
	w.modelFaults()
	api.FailList(529)
	found, r := w.modelFaults()
	if !slices.Equal(found, []string{"claude-opus-4-5 unlisted native.model"}) || r.status != int(statusUnavailable) {
		t.Errorf("%q, %+v", found, r)
	}
	if want := "ollim: model check: native: 127.0.0.1:"; !strings.HasPrefix(r.errOut, want) || strings.Count(r.errOut, "\n") != 1 {
		t.Errorf("%q, want %q", r.errOut, want)
	}
	w.must("config", "set", "native.base-url", "http://"+freeAddress(t)) // another service, whose list is not known
	if found, r := w.modelFaults(); found != nil || r.status != int(statusUnavailable) || !strings.Contains(r.errOut, "no connection to") {
		t.Errorf("%q, %+v", found, r)
	}
	w.must("config", "set", "native.base-url", "https://models.example.org")
	w.must("config", "set", "env", "X=y")
	if r := w.run("model", "check"); r.status != int(statusUnavailable) || !strings.Contains(r.errOut, "no key") ||
		!strings.Contains(r.errOut, "\nollim: hint: ollim secret set engine.ANTHROPIC_API_KEY") {
		t.Errorf("%+v", r)
	}
	if n := len(api.Requests()); n != 0 {
		t.Errorf("a model was asked %d times", n)
	}
}

// TestModelCheckOfClaude: with a key the list is that of the API; with only a login it is not asked for, which is said.
func TestModelCheckOfClaude(t *testing.T) {
	t.Parallel()
	api := anthropicapi.New(t)
	api.List("claude-sonnet-5-5")
	w := sound(t)
	w.useClaude()
	w.write("routines/big.md", routineText("big", "0 9 * * *", "model: opus[1m]\n"))
	w.write("routines/any.md", routineText("any", "0 9 * * *", "model: opusplan\n"))
	w.write("routines/own.md", routineText("own", "0 9 * * *", "model: house-1\n"))
	w.write("config.yaml", w.read("config.yaml")+"models: [\"claude-opus-5-5 retires=2026-12-01\"]\n")
	found, r := w.modelFaults()
	want := []string{"claude-opus-5-5 retiring claude-code,big,daily", "house-1 unpriced own"}
	if !slices.Equal(found, want) || !strings.Contains(r.errOut,
		"claude uses its login, and the list needs a key: ollim secret set engine.ANTHROPIC_API_KEY") {
		t.Errorf("%q, %+v, want %q", found, r, want)
	}
	w.wants(r.out, "echo 'house-1 in=USD out=USD' | ollim model update -")
	if r := w.pipe("house-1 in=1 out=2", "model", "update", "-"); r.status != 0 {
		t.Fatalf("%+v", r)
	}
	api.List("claude-sonnet-5-5", "house-1")
	w.secretsAs("engine.ANTHROPIC_API_KEY=k\nengine.ANTHROPIC_BASE_URL="+api.URL()+"\n", 0o600)
	want = []string{"claude-opus-5-5 unlisted claude-code,big,daily"}
	if found, r := w.modelFaults(); !slices.Equal(found, want) || r.status != 1 || r.errOut != "" {
		t.Errorf("%q, %+v", found, r)
	}
	if n := listsOf(api.Hits()); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// TestModelNotice: tick asks for the list at most once in seven days, notifies the owner of what it finds and of its end, and keeps a fault
// of the service to itself.
func TestModelNotice(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	path := filepath.Join(w.home, "inbox")
	w.must("config", "set", "delivery.command", "sh", "-c", "cat >>"+path)
	inbox := func() string {
		text, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return string(text)
	}
	w.write("routines/old.md", routineText("old", "0 9 29 2 *", "model: claude-haiku-4-5\n"))
	api.List("claude-sonnet-5-5", "claude-haiku-4-5")
	w.must("tick")
	w.must("tick")
	if n := listsOf(api.Hits()); n != 1 {
		t.Fatalf("%d requests", n)
	}
	var cache app.ModelLists
	if err := json.Unmarshal([]byte(w.read("state/cache/models.json")), &cache); err != nil ||
		cache.At.Before(time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)) || len(cache.Lists[0].Models) != 2 {
		t.Errorf("%+v, %v", cache, err)
	}
	api.List("claude-sonnet-5-5")
	for range 6 {
		w.pass(24 * time.Hour)
		w.run("tick")
	}
	if n := listsOf(api.Hits()); n != 1 {
		t.Fatalf("%d requests within seven days", n)
	}
	w.pass(24 * time.Hour)
	w.must("tick")
	w.must("tick")
	if n := listsOf(api.Hits()); n != 2 ||
		strings.Count(inbox(), "The model claude-haiku-4-5 is not in the list of models of 127.0.0.1:") != 1 ||
		!strings.Contains(inbox(), "To do: `ollim routine edit old`; `ollim model check` shows all") {
		t.Errorf("%d requests, %s", n, inbox())
	}
	for range 3 { // it is said once
		w.pass(24 * time.Hour)
		w.run("tick")
	}
	if strings.Count(inbox(), "claude-haiku-4-5") != 1 {
		t.Errorf("%s", inbox())
	}
	w.write("routines/old.md", routineText("old", "0 9 29 2 *", "model: sonnet\n"))
	w.pass(24 * time.Hour)
	w.must("tick")
	w.must("tick")
	if strings.Count(inbox(), "The model claude-haiku-4-5 needs no change any more") != 1 {
		t.Errorf("%s", inbox())
	}

	// a service that fails is noted in the cache only
	before := inbox()
	api.FailList(http.StatusInternalServerError)
	w.pass(7 * 24 * time.Hour)
	if r := w.run("tick"); r.status != 0 || r.errOut != "" {
		t.Errorf("%+v", r)
	}
	w.run("tick")
	if n := listsOf(api.Hits()); n != 3 || !strings.Contains(w.read("state/cache/models.json"), `"why": "127.0.0.1:`) || inbox() != before {
		t.Errorf("%d requests, %s, %s", n, w.read("state/cache/models.json"), inbox())
	}
}

// TestDoctorChecksModels: doctor warns of each fault of a model, and of a service that cannot be asked.
func TestDoctorChecksModels(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	find := func() (found []doctor.Finding) {
		list, _ := w.findings()
		return slices.DeleteFunc(list, func(f doctor.Finding) bool { return f.What != "models" })
	}
	api.List("claude-sonnet-5-5")
	if found := find(); len(found) != 1 || found[0].Result != doctor.Pass || found[0].Text != "1 model in use" {
		t.Errorf("%+v", found)
	}
	w.must("config", "set", "native.model", "claude-haiku-4-5")
	if found := find(); len(found) != 1 || found[0].Result != doctor.Warn || found[0].Remedy != "ollim config set native.model MODEL" ||
		!strings.HasPrefix(found[0].Text, "claude-haiku-4-5, used by native.model, is not in the list of models of 127.0.0.1:") {
		t.Errorf("%+v", found)
	}
	api.FailList(http.StatusUnauthorized)
	if found := find(); len(found) != 2 || !strings.Contains(found[0].Text, "the key was refused") || found[0].Result != doctor.Warn {
		t.Errorf("%+v", found)
	}
}

// TestModelUpdate: lines of a file change the setting models, and comments and order stay; an invalid line is named and changes nothing.
func TestModelUpdate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	text := "engine: script:script.yaml\nmodels: # mine\n  # the house\n  - own:8b window=8192 # small\n" +
		"  - claude-opus-5-5 in=3.50\n# the end\ntimezone: UTC\n"
	w.write("config.yaml", text)
	w.write("prices.txt", "# of today\nown:8b in=0 out=0\n\nnext-1 alias=next in=1 out=2\nclaude-opus-5-5 in=3\n")
	file := filepath.Join(w.dir, "prices.txt")
	if out := w.must("model", "update", file); out != "" {
		t.Errorf("%q", out)
	}
	want := "engine: script:script.yaml\nmodels: # mine\n  # the house\n  - own:8b window=8192 in=0 out=0 # small\n" +
		"  - claude-opus-5-5 in=3\n  - next-1 alias=next in=1 out=2\n# the end\ntimezone: UTC\n"
	if got := w.read("config.yaml"); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	w.wants(w.must("model", "list"), "next-1\tnext\t\t\t1\t2\t1\t1.25\t", "own:8b\t\t8192\t\t0\t0\t")
	w.must("model", "update", file)
	if got := w.read("config.yaml"); got != want {
		t.Errorf("twice: %s", got)
	}
	w.write("prices.txt", "next-1 in=2 out=2\n\nown:8b windw=1\n")
	bad := "ollim: model update: " + file + ":3: own:8b: \"windw\": unknown key (did you mean window?)\n"
	if r := w.run("model", "update", file); r.status != int(statusData) || r.errOut != bad {
		t.Errorf("%+v", r)
	}
	bad = "ollim: model update: standard input:1: x: in without out\n"
	if r := w.pipe("x in=1", "model", "update", "-"); r.status != int(statusData) || r.errOut != bad {
		t.Errorf("%+v", r)
	}
	if r := w.run("model", "update", file+".gone"); r.status != int(statusData) || !strings.Contains(r.errOut, ".gone: no such file") {
		t.Errorf("%+v", r)
	}
	if r := w.pipe(strings.Repeat("#", maxInput+1), "model", "update", "-"); r.status != int(statusData) {
		t.Errorf("%+v", r)
	}
	if got := w.read("config.yaml"); got != want {
		t.Errorf("a refused update changed %s", got)
	}
}
