package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// kubelet stands in for the kubelets of a cluster with one node: it runs the command of each pod on this machine, in PID, mount and UTS
// namespaces of its own, and reports the phase. It mounts and limits nothing.
type kubelet struct {
	plane *plane

	mu    sync.Mutex
	state string               // "" works, dying: claims pods without running them, away: does nothing
	pods  map[string]*exec.Cmd // by uid; nil: it has ended
	lost  map[string]bool      // pods without a process that the cluster takes for running
	err   error
}

type pod struct {
	Metadata struct {
		Name, Namespace, UID string
		DeletionTimestamp    string
	}
	Spec struct {
		Containers []struct{ Command []string }
	}
	Status struct{ Phase string }
}

func (k *kubelet) work(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(300 * time.Millisecond):
		}
		var list struct{ Items []pod }
		err := k.plane.call("GET", "/api/v1/pods", "", nil, &list)
		for _, p := range list.Items {
			if err == nil {
				err = k.pod(p)
			}
		}
		if err != nil && !errors.Is(err, errGone) {
			k.mu.Lock()
			k.err = err
			k.mu.Unlock()
		}
	}
}

func (k *kubelet) pod(p pod) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	uid, ended := p.Metadata.UID, p.Status.Phase == "Succeeded" || p.Status.Phase == "Failed"
	_, known := k.pods[uid]
	switch {
	case k.state == "away":
	case k.state == "dying":
		if p.Status.Phase == "Pending" {
			k.lost[uid] = true
			return k.report(p, "Running")
		}
	case p.Metadata.DeletionTimestamp != "":
		if cmd := k.pods[uid]; cmd != nil {
			_ = cmd.Process.Kill()
		}
		path := fmt.Sprintf("/api/v1/namespaces/%s/pods/%s?gracePeriodSeconds=0", p.Metadata.Namespace, p.Metadata.Name)
		return k.plane.call("DELETE", path, "", nil, nil)
	case p.Status.Phase == "Running" && !known: // as after a reboot
		return k.report(p, "Failed")
	case !ended && !known:
		return k.run(p)
	}
	return nil
}

func (k *kubelet) run(p pod) error {
	command := []string{"--pid", "--fork", "--kill-child", "--mount-proc", "--uts", "sh", "-c", `hostname "$0" && exec "$@"`, p.Metadata.Name}
	for _, word := range p.Spec.Containers[0].Command {
		command = append(command, strings.ReplaceAll(word, "$$", "$"))
	}
	cmd := exec.Command("unshare", command...)
	cmd.Env = []string{"HOME=/home/ollim", "PATH=" + os.Getenv("PATH")}
	if err := cmd.Start(); err != nil {
		return err
	}
	k.pods[p.Metadata.UID] = cmd
	go func() {
		phase := "Succeeded"
		if cmd.Wait() != nil {
			phase = "Failed"
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		if _, known := k.pods[p.Metadata.UID]; known {
			k.pods[p.Metadata.UID] = nil // it is known, and has ended
		}
		if k.state == "" && !k.lost[p.Metadata.UID] {
			_ = k.report(p, phase) // a pod that is gone needs none
		}
	}()
	return k.report(p, "Running")
}

func (k *kubelet) report(p pod, phase string) error {
	path := fmt.Sprintf("/api/v1/namespaces/%s/pods/%s/status", p.Metadata.Namespace, p.Metadata.Name)
	return k.plane.call("PATCH", path, "application/merge-patch+json", map[string]any{"status": map[string]string{"phase": phase}}, nil)
}

// become changes the state. A node that goes away loses its processes, and one that comes back knows none.
func (k *kubelet) become(state string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.state = state
	if state != "" {
		for uid, cmd := range k.pods {
			if cmd != nil {
				k.lost[uid] = true
				_ = cmd.Process.Kill()
			}
		}
		clear(k.pods)
	}
}

func (k *kubelet) fault() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}

func (k *kubelet) claimed() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.lost)
}
