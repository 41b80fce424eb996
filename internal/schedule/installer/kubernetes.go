package installer

import (
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
	if err := h.checkPaths(unprintable); err != nil {
		return "", nil, err
	}
	if err := o.check(); err != nil {
		return "", nil, err
	}
	routines, err := h.routines(jobs)
	if err != nil {
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
	if o.Namespace != "" && !isClusterName(o.Namespace) {
		return fmt.Errorf("namespace %q: %w: not a valid name", o.Namespace, ErrUnfit)
	}
	if !isDottedName(o.Claim) {
		return fmt.Errorf("claim %q: %w: not a valid name", o.Claim, ErrUnfit)
	}
	if o.Secret != "" && !isDottedName(o.Secret) {
		return fmt.Errorf("secret %q: %w: not a valid name", o.Secret, ErrUnfit)
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

// quoteCommand is quoteYAML for a word of a command, in which $(NAME) would be replaced.
func quoteCommand(word string) string { return quoteYAML(strings.ReplaceAll(word, "$", "$$")) }
