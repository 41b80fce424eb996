package installer

import (
	"errors"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/state/job"
	"gopkg.in/yaml.v3"
)

func options() KubeOptions {
	return KubeOptions{Image: "registry.example.org:5000/ada/ollim@sha256:" + strings.Repeat("0a", 32), Namespace: "home", Claim: "ollim", Secret: "ollim.secrets"}
}

func TestKubernetes(t *testing.T) {
	text, left, err := Kubernetes(host(t), someJobs(t)[:3], options())
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "kubernetes.yaml", text)
	if got, want := ids(left), "both-days: both day fields must match, which not every cron supports"; got != want {
		t.Errorf("left to the tick: %s", got)
	}
}

// clusterJob is what a cluster reads, as far as we write it; what is not here is an error.
type clusterJob struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct {
		Name, Namespace     string
		Labels, Annotations map[string]string
	}
	Spec struct {
		Schedule                string
		TimeZone                string `yaml:"timeZone"`
		ConcurrencyPolicy       string `yaml:"concurrencyPolicy"`
		StartingDeadlineSeconds int    `yaml:"startingDeadlineSeconds"`
		SuccessfulHistory       int    `yaml:"successfulJobsHistoryLimit"`
		FailedHistory           int    `yaml:"failedJobsHistoryLimit"`
		JobTemplate             struct {
			Metadata struct{ Labels map[string]string }
			Spec     struct {
				BackoffLimit *int `yaml:"backoffLimit"`
				Deadline     int  `yaml:"activeDeadlineSeconds"`
				Kept         int  `yaml:"ttlSecondsAfterFinished"`
				Template     struct {
					Metadata struct{ Labels map[string]string }
					Spec     pod
				}
			}
		} `yaml:"jobTemplate"`
	}
}

type pod struct {
	RestartPolicy string         `yaml:"restartPolicy"`
	Grace         int            `yaml:"terminationGracePeriodSeconds"`
	Token         *bool          `yaml:"automountServiceAccountToken"`
	Links         *bool          `yaml:"enableServiceLinks"`
	Security      map[string]any `yaml:"securityContext"`
	Containers    []struct {
		Name, Image string
		Command     []string
		Env         []struct{ Name, Value string }
		Resources   struct{ Requests, Limits map[string]string }
		Security    map[string]any `yaml:"securityContext"`
		Mounts      []struct {
			Name      string
			MountPath string `yaml:"mountPath"`
			SubPath   string `yaml:"subPath"`
			ReadOnly  bool   `yaml:"readOnly"`
		} `yaml:"volumeMounts"`
	}
	Volumes []volume
}

type volume struct {
	Name  string
	Claim struct {
		Name string `yaml:"claimName"`
	} `yaml:"persistentVolumeClaim"`
	Empty  map[string]any `yaml:"emptyDir"`
	Secret struct {
		Name string `yaml:"secretName"`
		Mode int    `yaml:"defaultMode"`
	}
}

func decode(t *testing.T, text string) (all []clusterJob) {
	t.Helper()
	d := yaml.NewDecoder(strings.NewReader(text))
	d.KnownFields(true)
	for {
		var c clusterJob
		err := d.Decode(&c)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		all = append(all, c)
	}
}

// A cluster reads what we meant, whatever jobs and paths are called.
func TestKubernetesReadBack(t *testing.T) {
	name := regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,50}[a-z0-9])?$`)
	for i, dir := range append([]string{"/data"}, hostilePaths...) {
		h, o := host(t), options()
		h.DataDir = dir
		if i == 0 {
			o.Namespace, o.Secret, o.Folder = "", "", "ada"
		}
		jobs := hard(t)
		text, left, err := Kubernetes(h, jobs, o)
		if err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		all := decode(t, text)
		if want := 8 + len(jobs) - len(someJobs(t)) + 1 - len(left); len(all) != want {
			t.Errorf("%d documents, want %d", len(all), want)
		}
		for _, c := range all {
			p := c.Spec.JobTemplate.Spec.Template.Spec
			if c.APIVersion != "batch/v1" || c.Kind != "CronJob" || !name.MatchString(c.Metadata.Name) || names[c.Metadata.Name] {
				t.Errorf("%+v", c.Metadata)
			}
			names[c.Metadata.Name] = true
			labels := c.Metadata.Labels
			if labels["app.kubernetes.io/instance"] != o.Instance() || !maps.Equal(labels, c.Spec.JobTemplate.Metadata.Labels) ||
				!maps.Equal(labels, c.Spec.JobTemplate.Spec.Template.Metadata.Labels) || c.Metadata.Annotations["ollim/data-dir"] != dir {
				t.Errorf("%+v", c)
			}
			if c.Metadata.Namespace != o.Namespace || *c.Spec.JobTemplate.Spec.BackoffLimit != 0 || p.RestartPolicy != "Never" || p.Grace != 90 || *p.Token {
				t.Errorf("%+v", c)
			}
			checkPod(t, p, h, o)
			id := c.Metadata.Annotations["ollim/job"]
			want := []string{h.Ollim, "--data-dir", strings.ReplaceAll(dir, "$", "$$"), "fire", "--scheduled", "--", id}
			if id == "" {
				want = append(want[:3], "tick", "--wait")
			}
			if got := p.Containers[0].Command; !slices.Equal(got, want) {
				t.Errorf("command %q, want %q", got, want)
			}
		}
	}
}

func checkPod(t *testing.T, p pod, h Host, o KubeOptions) {
	t.Helper()
	c := p.Containers[0]
	if len(p.Containers) != 1 || c.Image != o.Image || p.Volumes[0].Claim.Name != o.Claim || c.Mounts[0].MountPath != h.DataDir {
		t.Errorf("%+v", p)
	}
	if c.Mounts[0].SubPath != path.Join(o.Folder, "data") || c.Mounts[1].SubPath != path.Join(o.Folder, "home") || c.Security["readOnlyRootFilesystem"] != true {
		t.Errorf("%+v", c)
	}
	for _, r := range []map[string]string{c.Resources.Requests, c.Resources.Limits} {
		if r["cpu"] == "" || r["memory"] == "" || len(r) != 2 {
			t.Errorf("%+v", c.Resources)
		}
	}
	for _, m := range c.Mounts {
		if !slices.ContainsFunc(p.Volumes, func(v volume) bool { return v.Name == m.Name }) {
			t.Errorf("no volume %s", m.Name)
		}
	}
	if o.Secret == "" {
		if len(p.Volumes) != 2 || len(c.Env) != 1 {
			t.Errorf("a secret that nobody asked for: %+v", p)
		}
		return
	}
	if v := p.Volumes[2].Secret; v.Name != o.Secret || v.Mode != 0o440 || c.Env[1].Value != c.Mounts[3].MountPath || !c.Mounts[3].ReadOnly {
		t.Errorf("%+v", p)
	}
}

func TestKubernetesDeadlineAndZone(t *testing.T) {
	hook := job.New(job.Webhook)
	hook.ID, hook.Timeout = "hook", 3*time.Hour
	jobs := []job.Job{
		routine(t, "a-plain", "0 9 * * *"),
		routine(t, "b-soon", "0 9 * * *", func(j *job.Job) { j.CatchUp = time.Minute }),
		routine(t, "c-late", "0 9 * * *", in("Asia/Tokyo"), func(j *job.Job) { j.CatchUp, j.Timeout = 48*time.Hour, 5*time.Minute }),
		hook,
	}
	text, _, err := Kubernetes(host(t), jobs, options())
	if err != nil {
		t.Fatal(err)
	}
	prefix := options().prefix()
	want := []struct {
		name, zone  string
		late, limit int
	}{
		{prefix + "job-a-plain", "Europe/Paris", 900, 2400},
		{prefix + "job-b-soon", "Europe/Paris", 900, 2400},
		{prefix + "job-c-late", "Asia/Tokyo", 900, 900},
		{prefix + "tick", "Etc/UTC", 60, 2*3600 + 3*3600 + 600},
	}
	for i, c := range decode(t, text) {
		w, spec := want[i], c.Spec.JobTemplate.Spec
		if c.Metadata.Name != w.name || c.Spec.TimeZone != w.zone || c.Spec.ConcurrencyPolicy != "Forbid" || c.Spec.StartingDeadlineSeconds != w.late ||
			spec.Deadline != w.limit || spec.Kept != 86400 {
			t.Errorf("%+v, want %+v", c, w)
		}
	}
	h := host(t)
	h.TickOnly = true
	text, left, err := Kubernetes(h, jobs, options())
	if all := decode(t, text); err != nil || len(left) > 0 || len(all) != 1 || all[0].Metadata.Name != prefix+"tick" {
		t.Errorf("tick only: %v %v\n%s", err, left, text)
	}
}

func TestKubernetesRefuses(t *testing.T) {
	for _, change := range []func(*KubeOptions){
		func(o *KubeOptions) { o.Image = "" },
		func(o *KubeOptions) { o.Image = "a b" },
		func(o *KubeOptions) { o.Image = "a\nb" },
		func(o *KubeOptions) { o.Namespace = "Home" },
		func(o *KubeOptions) { o.Namespace = "a.b" },
		func(o *KubeOptions) { o.Namespace = strings.Repeat("a", 64) },
		func(o *KubeOptions) { o.Claim = "" },
		func(o *KubeOptions) { o.Claim = "-a" },
		func(o *KubeOptions) { o.Claim = "a..b" },
		func(o *KubeOptions) { o.Folder = "../a" },
		func(o *KubeOptions) { o.CPU = "much" },
		func(o *KubeOptions) { o.CPU = "1/" },
		func(o *KubeOptions) { o.CPU = "1Gi" },
		func(o *KubeOptions) { o.Memory = "512m" }, // half a byte
		func(o *KubeOptions) { o.Memory = "1Gi/2Gi/3Gi" },
		func(o *KubeOptions) { o.Memory = "/1Gi" },
		func(o *KubeOptions) { o.Secret = "a\n" },
		func(o *KubeOptions) { o.Secret = strings.Repeat("a.", 130) + "a" },
	} {
		o := options()
		change(&o)
		if _, _, err := Kubernetes(host(t), nil, o); !errors.Is(err, ErrUnfit) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	for _, change := range []func(*Host){
		func(h *Host) { h.DataDir = "/a\nb" },
		func(h *Host) { h.Config = h.DataDir + ".yaml" },
		func(h *Host) { h.DataDir = "/a:b" },
		func(h *Host) { h.DataDir = "/home/ollim/" },
		func(h *Host) { h.DataDir = "/tmp" },
	} {
		h := host(t)
		change(&h)
		if _, _, err := Kubernetes(h, nil, options()); !errors.Is(err, ErrUnfit) {
			t.Errorf("%+v: %v", h, err)
		}
	}
}

// A CronJob whose annotation somebody has removed is not that of another data directory.
func TestDataDirs(t *testing.T) {
	named := installedJob{}
	named.Metadata.Annotations = map[string]string{aboutDataDir: "/data"}
	c := Cluster{have: map[string]installedJob{"a": {}, "b": named, "c": named}}
	if got := c.DataDirs(); !slices.Equal(got, []string{"/data"}) {
		t.Errorf("%q", got)
	}
}

// Ids that only differ in what a cluster does not allow stay apart.
func TestKubernetesNames(t *testing.T) {
	long := strings.Repeat("x", 63)
	var jobs []job.Job
	for _, id := range []string{"a-b", "a_b", "a.b", "A-b", "a-b-", "a-b.", long + "1", long + "2", strings.Repeat("y", 33), strings.Repeat("y", 34)} {
		jobs = append(jobs, routine(t, id, "0 9 * * *"))
	}
	text, _, err := Kubernetes(host(t), jobs, options())
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	for _, c := range decode(t, text) {
		if n := c.Metadata.Name; len(n) > 52 || names[n] != "" {
			t.Errorf("%s for %s and %s", n, c.Metadata.Annotations["ollim/job"], names[n])
		}
		names[c.Metadata.Name] = c.Metadata.Annotations["ollim/job"] + "."
	}
	job := options().prefix() + "job-"
	if names[job+"a-b"] != "a-b." || names[job+strings.Repeat("y", 33)] == "" {
		t.Errorf("%q", names)
	}
}

// Data directories in one namespace have no name and no label in common by which one could touch the other's.
func TestKubernetesInstances(t *testing.T) {
	seen := map[string]bool{}
	for _, o := range []KubeOptions{{Claim: "a"}, {Claim: "b"}, {Claim: "a", Folder: "b"}, {Claim: "a", Folder: "c"}, {Claim: "ab"}} {
		o.Image = "i"
		text, _, err := Kubernetes(host(t), []job.Job{routine(t, "same", "0 9 * * *")}, o)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range decode(t, text) {
			if seen[c.Metadata.Name] {
				t.Errorf("%s twice", c.Metadata.Name)
			}
			seen[c.Metadata.Name] = true
		}
		if seen[o.Instance()] {
			t.Errorf("%+v has the label of another one", o)
		}
		seen[o.Instance()] = true
	}
}

func TestKubernetesResources(t *testing.T) {
	o := options()
	o.CPU, o.Memory = "2", "200Mi/2.5Gi"
	text, _, err := Kubernetes(host(t), nil, o)
	if err != nil {
		t.Fatal(err)
	}
	r := decode(t, text)[0].Spec.JobTemplate.Spec.Template.Spec.Containers[0].Resources
	if want := map[string]string{"cpu": "2", "memory": "200Mi"}; !maps.Equal(r.Requests, want) {
		t.Error(r.Requests)
	}
	if want := map[string]string{"cpu": "2", "memory": "2.5Gi"}; !maps.Equal(r.Limits, want) {
		t.Error(r.Limits)
	}
}
