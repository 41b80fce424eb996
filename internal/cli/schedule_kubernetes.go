package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/app/doctor"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/schedule/installer"
	"github.com/ollim/ollim/internal/state/job"
)

const (
	verbRemove = "remove" // needs to know only where the entries are
	verbPrint  = "print"  // asks no cluster
)

func (o *unitOptions) clusterFlags(f *pflag.FlagSet, verb string) {
	if verb != verbPrint {
		f.StringVar(&o.kube.Context, "context", "", "kubernetes: the context of kubectl (default: that of the installation, else the current one)")
	}
	f.StringVar(&o.kube.Namespace, "namespace", "", "kubernetes: the namespace (default: that of kubectl)")
	f.StringVar(&o.kube.Claim, "claim", "", "kubernetes: the volume claim with the data directory and the engine's home")
	f.StringVar(&o.kube.Folder, "folder", "", "kubernetes: the folder of the volume that has both, as data and home (default: the volume's root)")
	if verb == verbRemove {
		return
	}
	f.StringVar(&o.kube.Image, "image", "", "kubernetes: the image, with ollim at the path of this machine and the engine's command")
	f.StringVar(&o.kube.Secret, "secret", "", "kubernetes: the secret that holds secrets.env as its key ollim-secrets")
	f.StringVar(&o.kube.CPU, "cpu", "", "kubernetes: what a pod requests and may use, REQUEST/LIMIT (default: "+installer.DefaultCPU+")")
	f.StringVar(&o.kube.Memory, "memory", "", "kubernetes: what a pod requests and may use, REQUEST/LIMIT (default: "+installer.DefaultMemory+")")
}

func (o *unitOptions) wantsCluster(verb string) error {
	switch {
	case o.target != forKubernetes && o.kube != (installer.KubeOptions{}):
		return usage("--context, --image, --namespace, --claim, --folder, --secret, --cpu and --memory are for kubernetes only")
	case o.target != forKubernetes:
	case verb == verbRemove && o.kube.Claim == "":
		return usage("kubernetes: want --claim")
	case verb != verbRemove && (o.kube.Image == "" || o.kube.Claim == ""):
		return usage("kubernetes: want --image and --claim")
	}
	return nil
}

// cluster returns the CronJobs of the data directory. If its folder of the volume has those of another data directory, that is the error.
func (d *deps) cluster(ctx context.Context, o unitOptions, host installer.Host) (installer.Cluster, error) {
	c, err := installer.OpenCluster(ctx, o.kube, d.envOfKubectl())
	for _, dir := range c.DataDirs() {
		if err == nil && !sameFile(dir, host.DataDir) {
			err = &otherDataDir{dir}
		}
	}
	return c, err
}

// settleContext fills in the context of kubectl in which the entries were installed, unless one is named.
func (d *deps) settleContext(o *unitOptions) error {
	if o.target != forKubernetes || o.kube.Context != "" {
		return nil
	}
	h, err := d.AnyHome()
	if err != nil {
		return nil //nolint:nilerr // a deleted directory has no record
	}
	contexts, err := clustersOf(h).Contexts(o.kube)
	switch {
	case err != nil:
		return err
	case len(contexts) > 1:
		return usage("kubernetes: the entries are installed in the contexts %s: want --context", strings.Join(contexts, ", "))
	case len(contexts) == 1:
		o.kube.Context = contexts[0]
	}
	return nil
}

func (d *deps) envOfKubectl() []string { return append(d.callerEnv(), d.kubectlEnv()...) }

// kubectlEnv returns what kubectl needs besides the caller's environment that every scheduler gets: how to find a cluster, and what the
// programs need that log in to those of the large providers.
func (d *deps) kubectlEnv() (env []string) {
	for _, name := range []string{
		"KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "XDG_CACHE_HOME",
		"HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "https_proxy", "http_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR",
		"AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_ACCESS_KEY_ID",
		"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE",
		"CLOUDSDK_CONFIG", "GOOGLE_APPLICATION_CREDENTIALS", "AZURE_CONFIG_DIR", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET", "AZURE_TENANT_ID",
	} {
		if value, ok := d.Lookup(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// manifests returns what the cluster is to have, and the routines whose entries alone may go; nil: all others go.
func (e entries) manifests(d *deps, o unitOptions) (text string, jobs []job.Job, err error) {
	text, left, err := installer.Kubernetes(e.host, e.all, o.kube)
	if err == nil && !o.untold {
		d.tellLeft(left)
	}
	if len(e.faults) > 0 {
		jobs = append([]job.Job{}, e.jobs...)
	}
	return text, jobs, err
}

func (d *deps) installCluster(ctx context.Context, o unitOptions, e entries) error {
	if o.kube.Context == "" {
		o.kube.Context = installer.CurrentContext(ctx, d.envOfKubectl())
	}
	text, jobs, err := e.manifests(d, o)
	if err != nil {
		return err
	}
	c, err := d.cluster(ctx, o, e.host)
	if err != nil {
		return err
	}
	changes, err := c.Apply(ctx, text, jobs)
	if err != nil {
		return err
	}
	d.noteChanges(changes)
	if err := clustersOf(e.home).Note(ctx, installer.InCluster{KubeOptions: o.kube, TickOnly: o.tickOnly}); err != nil {
		return err
	}
	if slices.ContainsFunc(changes, func(c installer.Change) bool { return c.What == installer.Add }) {
		d.note("installed; to undo: ollim schedule remove %s", o.where())
	}
	return nil
}

func (d *deps) clusterChanges(ctx context.Context, o unitOptions, e entries) ([]installer.Change, error) {
	text, jobs, err := e.manifests(d, o)
	if err != nil {
		return nil, err
	}
	c, err := d.cluster(ctx, o, e.host)
	if err != nil {
		return nil, err
	}
	return c.Changes(ctx, text, jobs)
}

func (d *deps) removeFromCluster(ctx context.Context, h app.Home, o unitOptions, host installer.Host) error {
	c, err := d.cluster(ctx, o, host)
	if err != nil {
		return err
	}
	changes, err := c.Apply(ctx, "", nil)
	d.noteChanges(changes)
	if err == nil && exists(h.Dir.Clusters()) { // a deleted directory is not created again
		err = clustersOf(h).Forget(ctx, o.kube)
	}
	return err
}

func clustersOf(h app.Home) installer.Clusters { return installer.Clusters{Home: h.Dir, Disk: h.Disk} }

// installedClusters returns the installations in clusters that the data directory has recorded.
func (d *deps) installedClusters() (list []unitOptions, err error) {
	h, err := d.AnyHome()
	if err != nil {
		return nil, err
	}
	recorded, err := clustersOf(h).List()
	for _, c := range recorded {
		list = append(list, unitOptions{target: forKubernetes, tickOnly: c.TickOnly, kube: c.KubeOptions})
	}
	return list, err
}

// clusterNames returns these installations as arguments of ollim schedule remove.
func (d *deps) clusterNames() (names []string, err error) {
	list, err := d.installedClusters()
	for _, o := range list {
		names = append(names, o.where())
	}
	return names, err
}

// clusterPatience is how long ollim doctor waits for a cluster.
const clusterPatience = 10 * time.Second

// clusterEntries compares the installation in a cluster that clusterNames calls so. A cluster that cannot be asked is no error.
func (d *deps) clusterEntries(ctx context.Context, name string) (found doctor.Entries, err error) {
	list, err := d.installedClusters()
	i := slices.IndexFunc(list, func(o unitOptions) bool { return o.where() == name })
	if err != nil || i < 0 {
		return found, err
	}
	defer func(quiet bool) { d.quiet = quiet }(d.quiet)
	d.quiet = true // the messages of install are not findings
	o := list[i]
	found.Installed, found.Flags = true, o.made()
	e, err := d.entries(o)
	if err != nil {
		return found, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, clusterPatience, fmt.Errorf("no answer in %s", clusterPatience))
	defer cancel()
	changes, err := d.clusterChanges(ctx, o, e)
	found.Changes = len(changes)
	if other := (*otherDataDir)(nil); errors.As(err, &other) {
		return doctor.Entries{Other: other.dir}, nil
	}
	if errors.Is(err, installer.ErrKubectl) {
		found.Unseen, err = err.Error(), nil
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", name, o.fault(err))
	}
	return found, err
}

// where returns the arguments that say where the entries in the cluster are.
func (o unitOptions) where() string {
	text := o.target + " --claim " + o.kube.Claim
	return text + flagText("context", o.kube.Context) + flagText("folder", o.kube.Folder) + flagText("namespace", o.kube.Namespace)
}

// made returns the arguments that say, besides where, what the entries in the cluster are made with.
func (o unitOptions) made() string {
	text := flagText("image", o.kube.Image) + flagText("secret", o.kube.Secret) + flagText("cpu", o.kube.CPU) + flagText("memory", o.kube.Memory)
	if o.tickOnly {
		text += " --tick-only"
	}
	return text
}

// flagText is a flag on a command line. No value of a cluster needs quotes.
func flagText(name, value string) string {
	if value == "" {
		return ""
	}
	return " --" + name + " " + value
}

// clusterFault gives errors of a cluster their status and what to do about them.
func (o unitOptions) clusterFault(err error) error {
	other := &otherDataDir{}
	switch {
	case errors.As(err, &other):
		return hint(&withStatus{err, statusConfig}, "give this one a folder of its own with --folder, or first run `ollim --data-dir '%s' schedule remove %s`, "+
			"which needs no such directory", other.dir, o.where())
	case errors.Is(err, installer.ErrUnfit):
		return &withStatus{err, statusConfig}
	case errors.Is(err, installer.ErrConflict):
		return hint(&withStatus{err, statusData}, "undo that change with kubectl edit, or delete the CronJob with kubectl and install it again")
	case errors.Is(err, installer.ErrKubectl) && errors.Is(err, process.ErrNotFound):
		return hint(&withStatus{err, statusUnavailable}, "install kubectl, or apply the output of ollim schedule print kubernetes where it is")
	case errors.Is(err, installer.ErrKubectl):
		return &withStatus{err, statusUnavailable}
	}
	return err
}
