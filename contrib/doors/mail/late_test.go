package mail_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ollim/ollim/contrib/doors/doortest"
	"github.com/ollim/ollim/internal/testkit/doorpeer"
)

// TestArrivesDuringAFetch: the server tells of a message in the answer to the fetch of another one, and does not tell of it again.
func TestArrivesDuringAFetch(t *testing.T) {
	s := start(t)
	s.post(t, ann, header("<first@home.example>"), "First")
	s.arrived(t, 1)
	fetch := s.holdFetch(t)
	cmd := s.command(t)
	cmd.Args = append(cmd.Args, "--imap", fetch.address)
	p := doorpeer.Start(t, cmd, "mail")
	<-fetch.begun
	s.post(t, ann, header("<second@home.example>"), "Second")
	s.arrived(t, 2)
	close(fetch.goOn)
	texts := []any{p.Next("message")["text"], p.Next("message")["text"]} // "taken" would let it look again
	doortest.Equal(t, "texts", texts, []any{"First", "Second"})
	p.Close()
}

// arrived waits until the agent's mailbox has n messages.
func (s *servers) arrived(t *testing.T, n int) {
	t.Helper()
	for late := time.Now().Add(doortest.Patience); ; time.Sleep(20 * time.Millisecond) {
		names, err := filepath.Glob(filepath.Join(s.dir, "mail/agent/[cn]*/*"))
		if err != nil {
			t.Fatal(err)
		}
		if len(names) >= n {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("%d of %d messages arrived\n%s", len(names), n, s.log())
		}
	}
}

// tag is that of the proxy's own command.
const tag = "PROXY "

// heldFetch is a proxy of IMAP that holds the first command that fetches a body. A server may look for new messages during any command, and
// tell of them in its answer. This one does so, now and then: here it does.
type heldFetch struct {
	address string
	begun   chan struct{} // closed by the proxy
	goOn    chan struct{} // closed by the test
	once    sync.Once
}

func (s *servers) holdFetch(t *testing.T) *heldFetch {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(s.cert, filepath.Join(s.dir, "key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM([]byte(s.read(t, "cert.pem")))
	h := &heldFetch{address: l.Addr().String(), begun: make(chan struct{}), goOn: make(chan struct{})}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go h.relay(client, s.imap, &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12})
		}
	}()
	return h
}

// relay connects a client with the server until one of them closes the connection.
func (h *heldFetch) relay(client net.Conn, server string, config *tls.Config) {
	defer client.Close()
	to, err := tls.Dial("tcp", server, config)
	if err != nil {
		return
	}
	defer to.Close()
	go func() {
		defer client.Close()
		for answers := bufio.NewReader(to); ; {
			text, err := answers.ReadString('\n')
			if strings.HasPrefix(text, tag) {
				continue
			}
			if _, failed := io.WriteString(client, text); err != nil || failed != nil {
				return
			}
		}
	}()
	commands := bufio.NewReader(client)
	for {
		text, err := commands.ReadString('\n')
		if strings.Contains(text, "UID FETCH") && strings.Contains(text, "BODY.PEEK[]") {
			h.once.Do(func() {
				close(h.begun)
				<-h.goOn
				text = tag + "NOOP\r\n" + text // which lets the server look for new messages
			})
		}
		if _, failed := io.WriteString(to, text); err != nil || failed != nil {
			return
		}
	}
}
