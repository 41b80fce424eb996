// Command webhook measures how fast events are accepted: signed posts of 19 kB to `ollim webhook serve`, whose answer means that the
// event is on disk, beside the same posts to nginx, which answers an empty 202 and does nothing. Automatic runs are paused. It prints
// the rate, the time of an answer, and the memory of the server as it goes. Run it from the repository: go run ./bench/webhook
package main

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ollim/ollim/bench/program"
	"github.com/ollim/ollim/internal/server/webhook"
	"github.com/ollim/ollim/internal/state/job"
)

const (
	secret      = "0123456789abcdef0123456789abcdef"
	payloadSize = 19_000 // bytes, as GitHub's workflow_run
)

func main() {
	binary := flag.String("ollim", "", "the program to measure; default: built from this repository")
	posts := flag.Int("posts", 5000, "posts of each measurement")
	rounds := flag.Int("rounds", 3, "measurements of each server, in turns; the median counts")
	clients := flag.Int("clients", 8, "connections at once")
	memory := flag.Int("memory", 0, "then so many posts, to watch the memory")
	dir := flag.String("dir", "", "where the data directory on a disk is made; default: the directory of temporary files")
	flag.Parse()
	b := bench{posts: *posts, clients: *clients, began: time.Now()}
	if err := b.run(*binary, *dir, *rounds, *memory); err != nil {
		fmt.Fprintln(os.Stderr, "webhook:", err)
		os.Exit(1)
	}
}

type bench struct {
	posts, clients int
	began          time.Time
	sent           atomic.Int64 // every post has another number, and so another signature
}

// server is what is measured.
type server struct {
	name, address string
	process       *exec.Cmd
	inbox         string
	rates         []float64
	p50, p99      []time.Duration
}

func (b *bench) run(binary, disk string, rounds, memory int) error {
	dir, err := os.MkdirTemp("", "ollim-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary, err = program.Path(binary, dir)
	if err != nil {
		return err
	}
	onDisk, err := os.MkdirTemp(disk, "ollim-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(onDisk) }()
	inMemory, err := os.MkdirTemp("/dev/shm", "ollim-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(inMemory) }()
	var servers []*server
	defer func() {
		for _, s := range servers {
			_ = s.process.Process.Signal(os.Interrupt)
			_ = s.process.Wait()
		}
	}()
	for _, start := range []func() (*server, error){
		func() (*server, error) { return nginx(dir) },
		func() (*server, error) { return ollim(binary, "ollim, on disk", onDisk) },
		func() (*server, error) { return ollim(binary, "ollim, in memory", inMemory) },
	} {
		s, err := start()
		if err != nil {
			return err
		}
		servers = append(servers, s)
	}
	for range rounds {
		for _, s := range servers {
			if err := b.measure(s, b.posts); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
	}
	report(servers)
	return b.watch(servers[len(servers)-1], memory)
}

func report(servers []*server) {
	fmt.Println("| server | accepted a second | beside nginx | median | p99 |\n| --- | --- | --- | --- | --- |")
	for _, s := range servers {
		rate := median(s.rates)
		fmt.Printf("| %s | %.0f | %.2f | %s | %s |\n", s.name, rate, rate/median(servers[0].rates), rounded(median(s.p50)), rounded(median(s.p99)))
	}
}

func rounded(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }

func median[T float64 | time.Duration](list []T) T {
	return slices.Sorted(slices.Values(list))[len(list)/2]
}

// freeAddress returns an address on which nobody listens.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// begin starts a server and waits until it listens.
func begin(name, address string, cmd *exec.Cmd) (*server, error) {
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	for range 1000 {
		if c, err := net.Dial("tcp", address); err == nil {
			return &server{name: name, address: address, process: cmd}, c.Close()
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil, errors.New(name + " does not listen")
}

func nginx(dir string) (*server, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	text := fmt.Sprintf(`daemon off; pid %[1]s/pid; error_log stderr crit; worker_processes auto; events {}
http { access_log %[1]s/access.log; client_body_temp_path %[1]s/body; client_max_body_size 1m; client_body_buffer_size 64k;
  keepalive_requests 1000000000; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
  server { listen %[2]s; location / { return 202; } } }`, dir, address)
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	return begin("nginx, an empty 202", address, exec.Command("nginx", "-c", file))
}

func ollim(binary, name, dir string) (*server, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	env := []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "TZ=UTC", "OLLIM_DATA_DIR=" + dir + "/data"}
	command := func(args ...string) *exec.Cmd {
		cmd := exec.Command(binary, args...)
		cmd.Env = env
		return cmd
	}
	for _, args := range [][]string{
		{"init", "--engine", "script:script.yaml"},
		{"config", "set", "webhook.listen", address},
		{"config", "set", "webhook.inbox", "1000000"},
		{"pause"},
	} {
		if out, err := command(args...).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%s: %w: %s", args[0], err, out)
		}
	}
	for path, text := range map[string]string{
		".config/ollim/secrets.env": "webhook.default=" + secret + "\n",
		"data/webhooks/ci.md": "---\nid: ci\nsignature: github\nfields:\n  properties:\n    action: {enum: [completed]}\n" +
			"    number: {type: integer, from: /workflow_run/run_number}\n    branch: {type: string, from: /workflow_run/head_branch}\n---\nLook.\n",
	} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	s, err := begin(name, address, command("webhook", "serve"))
	if err == nil {
		s.inbox = filepath.Join(dir, "data/state/inbox/ci")
	}
	return s, err
}

// payload is an event of a number.
func payload(n int64) []byte {
	head := fmt.Sprintf(`{"action":"completed","workflow_run":{"run_number":%d,"head_branch":"main"},"repository":{`, n)
	var b strings.Builder
	b.WriteString(head)
	for i := 0; b.Len() < payloadSize; i++ {
		fmt.Fprintf(&b, `"url_%d":"https://api.github.com/repos/octo-org/octo-repo/%d",`, i, i)
	}
	return []byte(b.String() + `"id":1}}`)
}

// measure sends posts on some connections, and notes how fast they were answered.
func (b *bench) measure(s *server, posts int) error {
	var clients sync.WaitGroup
	failures := make(chan error, b.clients)
	took := make([][]time.Duration, b.clients)
	began := time.Now()
	for i := range b.clients {
		clients.Go(func() {
			var err error
			if took[i], err = b.client(s, posts/b.clients); err != nil {
				failures <- err
			}
		})
	}
	clients.Wait()
	elapsed := time.Since(began)
	close(failures)
	if err := <-failures; err != nil {
		return err
	}
	all := slices.Sorted(slices.Values(slices.Concat(took...)))
	s.rates = append(s.rates, float64(len(all))/elapsed.Seconds())
	s.p50, s.p99 = append(s.p50, all[len(all)/2]), append(s.p99, all[len(all)*99/100])
	return s.clear()
}

// clear empties the inbox, as runs would.
func (s *server) clear() error {
	if s.inbox == "" {
		return nil
	}
	files, err := filepath.Glob(s.inbox + "/*.json")
	for _, f := range files {
		err = errors.Join(err, os.Remove(f))
	}
	return err
}

func (b *bench) client(s *server, posts int) (took []time.Duration, err error) {
	c, err := net.Dial("tcp", s.address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	answers := bufio.NewReader(c)
	github, err := job.Named("github")
	if err != nil {
		return nil, err
	}
	keys := webhook.Keys{Scheme: github, Values: [][]byte{[]byte(secret)}}
	for range posts {
		n := b.sent.Add(1)
		body := payload(n)
		r, err := http.NewRequest(http.MethodPost, "http://"+s.address+"/hook/ci", bytes.NewReader(body))
		if err != nil {
			return took, err
		}
		r.Header.Set("Content-Type", "application/json")
		_, err = keys.Sign(r.Header, strconv.FormatInt(b.began.UnixNano()+n, 10), body, b.began)
		if err != nil {
			return took, err
		}
		var wire bytes.Buffer
		if err := r.Write(&wire); err != nil {
			return took, err
		}
		began := time.Now()
		if _, err := c.Write(wire.Bytes()); err != nil {
			return took, err
		}
		answer, err := http.ReadResponse(answers, r)
		if err != nil {
			return took, err
		}
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusAccepted {
			return took, fmt.Errorf("%s: %s, %w", answer.Status, text, err)
		}
		took = append(took, time.Since(began))
	}
	return took, nil
}

// watch prints the memory of a server while it accepts many events.
func (b *bench) watch(s *server, posts int) error {
	const parts = 10
	for i := range parts {
		if posts == 0 {
			return nil
		}
		if i == 0 {
			fmt.Println("\n| accepted | resident memory |\n| --- | --- |")
		}
		for range 10 {
			if err := b.measure(s, posts/parts/10); err != nil {
				return err
			}
		}
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.process.Process.Pid))
		if err != nil {
			return err
		}
		_, rest, _ := strings.Cut(string(text), "VmRSS:")
		line, _, _ := strings.Cut(rest, "\n")
		kib, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(line), " kB"))
		if err != nil {
			return err
		}
		fmt.Printf("| %d | %.1f MiB |\n", (i+1)*(posts/parts), float64(kib)/1024)
	}
	return nil
}
