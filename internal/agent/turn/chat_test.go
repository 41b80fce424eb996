package turn

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/runtest"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/channel"
	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
)

// write writes a file of the data directory.
func write(t *testing.T, r *run.Runner, name, text string) {
	t.Helper()
	if err := store.Replace(r.Home.Path(name), []byte(text)); err != nil {
		t.Fatal(err)
	}
}

// TestClear: the next turn begins a new conversation, and the history names the old one. Without one there is nothing to clear.
func TestClear(t *testing.T) {
	t.Parallel()
	a := &agent{}
	r := runtest.New(t, a)
	if err := New(r).Clear(t.Context()); err == nil {
		t.Error("there was nothing to clear")
	}
	for range 2 {
		if _, err := (Queue{r}).Chat(t.Context(), Message{Text: "hi"}, Options{Owner: true}); err != nil {
			t.Fatal(err)
		}
		if err := New(r).Clear(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if a.asked[0].Session.ID != "" || a.asked[1].Session.ID != "" {
		t.Errorf("asked %+v", a.asked)
	}
	var cleared []string
	for e, err := range r.Sessions.History(nil) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Event == session.Cleared {
			cleared = append(cleared, e.SessionID)
		}
	}
	if !slices.Equal(cleared, []string{"s-1", "s-1"}) {
		t.Errorf("cleared %q", cleared)
	}
}

// TestCompactSession: the main session and that of a routine are compacted with the rights of their turns, also if the routine is gone.
func TestCompactSession(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		routine, typed, model string
		tools                 []string
	}{
		{"", "", "opus", policy.DefaultMain()},
		{"", "haiku", "haiku", policy.DefaultMain()},
		{"a", "", "", policy.DefaultBackground()},
		{"b", "", "", policy.DefaultBackground()}, // also the name of the file of another routine
		{"gone", "haiku", "haiku", policy.DefaultBackground()},
	} {
		routine := c.routine
		a := &agent{}
		r := runtest.New(t, a)
		r.Settings.Main.Model = "opus"
		write(t, r, "routines/mine.md", "---\nid: b\ncron: \"@yearly\"\nbackground: true\n---\nGo.\n")
		write(t, r, "routines/b.md", "---\nid: c\ncron: \"@yearly\"\nbackground: true\n---\nGo.\n")
		id, path, err := session.MainKey, session.MainKey, r.Sessions.SetMain("s")
		if routine != "" {
			id, path, err = routine, routine, r.Sessions.SetRoutine(routine, "s")
		}
		if err != nil {
			t.Fatal(err)
		}
		record, err := New(r).CompactSession(t.Context(), routine, "Keep the figures.", Options{Owner: true, Model: c.typed})
		if err != nil || len(a.compacted) != 1 || a.wish != "Keep the figures." {
			t.Errorf("%s: compacted %+v by %q: %+v, %v", routine, a.compacted, a.wish, record, err)
			continue
		}
		if got := a.compacted[0]; got.Session.ID != "s" || got.Model.Name != c.model || got.Model.Thinking != "true" {
			t.Errorf("%s: compacted %+v", routine, got)
		}
		if record.Kind != kindSession || record.Job != id || record.Path != path || !slices.Equal(record.Tools, c.tools) || !record.Owner {
			t.Errorf("%s: %+v", routine, record)
		}
		system := a.compacted[0].Input.System
		if alone, persistent := strings.HasPrefix(system, prompt.SystemAlone), strings.Contains(system, "SESSION: Persistent"); alone != (routine != "") || persistent != (routine == "gone") {
			t.Errorf("%s: system prompt %s", routine, system)
		}
	}
}

// TestProfile: the system prompt has what the owner wrote about the agent and themself, in files or links, and both names. What cannot be
// read is left out with a warning.
func TestProfile(t *testing.T) {
	t.Parallel()
	var warned []string
	r := runtest.New(t, &agent{})
	r.Disk.Warn = func(text string) { warned = append(warned, text) }
	if text := New(r).Profile(); text != "" {
		t.Errorf("without a profile: %q", text)
	}
	write(t, r, "notes/me.md", "\nI like tea.\n")
	write(t, r, "IDENTITY.md", "You are a butler.\n")
	if err := os.Symlink(r.Home.Path("notes", "me.md"), r.Home.Path("USER.md")); err != nil {
		t.Fatal(err)
	}
	r.Settings.Names = config.Names{User: "Ada", Bot: "Jeeves"}
	const want = "You are a butler.\n\nI like tea.\n\nYour owner is called Ada.\n\nYou are called Jeeves."
	if text := New(r).Profile(); text != want || len(warned) > 0 {
		t.Errorf("%q, warned %q", text, warned)
	}
	if err := errors.Join(os.Remove(r.Home.Path("IDENTITY.md")), os.Mkdir(r.Home.Path("IDENTITY.md"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if text := New(r).Profile(); text != strings.TrimPrefix(want, "You are a butler.\n\n") || len(warned) != 1 || !strings.HasPrefix(warned[0], "IDENTITY.md: ") {
		t.Errorf("%q, warned %q", text, warned)
	}
}

// TestChannelPrompt: CHANNEL.md, or what it links to, is the whole system prompt of a channel; without words in it there is another.
func TestChannelPrompt(t *testing.T) {
	t.Parallel()
	name, err := channel.NewName("mine", "1")
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct{ text, want string }{
		"none": {"", prompt.SystemChannel}, "empty": {" \n", prompt.SystemChannel}, "own": {"\nBe brief.\n", "Be brief."},
	} {
		for _, linked := range []bool{false, true} {
			a := &agent{}
			r := runtest.New(t, a)
			r.Settings.Channel.AllowedTools = []string{"WebSearch"}
			file := map[bool]string{true: filepath.Join("notes", "channel.md"), false: "CHANNEL.md"}[linked]
			if c.text != "" {
				write(t, r, file, c.text)
				if linked {
					if err := os.Symlink(r.Home.Path(file), r.Home.Path("CHANNEL.md")); err != nil {
						t.Fatal(err)
					}
				}
			}
			for _, source := range []string{"17", ""} {
				record, err := New(r).ChatChannel(t.Context(), name, Message{Text: "hi", Source: source}, Options{Model: "haiku"})
				if err != nil || len(a.asked) == 0 || strings.Join(record.Answers, " ") != source || len(record.Answers) != len(source)/2 {
					t.Fatalf("%s: %+v, %v", what, record, err)
				}
				asked := a.asked[len(a.asked)-1]
				if asked.Input.System != c.want || !asked.Input.Awaited || !strings.Contains(asked.Input.Prompt, "hi") || asked.Model.Name != "haiku" || asked.Model.Thinking != "off" ||
					record.Kind != kindChannel || record.Path != name.String() || !slices.Equal(record.Tools, []string{"WebSearch"}) {
					t.Errorf("%s: asked %+v, %+v", what, asked, record)
				}
			}
		}
	}
}

// TestUnsavedChannel: the answer of a channel whose session cannot be saved is in the record, and the error says so.
func TestUnsavedChannel(t *testing.T) {
	t.Parallel()
	name, err := channel.NewName("mine", "1")
	if err != nil {
		t.Fatal(err)
	}
	a := &agent{}
	r := runtest.New(t, a)
	a.acts = func(int, func(string, string) error) error {
		return errors.Join(os.RemoveAll(r.Home.Channels()), os.WriteFile(r.Home.Channels(), nil, 0o600))
	}
	record, err := New(r).ChatChannel(t.Context(), name, Message{Text: "hi"}, Options{})
	if unsaved := (*store.NotWritten)(nil); !errors.As(err, &unsaved) || record.Text != "done" || record.Outcome != runlog.OK {
		t.Errorf("%+v, %v", record, err)
	}
}

// TestPlanOfTheNextMessage: the plan is for the model and the engine of the open fork, or those of main. Without an engine it names the
// model alone.
func TestPlanOfTheNextMessage(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		typed        string
		fork         *session.Fork
		none         bool
		model, using string
	}{
		"main":           {model: "opus", using: "costly"},
		"typed":          {typed: "haiku", model: "haiku", using: "costly"},
		"fork of main":   {fork: &session.Fork{ID: "f"}, model: "opus", using: "costly"},
		"fork of a run":  {fork: &session.Fork{ID: "f", Engine: "other", Model: "sonnet"}, model: "sonnet", using: "other"},
		"typed for fork": {typed: "haiku", fork: &session.Fork{ID: "f", Engine: "other", Model: "sonnet"}, model: "haiku", using: "other"},
		"no engine":      {none: true, model: "opus", using: "costly"},
	} {
		a := &agent{plan: func(r engine.Request) (engine.Plan, error) { return engine.Plan{Model: "planned " + r.Model.Name}, nil }}
		r := runtest.New(t, a)
		r.Settings.Main.Model = "opus"
		using := ""
		r.Engines = func(name string) (engine.Engine, error) {
			if using = name; c.none {
				return nil, errors.New("not installed")
			}
			return a, nil
		}
		if c.fork != nil {
			if err := r.Sessions.OpenFork(t.Context(), *c.fork); err != nil {
				t.Fatal(err)
			}
		}
		want := map[bool]string{false: "planned "}[c.none] + c.model
		if plan := New(r).ChatPlan(t.Context(), c.typed); plan.Model != want || using != c.using {
			t.Errorf("%s: %+v of %s", what, plan, using)
		}
	}
	var warned []string
	r := runtest.New(t, &agent{})
	r.Disk.Warn = func(text string) { warned = append(warned, text) }
	if err := os.MkdirAll(r.Home.Fork(), 0o700); err != nil {
		t.Fatal(err)
	}
	if plan := New(r).ChatPlan(t.Context(), "haiku"); plan.Model != "haiku" || len(warned) != 1 {
		t.Errorf("%+v, warned %q", plan, warned)
	}
}

// TestTypedOptions: the record names what the owner typed for one turn, and no settings.
func TestTypedOptions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		o    Options
		want []string
	}{
		{Options{}, nil}, {Options{Model: "haiku"}, []string{runlog.TypedModel}}, {Options{Thinking: "high"}, []string{runlog.TypedThinking}},
		{Options{Model: "haiku", Thinking: "high"}, []string{runlog.TypedModel, runlog.TypedThinking}},
	} {
		r := runtest.New(t, &agent{})
		r.Settings.Main = config.Chat{Model: "opus", Thinking: "low"}
		c.o.Owner = true
		record, err := Queue{r}.Chat(t.Context(), Message{Text: "hi"}, c.o)
		if err != nil || !slices.Equal(record.Typed, c.want) || record.Thinking != c.o.Thinking || !record.AllowPing || record.Update != string(job.OnPing) {
			t.Errorf("%+v: %+v, %v", c.o, record, err)
		}
	}
}
