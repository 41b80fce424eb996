// Package irc_test tests the door for IRC, irc.py, with Debian's ngircd.
package irc_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/contrib/doors/doortest"
	"github.com/ollim/ollim/internal/testkit"
	"github.com/ollim/ollim/internal/testkit/doorpeer"
)

type line = doorpeer.Line

const password = "open sesame"

// TestDoor: messages in private and in a channel, replies, long texts, and who a user is.
func TestDoor(t *testing.T) {
	t.Parallel()
	server := ngircd(t)
	p := doorpeer.Start(t, door(t, "--plain", "--trust-nicks", server, "ollim", "#plans"), "irc")
	doortest.Equal(t, "mentions", p.Hello["mentions"], []string{"ollim:"})
	ann := connect(t, server, "ann_")
	ann.tell("PRIVMSG ollim :Hello ä: you")
	m := p.Message()
	doortest.Equal(t, "message", m, line{
		"type": "message", "channel": "ann_5F", "user": "ann_", "name": "ann_", "direct": true, "addressed": true, "text": "Hello ä: you",
		"reply_to": "",
	})
	p.Do(line{"type": "send", "channel": m["channel"], "text": "Hello Ann,\n\n" + strings.Repeat("ö", 150) + "\r\nQUIT", "reply_to": "x"})
	for _, want := range []string{"Hello Ann,", strings.Repeat("ö", 100), strings.Repeat("ö", 50), "QUIT"} {
		doortest.Equal(t, "a line", ann.read(" PRIVMSG ann_ :"), want)
	}
	id := p.Do(line{"type": "send", "channel": "ann_5F", "text": "Shall I?"})["id"].(string)
	doortest.Equal(t, "a line", ann.read(" PRIVMSG ann_ :"), "Shall I?")
	doortest.Equal(t, "how to reply", ann.read(" PRIVMSG ann_ :"), "[re "+id+": ...]")
	ann.tell("PRIVMSG ollim :re " + id + ": yes")
	m = p.Message()
	doortest.Equal(t, "a reply", []any{m["reply_to"], m["text"]}, []any{id, "yes"})

	ann.tell("JOIN #plans")
	ann.read(" 366 ") // the list of names is complete
	ann.tell("PRIVMSG #plans :not for you")
	m = p.Message()
	doortest.Equal(t, "in the channel", []any{m["channel"], m["direct"], m["addressed"]}, []any{"_23plans", false, false})
	ann.tell("PRIVMSG #plans :ollim: for you")
	m = p.Message()
	doortest.Equal(t, "addressed", []any{m["text"], m["addressed"]}, []any{"for you", true})
	p.Do(line{"type": "send", "channel": "_23plans", "text": "Here", "reply_to": "x"})
	doortest.Equal(t, "in the channel", ann.read(" PRIVMSG #plans :"), "Here")
	ann.tell("NOTICE ollim :nobody answers a notice")

	a := p.Answer(p.Ask(line{"type": "send", "channel": "_0AQUIT", "text": "x"}))
	doortest.Equal(t, "no channel", []any{a["type"], a["refused"]}, []any{"failed", true})
	a = p.Answer(p.Ask(line{"type": "edit", "channel": "ann", "id": "1", "text": "x"}))
	doortest.Equal(t, "an edit", []any{a["type"], a["refused"]}, []any{"failed", true})
	p.Nothing()
	p.Close()
	ann.awaits("ollim", false)
}

// TestConforms: the door passes ollim's test of the protocol.
func TestConforms(t *testing.T) {
	t.Parallel()
	testkit.OnlyInCI(t, "the door pauses between the lines of a long message, so this takes 10 s")
	if done := doortest.Conform(t, door(t, "--plain", ngircd(t), "ollim"), "ollim"); done < 15 {
		t.Errorf("it does %d cases", done)
	}
}

// TestNicks: without --trust-nicks a nick is nobody, because anybody can take it; ngircd has no accounts.
func TestNicks(t *testing.T) {
	t.Parallel()
	server := ngircd(t)
	p := doorpeer.Start(t, door(t, "--plain", server, "ollim"), "irc")
	ann := connect(t, server, "ann")
	ann.tell("PRIVMSG ollim :Hello")
	doortest.Equal(t, "user", p.Message()["user"], "")
}

// TestTLS: the connection is encrypted, and the name in the server's certificate is checked.
func TestTLS(t *testing.T) {
	t.Parallel()
	openssl := testkit.Program(t, "openssl", "openssl")
	dir := t.TempDir()
	key, cert := filepath.Join(dir, "key.pem"), filepath.Join(dir, "cert.pem")
	out, err := exec.Command(openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=irc.example",
		"-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	server := ngircdWith(t, "SSL", "[SSL]\nCertFile = "+cert+"\nKeyFile = "+key)
	cmd := door(t, server, "ollim")
	cmd.Env = append(cmd.Env, "SSL_CERT_FILE="+cert)
	p := doorpeer.Start(t, cmd, "irc")
	p.Do(line{"type": "send", "channel": "ollim", "text": "to itself", "reply_to": "x"})
	doortest.Equal(t, "text", p.Message()["text"], "to itself")
	p.Close()

	_, port, _ := net.SplitHostPort(server)
	cmd = door(t, "localhost:"+port, "ollim")
	cmd.Env = append(cmd.Env, "SSL_CERT_FILE="+cert)
	if out, _ := cmd.CombinedOutput(); !strings.Contains(string(out), "CERTIFICATE_VERIFY_FAILED") {
		t.Errorf("status %d: %s", cmd.ProcessState.ExitCode(), out)
	}
}

// TestRefused: the door ends when the server refuses it, and says why.
func TestRefused(t *testing.T) {
	t.Parallel()
	server := ngircd(t)
	cmd := door(t, "--plain", server, "ollim")
	cmd.Env = append(cmd.Env, "PASSWORD=wrong")
	doortest.Refused(t, cmd, 1, "IRC: ")
}

// door returns the command of the door; the words after the address are channels.
func door(t *testing.T, options ...string) *exec.Cmd {
	t.Helper()
	python := testkit.Program(t, "python3", "python3")
	if _, err := os.ReadFile("irc.py"); err != nil { // so that go test notices a change
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, append([]string{"irc.py"}, options...)...)
	cmd.Env = append(os.Environ(), "PASSWORD="+password)
	return cmd
}

// ngircd starts the server and returns its address.
func ngircd(t *testing.T) string { return ngircdWith(t, "Global", "") }

func ngircdWith(t *testing.T, section, more string) string {
	t.Helper()
	program, err := exec.LookPath("ngircd")
	if err != nil {
		if program = "/usr/sbin/ngircd"; exec.Command(program, "--version").Run() != nil {
			testkit.Missing(t, "no ngircd: apt-get install ngircd")
		}
	}
	address, err := testkit.FreeAddress("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(address)
	config := filepath.Join(t.TempDir(), "ngircd.conf")
	text := fmt.Sprintf("[Global]\nName = irc.example\nInfo = test\nListen = 127.0.0.1\nPassword = %s\n"+
		"[Limits]\nMaxConnectionsIP = 0\n"+
		"MaxPenaltyTime = 0\n"+ // else a client may write one line a second
		"PingTimeout = 3600\n"+ // a person answers only while the test reads
		"[Options]\nIdent = no\nDNS = no\nPAM = no\n%s\n[%s]\nPorts = %s\n", password, more, section, port)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "--nodaemon", "--config", config)
	var out strings.Builder
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
	for {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
			return address
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("ngircd ended: %v\n%s", err, out.String())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// person is a client of the server.
type person struct {
	t     *testing.T
	conn  net.Conn
	lines *bufio.Scanner
}

func connect(t *testing.T, server, nick string) *person {
	t.Helper()
	conn, err := net.Dial("tcp", server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	p := &person{t, conn, bufio.NewScanner(conn)}
	p.tell("PASS :" + password)
	p.tell("NICK " + nick)
	p.tell("USER " + nick + " 0 * :" + nick)
	p.read(" 001 ")
	return p
}

// awaits waits until a nick is connected, or is not.
func (p *person) awaits(nick string, there bool) {
	p.t.Helper()
	for p.tell("ISON " + nick); strings.Contains(p.read(" 303 "), nick) != there; p.tell("ISON " + nick) {
		time.Sleep(50 * time.Millisecond) // servers throttle floods
	}
}

func (p *person) tell(text string) {
	p.t.Helper()
	_ = p.conn.SetDeadline(time.Now().Add(doortest.Patience))
	if _, err := p.conn.Write([]byte(text + "\r\n")); err != nil {
		p.t.Fatal(err)
	}
}

// read waits for a line with a part, and returns what comes after it.
func (p *person) read(part string) string {
	p.t.Helper()
	_ = p.conn.SetDeadline(time.Now().Add(doortest.Patience))
	for p.lines.Scan() {
		if verb, token, ok := strings.Cut(p.lines.Text(), " "); ok && verb == "PING" {
			p.tell("PONG " + token)
		}
		if _, after, found := strings.Cut(p.lines.Text(), part); found {
			return after
		}
	}
	p.t.Fatalf("no line with %q: %v", part, p.lines.Err())
	return ""
}
