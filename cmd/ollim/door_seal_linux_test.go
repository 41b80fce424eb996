package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/platform/seal"
	"github.com/ollim/ollim/internal/testkit"
)

// curious is a door that tries to reach servers, and tells on standard error what happened.
const curious = `
import json, os, socket, subprocess, sys, urllib.request
def tell(what, do):
    try:
        print(what, do(), file=sys.stderr)
    except Exception as e:
        print(what, e, file=sys.stderr)
def fetch(url):
    return lambda: urllib.request.urlopen(url, timeout=30).read().decode()
def curl(*args):
    r = subprocess.run(["curl", "-sS", "-m", "30", *args], capture_output=True, text=True)
    return r.stdout or r.stderr.strip()
def straight(address):
    host, port = address.split(":")
    def do():
        with socket.create_connection((host, int(port)), timeout=30):
            return "connected"
    return do
for line in sys.stdin:
    r = json.loads(line)
    if r["type"] == "start":
        listed, other = sys.argv[1:]
        tell("listed:", fetch("http://" + listed))
        tell("other:", fetch("http://" + other))
        tell("straight to listed:", straight(listed))
        tell("straight to other:", straight(other))
        tell("straight to a name server:", straight("192.0.2.1:53"))
        tell("curl to listed:", lambda: curl("http://" + listed))
        tell("curl through a tunnel:", lambda: curl("-p", "http://" + listed))
        tell("curl past the proxy:", lambda: curl("--noproxy", "*", "http://" + other))
        tell("tunnel to other:", lambda: curl("-p", "http://" + other))
        tell("the end", lambda: "")
        print(json.dumps({"type": "hello", "version": 1, "able": {"text": 2000}}), flush=True)
    elif "ref" in r:
        print(json.dumps({"type": "done", "ref": r["ref"]}), flush=True)
`

// TestSealedDoorHosts: a sealed door with a list of hosts reaches these and nothing else, by whatever way it tries.
func TestSealedDoorHosts(t *testing.T) {
	t.Parallel()
	if _, err := seal.Check(); err != nil {
		testkit.Missing(t, "%v: run the test on Linux 6.12 or later", err)
	}
	for _, path := range []string{"/usr/bin/python3", "/usr/bin/curl"} {
		if _, err := exec.LookPath(path); err != nil {
			testkit.Missing(t, "%v: apt-get install python3 curl", err)
		}
	}
	answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "reached") })
	listed, other := httptest.NewServer(answer), httptest.NewServer(answer)
	t.Cleanup(listed.Close)
	t.Cleanup(other.Close)
	at, elsewhere := listed.Listener.Addr().String(), other.Listener.Addr().String()
	d := &served{command: newCommand(t), name: "curious"}
	t.Cleanup(d.kill)
	d.write("door.py", curious)
	d.ok("config", "set", "doors.curious.command", "/usr/bin/python3", d.data+"/door.py", at, elsewhere)
	if got := d.fails(65, "config", "set", "doors.curious.network", at); !strings.Contains(got, "doors.curious: network requires seal: on") {
		t.Errorf("got %s", got)
	}
	d.ok("config", "set", "doors.curious.seal", "on")
	d.ok("config", "set", "doors.curious.network", at, "*.example.org")
	d.proc = d.cmd("door", "serve", d.name)
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	d.proc.Stderr = file
	if err := d.proc.Start(); err != nil {
		t.Fatal(err)
	}
	log := func() string {
		text, _ := os.ReadFile(file.Name())
		return string(text)
	}
	eventually(t, "the door", func() bool { return strings.Contains(log(), "the end") })
	for _, want := range []string{
		" listed: reached\n", " other: HTTP Error 403: Forbidden\n", " straight to listed: connected\n", " straight to other: [Errno 13]",
		" straight to a name server: [Errno 13]", "curl to listed: reached\n", "curl through a tunnel: reached\n", "tunnel to other: curl: (56)",
		"curious: it may not connect to " + elsewhere + ": doors.curious.network does not list it\n",
	} {
		if !strings.Contains(log(), want) {
			t.Errorf("the log has no %q", want)
		}
	}
	if n := strings.Count(log(), "reached"); n != 3 || t.Failed() {
		t.Errorf("the door has reached a server %d times, want 3: %s", n, log())
	}
}
