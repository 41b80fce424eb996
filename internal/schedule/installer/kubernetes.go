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
	text = clusterHead(o)
	left, err = h.write(jobs, unprintable, func(j job.Job) (why string) {
		fields, why := fiveFields(j) // a pod that is later than the grace finds nothing to do: late slots are the tick's
		if why == "" {
			text += o.document(h.DataDir, cronJob{
				lowerName(j.ID), j.ID, label(j), fields, j.Zone(h.Configured).String(), "Forbid", slot.Grace, h.fire(j.ID)})
		}
		return why
	})
	if err = cmp.Or(err, o.check()); err != nil {
		return "", nil, err
	}
	tick := cronJob{tickName, "", "what is due this minute", "* * * * *", "Etc/UTC", "Allow", time.Minute, h.tick("--wait")}
	return text + o.document(h.DataDir, tick), left, nil
}

// cronJob is what one document is made from, besides the options.
type cronJob struct {
	Name        string
	ID, About   string
	Schedule    string
	Zone        string
	Concurrency string
	Deadline    time.Duration
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

// document returns a CronJob; every value that is not ours is between quotes.
func (o KubeOptions) document(dataDir string, c cronJob) string {
	return fmt.Sprintf(`---
apiVersion: batch/v1
kind: CronJob
metadata:
  name: %s
%s  labels:
    app.kubernetes.io/name: ollim
  annotations:
%s    ollim/description: %s
spec:
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
`, quoteYAML(c.Name), when(o.Namespace != "", "  namespace: "+quoteYAML(o.Namespace)+"\n"),
		when(c.ID != "", "    ollim/job: "+quoteYAML(c.ID)+"\n"), quoteYAML(c.About),
		quoteYAML(c.Schedule), quoteYAML(c.Zone), c.Concurrency, int(c.Deadline/time.Second)) + o.container(dataDir, c.Command)
}

func (o KubeOptions) container(dataDir string, words []string) string {
	var command strings.Builder
	for _, word := range words {
		command.WriteString("                - " + quoteYAML(strings.ReplaceAll(word, "$", "$$")) + "\n") // $(NAME) would be replaced
	}
	return `          containers:
            - name: ollim
              image: ` + quoteYAML(o.Image) + `
              command:
` + command.String() + `              env:
                - name: HOME
                  value: /home/ollim
` + when(o.Secret != "", `                - name: CREDENTIALS_DIRECTORY
                  value: /run/credentials/ollim
`) + `              securityContext:
                allowPrivilegeEscalation: false
                capabilities:
                  drop: [ALL]
              volumeMounts:
                - name: data
                  mountPath: ` + quoteYAML(dataDir) + `
                  subPath: data
                - name: data
                  mountPath: /home/ollim
                  subPath: home
` + when(o.Secret != "", `                - name: secret
                  mountPath: /run/credentials/ollim
                  readOnly: true
`) + `          volumes:
            - name: data
              persistentVolumeClaim:
                claimName: ` + quoteYAML(o.Claim) + "\n" + when(o.Secret != "", `            - name: secret
              secret:
                secretName: `+quoteYAML(o.Secret)+`
                defaultMode: 0440
`)
}
