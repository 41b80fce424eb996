// Package kubernetes has the CronJobs that ollim prints read by Kubernetes' own types. It is a module of its own, because
// nothing else of ollim needs those.
package kubernetes

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	batch "k8s.io/api/batch/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

const routine = `---
id: daily.market
description: "Markets: 50% # of *them*"
cron: "0 9 * * 1-5"
timezone: Asia/Tokyo
catch-up: 2h
---
Read.
`

// strict reads a document as a cluster that checks strictly does: a field that is unknown, written in other case, or repeated
// is an error.
func strict(document []byte) (j batch.CronJob, err error) {
	if err := yaml.UnmarshalStrict(document, &batch.CronJob{}); err != nil {
		return j, err
	}
	text, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return j, err
	}
	faults, err := json.UnmarshalStrict(text, &j)
	return j, errors.Join(append(faults, err)...)
}

func decode(t *testing.T, text []byte) (jobs []batch.CronJob) {
	t.Helper()
	for _, document := range bytes.Split(text, []byte("\n---\n"))[1:] {
		j, err := strict(document)
		if err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		jobs = append(jobs, j)
	}
	return jobs
}

// printed is what the program prints for a data directory with one routine.
func printed(t *testing.T, flags ...string) []byte {
	t.Helper()
	data := t.TempDir()
	for name, text := range map[string]string{"config.yaml": "timezone: Europe/Paris\n", "routines/daily.md": routine} {
		path := filepath.Join(data, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("go", append([]string{"run", "./cmd/ollim", "--data-dir", data, "schedule", "print", "kubernetes"}, flags...)...)
	cmd.Dir, cmd.Stderr = filepath.Join("..", ".."), os.Stderr
	text, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestPrintedCronJobs(t *testing.T) {
	jobs := decode(t, printed(t, "--image", "example.org/ollim:1", "--claim", "data", "--secret", "keys", "--namespace", "home"))
	if len(jobs) != 2 {
		t.Fatalf("%d documents, want 2", len(jobs))
	}
	routine, tick := jobs[0], jobs[1]
	for _, j := range jobs {
		checkForm(t, j)
	}
	if s := routine.Spec; s.Schedule != "0 9 * * 1,2,3,4,5" || *s.TimeZone != "Asia/Tokyo" || s.ConcurrencyPolicy != batch.ForbidConcurrent || *s.StartingDeadlineSeconds != 900 {
		t.Errorf("%+v", s)
	}
	if routine.Annotations["ollim/job"] != "daily.market" || routine.Annotations["ollim/description"] != "Markets: 50% # of *them*" {
		t.Errorf("%q", routine.Annotations)
	}
	if got := command(routine); !slices.Equal(got[len(got)-4:], []string{"fire", "--scheduled", "--", "daily.market"}) {
		t.Errorf("%q", got)
	}
	if s := tick.Spec; s.Schedule != "* * * * *" || *s.TimeZone != "Etc/UTC" {
		t.Errorf("%+v", s)
	}
	if got := command(tick); !slices.Equal(got[len(got)-2:], []string{"tick", "--wait"}) {
		t.Errorf("%q", got)
	}
}

func command(j batch.CronJob) []string {
	return j.Spec.JobTemplate.Spec.Template.Spec.Containers[0].Command
}

// checkForm is what holds for all of them.
func checkForm(t *testing.T, j batch.CronJob) {
	t.Helper()
	pod := j.Spec.JobTemplate.Spec.Template.Spec
	if j.APIVersion != "batch/v1" || j.Kind != "CronJob" || j.Namespace != "home" || *j.Spec.JobTemplate.Spec.BackoffLimit != 0 {
		t.Errorf("%+v", j)
	}
	c := pod.Containers[0]
	if c.Image != "example.org/ollim:1" || *c.SecurityContext.AllowPrivilegeEscalation || !*pod.SecurityContext.RunAsNonRoot {
		t.Errorf("%+v", pod)
	}
	if r := c.Resources; r.Requests.Memory().Cmp(*r.Limits.Memory()) > 0 || r.Requests.Cpu().IsZero() || r.Limits.Cpu().IsZero() || !*c.SecurityContext.ReadOnlyRootFilesystem {
		t.Errorf("%+v", c)
	}
	if s := j.Spec; s.ConcurrencyPolicy != batch.ForbidConcurrent || *s.JobTemplate.Spec.ActiveDeadlineSeconds < 2400 {
		t.Errorf("%+v", s)
	}
	volumes := map[string]bool{}
	for _, v := range pod.Volumes {
		volumes[v.Name] = v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == "data" || v.Secret != nil && v.Secret.SecretName == "keys" || v.EmptyDir != nil
	}
	for _, m := range c.VolumeMounts {
		if !volumes[m.Name] {
			t.Errorf("%s is mounted from no volume of ours", m.Name)
		}
	}
}

// The golden file has jobs and names of more kinds.
func TestGoldenCronJobs(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "internal", "schedule", "installer", "testdata", "kubernetes.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if jobs := decode(t, text); len(jobs) != 3 {
		t.Errorf("%d documents, want 3", len(jobs))
	}
}

func TestStrict(t *testing.T) {
	for _, text := range []string{"spec:\n  scheduled: x", "spec:\n  timezone: x", "kind: a\nkind: b", "spec:\n  suspend: soon"} {
		if _, err := strict([]byte(text)); err == nil {
			t.Errorf("%q is no error", text)
		}
	}
}
