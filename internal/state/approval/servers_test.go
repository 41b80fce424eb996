package approval

import (
	"slices"
	"testing"

	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/job"
)

// TestServers: a job is approved with the definitions of its servers and with the files of the data directory that those run.
func TestServers(t *testing.T) {
	d := newDesk(t)
	d.write("servers/notes.py", "one")
	j := job.New(job.Routine)
	j.ID, j.Body, j.AllowedTools = "s1", "Do.", []string{"mcp__notes__*", "WebFetch"}
	missing := d.of(j)
	d.Servers = config.Servers{{Name: "notes", Command: []string{"python3", "servers/notes.py"}}, {Name: "other", Command: []string{"x"}}}
	s := d.of(j)
	if got := s.Widening(); !slices.Equal(got, []string{"allowed-tools", "mcp-servers"}) {
		t.Errorf("got %v", got)
	}
	if want := []string{`notes: {"command":["python3","servers/notes.py"]}`}; !slices.Equal(s.Fields.Servers, want) {
		t.Errorf("got %q, want %q", s.Fields.Servers, want)
	}
	if missing.Digest() == s.Digest() {
		t.Error("a server that is configured later needs no approval")
	}
	if err := d.Approve(t.Context(), s, Owner); err != nil {
		t.Fatal(err)
	}
	d.Servers[1].Command = []string{"y"}
	if ok, err := d.Approved(d.of(j)); !ok || err != nil {
		t.Errorf("a server that the job does not name counts: %v, %v", ok, err)
	}
	d.write("servers/notes.py", "two")
	if ok, err := d.Approved(d.of(j)); ok || err != nil {
		t.Errorf("the changed program of a server is approved: %v, %v", ok, err)
	}
	d.write("servers/notes.py", "one")
	d.Servers[0].Env = []string{"A=b"}
	if ok, err := d.Approved(d.of(j)); ok || err != nil {
		t.Errorf("the changed definition of a server is approved: %v, %v", ok, err)
	}
	lines, err := d.Difference(d.of(j))
	want := []string{`mcp-servers: - notes: {"command":["python3","servers/notes.py"]}`, `mcp-servers: + notes: {"command":["python3","servers/notes.py"],"env":["A=b"]}`}
	if !slices.Equal(lines[:min(2, len(lines))], want) || err != nil {
		t.Errorf("got %q, %v", lines, err)
	}
}

// TestServersOfPolicy: those of tool-policy.yaml are approved with it.
func TestServersOfPolicy(t *testing.T) {
	d := newDesk(t)
	d.write("tool-policy.yaml", "main:\n  additional-allowed: [mcp__notes__add]\n")
	d.Servers = config.Servers{{Name: "notes", URL: "https://example.com/mcp"}}
	p, err := d.Policy()
	if err != nil || !p.Waits {
		t.Fatalf("%+v, %v", p, err)
	}
	if err := d.Approve(t.Context(), p.Subject, Owner); err != nil {
		t.Fatal(err)
	}
	if p, err := d.Policy(); err != nil || p.Waits || len(p.Main) != 1 {
		t.Fatalf("%+v, %v", p, err)
	}
	d.Servers[0].URL = "https://example.org/mcp"
	if p, err := d.Policy(); err != nil || !p.Waits || len(p.Main) != 0 {
		t.Errorf("a changed server is approved: %+v, %v", p, err)
	}
}
