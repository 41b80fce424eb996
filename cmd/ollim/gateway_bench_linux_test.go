package main

import (
	"encoding/pem"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// byTLS makes the service one that is reached by TLS, with a certificate of the test.
func (c *command) byTLS(b *testing.B, api *anthropicapi.Server) {
	at, err := url.Parse(api.URL())
	if err != nil {
		b.Fatal(err)
	}
	service := httptest.NewTLSServer(httputil.NewSingleHostReverseProxy(at))
	b.Cleanup(service.Close)
	file := filepath.Join(b.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: service.Certificate().Raw})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		b.Fatal(err)
	}
	c.environ(map[string]string{"ANTHROPIC_BASE_URL": service.URL})
	c.ok(append([]string{"config", "set", "env", "NODE_EXTRA_CA_CERTS=" + file}, strings.Fields(c.ok("config", "get", "env"))...)...)
}

// BenchmarkGatewayMemory measures the most memory of the ollim that fires a job on the real claude command, with a tool use between two
// requests to a service by TLS: without the gateway, and through it, in turns. The figures are medians.
//
// go test ./cmd/ollim -run '^$' -bench GatewayMemory -benchtime 10x
func BenchmarkGatewayMemory(b *testing.B) {
	c, api := withClaude(b)
	c.byTLS(b, api)
	for _, limit := range []string{"per-run", "per-day", "per-month", "runs-per-day"} {
		c.ok("config", "set", "spend."+limit, "none")
	}
	c.write("routines/look.md", strings.Replace(lookFork, "---\n", "---\nisolated: true\n", 1))
	api.Handle(func(q anthropicapi.Request) anthropicapi.Reply {
		if toolUses(q) == 0 {
			return anthropicapi.Use("mcp__ollim__list_reminders", nil)
		}
		return anthropicapi.Reply{Text: strings.Repeat("All is well. ", 1000)}
	})
	peaks := map[string][]float64{}
	for b.Loop() {
		for _, way := range []string{"off", "on"} {
			c.ok("config", "set", "claude-code.gateway", way)
			cmd := c.cmd("fire", "look")
			if err := cmd.Start(); err != nil {
				b.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			most, running := int64(0), true
			for running { // the kernel keeps the peak until the process ends
				select {
				case err := <-ended:
					if running = false; err != nil {
						b.Fatal(err)
					}
				case <-time.After(time.Millisecond):
					most = max(most, peak(int64(cmd.Process.Pid)))
				}
			}
			peaks[way] = append(peaks[way], float64(most)/(1<<20))
		}
	}
	median := func(way string) float64 {
		slices.Sort(peaks[way])
		return peaks[way][len(peaks[way])/2]
	}
	b.ReportMetric(median("off"), "MiB-without")
	b.ReportMetric(median("on"), "MiB-through")
	b.ReportMetric(median("on")-median("off"), "MiB-more")
}
