package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unicode/utf16"

	"github.com/ollim/ollim/internal/engine"
)

func TestVersionsOfTheProtocol(t *testing.T) {
	p := connect(t, toys{})
	for asked, want := range map[string]string{
		"2025-11-25": "2025-11-25", "2025-06-18": "2025-06-18", "2025-03-26": "2025-03-26", "2024-11-05": "2024-11-05",
		"2026-07-28": "2025-11-25", "nonsense": "2025-11-25",
	} {
		p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"t","version":"0"}}}`, asked))
		p.expect(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":%q,"capabilities":{"tools":{}},`+
			`"serverInfo":{"name":"ollim","version":"1.2.3"}}}`, want))
	}
}

func TestToolsAsTheyAreShown(t *testing.T) {
	p := connect(t, box{list: func() []engine.Tool {
		return []engine.Tool{
			{Name: "reach", Description: "Reaches <you>.", Schema: json.RawMessage(echoSchema), Effect: engine.Sends},
			{Name: "remove", Effect: engine.Deletes}, {Name: "look", Effect: engine.ReadsOnly}, {Name: "bare"}, {Name: "broken", Schema: json.RawMessage(`{"type":`)}, {Name: "null", Schema: json.RawMessage(`null`)},
		}
	}})
	p.open()
	p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	hints := `"annotations":{"readOnlyHint":false,"destructiveHint":%v,"idempotentHint":false,"openWorldHint":%v}`
	closed := fmt.Sprintf(hints, false, false)
	line := p.next()
	if !strings.Contains(line, echoSchema) {
		t.Errorf("the schema is not as it was given: %s", line)
	}
	if want := `{"jsonrpc":"2.0","id":1,"result":{"tools":[
		{"name":"bare","inputSchema":{"type":"object"},` + closed + `},
		{"name":"broken","inputSchema":{"type":"object"},` + closed + `},
		{"name":"look","inputSchema":{"type":"object"},` + closed + `},
		{"name":"null","inputSchema":{"type":"object"},` + closed + `},
		{"name":"reach","description":"Reaches <you>.","inputSchema":` + echoSchema + `,` + fmt.Sprintf(hints, false, true) + `},
		{"name":"remove","inputSchema":{"type":"object"},` + fmt.Sprintf(hints, true, false) + `}]}}`; !sameJSON(t, line, want) {
		t.Errorf("got  %s\nwant %s", line, want)
	}
	if w := p.warnings(); len(w) != 2 {
		t.Errorf("warnings %q", w)
	}
}

func TestToolsAreAskedAnew(t *testing.T) {
	var there atomic.Bool
	p := connect(t, box{
		list: func() []engine.Tool {
			if there.Load() {
				return []engine.Tool{{Name: "it"}}
			}
			return nil
		},
		call: func(context.Context, string, json.RawMessage) engine.ToolResult {
			return engine.ToolResult{Text: "done"}
		},
	})
	p.open()
	list, empty := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}`
	unknown := `{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"tool 'it' not found: tool not found"}}`
	p.send(list)
	p.expect(empty)
	p.send(request(2, "it", "{}"))
	p.expect(unknown)
	there.Store(true)
	p.send(request(2, "it", "{}"))
	p.expect(result(2, "done"))
	there.Store(false)
	p.send(list)
	p.expect(empty)
}

func TestArgumentsArriveAsTheyWereSent(t *testing.T) {
	p := connect(t, toys{})
	p.open()
	for _, row := range [][2]string{
		{`,"arguments":{"b":12345678901234567890, "a":1e400,"a":"\u00e9"}`, `{"b":12345678901234567890, "a":1e400,"a":"\u00e9"}`},
		{`,"arguments":[1]`, `[1]`},
		{`,"arguments":"text"`, `"text"`},
		{`,"arguments":null`, `{}`},
		{``, `{}`},
	} {
		p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"` + row[0] + `}}`)
		line := p.next()
		if strings.Contains(row[0], "1e400") { // no float: mcp-go refuses the whole call
			if !strings.Contains(line, "-32600") {
				t.Errorf("got %s", line)
			}
			continue
		}
		if want := result(1, row[1]); !sameJSON(t, line, want) {
			t.Errorf("got  %s\nwant %s", line, want)
		}
	}
	p.send(request("x", "echo", `{"n":12345678901234567890}`))
	p.expect(result("x", `{"n":12345678901234567890}`))
}

func TestCrashes(t *testing.T) {
	lists := 0
	p := connect(t, box{
		list: func() []engine.Tool {
			if lists++; lists == 1 {
				panic("no\nlist")
			}
			return []engine.Tool{{Name: "it"}}
		},
		call: func(context.Context, string, json.RawMessage) engine.ToolResult { panic(fmt.Errorf("boom")) },
	})
	p.open()
	p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	p.expect(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the server crashed: no list"}}`)
	p.send(request(2, "it", "{}"))
	p.expect(`{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"the tool it crashed: boom"}],"isError":true}}`)
	p.send(ping)
	p.expect(pong)
	w := p.warnings()
	if len(w) != 2 || !strings.HasPrefix(w[0], "tools/list: crashed at protocol_test.go:") || !strings.HasSuffix(w[0], ": no list") ||
		!strings.HasPrefix(w[1], "tool it: crashed at protocol_test.go:") || !strings.HasSuffix(w[1], ": boom") {
		t.Errorf("warnings %q", w)
	}
}

func TestCrashesAreFoundInTheirFile(t *testing.T) {
	p := connect(t, toys{})
	p.open()
	p.send(request(1, "crash", "{}"))
	p.next()
	if w := p.warnings(); len(w) != 1 || !strings.HasPrefix(w[0], "tool crash: crashed at server_test.go:") {
		t.Errorf("warnings %q", w)
	}
}

func TestLinesThatAreNoRequests(t *testing.T) {
	p := connect(t, toys{})
	for _, line := range []string{"garbage", `{"jsonrpc":"2.0","id":1,`, "\x00\xff", "[]", "7", `"text"`} {
		p.send(line, "", "  \t", ping)
		if got := p.next(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`) {
			t.Errorf("%q: %s", line, got)
		}
		p.expect(pong)
	}
	p.send(`{"jsonrpc":"2.0","id":1,"method":"no/such"}`)
	p.expect(`{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method no/such not found"}}`)
	p.send(`{"jsonrpc":"2.0","method":"notifications/whatever"}`, `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo"}}`, ping)
	p.expect(pong)
}

func TestCallsRunAtTheSameTime(t *testing.T) {
	const n = 60
	var all sync.WaitGroup
	all.Add(n)
	p := connect(t, one(func(_ context.Context, _ string, input json.RawMessage) engine.ToolResult {
		all.Done()
		all.Wait() // all calls begin before the first one ends
		return engine.ToolResult{Text: string(input)}
	}))
	p.open()
	go func() {
		for i := range n {
			p.send(request(i, "it", fmt.Sprintf(`{"n":%d}`, i)))
		}
	}()
	seen := map[int]bool{}
	for range n {
		line := p.next()
		var r struct{ ID int }
		if err := json.Unmarshal([]byte(line), &r); err != nil || seen[r.ID] || !sameJSON(t, line, result(r.ID, fmt.Sprintf(`{"n":%d}`, r.ID))) {
			t.Fatal(line)
		}
		seen[r.ID] = true
	}
}

func TestACancelledCallIsNotAnswered(t *testing.T) {
	ended := make(chan error, 100)
	p := connect(t, one(func(ctx context.Context, _ string, _ json.RawMessage) engine.ToolResult {
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return engine.ToolResult{Text: "never read"}
	}))
	p.open()
	for i := range 50 { // at once: the call may not have begun yet
		p.send(request(i, "it", "{}"), fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d,"reason":"x"}}`, i))
		if err := <-ended; err == nil || !strings.Contains(err.Error(), "cancelled") {
			t.Fatal(err)
		}
	}
	p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, `{"jsonrpc":"2.0","method":"notifications/cancelled"}`, ping)
	p.expect(pong)
}

func TestLongTextIsCut(t *testing.T) {
	for _, row := range []struct {
		of   string
		n    int
		kept int // -1: all
	}{
		{"a", 0, -1},
		{"a", maxText, -1},
		{"é", maxText, -1},
		{"😀", maxText / 2, -1},
		{"\xff", maxText, -1},
		{"a", maxText + 1, 49_951},
		{"日", 2 * maxText, 49_951},
		{"😀", maxText/2 + 1, 24_975},
		{"\xff", maxText + 1, 49_951},
	} {
		text := strings.Repeat(row.of, row.n)
		want := text
		if row.kept >= 0 {
			want = strings.Repeat(row.of, row.kept) + fmt.Sprintf("\n[%d more characters omitted]", row.n-row.kept)
		}
		got := clip(text)
		if units := len(utf16.Encode([]rune(got))); got != want || units > maxText || row.kept >= 0 && units < maxText-100 {
			t.Errorf("%d times %q: %d units, %q", row.n, row.of, units, got[max(0, len(got)-50):])
		}
	}
	p := connect(t, toys{})
	p.open()
	p.send(request(1, "long", "{}"))
	p.expect(result(1, clip(strings.Repeat("0123456789", 30_000))))
}

func FuzzLines(f *testing.F) {
	f.Add([]byte(ping + "\n" + request(1, "echo", `{"z":"x"}`) + "\n" + request(2, "crash", `[]`)))
	f.Add([]byte(`{"jsonrpc":"2.0","id":{},"method":"tools/list","params":{"cursor":"!"}}` + "\ngarbage\n"))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/cancelled","params":7}`))
	f.Fuzz(func(t *testing.T, input []byte) {
		var out bytes.Buffer
		tools := one(func(_ context.Context, _ string, input json.RawMessage) engine.ToolResult {
			return engine.ToolResult{Text: string(input)}
		})
		err := Server{Tools: tools, Warn: func(string) {}}.Serve(context.Background(), bytes.NewReader(input), &out)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(out.Bytes()) {
			var m struct{ JSONRPC string }
			if json.Unmarshal(line, &m) != nil || m.JSONRPC != "2.0" || line[len(line)-1] != '\n' {
				t.Fatalf("%q", line)
			}
		}
	})
}
