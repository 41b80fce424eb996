package tools_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/state/runlog"
)

const (
	silent    = "error: Pings are disabled for this task (allow-ping: false)."
	blocked   = "error: Reporting is disabled for this task (update-main-session: blocked)."
	isMain    = "error: This is the main session itself: say it in your answer."
	noChain   = "error: follow_up_chain is for reminders with max-chain only; to be reminded later use add_reminder."
	notMain   = "error: update_names is for the main conversation only."
	oneShot   = "error: compact_session is for persistent routine sessions only."
	noEntry   = "error: enter_fork is for the main conversation only."
	noExit    = "error: exit_fork is for an interactive fork only."
	noSave    = "error: save_context is for an interactive fork only."
	noSkills  = "error: This run has no skills."
	noDocs    = "error: This run may not use search_docs."
	allowed   = ""
	pingInput = `{"message":"look"}`
)

// want is what a run of this record answers to a use of each tool; "" when it may use it.
func want(r runlog.Record) map[string]string {
	w := map[string]string{
		"ping_user": allowed, "discord_embed": allowed, "send_file": allowed, "ask_owner": allowed, "report_updates": allowed, "follow_up_chain": noChain,
		"add_reminder": allowed, "list_reminders": allowed, "cancel_reminder": allowed,
		"update_names": notMain, "compact_session": oneShot, "skill": noSkills, "search_docs": noDocs,
		"enter_fork": noEntry, "exit_fork": noExit, "save_context": noSave,
	}
	main := r.Mode == string(job.Foreground)
	if !r.AllowPing && !main {
		w["ping_user"], w["discord_embed"], w["send_file"], w["ask_owner"] = silent, silent, silent, silent
	}
	if r.Update == string(job.Blocked) {
		w["report_updates"] = blocked
	}
	if r.Mode == string(job.Persistent) {
		w["compact_session"] = allowed
	}
	if main {
		w["report_updates"], w["ask_owner"] = isMain, "error: This is the main session itself: ask in your answer."
		w["update_names"], w["skill"], w["search_docs"], w["enter_fork"] = allowed, allowed, allowed, allowed
	}
	return w
}

// Every mode, update mode and allow-ping: what the list shows, what each tool answers, what is recorded.
func TestMatrix(t *testing.T) {
	t.Parallel()
	lists := map[string]bool{} // of the foreground and of forks, byte for byte
	for _, where := range []job.Mode{job.Foreground, job.Forked, job.Isolated, job.Persistent} {
		for _, updates := range []job.UpdateMode{job.OnPing, job.Always, job.Freely, job.Blocked} {
			for _, ping := range []bool{true, false} {
				r := runlog.Record{Mode: string(where), Update: string(updates), AllowPing: ping}
				t.Run(fmt.Sprintf("%s-%s-%v", where, updates, ping), func(t *testing.T) {
					list := matrix(t, r)
					if where == job.Foreground || where == job.Forked {
						lists[list] = true
					}
				})
			}
		}
	}
	if len(lists) != 1 {
		t.Errorf("main and its forks are shown %d different lists", len(lists))
	}
}

// matrix tries one record, and returns its list of tools as an engine sees it. Whether a run may use a tool is decided before
// its arguments are read, so that bad ones tell, and nothing is sent.
func matrix(t *testing.T, r runlog.Record) string {
	d := newFixture(t, r)
	var names, refusals []string
	for _, tool := range d.List() {
		names = append(names, tool.Name)
	}
	whole := r.Mode == string(job.Foreground) || r.Mode == string(job.Forked)
	for tool, refusal := range want(r) {
		if shown := slices.Contains(names, tool); shown != (whole || refusal == allowed) {
			t.Errorf("%s is shown: %v", tool, shown)
		}
		answer := d.call(tool, `{"bogus":1}`)
		switch {
		case refusal != allowed && answer != refusal:
			t.Errorf("%s answers %q, want %q", tool, answer, refusal)
		case refusal != allowed:
			refusals = append(refusals, "refusal:"+tool)
		case !strings.HasPrefix(answer, `error: bad arguments: unknown field "bogus"`):
			t.Errorf("%s answers %q", tool, answer)
		}
	}
	d.recorded(strings.Join(refusals, " "))
	if len(names) != len(slices.Compact(slices.Sorted(slices.Values(names)))) || whole && len(names) != len(want(r)) {
		t.Errorf("tools %q", names)
	}
	data, err := json.Marshal(d.List())
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestEmbedsAreOffered: only an agent whose owner has a messenger for embeds is shown the tool. A call of any other sends the text.
func TestEmbedsAreOffered(t *testing.T) {
	t.Parallel()
	d := newFixture(t, inMain())
	shown := func() bool {
		return slices.ContainsFunc(d.List(), func(t engine.Tool) bool { return t.Name == "discord_embed" })
	}
	with := shown()
	d.World.Embeds = nil
	if !with || shown() {
		t.Errorf("with a messenger for embeds the tool is shown: %v, without one: %v", with, shown())
	}
	d.begins("discord_embed", `{"title":1}`, "error: bad arguments: ")
}

// TestEffects: a crash may lose only the uses of tools that write nothing, and a report may then be added again.
func TestEffects(t *testing.T) {
	t.Parallel()
	want := map[string]engine.Effect{
		"ping_user": engine.Sends, "discord_embed": engine.Sends, "send_file": engine.Sends, "ask_owner": engine.Sends,
		"list_reminders": engine.ReadsOnly, "search_docs": engine.ReadsOnly, "compact_session": engine.Compacts,
		"skill": engine.Starts, "report_updates": engine.Reports,
	}
	got := map[string]engine.Effect{}
	for _, tool := range newFixture(t, inMain()).List() {
		if tool.Effect != engine.Changes {
			got[tool.Name] = tool.Effect
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// What a use leaves in the record, in a run that may use everything.
func TestTraces(t *testing.T) {
	t.Parallel()
	for tool, tc := range map[string]struct{ input, trace string }{
		"ping_user":       {pingInput, "ping"},
		"discord_embed":   {`{"title":"look"}`, "ping"},
		"send_file":       {`{"path":"notes/a.md"}`, "ping"},
		"report_updates":  {`{"message":"done"}`, "report"},
		"follow_up_chain": {`{"minutes_from_now":5}`, "follow_up"},
		"add_reminder":    {`{"message":"later","when":"45m"}`, ""},
		"list_reminders":  {`{}`, ""},
		"compact_session": {`{"instructions":"all"}`, "compact_wish"},
	} {
		r := talks()
		r.Mode, r.MaxChain = string(job.Persistent), 3
		d := newFixture(t, r).delivers("cat")
		d.write("notes/a.md", "text")
		if answer := d.call(tool, tc.input); strings.HasPrefix(answer, "error") {
			t.Errorf("%s: %q", tool, answer)
		}
		d.recorded(tc.trace)
	}
}

// A verdict on a tool of ours is given by the list, so that the tool itself says why; that it was given is recorded.
func TestVerdict(t *testing.T) {
	t.Parallel()
	r := runlog.Record{AllowPing: false, Update: string(job.Blocked)}
	for mode, reason := range map[job.Mode]string{
		job.Forked: "", job.Isolated: "mcp__ollim__ping_user: this run does not have this tool",
	} {
		r.Mode = string(mode)
		d := newFixture(t, r)
		got, err := d.Verdict(ctx, "mcp__ollim__ping_user", "1", json.RawMessage(pingInput))
		if got != reason || err != nil {
			t.Errorf("%s: %q, %v", mode, got, err)
		}
		for _, tool := range []string{"mcp__ollim__order_pizza", "mcp__other__ping_user", "Bash", "Write", ""} {
			if got, err := d.Verdict(ctx, tool, "2", json.RawMessage(`{"command":"ollim approve x","file_path":"a.md"}`)); got == "" || err != nil {
				t.Errorf("%s: %q is allowed, %v", mode, tool, err)
			}
		}
		d.recorded("verdict verdict verdict verdict verdict verdict")
		if judged, err := d.Judged(); err != nil || len(judged) != 2 || !judged["1"] || !judged["2"] {
			t.Errorf("judged %v, %v", judged, err)
		}
	}
}

// TestNudge: the run and the engine's hook together remind an agent twice of the report that it owes, and no other agent.
func TestNudge(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]runlog.Record{
		"owes": {Update: string(job.Always), Mode: string(job.Isolated)}, "free": {Update: string(job.Freely), Mode: string(job.Isolated)},
		"foreground": {Update: string(job.Always), Mode: string(job.Foreground)},
	} {
		d := newFixture(t, r)
		for n := range 3 {
			text, err := d.Nudge(ctx)
			if due := name == "owes" && n < 2; err != nil || (text != "") != due {
				t.Errorf("%s: time %d: %q, %v", name, n+1, text, err)
			}
		}
		d.recorded(map[string]string{"owes": "nudge nudge"}[name])
	}
}

func TestUnknownToolAndArguments(t *testing.T) {
	t.Parallel()
	d := newFixture(t, talks()).delivers("cat")
	d.says("order_pizza", `{}`, `error: no tool "order_pizza"`)
	for _, bad := range []string{``, `null x`, `[]`, `3`, `{"message":"a"} {}`, `{"message":"a"}]`, `{"mesage":"a"}`, `{"message":3}`, `{"message":"a","critical":"yes"}`} {
		d.begins("ping_user", bad, "error: bad arguments: ")
	}
	for _, empty := range []string{`null`, `{}`, `{"message":""}`, `{"message":" \n"}`, `{"message":"\u0007\u202e"}`} {
		d.says("ping_user", empty, "error: bad arguments: message is empty")
		d.says("report_updates", empty, "error: bad arguments: message is empty")
	}
	d.recorded("")
	d.budgeted(5, 0, 0)
}

// The gates come in their order, and each refuses before the next is asked.
func TestGateOrder(t *testing.T) {
	t.Parallel()
	const again, busy = "error: This run has already sent its one message.", "error: The owner is in mid-conversation."
	none := "error: No ping is left (budget: 0/5 (next refill in 90 min))."
	for name, tc := range map[string]struct {
		record          runlog.Record
		sent, busy, out bool // a message was sent, the owner is busy, no token is left
		critical        bool
		want            string
		asked           int // how often busy was
	}{
		"open":                   {record: talks(), want: "Sent.", asked: 1},
		"silent":                 {record: runlog.Record{}, sent: true, busy: true, out: true, want: silent},
		"silent, critical":       {record: runlog.Record{}, critical: true, want: silent},
		"again":                  {record: talks(), sent: true, busy: true, out: true, want: again},
		"again, silent owner":    {record: talks(), sent: true, want: again},
		"busy":                   {record: talks(), busy: true, out: true, want: busy + " Use `report_updates` instead.", asked: 1},
		"busy, blocked":          {record: runlog.Record{AllowPing: true, Update: "blocked"}, busy: true, want: busy + " Finish the task without one.", asked: 1},
		"no token":               {record: talks(), out: true, want: none + " Use `report_updates` instead.", asked: 1},
		"no token, blocked":      {record: runlog.Record{AllowPing: true, Update: "blocked"}, out: true, want: none + " Finish the task without one.", asked: 1},
		"critical":               {record: talks(), sent: true, busy: true, out: true, critical: true, want: "Sent."},
		"main":                   {record: inMain(), sent: true, busy: true, out: true, want: "Sent."},
		"main, silent, critical": {record: runlog.Record{Mode: "foreground"}, critical: true, want: "Sent."},
	} {
		t.Run(name, func(t *testing.T) {
			d := newFixture(t, tc.record).delivers("cat >> sent")
			left := 5.0
			if tc.out {
				for range 5 {
					if _, _, err := d.Budget.Take(ctx); err != nil {
						t.Fatal(err)
					}
				}
				left = 0
			}
			if tc.sent {
				if err := d.Run.Event(ctx, runlog.Event{Type: runlog.Ping}); err != nil {
					t.Fatal(err)
				}
			}
			d.busy = tc.busy
			before, used, critical := d.events(), int(5-left), 0
			d.says("ping_user", object("message", "look", "critical", tc.critical), tc.want)
			switch {
			case tc.want != "Sent.":
				d.recorded(strings.TrimSpace(before + " refusal:ping_user"))
			case tc.critical && tc.record.Mode == "":
				critical++
			case tc.record.Mode == "":
				left, used = left-1, used+1
			}
			d.budgeted(left, used, critical)
			if d.asked != tc.asked {
				t.Errorf("busy was asked %d times, want %d", d.asked, tc.asked)
			}
		})
	}
}

// Busy is asked at the moment of the ping, not once for the run.
func TestBusyIsAskedEachTime(t *testing.T) {
	t.Parallel()
	d := newFixture(t, talks()).delivers("cat")
	d.busy = true
	d.begins("ping_user", pingInput, "error: The owner is in mid-conversation.")
	d.busy = false
	d.says("ping_user", pingInput, "Sent.")
	d.recorded("refusal:ping_user ping")
	d.budgeted(4, 1, 0)
}

// Embed and file are pings too: one of the three in a run.
func TestOneMessageOfAnyKind(t *testing.T) {
	t.Parallel()
	kinds := map[string]string{"ping_user": pingInput, "discord_embed": `{"title":"look"}`, "send_file": `{"path":"notes/a.md"}`}
	for first, input := range kinds {
		d := newFixture(t, talks()).delivers("cat")
		d.write("notes/a.md", "text")
		d.says(first, input, "Sent.")
		for second, input := range kinds {
			d.says(second, input, "error: This run has already sent its one message.")
		}
		d.budgeted(4, 1, 0)
		if s, err := d.Run.Standing(); err != nil || s.Pings != 1 || !s.OwesReport("on_ping") {
			t.Errorf("%s: %+v, %v", first, s, err)
		}
	}
}

// What the command refuses gives the token back, and the run may send another; what is queued counts as sent.
func TestRefund(t *testing.T) {
	t.Parallel()
	d := newFixture(t, talks()).delivers("exit 77")
	d.says("ping_user", pingInput, "error: the message was not sent")
	d.recorded("ping ping_refused")
	d.budgeted(5, 0, 0)
	d.says("ping_user", object("message", "look", "critical", true), "error: the message was not sent")
	d.budgeted(5, 0, 0)
	d.delivers("exit 1")
	d.says("ping_user", pingInput, "Not delivered yet; it is queued and will be retried.")
	d.recorded("ping ping_refused ping ping_refused ping")
	d.budgeted(4, 1, 0)
	d.says("ping_user", pingInput, "error: This run has already sent its one message.")
	waiting, err := d.post().Pending()
	if err != nil || len(waiting) != 1 || waiting[0].ID != d.Run.ID+".3" || waiting[0].Kind != outbox.Ping || waiting[0].Label != "watch" {
		t.Errorf("%+v, %v", waiting, err)
	}
	if s, err := d.Run.Standing(); err != nil || s.Pings != 1 || !s.OwesReport("on_ping") {
		t.Errorf("%+v, %v", s, err)
	}
}

// With nowhere to send it the next conversation says it, and the run has reported.
func TestNoDelivery(t *testing.T) {
	t.Parallel()
	d := newFixture(t, talks())
	d.says("ping_user", pingInput, "No delivery is configured, so the owner will see this in the next conversation.")
	d.pending("look")
	d.recorded("ping report")
	d.budgeted(4, 1, 0)
	d.another(talks())
	path := d.write("notes/a.md", "text")
	d.begins("send_file", `{"path":"notes/a.md","message":"here"}`, "No delivery is configured")
	d.pending("look", "here (file: "+path+")")
}

// Sixteen uses at once, by boxes that know nothing of each other, send one.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	d := newFixture(t, talks()).delivers("echo x >> sent")
	var group sync.WaitGroup
	answers := make(chan string, 16)
	for range 16 {
		group.Go(func() {
			r, err := (runlog.Book{Home: d.World.Home, Disk: d.World.Disk, Zone: d.World.Zone}).At(d.Run.ID)
			if err != nil {
				t.Error(err)
				return
			}
			box := *d.Set
			box.Run, box.Busy = r, func() bool { return false }
			answers <- box.Call(ctx, "ping_user", json.RawMessage(pingInput)).Text
		})
	}
	group.Wait()
	close(answers)
	sent := 0
	for answer := range answers {
		if answer == "Sent." {
			sent++
		} else if !strings.HasPrefix(answer, "This run has already") {
			t.Error(answer)
		}
	}
	if got := d.read("sent"); sent != 1 || got != "x\n" {
		t.Errorf("%d sent, %q", sent, got)
	}
	d.budgeted(4, 1, 0)
}

// Whose session an answer to the message would go to is known when it is sent; main's own messages need none.
func TestReplyMap(t *testing.T) {
	t.Parallel()
	r := talks()
	r.Parent = "s-main"
	d := newFixture(t, r).delivers("cat")
	d.says("ping_user", pingInput, "Sent.") // before the engine has begun there is no session
	if err := d.Run.Event(ctx, runlog.Event{Type: runlog.Session, Session: "s-fork"}); err != nil {
		t.Fatal(err)
	}
	d.says("ping_user", `{"message":"look","critical":true}`, "Sent.")
	var list []map[string]any
	if err := json.Unmarshal([]byte(d.read("state/fork_messages.json")), &list); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"message_id": d.Run.ID + ".2", "fork_session_id": "s-fork", "parent_session_id": "s-main", "ts": d.now.Format(time.RFC3339),
	}
	if len(list) != 1 || fmt.Sprint(list[0]) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", list, want)
	}
}

func TestFollowUp(t *testing.T) {
	t.Parallel()
	r := talks()
	r.MaxChain = 1
	d := newFixture(t, r)
	for _, bad := range []string{`{}`, `{"minutes_from_now":0}`, `{"minutes_from_now":-5}`, `{"minutes_from_now":10081}`, `{"minutes_from_now":99999999999999}`} {
		d.says("follow_up_chain", bad, "error: bad arguments: minutes_from_now must be 1 to 10080")
	}
	for _, bad := range []string{`{"minutes_from_now":1.5}`, `{"minutes_from_now":"5"}`, `{"minutes_from_now":1e300}`} {
		d.says("follow_up_chain", bad, "error: bad arguments: minutes_from_now: want a whole number")
	}
	d.recorded("")
	d.says("follow_up_chain", `{"minutes_from_now":1}`, "The next check is at Tue 2026-02-24 2:31 PM CET.")
	d.says("follow_up_chain", `{"minutes_from_now":10080}`, "The next check is at Tue 2026-03-03 2:30 PM CET.")
	d.recorded("follow_up follow_up")
	if s, err := d.Run.Standing(); err != nil || !s.FollowUp.Equal(d.now.AddDate(0, 0, 7)) {
		t.Errorf("%s, %v", s.FollowUp, err)
	}
	for name, tc := range map[string]struct {
		record runlog.Record
		want   string
	}{
		"pings":           {runlog.Record{AllowPing: true, Update: "on_ping"}, "If it is still open, ping the owner now with `ping_user`; otherwise use `report_updates`."},
		"pings, blocked":  {runlog.Record{AllowPing: true, Update: "blocked"}, "If it is still open, ping the owner now with `ping_user`; otherwise end without."},
		"silent":          {runlog.Record{Update: "always"}, "If it is still open, say so with `report_updates`."},
		"silent, blocked": {runlog.Record{Update: "blocked"}, "Finish the task and end."},
		"main":            {inMain(), "If it is still open, tell the owner in your answer."},
	} {
		tc.record.MaxChain, tc.record.ChainDepth = 2, 2
		d := newFixture(t, tc.record)
		want := "error: This is the final check of the chain: no follow-up is possible. " + tc.want
		if got := d.call("follow_up_chain", `{"minutes_from_now":5}`); got != want {
			t.Errorf("%s: %q", name, got)
		}
		d.recorded("refusal:follow_up_chain")
	}
}
