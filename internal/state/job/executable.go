package job

import (
	"fmt"
	"os"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
)

// executable is a file in gates/ that a job starts and that cannot be started.
type executable struct {
	Key    string // of the job file
	Path   string
	Reason string // names the file
}

// Unstartable returns the executables of the job that cannot be started.
func (j Job) Unstartable(home paths.Dir) (list []executable) {
	for _, field := range [][2]string{{"gate", j.Gate}, {"verify", j.Verify}, {"after", j.After}} {
		key, name := field[0], field[1]
		if name == "" {
			continue
		}
		switch info, err := os.Stat(home.Gate(name)); {
		case err != nil:
			list = append(list, executable{key, home.Gate(name), fmt.Sprintf("gates/%s: %s", name, store.Cause(err))})
		case !info.Mode().IsRegular() || info.Mode()&0o111 == 0:
			list = append(list, executable{key, home.Gate(name), fmt.Sprintf("gates/%s is not executable: chmod +x", name)})
		}
	}
	return list
}
