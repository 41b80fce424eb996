package installer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/slot"
)

// KubeOptions is what a cluster has to know besides the jobs.
type KubeOptions struct {
	Image     string // which has the program at Host.Ollim, and the engine's command
	Namespace string // "": that of whoever applies the file
	Claim     string // of the volume with the data directory and the engine's home
	Secret    string // "", or the one that holds secrets.env as its key ollim-secrets
}

// Kubernetes is a list of YAML documents: a CronJob for each routine, and one for the tick. Host has the paths inside the
// containers. The error, if any, is ErrUnfit.
func Kubernetes(h Host, jobs []job.Job, o KubeOptions) (text string, left []Left, err error) {
	routines, err := h.routines(jobs, unprintable)
	if err = cmp.Or(err, o.check()); err != nil {
		return "", nil, err
	}
	var crons []string
	for _, j := range routines { // a pod that is later than the grace finds nothing to do: late slots are the tick's
		fields, why := fiveFields(j)
		if why != "" {
			left = append(left, Left{j, why})
			continue
		}
		crons = append(crons, cronJob{
			KubeOptions: o, DataDir: h.DataDir, Name: lowerName(j.ID), ID: j.ID, About: label(j), Schedule: fields,
			Zone: j.Zone(h.Configured).String(), Concurrency: "Forbid", Deadline: int(slot.Grace / time.Second), Command: h.fire(j.ID),
		}.text())
	}
	crons = append(crons, cronJob{
		KubeOptions: o, DataDir: h.DataDir, Name: tickName, About: "what is due this minute", Schedule: "* * * * *",
		Zone: "Etc/UTC", Concurrency: "Allow", Deadline: int(time.Minute / time.Second), Command: h.tick("--wait"),
	}.text())
	return clusterHead(o) + strings.Join(crons, ""), left, nil
}

// cronJob is what one document is made from.
type cronJob struct {
	KubeOptions
	DataDir     string
	Name        string
	ID, About   string
	Schedule    string
	Zone        string
	Concurrency string
	Deadline    int // seconds
	Command     []string
}

func (o KubeOptions) check() error {
	if o.Image == "" || unquoted(o.Image) != "" {
		return fmt.Errorf("image %q: %w: not an image name", o.Image, ErrUnfit)
	}
	for _, c := range []struct {
		what, text string
		fits       bool
	}{
		{"namespace", o.Namespace, o.Namespace == "" || isClusterName(o.Namespace)},
		{"claim", o.Claim, isDottedName(o.Claim)},
		{"secret", o.Secret, o.Secret == "" || isDottedName(o.Secret)},
	} {
		if !c.fits {
			return fmt.Errorf("%s %q: %w: not a valid name", c.what, c.text, ErrUnfit)
		}
	}
	return nil
}

// isClusterName is the rule for names of RFC 1123.
func isClusterName(name string) bool {
	outside := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' }
	return name != "" && len(name) <= 63 && strings.Trim(name, "-") == name && !strings.ContainsFunc(name, outside)
}

// isDottedName is for such names with dots between them.
func isDottedName(name string) bool {
	for label := range strings.SplitSeq(name, ".") {
		if !isClusterName(label) {
			return false
		}
	}
	return len(name) <= 253
}

// quoteYAML writes a text between double quotes: what JSON reads as a text, YAML does.
func quoteYAML(text string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a text always has a JSON form
	return strings.TrimSuffix(b.String(), "\n")
}

func clusterHead(o KubeOptions) string {
	return `# CronJobs for a cluster, made by: ollim schedule print kubernetes
# The claim has to let all nodes that run these write (ReadWriteMany), with a file system on which flock works.
` + when(o.Secret != "", `# The secret is made from your secrets.env: kubectl create secret generic `+o.Secret+` --from-file=ollim-secrets=secrets.env
`)
}

// text is the document; every value that is not ours is between quotes.
func (c cronJob) text() string { return c.head() + c.spec() + c.container() + c.volumes() }

func (c cronJob) head() string {
	return `---
apiVersion: batch/v1
kind: CronJob
metadata:
  name: ` + quoteYAML(c.Name) + "\n" +
		when(c.Namespace != "", "  namespace: "+quoteYAML(c.Namespace)+"\n") + `  labels:
    app.kubernetes.io/name: ollim
  annotations:
` + when(c.ID != "", "    ollim/job: "+quoteYAML(c.ID)+"\n") + "    ollim/description: " + quoteYAML(c.About) + "\n"
}

func (c cronJob) spec() string {
	return fmt.Sprintf(`spec:
  schedule: %s
  timeZone: %s
  concurrencyPolicy: %s
  startingDeadlineSeconds: %d
  successfulJobsHistoryLimit: 1
  failedJobsHistoryLimit: 3
  jobTemplate:
    spec:
      backoffLimit: 0 # whether a run is tried again is not for the cluster to say
      template:
        metadata:
          labels:
            app.kubernetes.io/name: ollim
        spec:
          restartPolicy: Never
          automountServiceAccountToken: false
          securityContext:
            runAsNonRoot: true
            runAsUser: 1000
            runAsGroup: 1000
            fsGroup: 1000
            fsGroupChangePolicy: OnRootMismatch
            seccompProfile:
              type: RuntimeDefault
`, quoteYAML(c.Schedule), quoteYAML(c.Zone), c.Concurrency, c.Deadline)
}

func (c cronJob) container() string {
	var command strings.Builder
	for _, word := range c.Command {
		command.WriteString("                - " + quoteYAML(strings.ReplaceAll(word, "$", "$$")) + "\n") // $(NAME) would be replaced
	}
	return `          containers:
            - name: ollim
              image: ` + quoteYAML(c.Image) + `
              command:
` + command.String() + `              env:
                - name: HOME
                  value: /home/ollim
` + when(c.Secret != "", `                - name: CREDENTIALS_DIRECTORY
                  value: /run/credentials/ollim
`) + `              securityContext:
                allowPrivilegeEscalation: false
                capabilities:
                  drop: [ALL]
              volumeMounts:
                - name: data
                  mountPath: ` + quoteYAML(c.DataDir) + `
                  subPath: data
                - name: data
                  mountPath: /home/ollim
                  subPath: home
` + when(c.Secret != "", `                - name: secret
                  mountPath: /run/credentials/ollim
                  readOnly: true
`)
}

func (c cronJob) volumes() string {
	return `          volumes:
            - name: data
              persistentVolumeClaim:
                claimName: ` + quoteYAML(c.Claim) + "\n" + when(c.Secret != "", `            - name: secret
              secret:
                secretName: `+quoteYAML(c.Secret)+`
                defaultMode: 0440
`)
}
