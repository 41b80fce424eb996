package installer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/slot"
)

// KubeOptions is what a cluster has to know besides the jobs.
type KubeOptions struct {
	Context   string `json:"context,omitempty"`   // of kubectl, which says which cluster; "": its current one
	Image     string `json:"image"`               // which has the program at Host.Ollim, and the engine's command
	Namespace string `json:"namespace,omitempty"` // "": that of whoever applies the file
	Claim     string `json:"claim"`               // of the volume with the data directory and the engine's home
	Folder    string `json:"folder,omitempty"`    // of the volume, with both as its folders data and home; "" is the volume's root
	Secret    string `json:"secret,omitempty"`    // "", or the one that holds secrets.env as its key ollim-secrets
	CPU       string `json:"cpu,omitempty"`       // of each pod: request and limit, such as 100m/1; one quantity is both; "": DefaultCPU
	Memory    string `json:"memory,omitempty"`    // likewise, such as 128Mi/1Gi; "": DefaultMemory
}

// What a pod requests, and may use at most, unless the owner says otherwise.
const (
	DefaultCPU    = "100m/1"
	DefaultMemory = "128Mi/1Gi"
)

// TickPasses is how long a tick that waits for what it has started does the work of further minutes. Then it starts nothing more, so that
// it ends before its deadline in a cluster.
const TickPasses = time.Hour

// beyondRun is how long a pod may take for what is no part of a run: to be placed, to fetch its image, to report the run.
const beyondRun = 10 * time.Minute

// endOfRun is how long a pod may take to end when the cluster stops it: an engine that ignores signals has 15 seconds, the message that says
// how the run ended 35, and then the record is written. The cluster's own default of 30 seconds would cut that off.
const endOfRun = 90 * time.Second

// keptJobs is how long a cluster keeps a Job that has ended. It matters for those whose CronJob was removed: no history limit holds there.
const keptJobs = 24 * time.Hour

// Kubernetes is a list of YAML documents: a CronJob for each routine, and one for the tick, whose deadline is made for jobs of every kind.
// Host has the paths inside the containers. The error, if any, is ErrUnfit.
func Kubernetes(h Host, jobs []job.Job, o KubeOptions) (text string, left []Left, err error) {
	text = clusterHead(o)
	longest := job.New(job.Routine).Timeout
	for _, j := range jobs {
		longest = max(longest, j.Timeout)
	}
	left, err = h.write(jobs, unprintable, func(j job.Job) (why string) {
		fields, why := fiveFields(j) // a pod that is later than the grace finds nothing to do: late slots are the tick's
		if why == "" {
			text += o.document(h.DataDir, cronJob{
				lowerName(o.prefix(), j.ID), j.ID, label(j), fields, j.Zone(h.Configured).String(), slot.Grace, j.Timeout + beyondRun, h.fire(j.ID)})
		}
		return why
	})
	if err = cmp.Or(err, o.check(), h.checkMounts()); err != nil {
		return "", nil, err
	}
	// The slots that wait are started for as long as the tick works, by a process that the tick has started.
	deadline := 2*TickPasses + longest + beyondRun
	tick := cronJob{o.prefix() + "tick", "", "what is due this minute", "* * * * *", "Etc/UTC", time.Minute, deadline, h.tick("--wait")}
	return text + o.document(h.DataDir, tick), left, nil
}

// Instance identifies the data directory in a namespace: it is the same for all entries that write to one folder of one volume.
func (o KubeOptions) Instance() string { return digest(o.Claim + "\x00" + o.Folder)[:8] }

// prefix begins the name of each CronJob of the data directory.
func (o KubeOptions) prefix() string { return "ollim-" + o.Instance() + "-" }

// Directories in a container.
const (
	homeDir     = "/home/ollim"
	credentials = "/run/credentials/ollim"
)

// checkMounts refuses a data directory that cannot be a mount of its own, and settings outside of it, which the volume does not hold.
func (h Host) checkMounts() error {
	switch {
	case strings.Contains(h.DataDir, ":") || slices.Contains([]string{"/", "/tmp", homeDir, credentials}, path.Clean(h.DataDir)):
		return fmt.Errorf("%q: %w: a volume for the data directory alone cannot be mounted there", h.DataDir, ErrUnfit)
	case h.Config != "" && !strings.HasPrefix(h.Config, h.DataDir+"/"):
		return fmt.Errorf("%q: %w: the settings are outside the data directory, which alone is in the volume", h.Config, ErrUnfit)
	}
	return nil
}

// cronJob is what one document is made from, besides the options.
type cronJob struct {
	Name      string
	ID, About string
	Schedule  string
	Zone      string
	Late      time.Duration // after which a start that could not be made is given up
	Limit     time.Duration // after which the cluster ends what was started
	Command   []string
}

func (o KubeOptions) check() error {
	if o.Image == "" || unquoted(o.Image) != "" {
		return fmt.Errorf("image %q: %w: not an image name", o.Image, ErrUnfit)
	}
	for _, c := range []struct {
		what, text string
		fits       bool
	}{
		{"cpu", o.CPU, isResources(o.CPU, "m?")},
		{"memory", o.Memory, isResources(o.Memory, "([kMGT]|[KMGT]i)?")},
		{"secret", o.Secret, o.Secret == "" || isDottedName(o.Secret)},
	} {
		if !c.fits {
			return fmt.Errorf("%s %q: %w: not a valid %s", c.what, c.text, ErrUnfit, map[bool]string{true: "name", false: "request and limit"}[c.what == "secret"])
		}
	}
	return o.checkPlace()
}

// checkPlace checks what says where the entries are.
func (o KubeOptions) checkPlace() error {
	for _, c := range []struct {
		what, text string
		fits       bool
	}{
		{"context", o.Context, o.Context == "" || unquoted(o.Context) == ""},
		{"namespace", o.Namespace, o.Namespace == "" || isClusterName(o.Namespace)},
		{"claim", o.Claim, isDottedName(o.Claim)},
		{"folder", o.Folder, o.Folder == "" || isDottedName(o.Folder)},
	} {
		if !c.fits {
			return fmt.Errorf("%s %q: %w: not a valid name", c.what, c.text, ErrUnfit)
		}
	}
	return nil
}

// isResources is for a request and a limit, or one quantity, or nothing. units is the pattern of what may follow a number: m, a thousandth,
// is a slip for bytes.
func isResources(text, units string) bool {
	quantity := `[0-9]+(\.[0-9]+)?` + units
	return text == "" || regexp.MustCompile(`^`+quantity+`(/`+quantity+`)?$`).MatchString(text)
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
	labels := func(indent string) string {
		return indent + "labels:\n" + indent + "  app.kubernetes.io/name: ollim\n" +
			indent + "  app.kubernetes.io/instance: " + quoteYAML(o.Instance()) + "\n" + indent + "  app.kubernetes.io/managed-by: ollim\n"
	}
	return fmt.Sprintf(`---
apiVersion: batch/v1
kind: CronJob
metadata:
  name: %s
%s%s  annotations:
%s    `+aboutDataDir+`: %s
    ollim/description: %s
spec:
  schedule: %s
  timeZone: %s
  concurrencyPolicy: Forbid
  startingDeadlineSeconds: %d
  successfulJobsHistoryLimit: 1
  failedJobsHistoryLimit: 3
  jobTemplate:
    metadata:
%s    spec:
      backoffLimit: 0 # whether a run is tried again is not for the cluster to say
      activeDeadlineSeconds: %d
      ttlSecondsAfterFinished: %d
      template:
        metadata:
%s`, quoteYAML(c.Name), when(o.Namespace != "", "  namespace: "+quoteYAML(o.Namespace)+"\n"), labels("  "),
		when(c.ID != "", "    "+aboutJob+": "+quoteYAML(c.ID)+"\n"), quoteYAML(dataDir), quoteYAML(c.About),
		quoteYAML(c.Schedule), quoteYAML(c.Zone), seconds(c.Late), labels("      "), seconds(c.Limit), seconds(keptJobs), labels("          ")) +
		o.pod(dataDir, c.Command)
}

func seconds(d time.Duration) int { return int(d / time.Second) }

// pod returns what runs. The seal of a run needs no capability, but no-new-privileges and the seccomp profile of the runtime, which allows
// Landlock.
func (o KubeOptions) pod(dataDir string, words []string) string {
	var command strings.Builder
	for _, word := range words {
		command.WriteString("                - " + quoteYAML(strings.ReplaceAll(word, "$", "$$")) + "\n") // $(NAME) would be replaced
	}
	in := func(folder string) string { return quoteYAML(path.Join(o.Folder, folder)) }
	return `        spec:
          restartPolicy: Never
          terminationGracePeriodSeconds: ` + strconv.Itoa(seconds(endOfRun)) + `
          automountServiceAccountToken: false
          enableServiceLinks: false
          securityContext:
            runAsNonRoot: true
            runAsUser: 1000
            runAsGroup: 1000
            fsGroup: 1000
            fsGroupChangePolicy: OnRootMismatch
            seccompProfile:
              type: RuntimeDefault
          containers:
            - name: ollim
              image: ` + quoteYAML(o.Image) + `
              command:
` + command.String() + `              env:
                - name: HOME
                  value: ` + homeDir + `
` + when(o.Secret != "", `                - name: CREDENTIALS_DIRECTORY
                  value: `+credentials+`
`) + `              resources:
` + resources(cmp.Or(o.CPU, DefaultCPU), cmp.Or(o.Memory, DefaultMemory)) + `              securityContext:
                allowPrivilegeEscalation: false
                readOnlyRootFilesystem: true
                capabilities:
                  drop: [ALL]
              volumeMounts:
                - name: data
                  mountPath: ` + quoteYAML(dataDir) + `
                  subPath: ` + in("data") + `
                - name: data
                  mountPath: ` + homeDir + `
                  subPath: ` + in("home") + `
                - name: tmp
                  mountPath: /tmp
` + when(o.Secret != "", `                - name: secret
                  mountPath: `+credentials+`
                  readOnly: true
`) + `          volumes:
            - name: data
              persistentVolumeClaim:
                claimName: ` + quoteYAML(o.Claim) + `
            - name: tmp
              emptyDir: {}
` + when(o.Secret != "", `            - name: secret
              secret:
                secretName: `+quoteYAML(o.Secret)+`
                defaultMode: 0440
`)
}

func resources(cpu, memory string) string {
	cpuRequest, cpuLimit, _ := strings.Cut(cpu, "/")
	memoryRequest, memoryLimit, _ := strings.Cut(memory, "/")
	return fmt.Sprintf(`                requests:
                  cpu: %s
                  memory: %s
                limits:
                  cpu: %s
                  memory: %s
`, quoteYAML(cpuRequest), quoteYAML(memoryRequest), quoteYAML(cmp.Or(cpuLimit, cpuRequest)), quoteYAML(cmp.Or(memoryLimit, memoryRequest)))
}
