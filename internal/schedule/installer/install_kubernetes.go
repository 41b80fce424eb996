package installer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/state/job"
)

// Cluster is the CronJobs of one data directory in a namespace, as they were when OpenCluster asked.
type Cluster struct {
	options KubeOptions
	env     []string
	have    map[string]installedJob // by name
}

var (
	// ErrKubectl is a kubectl that failed.
	ErrKubectl = errors.New("kubectl")
	// ErrConflict is a CronJob of ours in which somebody else has changed what we write.
	ErrConflict = errors.New("somebody has changed CronJobs of ours")
)

// fieldManager is the name under which the cluster knows which fields are ours.
const fieldManager = "ollim"

// These bound one call of kubectl, and what is read of its output: a CronJob has some four kilobytes.
const (
	kubectlLimit = 2 * time.Minute
	maxListed    = 64 << 20
)

// installedJob is what a cluster has, or would have: the fields that we write, with what the cluster adds to them.
type installedJob struct {
	Metadata struct {
		Name        string            `json:"name"`
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec map[string]any `json:"spec"`
}

// The annotations that tell what a CronJob is for.
const (
	aboutJob     = "ollim/job"
	aboutDataDir = "ollim/data-dir"
)

// OpenCluster asks the cluster for the CronJobs of a data directory, of which the options need only say the place, see Place. env is the environment of kubectl.
func OpenCluster(ctx context.Context, o KubeOptions, env []string) (Cluster, error) {
	c := Cluster{options: o, env: env}
	err := o.checkPlace()
	if err == nil {
		selector := "app.kubernetes.io/managed-by=ollim,app.kubernetes.io/instance=" + o.Instance()
		c.have, err = c.list(ctx, "", []string{"get", "cronjobs.batch", "--selector=" + selector, "--output=json"})
	}
	return c, err
}

// CurrentContext returns the context of kubectl that it uses if none is named. It is "" if there is none, as in a pod, or if its name would need
// quotes on a command line. env is the environment of kubectl.
func CurrentContext(ctx context.Context, env []string) string {
	said, err := Cluster{env: env}.kubectl(ctx, "", []string{"config", "current-context"})
	name := strings.TrimSpace(string(said))
	if err != nil || unquoted(name) != "" {
		return ""
	}
	return name
}

// DataDirs returns the data directories that the installed CronJobs name, sorted; they are paths inside the containers. One whose annotation
// somebody has removed names none.
func (c Cluster) DataDirs() (dirs []string) {
	for _, j := range c.have {
		if dir := j.Metadata.Annotations[aboutDataDir]; dir != "" {
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// Changes is what has to be done for the cluster to have the CronJobs of a text, as Kubernetes returns it, and no others of this data
// directory; an empty text means none. The cluster itself says what it would make of the text, so that also what somebody has changed by
// hand is found. If jobs is not nil, CronJobs of other routines stay.
func (c Cluster) Changes(ctx context.Context, text string, jobs []job.Job) ([]Change, error) {
	want := map[string]installedJob{}
	if text != "" {
		var err error
		if want, err = c.list(ctx, text, c.apply("--dry-run=server", "--output=json")); err != nil {
			return nil, err
		}
	}
	var changes []Change
	all := maps.Clone(c.have)
	maps.Copy(all, want)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		old, exists := c.have[name]
		wanted, needed := want[name]
		switch {
		case !needed && jobs != nil && old.unknown(jobs):
		case !needed:
			changes = append(changes, Change{name, Drop})
		case !exists:
			changes = append(changes, Change{name, Add})
		case !reflect.DeepEqual(old, wanted):
			changes = append(changes, Change{name, modifyUnit})
		}
	}
	return changes, nil
}

func (j installedJob) unknown(jobs []job.Job) bool {
	id := j.Metadata.Annotations[aboutJob]
	return id != "" && !slices.ContainsFunc(jobs, func(known job.Job) bool { return known.ID == id })
}

// Apply makes these changes, and returns them. CronJobs are removed by name: --prune of kubectl passes over those that were applied by the
// server. The Jobs of a CronJob that goes stay, so that a run in progress ends by itself.
func (c Cluster) Apply(ctx context.Context, text string, jobs []job.Job) ([]Change, error) {
	changes, err := c.Changes(ctx, text, jobs)
	if err != nil {
		return nil, err
	}
	var drop []string
	for _, change := range changes {
		if change.What == Drop {
			drop = append(drop, change.Name)
		}
	}
	if len(changes) > len(drop) {
		if _, err := c.kubectl(ctx, text, c.apply()); err != nil {
			return nil, err
		}
	}
	if len(drop) > 0 {
		args := []string{"delete", "cronjobs.batch", "--cascade=orphan", "--ignore-not-found", "--wait=false"}
		if _, err := c.kubectl(ctx, "", append(args, drop...)); err != nil {
			return nil, err
		}
	}
	return changes, nil
}

// list returns the CronJobs that a call of kubectl prints, by name.
func (c Cluster) list(ctx context.Context, text string, args []string) (map[string]installedJob, error) {
	said, err := c.kubectl(ctx, text, args)
	if err != nil {
		return nil, err
	}
	var answer struct {
		installedJob // of one object
		Kind         string
		Items        []installedJob
	}
	if err := json.Unmarshal(said, &answer); err != nil {
		return nil, fmt.Errorf("%w %s: its output cannot be read: %w", ErrKubectl, args[0], err)
	}
	if answer.Kind == "CronJob" {
		answer.Items = []installedJob{answer.installedJob}
	}
	byName := make(map[string]installedJob, len(answer.Items))
	for _, j := range answer.Items {
		byName[j.Metadata.Name] = j
	}
	return byName, nil
}

func (c Cluster) apply(flags ...string) []string {
	return append([]string{"apply", "--server-side", "--field-manager=" + fieldManager, "--filename=-"}, flags...)
}

func (c Cluster) kubectl(ctx context.Context, text string, args []string) ([]byte, error) {
	argv := []string{"kubectl"}
	if c.options.Context != "" {
		argv = append(argv, "--context="+c.options.Context)
	}
	if c.options.Namespace != "" {
		argv = append(argv, "--namespace="+c.options.Namespace)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, kubectlLimit, fmt.Errorf("no answer in %s", kubectlLimit))
	defer cancel()
	r, err := process.Run(ctx, process.Call{Argv: append(argv, args...), Env: c.env, Stdin: []byte(text), Limit: maxListed})
	if err == nil {
		err = r.Failure()
	}
	if err != nil && strings.Contains(r.Stderr, "--force-conflicts") {
		first, _, _ := strings.Cut(r.Stderr, "Please review") // how to resolve it is said for manifests
		return nil, fmt.Errorf("%w: %s", ErrConflict, strings.Join(strings.Fields(first), " "))
	}
	if err != nil {
		return nil, fmt.Errorf("%w %s: %w", ErrKubectl, args[0], err)
	}
	return r.Out, nil
}
