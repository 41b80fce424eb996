package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// server is NFS-Ganesha, which exports a directory.
type server struct {
	bench *bench
	cmd   *exec.Cmd
}

// export starts the server on a free port.
func (b *bench) export() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	b.port = l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		return err
	}
	for _, dir := range []string{"export", "recovery"} {
		if err := os.Mkdir(filepath.Join(b.dir, dir), 0o755); err != nil {
			return err
		}
	}
	config := fmt.Sprintf(`NFS_CORE_PARAM {
  NFS_Protocols = 4; NFS_Port = %d; Bind_addr = 127.0.0.1; Plugins_Dir = %q;
  Enable_NLM = false; Enable_RQUOTA = false; Enable_UDP = false;
}
NFSv4 {
  Lease_Lifetime = %d; Grace_Period = %d; Minor_Versions = 2; Delegations = false;
  RecoveryRoot = %q; UseGetpwnam = true; Only_Numeric_Owners = true;
}
EXPORT {
  Export_Id = 1; Path = %q; Pseudo = /data; Access_Type = RW; Squash = No_Root_Squash; SecType = sys; Protocols = 4; Transports = TCP;
  FSAL { Name = VFS; }
}
LOG { Default_Log_Level = EVENT; }
`, b.port, filepath.Join(b.root, "usr/lib/x86_64-linux-gnu/ganesha"), b.lease, b.lease+5, filepath.Join(b.dir, "recovery"), filepath.Join(b.dir, "export"))
	if err := os.WriteFile(filepath.Join(b.dir, "ganesha.conf"), []byte(config), 0o600); err != nil {
		return err
	}
	b.server = &server{bench: b}
	return b.server.start()
}

// start starts the server and waits until it accepts connections.
func (s *server) start() error {
	log := filepath.Join(s.bench.dir, "ganesha.log")
	s.cmd = s.bench.program("ganesha.nfsd", "-F", "-L", log, "-f", filepath.Join(s.bench.dir, "ganesha.conf"), "-p", filepath.Join(s.bench.dir, "ganesha.pid"))
	if err := s.cmd.Start(); err != nil {
		return err
	}
	for range 600 {
		if conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", s.bench.port)); err == nil {
			return conn.Close()
		}
		time.Sleep(100 * time.Millisecond)
	}
	said, _ := os.ReadFile(log) // says why
	return errors.Join(fmt.Errorf("the NFS server does not start:\n%s", said), s.kill())
}

// kill ends the server at once, as a loss of power does.
func (s *server) kill() error {
	err := s.cmd.Process.Kill()
	_ = s.cmd.Wait() // it was killed
	return err
}
