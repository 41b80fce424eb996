package installer

import (
	"errors"
	"io"
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
			Spec struct {
				BackoffLimit *int `yaml:"backoffLimit"`
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
	Token         *bool          `yaml:"automountServiceAccountToken"`
	Security      map[string]any `yaml:"securityContext"`
	Containers    []struct {
		Name, Image string
		Command     []string
		Env         []struct{ Name, Value string }
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
			o.Namespace, o.Secret = "", ""
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
			if c.Metadata.Namespace != o.Namespace || *c.Spec.JobTemplate.Spec.BackoffLimit != 0 || p.RestartPolicy != "Never" || *p.Token {
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
	for _, m := range c.Mounts {
		if !slices.ContainsFunc(p.Volumes, func(v volume) bool { return v.Name == m.Name }) {
			t.Errorf("no volume %s", m.Name)
		}
	}
	if o.Secret == "" {
		if len(p.Volumes) != 1 || len(c.Env) != 1 {
			t.Errorf("a secret that nobody asked for: %+v", p)
		}
		return
	}
	if v := p.Volumes[1].Secret; v.Name != o.Secret || v.Mode != 0o440 || c.Env[1].Value != c.Mounts[2].MountPath || !c.Mounts[2].ReadOnly {
		t.Errorf("%+v", p)
	}
}

func TestKubernetesDeadlineAndZone(t *testing.T) {
	jobs := []job.Job{
		routine(t, "a-plain", "0 9 * * *"),
		routine(t, "b-soon", "0 9 * * *", func(j *job.Job) { j.CatchUp = time.Minute }),
		routine(t, "c-late", "0 9 * * *", in("Asia/Tokyo"), func(j *job.Job) { j.CatchUp = 48 * time.Hour }),
	}
	text, _, err := Kubernetes(host(t), jobs, options())
	if err != nil {
		t.Fatal(err)
	}
	want := []struct {
		name, zone, policy string
		deadline           int
	}{
		{"ollim-job-a-plain", "Europe/Paris", "Forbid", 900},
		{"ollim-job-b-soon", "Europe/Paris", "Forbid", 900},
		{"ollim-job-c-late", "Asia/Tokyo", "Forbid", 900},
		{"ollim-tick", "Etc/UTC", "Allow", 60},
	}
	for i, c := range decode(t, text) {
		w := want[i]
		if c.Metadata.Name != w.name || c.Spec.TimeZone != w.zone || c.Spec.ConcurrencyPolicy != w.policy || c.Spec.StartingDeadlineSeconds != w.deadline {
			t.Errorf("%+v, want %+v", c, w)
		}
	}
	h := host(t)
	h.TickOnly = true
	text, left, err := Kubernetes(h, jobs, options())
	if all := decode(t, text); err != nil || len(left) > 0 || len(all) != 1 || all[0].Metadata.Name != "ollim-tick" {
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
		func(o *KubeOptions) { o.Secret = "a\n" },
		func(o *KubeOptions) { o.Secret = strings.Repeat("a.", 130) + "a" },
	} {
		o := options()
		change(&o)
		if _, _, err := Kubernetes(host(t), nil, o); !errors.Is(err, ErrUnfit) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	h := host(t)
	h.DataDir = "/a\nb"
	if _, _, err := Kubernetes(h, nil, options()); !errors.Is(err, ErrUnfit) {
		t.Error(err)
	}
}

// Ids that only differ in what a cluster does not allow stay apart.
func TestKubernetesNames(t *testing.T) {
	long := strings.Repeat("x", 63)
	var jobs []job.Job
	for _, id := range []string{"a-b", "a_b", "a.b", "A-b", "a-b-", "a-b.", long + "1", long + "2", strings.Repeat("y", 42), strings.Repeat("y", 43)} {
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
	if names["ollim-job-a-b"] != "a-b." || names["ollim-job-"+strings.Repeat("y", 42)] == "" {
		t.Errorf("%q", names)
	}
}
