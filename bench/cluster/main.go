// Command cluster installs CronJobs with ollim in a real control plane of Kubernetes, and shows what becomes of their slots: etcd, the API
// server, the controller manager and kubectl are built from the module proxy and kept in the user's cache. There is no node: a stand-in for
// the kubelet runs the pods' commands. It takes some seven minutes, and up to an hour more the first time. It needs root, for namespaces.
//
//	cd bench/cluster && go run . -ollim PATH
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	ollim := flag.String("ollim", "", "the program, an absolute path that is not in a temporary directory")
	flag.Parse()
	if err := bench(*ollim); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

// cluster is a control plane with two data directories.
type cluster struct {
	plane   *plane
	kubelet *kubelet
	ollim   string
	data    string
	failed  bool
}

func bench(ollim string) error {
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	bin := filepath.Join(cache, "ollim-test", "cluster", "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	if err := build(bin); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "cluster")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	c := &cluster{plane: &plane{bin: bin, dir: dir}, ollim: ollim, data: filepath.Join(dir, "data")}
	defer c.plane.stop()
	begin := time.Now()
	if err := c.plane.start(); err != nil {
		return err
	}
	fmt.Printf("The control plane was ready after %.0f s.\n\n| promised | seen | |\n| --- | --- | --- |\n", time.Since(begin).Seconds())
	c.kubelet = &kubelet{plane: c.plane, pods: map[string]*exec.Cmd{}, lost: map[string]bool{}}
	stop := make(chan struct{})
	defer close(stop)
	go c.kubelet.work(stop)
	defer c.kubelet.become("away")
	for _, step := range []func() error{c.install, c.change, c.slots, c.outage, c.removal} {
		if err := errors.Join(step(), c.kubelet.fault()); err != nil {
			return err
		}
	}
	if c.failed {
		return errors.New("not everything was as promised")
	}
	return nil
}

// row prints what was promised and what happened.
func (c *cluster) row(promised string, ok bool, seen string, args ...any) {
	word := "yes"
	if !ok {
		word, c.failed = "NO", true
	}
	fmt.Printf("| %s | %s | %s |\n", promised, fmt.Sprintf(seen, args...), word)
}

// run runs a command of ollim on the first data directory.
func (c *cluster) run(args ...string) (out string, status int) {
	return c.exec(c.ollim, append([]string{"--data-dir", c.data}, args...)...)
}

func (c *cluster) kubectl(args ...string) (out string, status int) {
	return c.exec("kubectl", append([]string{"--namespace=home"}, args...)...)
}

func (c *cluster) exec(name string, args ...string) (string, int) {
	path := "PATH=" + c.plane.bin + ":" + os.Getenv("PATH")
	if name == "kubectl" {
		name = filepath.Join(c.plane.bin, name)
	}
	cmd := exec.Command(name, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Env = []string{path, "HOME=" + c.plane.dir, "KUBECONFIG=" + c.plane.kube}
	err := cmd.Run()
	if failed := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failed) {
		return err.Error(), -1
	}
	return strings.TrimSpace(out.String()), cmd.ProcessState.ExitCode()
}

// place are the flags that say where the entries are.
var place = []string{"kubernetes", "--claim", "data", "--namespace", "home"}

func (c *cluster) schedule(verb string) (string, int) {
	return c.run(append([]string{"schedule", verb, "--image", "example.org/ollim"}, place...)...)
}

func write(dir string, files map[string]string) error {
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			return err
		}
	}
	return nil
}

func routine(id, cron, zone string) string {
	return fmt.Sprintf("---\nid: %s\ncron: %q\ntimezone: %s\n---\nDo it.\n", id, cron, zone)
}

// install applies the CronJobs in a namespace that enforces the level restricted.
func (c *cluster) install() error {
	zoned := time.Now().Add(2 * time.Minute).In(time.FixedZone("Kathmandu", 5*3600+45*60))
	files := map[string]string{
		"config.yaml":         "timezone: UTC\nengine: script:play.yaml\n",
		"play.yaml":           "turns:\n" + strings.Repeat("  - - text: well\n", 300),
		"routines/minute.md":  routine("minute", "* * * * *", "UTC"),
		"routines/zoned.md":   routine("zoned", fmt.Sprintf("%d %d * * *", zoned.Minute(), zoned.Hour()), "Asia/Kathmandu"),
		"routines/stopped.md": routine("stopped", "* * * * *", "UTC"),
		"routines/later.md":   routine("later", "0 0 1 1 *", "UTC"),
	}
	if err := write(c.data, files); err != nil {
		return err
	}
	other := filepath.Join(c.plane.dir, "other")
	if err := write(other, map[string]string{"config.yaml": files["config.yaml"], "routines/later.md": files["routines/later.md"]}); err != nil {
		return err
	}
	c.exec("kubectl", "create", "namespace", "home")
	c.exec("kubectl", "label", "namespace", "home", "pod-security.kubernetes.io/enforce=restricted", "pod-security.kubernetes.io/warn=restricted")
	out, status := c.exec(c.ollim, "--data-dir", other, "schedule", "install", "kubernetes", "--image", "example.org/ollim", "--claim", "data",
		"--folder", "other", "--namespace", "home")
	c.row("another data directory is installed in the same volume and namespace", status == 0, "exit %d %s", status, out)
	c.kubectl("patch", "cronjobs", "--selector=app.kubernetes.io/name=ollim", "--patch={\"spec\":{\"suspend\":true}}") // it shall not run
	for _, name := range strings.Fields(c.names()) {
		c.kubectl("patch", name, "--patch={\"spec\":{\"suspend\":true}}")
	}
	out, status = c.schedule("install")
	c.row("install in a restricted namespace, without a warning", status == 0 && out == "", "exit %d %s", status, out)
	out, status = c.schedule("diff")
	c.row("then there is no difference", status == 0 && out == "", "exit %d %s", status, out)
	return nil
}

func (c *cluster) names() string {
	out, _ := c.kubectl("get", "cronjobs.batch", "--output=name")
	return out
}

// name returns the CronJob of a routine, or of the tick.
func (c *cluster) name(of string) string {
	for _, name := range strings.Fields(c.names()) {
		dir, _ := c.kubectl("get", name, `--output=jsonpath={.metadata.annotations.ollim/data-dir}`)
		if dir == c.data && strings.HasSuffix(name, of) {
			return name
		}
	}
	return "none"
}

// change suspends one, and changes one by hand.
func (c *cluster) change() error {
	stopped := c.name("-job-stopped")
	c.kubectl("patch", stopped, "--patch={\"spec\":{\"suspend\":true}}")
	out, status := c.schedule("install")
	suspended, _ := c.kubectl("get", stopped, "--output=jsonpath={.spec.suspend}")
	c.row("a suspended CronJob stays suspended", status == 0 && suspended == "true", "exit %d, suspend %s %s", status, suspended, out)
	later := c.name("-job-later")
	c.kubectl("patch", later, "--patch={\"spec\":{\"schedule\":\"1 1 1 1 1\"}}", "--field-manager=kubectl-edit")
	out, status = c.schedule("diff")
	c.row("diff and install refuse what somebody has changed", status == 65 && strings.Contains(out, ".spec.schedule"), "exit %d", status)
	_, status = c.schedule("install")
	c.kubectl("delete", later)
	_, again := c.schedule("install")
	c.row("and install works when that is deleted", status == 65 && again == 0, "exit %d, then %d", status, again)
	return nil
}

// slots lets some minutes pass.
func (c *cluster) slots() error {
	begin := time.Now()
	time.Sleep(time.Until(begin.Truncate(time.Minute).Add(2*time.Minute + 40*time.Second)))
	minute, doubled := c.runs("minute", begin, time.Now())
	c.row("each minute's slot has one run", minute >= 2 && doubled == 0, "%d slots with a run, %d with two", minute, doubled)
	zoned, doubled := c.runs("zoned", begin.Add(-time.Minute), time.Now())
	c.row("a routine fires in its zone", zoned == 1 && doubled == 0, "%d run", zoned)
	jobs, _ := c.kubectl("get", "jobs", "--output=name")
	c.row("a suspended CronJob starts nothing", !strings.Contains(jobs, "-job-stopped-"), "%d Jobs", strings.Count(jobs, "-job-stopped-"))
	return nil
}

// runs counts the slots with a run, and those with several.
func (c *cluster) runs(id string, from, to time.Time) (with, doubled int) {
	out, _ := c.run("run", "list", id, "--number", "0", "--json")
	seen := map[string]int{}
	for line := range strings.Lines(out) {
		_, rest, found := strings.Cut(line, `"scheduled_for":"`)
		slot, _, _ := strings.Cut(rest, `"`)
		at, err := time.Parse(time.RFC3339, slot)
		if found && err == nil && !strings.Contains(line, `"outcome":"skipped"`) && !at.Before(from.Truncate(time.Minute)) && at.Before(to) {
			seen[slot]++
		}
	}
	for _, n := range seen {
		with++
		if n > 1 {
			doubled++
		}
	}
	return with, doubled
}

// outage takes the node away while pods run there, and brings it back.
func (c *cluster) outage() error {
	c.kubelet.become("dying")
	for end := time.Now().Add(70 * time.Second); c.kubelet.claimed() < 2 && time.Now().Before(end); {
		time.Sleep(200 * time.Millisecond)
	}
	c.kubelet.become("away")
	time.Sleep(time.Minute + 10*time.Second)
	jobs, _ := c.kubectl("get", "jobs", `--output=jsonpath={range .items[?(@.status.active)]}{.metadata.name}{"\n"}{end}`)
	active := len(strings.Fields(jobs))
	c.row("while a node is away, no Jobs pile up", c.kubelet.claimed() >= 2 && active > 0 && active <= 3, "%d Jobs wait, %d pods were lost", active,
		c.kubelet.claimed())
	back := time.Now()
	c.kubelet.become("")
	time.Sleep(time.Until(back.Truncate(time.Minute).Add(2*time.Minute + 20*time.Second)))
	minute, doubled := c.runs("minute", back.Add(time.Minute), time.Now())
	c.row("when it is back, each minute's slot has a run again", minute >= 2 && doubled == 0, "%d slots with a run, %d with two", minute, doubled)
	return nil
}

// removal removes a routine, and then everything.
func (c *cluster) removal() error {
	if err := os.Remove(filepath.Join(c.data, "routines", "minute.md")); err != nil {
		return err
	}
	minute := c.name("-job-minute")
	text, _ := c.run(append([]string{"schedule", "print", "--image", "example.org/ollim"}, place...)...)
	manifest := filepath.Join(c.plane.dir, "manifest.yaml")
	if err := os.WriteFile(manifest, []byte(text[strings.Index(text, "---"):]), 0o600); err != nil {
		return err
	}
	label, _ := c.kubectl("get", minute, `--output=jsonpath={.metadata.labels.app\.kubernetes\.io/instance}`)
	c.kubectl("apply", "--server-side", "--field-manager=ollim", "--prune", "--selector=app.kubernetes.io/instance="+label, "--filename="+manifest)
	left := c.name("-job-minute")
	c.row("(kubectl apply --server-side --prune leaves the CronJob of a routine that is gone)", left == minute && left != "none", "%s", left)
	out, status := c.schedule("install")
	gone := c.name("-job-minute")
	c.row("a routine that is removed: its CronJob goes", status == 0 && gone == "none", "exit %d %s", status, out)
	_, status = c.run(append([]string{"schedule", "remove"}, place...)...)
	names := strings.Fields(c.names())
	c.row("remove leaves those of the other data directory", status == 0 && len(names) == 2, "exit %d, %d CronJobs", status, len(names))
	return nil
}
