package claudecode

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/command"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/model"
	"github.com/ollim/ollim/internal/state/runlog"
)

// A turn as the command tells it, shortened.
const stream = `{"type":"system","subtype":"init","session_id":"U","mcp_servers":[{"name":"ollim","status":"connected"}]}
{"type":"assistant","message":{"content":[{"type":"thinking","thinking":"hm"}]},"session_id":"U"}
{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t1","name":"Read","input":{"file_path":"a.md"}}]}}
{"type":"user","message":{"content":[{"tool_use_id":"t1","type":"tool_result","content":[{"type":"text","text":"A"}]}]}}
{"type":"something new","x":1}
not JSON
{"type":"assistant","message":{"content":[{"type":"text","text":"done"}]}}
{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"U","total_cost_usd":0.025,"usage":{"input_tokens":5},"modelUsage":{"opus":{"inputTokens":5,"outputTokens":2,"cacheReadInputTokens":3},"haiku":{"inputTokens":2,"cacheCreationInputTokens":4}}}
`

// priced is an engine at noon.
func priced() *Engine {
	return &Engine{Models: model.Known(), Disk: store.Disk{Now: func() time.Time { return time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC) }}}
}

func play(t testing.TB, text string) (*turn, []runlog.Event) {
	t.Helper()
	return playOn(t, history{}, text)
}

// playOn plays a turn of a session with a history.
func playOn(t testing.TB, past history, text string) (*turn, []runlog.Event) {
	t.Helper()
	var events []runlog.Event
	turn := &turn{
		want: wanted{session: "U"}, phase: guarded, stop: func() {}, cost: priced().costs(engine.Request{}, past),
		sink: func(e runlog.Event) error { events = append(events, e); return nil },
	}
	turn.cost.expect(engine.Request{}, 0)
	if err := turn.read(bufio.NewReader(strings.NewReader(text))); err != nil {
		t.Fatal(err)
	}
	return turn, events
}

func TestStream(t *testing.T) {
	turn, events := play(t, stream)
	if turn.fatal != nil {
		t.Fatal(turn.fatal)
	}
	var types []string
	for _, e := range events {
		types = append(types, string(e.Type))
	}
	if got := strings.Join(types, " "); got != "session request thinking tool_use tool_result text usage" {
		t.Errorf("events: %s", got)
	}
	want := engine.Result{Session: "U", Text: "done", Cost: 0.025, Usage: runlog.Usage{In: 7, Out: 2, CacheRead: 3, CacheWrite: 4}}
	if !reflect.DeepEqual(turn.result, want) {
		t.Errorf("result %+v", turn.result)
	}
	if len(turn.uses) != 1 || !turn.uses[0].done || turn.uses[0].name != "Read" {
		t.Errorf("uses %+v", turn.uses)
	}
	if err := turn.judge(nil, ""); err != nil {
		t.Error(err)
	}
}

func TestStopsOnItsOwn(t *testing.T) {
	for name, text := range map[string]string{
		"another session":    strings.ReplaceAll(stream, `"U"`, `"V"`),
		"server failed":      strings.ReplaceAll(stream, "connected", "failed"),
		"server not listed":  strings.ReplaceAll(stream, `"name":"ollim"`, `"name":"other"`),
		"key refused":        `{"type":"system","subtype":"api_retry","error_status":401,"error":"authentication"}` + "\n" + stream,
		"settings not taken": stream,
	} {
		free := false
		turn := &turn{want: wanted{session: "U"}, phase: guarded, stop: func() {}, sink: func(e runlog.Event) error {
			free = free || e.Type == runlog.UsageEvent && e.Usage == nil
			return nil
		}}
		if name == "settings not taken" {
			turn.phase = starting
		}
		if err := turn.read(bufio.NewReader(strings.NewReader(text))); err != nil {
			t.Fatal(err)
		}
		if turn.fatal == nil {
			t.Errorf("%s: went on", name)
		}
		if free != (name == "key refused") {
			t.Errorf("%s: cost nothing: %v", name, free)
		}
	}
}

// TestStoppedAnswerIsNotFree: the command reports no cost of an answer that it was stopped in. The request stays open, so that it
// counts as what it can have cost.
func TestStoppedAnswerIsNotFree(t *testing.T) {
	opening, _, _ := strings.Cut(stream, "\n")
	_, events := play(t, opening+"\n"+`{"type":"result","subtype":"error_during_execution","is_error":true,"total_cost_usd":0,"usage":{},"modelUsage":{}}`+"\n")
	if strings.Contains(fmt.Sprint(events), string(runlog.UsageEvent)) {
		t.Errorf("the events are %v", events)
	}
}

func TestJudge(t *testing.T) {
	failed := func() error { return exec.Command("false").Run() }
	for _, c := range []struct {
		result string
		exit   error
		stderr string
		want   error // nil: any other error
	}{
		{`{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["No conversation found with session ID: U"]}`, failed(), "", engine.ErrSessionUnknown},
		{"", failed(), "No conversation found with session ID: U", engine.ErrSessionUnknown},
		{`{"type":"result","subtype":"error_max_budget_usd","is_error":true}`, failed(), "", engine.ErrMaxCost},
		{`{"type":"result","subtype":"success","is_error":true,"result":"Not logged in"}`, failed(), "", engine.ErrNoKey},
		{`{"type":"result","subtype":"success","is_error":true,"result":"API Error: 400"}`, failed(), "", nil},
		{`{"type":"result","subtype":"error_during_execution","is_error":false}`, nil, "", nil}, // interrupted: exit status 0
		{"", nil, "", nil},
	} {
		turn, _ := play(t, c.result+"\n")
		err := turn.judge(c.exit, c.stderr)
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.result, err, c.want)
		}
	}
	for _, said := range []string{ // by the real command (2.1.330)
		`{"type":"assistant","error":"model_not_found","message":{}}` + "\n" + `{"type":"result","subtype":"success","is_error":true,"api_error_status":404,` +
			`"result":"There's an issue with the selected model (claude-x). It may not exist or you may not have access to it."}`,
		`{"type":"assistant","error":"authentication_failed","message":{}}` + "\n" + `{"type":"result","subtype":"success","is_error":true,"api_error_status":403,` +
			`"result":"Failed to authenticate. API Error: 403 Your API key does not have permission to use the specified resource."}`,
	} {
		if turn, _ := play(t, said+"\n"); !errors.Is(turn.judge(failed(), ""), engine.ErrModel) {
			t.Errorf("%s: %v", said, turn.judge(failed(), ""))
		}
	}
	turn, _ := play(t, `{"type":"result","subtype":"success","is_error":true,"api_error_status":529,"result":"Overloaded"}`+"\n")
	if _, ok := errors.AsType[*engine.Overloaded](turn.judge(failed(), "")); !ok {
		t.Error("an overload is not told as one")
	}
}

// TestAskedToWait: a pause longer than the command's own is the service's wish.
func TestAskedToWait(t *testing.T) {
	retry := func(attempt int, ms string) string {
		return fmt.Sprintf(`{"type":"system","subtype":"api_retry","attempt":%d,"retry_delay_ms":%s,"error_status":529,"error":"overloaded"}`+"\n", attempt, ms)
	}
	for _, c := range []struct {
		retries string
		want    time.Duration
	}{
		{retry(1, "547.72") + retry(2, "1249.9"), 0},
		{retry(1, "3000") + retry(2, "3000"), 3 * time.Second},
		{retry(1, "20000") + retry(2, "1100"), 0}, // it has changed its mind
		{retry(1, "5000"), 5 * time.Second},
		{retry(30, "39000"), 0},
		{"", time.Minute},
		{retry(1, "5000") + `{"type":"assistant","message":{"content":[]}}` + "\n", time.Minute}, // it had been answered
		{retry(0, "5000"), 5 * time.Second},
	} {
		turn, _ := play(t, c.retries+`{"type":"result","subtype":"success","is_error":true,"api_error_status":529,"result":"Overloaded"}`+"\n")
		overloaded, ok := errors.AsType[*engine.Overloaded](turn.judge(exec.Command("false").Run(), ""))
		if !ok || overloaded.After != c.want {
			t.Errorf("%s: %v, want %s", c.retries, overloaded, c.want)
		}
	}
}

// TestOfSubagents: what they use counts, what they say does not.
func TestOfSubagents(t *testing.T) {
	by := strings.ReplaceAll(stream, `{"type":"assistant",`, `{"type":"assistant","parent_tool_use_id":"t0",`)
	turn, events := play(t, by)
	for _, e := range events {
		if e.Type == runlog.Text || e.Type == runlog.Thinking {
			t.Errorf("%s %q", e.Type, e.Text)
		}
	}
	if len(turn.uses) != 1 || !turn.uses[0].done {
		t.Errorf("uses %+v", turn.uses)
	}
}

func TestOffered(t *testing.T) {
	got, err := offered(&engine.Subagent{Name: "looker", Description: "Looks.", Prompt: "Look."})
	if want := `{"looker":{"description":"Looks.","prompt":"Look."}}`; err != nil || len(got) != 2 || got[1] != want {
		t.Errorf("%q %v", got, err)
	}
	for list, taken := range map[string]bool{`["a","looker"]`: true, `["a"]`: false, `[]`: false, ``: false, `[{"name":"looker"}]`: false} {
		if err := (event{Agents: []byte(list)}).lacks(&engine.Subagent{Name: "looker"}); (err == nil) != taken {
			t.Errorf("%s: %v", list, err)
		}
		if err := (event{Agents: []byte(list)}).lacks(nil); err != nil {
			t.Errorf("%s: %v", list, err)
		}
	}
}

// FuzzStream: whatever comes is read to its end.
func FuzzStream(f *testing.F) {
	for line := range strings.Lines(stream) {
		f.Add(line)
	}
	f.Add(stream)
	f.Add(`{"type":"user","message":{"content":"text"}}`)
	f.Add(`{"type":"system","subtype":"api_retry","error_status":529}`)
	f.Add(`{"type":"system","subtype":"compact_boundary","compact_metadata":{"pre_tokens":1}}`)
	f.Fuzz(func(t *testing.T, text string) {
		turn, _ := play(t, text)
		if turn.fatal == nil {
			_ = turn.judge(nil, "")
		}
	})
}

// endless is a line of so many bytes, without its end, and then a turn.
func endless(size int64) *bufio.Reader {
	return bufio.NewReader(io.MultiReader(io.LimitReader(xs{}, size), strings.NewReader("\n"+stream)))
}

type xs struct{}

func (xs) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// A line of any length takes no more memory than the bound, is read to its end, and ends the run.
func TestLongLineIsBounded(t *testing.T) {
	stopped := 0
	turn := &turn{want: wanted{session: "U"}, phase: guarded, stop: func() { stopped++ }, sink: func(runlog.Event) error {
		t.Error("an event after the line")
		return nil
	}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	in := endless(600 << 20)
	err := turn.read(in)
	runtime.ReadMemStats(&after)
	if err != nil || turn.fatal == nil || !strings.Contains(turn.fatal.Error(), "a line of more than") || stopped != 1 {
		t.Errorf("%v, %v, stopped %d times", err, turn.fatal, stopped)
	}
	if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("it was not read to its end: %v", err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 8*command.MaxLine {
		t.Errorf("%d MiB were allocated for a line of 600", took>>20)
	}
}

// A long line that is within the bound is an event.
func TestLineWithinTheBound(t *testing.T) {
	text := strings.Repeat("x", command.MaxLine-1000)
	turn, events := play(t, `{"type":"assistant","message":{"content":[{"type":"text","text":"`+text+`"}]}}`+"\n"+stream)
	if turn.fatal != nil || len(events) == 0 || events[0].Text != text {
		t.Errorf("%v, %d events", turn.fatal, len(events))
	}
}
