package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// tools are the programs of the control plane, by name; go.mod has their versions.
var tools = map[string]string{
	"etcd":                    "go.etcd.io/etcd/server/v3",
	"kube-apiserver":          "k8s.io/kubernetes/cmd/kube-apiserver",
	"kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
	"kubectl":                 "k8s.io/kubernetes/cmd/kubectl",
}

// build makes the tools that are not in a directory yet.
func build(dir string) error {
	for name, pkg := range tools {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			continue
		}
		fmt.Fprintln(os.Stderr, "building", name)
		cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, pkg)
		cmd.Env, cmd.Stderr = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS="), os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// plane is a control plane on this machine.
type plane struct {
	bin, dir string
	url      string
	kube     string // the kubeconfig
	client   *http.Client
	started  []*exec.Cmd
}

const token = "bench"

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// start starts the control plane, and waits until it is ready.
func (p *plane) start() error {
	var ports [3]int
	for i := range ports {
		var err error
		if ports[i], err = freePort(); err != nil {
			return err
		}
	}
	store, peer := fmt.Sprintf("http://127.0.0.1:%d", ports[0]), fmt.Sprintf("http://127.0.0.1:%d", ports[1])
	p.url = fmt.Sprintf("https://127.0.0.1:%d", ports[2])
	if err := p.files(); err != nil {
		return err
	}
	certs, key := filepath.Join(p.dir, "certs"), filepath.Join(p.dir, "accounts.key")
	err := p.run("etcd", "--data-dir", filepath.Join(p.dir, "etcd"), "--listen-client-urls", store, "--advertise-client-urls", store,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer)
	if err == nil {
		err = p.run("kube-apiserver", "--etcd-servers", store, "--bind-address", "127.0.0.1", "--advertise-address", "127.0.0.1",
			"--secure-port", fmt.Sprint(ports[2]), "--cert-dir", certs, "--token-auth-file", filepath.Join(p.dir, "tokens"),
			"--endpoint-reconciler-type", "none", "--authorization-mode", "RBAC", "--service-account-key-file", key, "--service-account-signing-key-file", key,
			"--service-account-issuer", "https://bench", "--service-cluster-ip-range", "10.9.0.0/24")
	}
	if err == nil {
		err = p.ready(certs)
	}
	if err == nil {
		err = p.run("kube-controller-manager", "--kubeconfig", p.kube, "--leader-elect=false", "--secure-port", "0",
			"--service-account-private-key-file", key, "--controllers", "cronjob-controller,job-controller,namespace-controller,"+
				"serviceaccount-controller,garbage-collector-controller,ttl-after-finished-controller,pod-garbage-collector-controller")
	}
	return err
}

func (p *plane) files() error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	p.kube = filepath.Join(p.dir, "kubeconfig")
	config := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: bench
clusters: [{name: bench, cluster: {server: %q, insecure-skip-tls-verify: true}}]
contexts: [{name: bench, context: {cluster: bench, user: bench}}]
users: [{name: bench, user: {token: %s}}]
`, p.url, token)
	pemKey := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	for name, text := range map[string][]byte{
		"kubeconfig": []byte(config), "tokens": []byte(token + ",admin,1,system:masters\n"), "accounts.key": pemKey,
	} {
		if err := os.WriteFile(filepath.Join(p.dir, name), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// run starts one of the tools. Its messages are in a file of its name.
func (p *plane) run(name string, args ...string) error {
	log, err := os.Create(filepath.Join(p.dir, name+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(filepath.Join(p.bin, name), args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	p.started = append(p.started, cmd)
	return nil
}

// ready waits for the API server, whose certificate it makes itself.
func (p *plane) ready(certs string) error {
	p.client = &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // it has just made it, on the same machine
	}}
	var err error
	for range 300 {
		if err = p.call("GET", "/readyz", "", nil, nil); err == nil {
			return nil
		}
		time.Sleep(200 * time.Millisecond)
	}
	log, _ := os.ReadFile(filepath.Join(p.dir, "kube-apiserver.log")) // what it says last is the reason
	return fmt.Errorf("the API server is not ready: %w\n%s", err, log[max(0, len(log)-2000):])
}

// stop ends the control plane.
func (p *plane) stop() {
	for i := len(p.started) - 1; i >= 0; i-- {
		_ = p.started[i].Process.Kill()
		_ = p.started[i].Wait()
	}
}

var errGone = errors.New("not found or changed since")

// call asks the API server. body and answer are JSON values or nil.
func (p *plane) call(method, path, kind string, body, answer any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(context.Background(), method, p.url+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	reply, err := p.client.Do(r)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	said, err := io.ReadAll(reply.Body)
	switch {
	case err != nil:
		return err
	case reply.StatusCode == http.StatusNotFound || reply.StatusCode == http.StatusConflict:
		return errGone
	case reply.StatusCode >= 300:
		return fmt.Errorf("%s %s: %s: %s", method, path, reply.Status, said)
	case answer == nil:
		return nil
	}
	return json.Unmarshal(said, answer)
}
