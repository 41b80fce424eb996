// Package doorpeer is ollim's side of ollim-door(5) for tests of doors: it starts one, reads its lines, and makes requests.
package doorpeer

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os/exec"
	"sync"
	"testing"
	"time"
)

// Line is a line of the protocol.
type Line = map[string]any

const patience = 5 * time.Minute // no measure of speed: a busy machine is slow

// Peer is a door that runs.
type Peer struct {
	Hello Line
	Files string // the directory for contents of files

	t     testing.TB
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan Line
	ended chan struct{}
	ref   int

	mu   sync.Mutex
	kept []Line // read while another line was wanted
	log  bytes.Buffer
}

// Start starts a door and waits for its hello. The door is killed at the end of the test, if it still runs.
func Start(t testing.TB, cmd *exec.Cmd, name string) *Peer {
	t.Helper()
	p := &Peer{
		Files: t.TempDir(), t: t, cmd: cmd, lines: make(chan Line, 10000), ended: make(chan struct{}),
	}
	cmd.Stderr = locked{p}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.in = in
	go p.read(out)
	t.Cleanup(p.Kill)
	p.Tell(Line{"type": "start", "version": 1, "name": name, "files": p.Files})
	p.Hello = p.Next("hello")
	return p
}

func (p *Peer) read(out io.Reader) {
	scanner := bufio.NewScanner(out)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		var line Line
		if err := json.Unmarshal(scanner.Bytes(), &line); err != nil {
			line = Line{"type": "no JSON: " + scanner.Text()}
		}
		p.lines <- line
	}
	close(p.lines)
	_ = p.cmd.Wait()
	close(p.ended)
}

// Tell writes a line to the door.
func (p *Peer) Tell(line Line) {
	p.t.Helper()
	text, err := json.Marshal(line)
	if err == nil {
		_, err = p.in.Write(append(text, '\n'))
	}
	if err != nil {
		p.t.Fatalf("the door does not read: %v\n%s", err, p.Log())
	}
}

// Next returns the next line of a type. Lines of other types stay for later calls.
func (p *Peer) Next(kind string) Line {
	p.t.Helper()
	return p.find(kind, func(l Line) bool { return l["type"] == kind })
}

func (p *Peer) find(what string, wanted func(Line) bool) Line {
	p.t.Helper()
	for n, line := range p.kept {
		if wanted(line) {
			p.kept = append(p.kept[:n:n], p.kept[n+1:]...)
			return line
		}
	}
	late := time.After(patience)
	for {
		select {
		case line, more := <-p.lines:
			if !more {
				p.t.Fatalf("the door ended before %s\n%s", what, p.Log())
			}
			if wanted(line) {
				return line
			}
			p.kept = append(p.kept, line)
		case <-late:
			p.t.Fatalf("no %s within %s; lines: %v\n%s", what, patience, p.kept, p.Log())
		}
	}
}

// Message returns the next message, and says that it is kept.
func (p *Peer) Message() Line {
	p.t.Helper()
	m := p.Next("message")
	p.Tell(Line{"type": "taken", "line": 1, "id": m["id"]})
	return m
}

// Ask begins a request and returns its number.
func (p *Peer) Ask(request Line) int {
	p.t.Helper()
	p.ref++
	request["ref"] = p.ref
	p.Tell(request)
	return p.ref
}

// Answer returns the answer to a request.
func (p *Peer) Answer(ref int) Line {
	p.t.Helper()
	return p.find("answer", func(l Line) bool {
		return (l["type"] == "done" || l["type"] == "failed") && l["ref"] == float64(ref)
	})
}

// Do makes a request that must succeed.
func (p *Peer) Do(request Line) Line {
	p.t.Helper()
	kind := request["type"]
	a := p.Answer(p.Ask(request))
	if a["type"] != "done" {
		p.t.Fatalf("%v: %v\n%s", kind, a, p.Log())
	}
	return a
}

// Nothing asserts that no further message or press was read, after a ping was answered.
func (p *Peer) Nothing() {
	p.t.Helper()
	p.Do(Line{"type": "ping"})
	if len(p.kept) > 0 {
		p.t.Errorf("unexpected lines: %v", p.kept)
	}
}

// Kill ends the door at once.
func (p *Peer) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// Close ends the standard input. The door must end well; ollim's test of the protocol wants that within the protocol's five seconds.
func (p *Peer) Close() {
	p.t.Helper()
	_ = p.in.Close()
	select {
	case <-p.ended:
		if code := p.cmd.ProcessState.ExitCode(); code != 0 {
			p.t.Errorf("the door ended with status %d\n%s", code, p.Log())
		}
	case <-time.After(patience):
		p.t.Errorf("the door did not end\n%s", p.Log())
	}
}

// Log returns what the door wrote to its standard error.
func (p *Peer) Log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// locked is the writer of the log.
type locked struct{ p *Peer }

func (l locked) Write(b []byte) (int, error) {
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	return l.p.log.Write(b)
}
