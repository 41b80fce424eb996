package gateway

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// BenchmarkExchange is a request of 85 kB, as claude sends it, and an answer of 200 events: to the service itself, and through the gateway.
func BenchmarkExchange(b *testing.B) {
	body := `{"model":"claude-test-1","stream":true,"messages":[{"role":"user","content":"` + strings.Repeat("words ", 14_000) + `"}]}`
	w := newWorld(b, func(rw http.ResponseWriter, _ *http.Request) {
		streamed(rw, started)
		for range 200 {
			streamed(rw, text)
		}
		streamed(rw, counted, stopped)
	})
	w.listen()
	for name, at := range map[string]struct {
		client  *http.Client
		address string
	}{"direct": {w.service.Client(), w.service.URL + "/base"}, "through": {w.program, "http://service.example/base"}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				resp, err := at.client.Post(at.address+"/v1/messages", "application/json", strings.NewReader(body))
				if err != nil {
					b.Fatal(err)
				}
				_, err = io.Copy(io.Discard, resp.Body)
				if closeErr := resp.Body.Close(); err != nil || closeErr != nil {
					b.Fatal(err, closeErr)
				}
			}
		})
	}
}
