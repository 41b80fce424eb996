package seal

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit"
)

// programs talk to servers of their own, by what each of them uses.
func programs() map[string][3]string {
	return map[string][3]string{
		"curl": {"curl", `python3 -u -c '
import http.server
s = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
print(s.server_port, flush=True); s.handle_request()' >port 2>/dev/null &
until test -s port; do sleep 0.1; done
curl -sS -o /dev/null -w '%{http_code}' http://localhost:$(cat port)/`, "200"},
		"asyncio": {"python3", `exec python3 -c '
import asyncio
async def echo(r, w):
    w.write(await r.readline()); w.close()
async def ask(r, w):
    w.write(b"echo\n"); print((await r.readline()).decode().strip(), end=" ")
async def main():
    async with await asyncio.start_server(echo, "localhost", 0) as s:
        await ask(*await asyncio.open_connection(*s.sockets[0].getsockname()[:2]))
    async with await asyncio.start_unix_server(echo, "echo.sock"):
        await ask(*await asyncio.open_unix_connection("echo.sock"))
asyncio.run(main())'`, "echo echo"},
		"multiprocessing": {"python3", `cat >pool.py <<'END'
import multiprocessing as m
if __name__ == "__main__":
    with m.get_context("forkserver").Pool(2) as p: print(p.map(abs, [-1, -2]))
    with m.Manager() as g: print(dict(g.dict(a=1)))
END
exec python3 pool.py`, "[1, 2]\n{'a': 1}"},
		"node": {"node", `exec node -e '
const http = require("http"), net = require("net");
const s = http.createServer((q, r) => r.end("http")).listen(0, async () => {
	console.log(await (await fetch("http://localhost:" + s.address().port)).text());
	s.closeAllConnections(); s.close();
	const u = net.createServer(c => c.end("unix")).listen("./node.sock", () =>
		net.connect("./node.sock").on("data", d => console.log(String(d))).on("end", () => u.close()));
})'`, "http\nunix"},
		"threads and children": {"python3", `exec python3 -c '
import os, threading
t = threading.Thread(target=lambda: print("thread", flush=True)); t.start(); t.join()
os.waitpid(os.posix_spawn("/bin/echo", ["echo", "child"], {}), 0)'`, "thread\nchild"},
		"names": {"getent", `getent hosts localhost | grep -c localhost`, "1"},
	}
}

// TestPrograms: programs reach what they have started themselves.
func TestPrograms(t *testing.T) {
	t.Parallel()
	testPrograms(t)
}

// TestProgramsOfUser is the same as a user without privileges.
func TestProgramsOfUser(t *testing.T) {
	t.Parallel()
	testkit.OnlyInCI(t, "TestPrograms once more, as a user without privileges")
	if testkit.Unprivileged(t) {
		testPrograms(t)
	}
}

func testPrograms(t *testing.T) {
	const path = "/usr/local/bin:/usr/bin:/bin"
	for name, program := range programs() {
		for kind, network := range map[string]bool{"none": false, "any": true} {
			t.Run(name+" "+kind, func(t *testing.T) {
				t.Parallel()
				requireProgram(t, program[0], path)
				p := newPlace(t)
				p.Rules.Network = network
				temp, err := os.MkdirTemp("/tmp", "seal") // the path of a socket has at most 107 bytes
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = os.RemoveAll(temp) })
				p.Rules.Write = append(p.Rules.Write, "/dev/shm", temp)
				cmd := p.shell(program[1])
				cmd.Env = append(cmd.Env, "PATH="+path, "TMPDIR="+temp, "HOME="+p.Inside)
				if got := strings.TrimSpace(output(t, p.seal(t), cmd)); got != program[2] {
					t.Errorf("%q, want %q", got, program[2])
				}
			})
		}
	}
}

// requireProgram skips the test if the program is in none of the directories, which the rules must open.
func requireProgram(t *testing.T, name, path string) {
	t.Helper()
	for dir := range strings.SplitSeq(path, ":") {
		if _, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return
		}
	}
	testkit.Missing(t, "no %s: apt-get install curl nodejs perl python3", name)
}
