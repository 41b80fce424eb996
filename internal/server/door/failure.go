package door

import (
	"errors"
	"fmt"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
)

// Which failures in a row of a program are in the log.
const (
	mostLoud = 3  // the first ones
	rarely   = 60 // then one of so many, which is about once an hour
)

// maxWhy is the most characters of the reason in a status or a finding.
const maxWhy = 300

// report says why a program has failed, how often in a row it has, and what to do. What the next one writes on standard error is in the
// log unless the same would be there too often.
func (s *server) report(err error, failed int) {
	why := s.o.Hide(err.Error())
	loud := func(n int) bool { return n <= mostLoud || n%rarely == 0 }
	if loud(failed) {
		s.warn(errors.New(why))
	}
	if failed == mostLoud {
		s.warn(fmt.Errorf("the door has failed %d times in a row: it is started again after at most a minute, and the log has every 60th failure; "+
			"correct doors.%s.command or the program, and try it with: ollim door test COMMAND", failed, s.o.Name))
	}
	s.o.Quiet.Store(!loud(failed + 1))
	why = plaintext.Short(plaintext.Line(why), maxWhy)
	if failed >= mostLoud {
		s.warn(s.noteFailure(why))
	}
	s.Notify("WATCHDOG=1", "STATUS=the door does not run, and is started again: "+why)
}

// failurePath is the file that says why the door that is served does not run.
func failurePath(dir paths.Dir, name string) string {
	return dir.State("door_" + name + "_failure.txt")
}

// noteFailure writes why the door does not run; "": it runs.
func (s *server) noteFailure(why string) error {
	h, err := s.o.Home()
	switch path := failurePath(h.Dir, s.o.Name); {
	case err != nil:
		return err
	case why == "":
		return store.Remove(path)
	default:
		return store.Write(path, []byte(why+"\n"), store.Buffered)
	}
}

// Failure returns why a door that is served does not run; "" if it runs.
func Failure(dir paths.Dir, name string) string {
	text, err := store.Read(failurePath(dir, name))
	if err != nil { // there is none
		return ""
	}
	return plaintext.Line(string(text))
}
