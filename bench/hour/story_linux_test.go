package hour

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// story is what differs between the engines.
type story interface {
	name() string
	costs() string       // what init says of them
	change(p *person)    // in the directory of the trial: from the script engine to this one
	before(p *person)    // what is done before ollim init
	engine(p *person)    // the answers to its questions about the engine
	pinging(p *person)   // before the routine is added that pings
	answering(p *person) // before the conversation
}

// script is the engine that plays a file: the person writes what it says.
type script struct{}

func (script) name() string { return "script" }

func (script) costs() string { return "nothing: a file plays the model$" }

func (script) change(*person) {}

func (script) before(p *person) { write(p, "text: It works.") }

func (script) engine(p *person) {
	p.answers([2]string{`Engine \[.*\]:`, "script:" + filepath.Join(p.home, "play.yaml")})
}

func (script) pinging(p *person) {
	write(p, "tool: ping_user\n      input: {message: The pump works.}\n    - tool: report_updates\n      input: {message: The pump was tried.}\n    - text: Done.")
}

func (script) answering(p *person) { write(p, fmt.Sprintf("text: %q", answer)) }

// write writes the only turn of the file.
func write(p *person, steps string) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.home, "play.yaml"), []byte("turns:\n  - - "+steps+"\n"), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// keyed is an engine that needs a key.
type keyed struct{}

func (keyed) costs() string { return `at most \$1\.00 a fire` }

func (keyed) pinging(*person) {}

func (keyed) answering(*person) {}

// changed changes the engine of the trial. The conversation goes on with what was said in it.
func (keyed) changed(p *person, engine string) {
	p.t.Helper()
	p.types("ollim secret set engine.ANTHROPIC_API_KEY")
	p.WaitFor(`not shown.*\n$`)
	p.types(key)
	p.shown()
	p.types("ollim config set engine " + engine)
	p.answers([2]string{`Change the engine to ` + engine + `\? \[Y/n\]`, "y"})
	p.has("ollim config set engine", p.shown(), `^main will continue in a new session`)
	p.sees(`ollim chat "Who am I?"`, `^You are Ada\.$`, "the conversation is carried over")
	requests := p.api.Requests()
	if last := requests[len(requests)-1]; !last.Has("I am Ada") || !last.Has("hello") || last.Key() != key {
		p.t.Errorf("the service got the key: %t, and this request:\n%s", last.Key() == key, last.Raw)
	}
	p.run("ollim secret rm engine.ANTHROPIC_API_KEY")
}

// address is the service's, as one that is elsewhere and needs a key.
func address(p *person) string { return strings.Replace(p.api.URL(), "127.0.0.1", "0.0.0.0", 1) }

func (keyed) typesKey(p *person) {
	p.answers([2]string{`Key, ANTHROPIC_API_KEY \(not shown; Enter: from a command, or none\):`, key})
}

// native is the built-in engine.
type native struct{ keyed }

func (native) name() string { return "native" }

func (n native) change(p *person) {
	p.run("ollim config set native.base-url " + address(p))
	n.changed(p, "native")
}

func (native) before(*person) {}

func (n native) engine(p *person) {
	p.answers(
		[2]string{`Engine \[.*\]:`, "native"},
		[2]string{`Service: .*\[anthropic\]:`, address(p)},
		[2]string{`API that it speaks: .*:`, "anthropic"},
		[2]string{`Model, as the service names it.*:`, "claude-sonnet-5"},
	)
	n.typesKey(p)
}

// claude is the real claude command, which is not logged in.
type claude struct{ keyed }

func (claude) name() string { return "claude-code" }

func (c claude) change(p *person) {
	c.gateway(p)
	c.changed(p, "claude-code")
	p.run("ollim secret rm engine.ANTHROPIC_BASE_URL") // init asks for it
	p.has("claude-code.command", p.run("ollim config get claude-code.command"), "/claude$")
}

// gateway tells claude which service to ask.
func (claude) gateway(p *person) {
	p.t.Helper()
	p.run("echo " + address(p) + " | ollim secret set engine.ANTHROPIC_BASE_URL")
}

func (claude) before(*person) {}

func (c claude) engine(p *person) {
	p.answers([2]string{`Engine \[claude-code\]:`, ""}, [2]string{`Service: anthropic or an address \[anthropic\]:`, address(p)})
	c.typesKey(p)
}
