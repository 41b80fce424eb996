package mail_test

import (
	"fmt"
	"io"
	"net"
	"net/mail"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ollim/ollim/contrib/doors/doortest"
	"github.com/ollim/ollim/internal/testkit"
)

// servers are a postfix and a dovecot with the mailboxes of the agent and of Ann.
type servers struct {
	dir       string
	receiving string // address of SMTP for mail of others
	smtp      string // of SMTP for the agent, with TLS and a password
	imap      string // of IMAP, with TLS
	cert      string
	logs      []string
}

// postfixConfig is main.cf: the directory, the port of dovecot's SASL.
const postfixConfig = `compatibility_level = 3.6
queue_directory = %[1]s/queue
data_directory = %[1]s/data
mail_owner = postfix
setgid_group = postdrop
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
myhostname = mx.ollim.example
mydestination =
mynetworks =
alias_maps =
virtual_mailbox_domains = ollim.example, home.example
virtual_mailbox_base = %[1]s/mail
virtual_mailbox_maps = inline:{ {agent@ollim.example=agent/} {ann@home.example=ann/} }
virtual_uid_maps = static:65534
virtual_gid_maps = static:65534
smtpd_relay_restrictions = permit_sasl_authenticated, reject_unauth_destination
smtpd_sender_restrictions = check_sender_access inline:{
  {ann@home.example = PREPEND Authentication-Results: mx.ollim.example; spf=pass (a "note") smtp.mailfrom=ann@home.example;
   dmarc=pass (p=reject) header.from=home.example}
  {<> = PREPEND Authentication-Results: mx.ollim.example; dmarc=pass header.from=home.example}
  {eve@evil.example = PREPEND Authentication-Results: mx.ollim.example; dmarc=fail header.from=home.example}
  {other@evil.example = PREPEND Authentication-Results: mx.ollim.example; dkim=pass header.d=evil.example}
  {quoting@evil.example = PREPEND Authentication-Results: mx.ollim.example;
   spf=pass (\); dmarc=pass header.from=home.example;) smtp.mailfrom="\"; dmarc=pass header.from=home.example; "@evil.example} }
smtpd_sasl_auth_enable = yes
smtpd_sasl_type = dovecot
smtpd_sasl_path = inet:127.0.0.1:%[2]s
smtpd_tls_chain_files = %[1]s/both.pem
maillog_file = /dev/stdout
`

// postfixServices is master.cf: the two ports.
const postfixServices = `127.0.0.1:%s inet n - n - - smtpd
127.0.0.1:%s inet n - n - - smtpd -o smtpd_tls_wrappermode=yes -o smtpd_sender_restrictions=
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
tlsmgr unix - - n 1000? 1 tlsmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
proxymap unix - - n - - proxymap
virtual unix - n n - - virtual
error unix - - n - - error
retry unix - - n - - error
anvil unix - - n - 1 anvil
postlog unix-dgram n - n - 1 postlogd
`

// dovecotConfig is dovecot.conf: the directory, the ports of IMAP and SASL, the password.
const dovecotConfig = `base_dir = %[1]s/run
state_dir = %[1]s/state
log_path = /dev/stderr
listen = 127.0.0.1
protocols = imap
ssl = required
ssl_cert = <%[1]s/cert.pem
ssl_key = <%[1]s/key.pem
auth_mechanisms = plain login
mail_location = maildir:%[1]s/mail/%%n
first_valid_uid = 1
passdb {
  driver = static
  args = password=%[4]s
}
userdb {
  driver = static
  args = uid=65534 gid=65534 home=%[1]s/mail/%%n
}
service imap-login {
  inet_listener imap {
    port = 0
  }
  inet_listener imaps {
    port = %[2]s
  }
}
service auth {
  inet_listener {
    port = %[3]s
  }
}
`

// shared are the servers of all tests: postfix takes seconds to start. stop ends them.
var (
	shared *servers
	stop   []func()
)

func TestMain(m *testing.M) {
	code := m.Run()
	for _, end := range slices.Backward(stop) {
		end()
	}
	os.Exit(code)
}

// start returns the servers with empty mailboxes. postfix can be started by root only.
func start(t *testing.T) *servers {
	t.Helper()
	if shared == nil {
		shared = started(t)
	}
	for _, box := range []string{"agent", "ann"} {
		if err := os.RemoveAll(filepath.Join(shared.dir, "mail", box)); err != nil {
			t.Fatal(err)
		}
	}
	return shared
}

func started(t *testing.T) *servers {
	t.Helper()
	openssl := testkit.Program(t, "openssl", "openssl")
	for program, from := range map[string]string{"/usr/sbin/postfix": "postfix", "/usr/sbin/dovecot": "dovecot-imapd"} {
		if _, err := os.Stat(program); err != nil {
			testkit.Missing(t, "no %s: apt-get install %s", program, from)
		}
	}
	if os.Getuid() != 0 {
		testkit.Missing(t, "postfix can be started by root only")
	}
	dir, err := os.MkdirTemp("", "mail") // the paths of sockets are in it
	if err != nil {
		t.Fatal(err)
	}
	stop = append(stop, func() { os.RemoveAll(dir) })
	s := &servers{dir: dir, cert: filepath.Join(dir, "cert.pem")}
	ports := freePorts(t, 4)
	s.receiving, s.smtp, s.imap = "127.0.0.1:"+ports[0], "127.0.0.1:"+ports[1], "127.0.0.1:"+ports[2]
	s.run(t, openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=mx.ollim.example", "-addext",
		"subjectAltName=IP:127.0.0.1", "-keyout", dir+"/key.pem", "-out", s.cert)
	key, cert := s.read(t, "key.pem"), s.read(t, "cert.pem")
	s.write(t, "both.pem", key+cert)
	s.write(t, "postfix/main.cf", fmt.Sprintf(postfixConfig, dir, ports[3]))
	s.write(t, "postfix/master.cf", fmt.Sprintf(postfixServices, ports[0], ports[1]))
	s.write(t, "dovecot.conf", fmt.Sprintf(dovecotConfig, dir, ports[2], ports[3], password))
	s.write(t, "queue/pid/none", "")
	s.write(t, "data/none", "")
	s.write(t, "mail/none", "")
	s.run(t, "chown", "postfix", dir+"/data")
	s.run(t, "chown", "65534:65534", dir+"/mail")
	s.run(t, "chmod", "755", dir)
	s.daemon(t, "dovecot", "/usr/sbin/dovecot", "-F", "-c", dir+"/dovecot.conf")
	s.daemon(t, "postfix", "/usr/sbin/postfix", "-c", dir+"/postfix", "start-fg")
	for _, port := range ports {
		s.answers(t, "127.0.0.1:"+port)
	}
	return s
}

func (s *servers) run(t *testing.T, argv ...string) {
	t.Helper()
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", argv, err, out)
	}
}

func (s *servers) read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (s *servers) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(s.dir, name)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// daemon starts a server with a process group of its own, which is killed at the end.
func (s *servers) daemon(t *testing.T, name, program string, args ...string) {
	t.Helper()
	path := filepath.Join(s.dir, name+".log")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	s.logs = append(s.logs, path)
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = f, f
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	f.Close()
	stop = append(stop, func() {
		master, _ := os.ReadFile(filepath.Join(s.dir, "queue/pid/master.pid")) // of postfix, which has a process group of its own
		if pid, err := strconv.Atoi(strings.TrimSpace(string(master))); name == "postfix" && err == nil {
			_ = syscall.Kill(-pid, syscall.SIGTERM)
		}
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		_ = cmd.Wait()
	})
}

// answers waits until a port can be connected to.
func (s *servers) answers(t *testing.T, address string) {
	t.Helper()
	for late := time.Now().Add(doortest.Patience); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
			return
		}
		if time.Now().After(late) {
			t.Fatalf("%v\n%s", err, s.log())
		}
	}
}

// log returns what the servers have logged.
func (s *servers) log() string {
	var all []string
	for _, path := range s.logs {
		text, _ := os.ReadFile(path)
		all = append(all, string(text))
	}
	return strings.Join(all, "\n")
}

func freePorts(t *testing.T, n int) (ports []string) {
	t.Helper()
	for len(ports) < n {
		address, err := testkit.FreeAddress("127.0.0.1")
		if err != nil {
			t.Fatal(err)
		}
		if _, port, _ := net.SplitHostPort(address); !slices.Contains(ports, port) {
			ports = append(ports, port)
		}
	}
	return ports
}

// reading returns the body of a message.
func reading(m *mail.Message) string {
	text, _ := io.ReadAll(m.Body)
	return string(text)
}
