package job

import (
	"fmt"
	"os"
	"slices"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
)

// executable describes a file in gates/ that a job names and that cannot be started.
type executable struct {
	Key    string // key in the job file
	Path   string
	Reason string // says why, with the path of the file
}

// The keys of job files that name executables.
const (
	GateKey   = "gate"
	VerifyKey = "verify"
	AfterKey  = "after"
)

// Program is an executable in gates/ that a job names under Key.
type Program struct{ Key, Name string }

// Programs returns the executables that the job starts.
func (j Job) Programs() []Program {
	all := []Program{{GateKey, j.Gate}, {VerifyKey, j.Verify}, {AfterKey, j.After}}
	return slices.DeleteFunc(all, func(p Program) bool { return p.Name == "" })
}

// Unstartable returns the executables of the job that cannot be started.
func (j Job) Unstartable(home paths.Dir) (list []executable) {
	for _, p := range j.Programs() {
		key, name := p.Key, p.Name
		switch info, err := os.Stat(home.Gate(name)); {
		case err != nil:
			list = append(list, executable{key, home.Gate(name), fmt.Sprintf("gates/%s: %s", name, store.Cause(err))})
		case !info.Mode().IsRegular() || info.Mode()&0o111 == 0:
			list = append(list, executable{key, home.Gate(name), fmt.Sprintf("gates/%s is not executable: chmod +x", name)})
		}
	}
	return list
}
