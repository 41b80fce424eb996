package job

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/yamldoc"
)

// refuseTwins leaves an id that several jobs have to one of them, and turns the others into faults. It ignores case, because some file
// systems ignore it in names.
//
// A reminder that another process claims during the reading can be read twice, before and after its file was moved.
func (s *Set) refuseTwins() {
	shared := s.shared()
	s.Jobs = slices.DeleteFunc(s.Jobs, func(j Job) bool { return len(shared[strings.ToLower(j.ID)]) > 0 && gone(j.Path) })
	shared = s.shared()
	keepers := map[string]string{}
	for id, twins := range shared {
		keepers[id] = s.from.keeper(twins)
	}
	s.Jobs = slices.DeleteFunc(s.Jobs, func(j Job) bool {
		id := strings.ToLower(j.ID)
		twins, keeper := shared[id], keepers[id]
		if len(twins) == 0 || j.Path == keeper {
			return false
		}
		other := twins[slices.IndexFunc(twins, func(t Job) bool { return t.Path != j.Path && (keeper == "" || t.Path == keeper) })]
		fault := j.page.Doc.Fault("id", s.from.usedTwice(j, other, keeper != ""))
		s.Faults = append(s.Faults, fault)
		s.twins = append(s.twins, twin{j.ID, keeper != "", fault})
		return true
	})
}

// readShared reads the files of an outline whose jobs share an id, because what the owner approved decides who keeps it.
func (s *Set) readShared(shared map[string][]Job) {
	jobs := s.Jobs[:0]
	for _, j := range s.Jobs {
		if len(shared[strings.ToLower(j.ID)]) > 0 {
			whole, err := s.Whole(j)
			var faults yamldoc.Faults
			if errors.As(err, &faults) {
				s.Faults = append(s.Faults, faults...)
				continue
			}
			j = whole
		}
		jobs = append(jobs, j)
	}
	s.Jobs = jobs
}

// twin is a job that does not get its id, because another file has the same.
type twin struct {
	id    string
	taken bool // the other job keeps the id
	fault *yamldoc.Fault
}

// usedTwice says why a job may not have its id. kept says whether the other job keeps it.
func (l Library) usedTwice(j, other Job, kept bool) string {
	file := l.Home.Relative(other.Path)
	switch {
	case kept && other.ID == j.ID:
		return fmt.Sprintf("%q is used twice: %s keeps it", j.ID, file)
	case kept:
		return fmt.Sprintf("%q differs only in case from %q, which %s keeps", j.ID, other.ID, file)
	case other.ID == j.ID:
		return fmt.Sprintf("%q is used twice, also in %s", j.ID, file)
	}
	return fmt.Sprintf("%q differs from %q in %s only in case", j.ID, other.ID, file)
}

// keeper returns the path of the job that keeps an id which several have: the approved one, or else the one whose file is older. It
// returns "" if neither decides.
func (l Library) keeper(twins []Job) (path string) {
	if l.Approved != nil {
		if approved := slices.DeleteFunc(slices.Clone(twins), func(j Job) bool { return !l.Approved(j) }); len(approved) > 0 {
			twins = approved
		}
	}
	var oldest time.Time
	for _, j := range twins {
		info, err := os.Stat(j.Path)
		switch {
		case err != nil:
		case oldest.IsZero() || info.ModTime().Before(oldest):
			path, oldest = j.Path, info.ModTime()
		case info.ModTime().Equal(oldest):
			path = ""
		}
	}
	return path
}

// shared returns the jobs that share an id with others, by the id in lower case.
func (s *Set) shared() map[string][]Job {
	count := make(map[string]int, len(s.Jobs))
	for i := range s.Jobs { // use indexes: copying each job takes longer than all else here
		count[strings.ToLower(s.Jobs[i].ID)]++
	}
	shared := map[string][]Job{}
	if len(count) == len(s.Jobs) {
		return shared
	}
	for _, j := range s.Jobs {
		if id := strings.ToLower(j.ID); count[id] > 1 {
			shared[id] = append(shared[id], j)
		}
	}
	return shared
}
