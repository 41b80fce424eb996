package tools_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/approval"
	"github.com/ollim/ollim/internal/state/runlog"
)

const skillFile = "---\ndescription: News\n---\n"

// skilled is a record whose job names one skill, beside tools of others.
func skilled() runlog.Record {
	return runlog.Record{AllowPing: true, Mode: "isolated", Skills: []string{"news"}, Tools: []string{"Skill(news *)", "Skill(live)", "Skill(maps *)"}}
}

func TestSkill(t *testing.T) {
	t.Parallel()
	d := newFixture(t, skilled())
	d.write("skills/news/SKILL.md", skillFile+"News of $ARGUMENTS: !`cat feed`\n")
	d.write("skills/live/SKILL.md", skillFile+"Live.\n")
	d.write("skills/hidden/SKILL.md", skillFile+"Hidden.\n")
	d.write("feed", "rain")
	if err := d.Prepare(ctx, "news", willing); err != nil {
		t.Fatal(err)
	}
	// as the run began, whatever it is now
	d.write("feed", "sun")
	d.write("skills/news/SKILL.md", skillFile+"Changed: !`touch owned`\n")
	d.begins("skill", `{"name":"news","arguments":"Prague"}`, "News of Prague: rain")
	d.begins("skill", `{"name":"news"}`, "News of : rain")
	// and the others as they are now
	d.begins("skill", `{"name":"live"}`, "Live.")
	d.write("skills/live/SKILL.md", skillFile+"Alive.\n")
	d.begins("skill", `{"name":"live"}`, "Alive.")
	for input, reason := range map[string]string{
		`{"name":"live","arguments":"x"}`:            `"live" matches none of the allowed patterns`,
		`{"name":"hidden"}`:                          `"hidden" matches none of the allowed patterns`,
		`{"name":"../news"}`:                         "is not the name of a skill",
		`{"name":""}`:                                "is not the name of a skill",
		"{\"name\":\"news\",\"arguments\":\"!`x`\"}": "no !` in the arguments",
	} {
		if got := d.call("skill", input); !strings.HasPrefix(got, "error: Skill: ") || !strings.Contains(got, reason) {
			t.Errorf("%s: %q", input, got)
		}
	}
	d.begins("skill", `{"name":"maps"}`, `error: no skill "maps"`)
	d.begins("skill", `{"nam":"live"}`, "error: bad arguments: ")
	d.recorded(strings.TrimSpace(strings.Repeat("refusal:skill ", 5)))
	if _, err := os.Stat(d.World.Home.Path("owned")); err == nil {
		t.Error("a command was run")
	}
}

// Commands in a skill run only as the owner approved them; that they wait is told once for each version.
func TestSkillCommands(t *testing.T) {
	t.Parallel()
	d := newFixture(t, skilled())
	const refused = "error: The commands in the skill maps wait for the owner's approval: ollim approve skill:maps"
	const reported = "The skill maps waits for your approval: it asks for more than you have approved (commands). To see it and approve it: `ollim approve skill:maps`"
	d.write("skills/maps/SKILL.md", skillFile+"Map: !`echo one`\n")
	d.says("skill", `{"name":"maps"}`, refused)
	d.says("skill", `{"name":"maps"}`, refused)
	d.pending(reported)
	approve := func() {
		t.Helper()
		s, err := d.Approvals.OfSkill("maps")
		if err == nil {
			err = d.Approvals.Approve(ctx, s, approval.Owner)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	approve()
	d.begins("skill", `{"name":"maps"}`, "Map: one")
	d.write("skills/maps/helper.sh", "rm")
	d.says("skill", `{"name":"maps"}`, refused)
	d.says("skill", `{"name":"maps"}`, refused)
	d.pending(reported, "The skill maps is approved", reported)
	approve()
	d.begins("skill", `{"name":"maps"}`, "Map: one")
	d.recorded("refusal:skill refusal:skill refusal:skill refusal:skill")
}

// willing is an owner who approved.
func willing() error { return nil }

func TestPrepare(t *testing.T) {
	t.Parallel()
	d := newFixture(t, skilled())
	var unknown *plaintext.Unknown
	if err := d.Prepare(ctx, "nosuch", willing); !errors.As(err, &unknown) {
		t.Error(err)
	}
	d.write("skills/bad/SKILL.md", "---\nhooks: {}\n---\n")
	if err := d.Prepare(ctx, "bad", willing); err == nil {
		t.Error("a broken skill was prepared")
	}
	no := errors.New("not approved")
	d.write("skills/news/SKILL.md", skillFile+"!`touch ran`\n")
	if err := d.Prepare(ctx, "news", func() error { return no }); !errors.Is(err, no) {
		t.Error(err)
	}
	if _, err := os.Stat(d.World.Home.Path("ran")); err == nil {
		t.Error("the commands of a skill that is not approved have run")
	}
}

func TestSearchDocs(t *testing.T) {
	t.Parallel()
	d := newFixture(t, inMain())
	d.begins("search_docs", `{"query":"update-main-session"}`, "ollim")
	for _, query := range []string{"xyzzy", strings.Repeat("fire --é ", megabyte/10)} {
		if got := d.call("search_docs", object("query", query)); len(got) > 16000 || strings.HasPrefix(got, "error") {
			t.Errorf("%.40q: %d bytes", query, len(got))
		}
	}
	d.says("search_docs", `{"query":"--"}`, "The manual says nothing about that. `ollim help all` lists every command.")
}
