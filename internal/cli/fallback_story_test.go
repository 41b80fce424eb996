package cli

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

const (
	goneModel = "claude-opus-4-8"
	nextModel = "claude-sonnet-5-5"
)

// newFallbackWorld is a native world with a routine that asks goneModel, and nextModel if that cannot be used.
func newFallbackWorld(t *testing.T, keys string) (*recipient, *anthropicapi.Server) {
	t.Helper()
	w, api := newNativeWorld(t)
	p := w.phone()
	p.must("config", "set", "fallback", nextModel)
	p.write("routines/look.md", "---\nid: look\ncron: \"0 0 1 1 *\"\nbackground: true\ndescription: Look\nmodel: "+goneModel+"\n"+keys+"---\nLook around.\n")
	return p, api
}

// refuse lets the service refuse requests to goneModel while refused is true.
func refuse(api *anthropicapi.Server, refused *bool, reply anthropicapi.Reply) {
	api.On(func(q anthropicapi.Request) bool { return *refused && q.Model == goneModel }, func(anthropicapi.Request) anthropicapi.Reply { return reply })
}

func asked(api *anthropicapi.Server) (models []string) {
	for _, q := range api.Requests() {
		models = append(models, q.Model)
	}
	return models
}

// A model that does not exist, is refused for the account or stays overloaded is replaced by the next one. The record, the lists and one
// notice say so. The prompt is in the conversation once, and the cause ends when the model answers again.
func TestFallback(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reply  anthropicapi.Reply
		reason string
		toDo   string
	}{
		"gone":       {anthropicapi.Reply{Status: 404, Message: "model: " + goneModel}, "cannot be used: model .*404|model: " + goneModel, "set model: with `ollim routine edit look`"},
		"refused":    {anthropicapi.Reply{Status: 403}, "does not have permission", "set model: with `ollim routine edit look`"},
		"overloaded": {anthropicapi.Reply{Status: 529}, "stays overloaded: .*verloaded", "nothing if it passes; else set model: with `ollim routine edit look`"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, api := newFallbackWorld(t, "session: persistent\n")
			refused := true
			refuse(api, &refused, c.reply)
			p.must("fire", "look")
			r := p.last()
			if r["outcome"] != "ok" || r["model"] != goneModel || r["model_used"] != nextModel || !regexp.MustCompile(c.reason).MatchString(fmt.Sprint(r["fallback"])) {
				t.Errorf("%v: %v, %v answered: %v", r["outcome"], r["model"], r["model_used"], r["fallback"])
			}
			all := api.Requests()
			last := all[len(all)-1]
			if last.Model != nextModel || len(last.Messages) != 1 || strings.Count(string(last.Raw), "Look around.") != 1 {
				t.Errorf("asked %s with %d messages", last.Model, len(last.Messages))
			}
			p.gets("^" + nextModel + " answers in place of " + goneModel + ": .*(" + c.reason + ").*It concerns: Look\nTo do: " + c.toDo)
			for _, args := range [][]string{{"run", "list"}, {"run", "log", "last"}, {"status"}} {
				if out := p.must(args...); !strings.Contains(out, nextModel) {
					t.Errorf("%v does not say it:\n%s", args, out)
				}
			}
			var s struct{ Models []struct{ Model string } }
			if err := json.Unmarshal([]byte(p.must("status", "--json")), &s); err != nil || len(s.Models) != 1 || s.Models[0].Model != goneModel {
				t.Errorf("%v %+v", err, s)
			}
			p.must("fire", "look") // the same cause
			p.gets()
			before := len(api.Requests())
			refused = false
			p.must("fire", "look")
			all = api.Requests()[before:]
			if r := p.last(); r["fallback"] != nil || len(all) != 1 || all[0].Model != goneModel || len(all[0].Messages) != 5 {
				t.Errorf("again: %v, %d requests", r["fallback"], len(all))
			}
			p.gets("^The model " + goneModel + " works again")
			if out := p.must("status"); strings.Contains(out, goneModel) {
				t.Errorf("status after the end:\n%s", out)
			}
		})
	}
}

// A run that has said something or used a tool does not change its model, and neither does one whose list is empty.
func TestFallbackOnlyBefore(t *testing.T) {
	t.Parallel()
	gone := anthropicapi.Reply{Status: 404, Message: "model: " + goneModel}
	for name, c := range map[string]struct {
		keys    string
		replies []anthropicapi.Reply
	}{
		"a tool was used": {"", []anthropicapi.Reply{anthropicapi.Use("Glob", map[string]string{"pattern": "*.none"}), gone}},
		"text was said":   {"update-main-session: always\n", []anthropicapi.Reply{{Text: "I looked."}, gone}},
		"an empty list":   {"fallback: []\n", []anthropicapi.Reply{gone}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, api := newFallbackWorld(t, c.keys)
			api.Reply(c.replies...)
			if r := p.run("fire", "look"); r.status != 69 || slices.Contains(asked(api), nextModel) {
				t.Errorf("exit status %d, asked %v\n%s", r.status, asked(api), r.errOut)
			}
			if r := p.last(); r["outcome"] != "failed" || r["fallback"] != nil || r["fault"] != "model" {
				t.Errorf("%v %v %v", r["outcome"], r["fallback"], r["fault"])
			}
			p.gets("^The model " + goneModel + " of the engine native cannot be used: .*To do: choose another one")
		})
	}
}

// The fallback stays within the limits of the run: a model without a price and one that is too dear are passed over, and the error says so.
func TestFallbackWithinTheLimit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		list   []string
		config string // settings
		asked  []string
		said   string
	}{
		"no price":           {[]string{"local:8b"}, "", []string{goneModel}, "fallback local:8b: its price is not known.*ollim config set models"},
		"too dear":           {[]string{"dear"}, "models=dear in=10000 out=10000", []string{goneModel}, "fallback dear: cost limit reached"},
		"the next one":       {[]string{"local:8b", "dear", goneModel, nextModel}, "models=dear in=10000 out=10000", []string{goneModel, nextModel}, ""},
		"no limit, no price": {[]string{"local:8b"}, "spend.per-run=none;spend.per-day=none;spend.per-month=none", []string{goneModel, "local:8b"}, ""},
		"a list that ends":   {[]string{"claude-haiku-5-5"}, "", []string{goneModel, "claude-haiku-5-5"}, "claude-haiku-5-5"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, api := newFallbackWorld(t, "")
			p.must(append([]string{"config", "set", "fallback"}, c.list...)...)
			for setting := range strings.SplitSeq(c.config, ";") {
				if key, value, ok := strings.Cut(setting, "="); ok {
					p.must("config", "set", key, value)
				}
			}
			api.Handle(func(q anthropicapi.Request) anthropicapi.Reply {
				if q.Model == goneModel || q.Model == "claude-haiku-5-5" {
					return anthropicapi.Reply{Status: 404, Message: "model: " + q.Model}
				}
				return anthropicapi.Reply{Text: "ok"}
			})
			r := p.run("fire", "look")
			if want := map[bool]int{true: 0, false: 69}[c.said == ""]; r.status != want || !regexp.MustCompile(c.said).MatchString(r.errOut) {
				t.Errorf("exit status %d\n%s", r.status, r.errOut)
			}
			if got := asked(api); !slices.Equal(got, c.asked) {
				t.Errorf("asked %v, want %v", got, c.asked)
			}
		})
	}
}

// One notice names all jobs. A job that asks another model since is not concerned any more, and the last one ends the cause.
func TestFallbackOfJobs(t *testing.T) {
	t.Parallel()
	p, api := newFallbackWorld(t, "")
	text := p.read("routines/look.md")
	p.write("routines/hear.md", strings.NewReplacer("id: look", "id: hear", "description: Look", "description: Hear").Replace(text))
	refused := true
	refuse(api, &refused, anthropicapi.Reply{Status: 404, Message: "model: " + goneModel})
	p.must("fire", "look")
	p.gets("answers in place of .*It concerns: Look\nTo do: ")
	p.must("fire", "hear")
	p.hours(2, nil)
	p.gets()
	for _, name := range []string{"look", "hear"} {
		p.gets()
		p.write("routines/"+name+".md", strings.ReplaceAll(p.read("routines/"+name+".md"), goneModel, nextModel))
		p.must("fire", name)
	}
	p.gets("^The model " + goneModel + " is not asked any more")
}

// The engine's own default is named in the record, and a chat says at once which model answers.
func TestFallbackOfTheDefault(t *testing.T) {
	t.Parallel()
	p, api := newFallbackWorld(t, "")
	p.must("config", "set", "native.model", goneModel)
	refused := true
	refuse(api, &refused, anthropicapi.Reply{Status: 404, Message: "model: " + goneModel})
	r := p.run("chat", "hi")
	if r.status != 0 || !strings.Contains(r.errOut, nextModel+" is asked instead: "+goneModel+" cannot be used") {
		t.Errorf("%+v", r)
	}
	if r := p.last(); r["model"] != goneModel || r["model_used"] != nextModel {
		t.Errorf("%v %v", r["model"], r["model_used"])
	}
	p.must("tick")
	p.gets("To do: `ollim config set native.model MODEL`")
}

// A run that waits for the owner's answer goes on with the model that asked.
func TestFallbackOfAQuestion(t *testing.T) {
	t.Parallel()
	p, api := newFallbackWorld(t, "update-main-session: freely\n")
	refused := true
	refuse(api, &refused, anthropicapi.Reply{Status: 404, Message: "model: " + goneModel})
	api.Reply(anthropicapi.Use("ask_owner", map[string]string{"question": "Which one?"}), anthropicapi.Reply{Text: "I wait."}, anthropicapi.Reply{Text: "Done."})
	p.must("fire", "look")
	id := fmt.Sprint(p.last()["id"])
	before := len(api.Requests())
	p.must("answer", "-w", id, "the first")
	if r := p.last(); r["outcome"] != "ok" || r["model"] != goneModel || slices.Contains(asked(api)[before:], goneModel) {
		t.Errorf("%v %v, asked %v", r["outcome"], r["model"], asked(api)[before:])
	}
}

// The owner approves a job's own list, and check names what is wrong with a list.
func TestFallbackIsApprovedAndChecked(t *testing.T) {
	t.Parallel()
	p, api := newFallbackWorld(t, "fallback: ["+nextModel+"]\n")
	if r := p.run("fire", "look"); r.status != 77 || len(api.Requests()) > 0 {
		t.Errorf("not approved: exit status %d", r.status)
	}
	p.write("routines/look.md", strings.Replace(p.read("routines/look.md"), nextModel, "opus, local:8b, "+goneModel, 1))
	out := p.must("check")
	for _, want := range []string{"local:8b has no price", goneModel + " is the model that is asked anyway", "ollim approve look"} {
		if !strings.Contains(out, want) {
			t.Errorf("check does not say %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "opus has no price") {
		t.Error(out)
	}
	p.must("config", "set", "fallback", "sonnet")
	if out := p.must("check"); !strings.Contains(out, "config.yaml: fallback: note: sonnet is the model that is asked anyway") {
		t.Error(out)
	}
}

// An overload that ends goes on with the requested model if no other one may be asked.
func TestFallbackNoneMayBeAsked(t *testing.T) {
	t.Parallel()
	p, api := newFallbackWorld(t, "")
	p.must("config", "set", "fallback", "local:8b")
	began := p.clock()
	api.Handle(func(anthropicapi.Request) anthropicapi.Reply {
		if p.clock().Sub(began) < 10*time.Minute {
			return anthropicapi.Reply{Status: 529}
		}
		return anthropicapi.Reply{Text: "ok"}
	})
	p.must("fire", "look")
	if r := p.last(); r["outcome"] != "ok" || r["model_used"] != goneModel || r["fallback"] != nil {
		t.Errorf("%v %v %v", r["outcome"], r["model_used"], r["fallback"])
	}
}
