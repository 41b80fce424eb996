package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/ollim/ollim/internal/agent/fire"
	"github.com/ollim/ollim/internal/agent/replay"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/turn"
	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/app/setup"
	"github.com/ollim/ollim/internal/app/trace"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/seal"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/platform/yamldoc"
	"github.com/ollim/ollim/internal/server/discord/api"
	"github.com/ollim/ollim/internal/server/discord/gateway"
	"github.com/ollim/ollim/internal/state/approval"
	"github.com/ollim/ollim/internal/state/channel"
	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/inbox"
	"github.com/ollim/ollim/internal/state/model"
	"github.com/ollim/ollim/internal/state/question"
	"github.com/ollim/ollim/internal/state/request"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
	"github.com/ollim/ollim/internal/state/transcript"
	"github.com/ollim/ollim/internal/state/update"
)

// status is an exit status. Those from 64 are of sysexits.h, 124 is that of timeout(1), and 128+N that of a shell for signal N.
type status int

const (
	statusOK          status = 0
	statusFailed      status = 1
	statusUsage       status = 64
	statusData        status = 65
	statusNoJob       status = 66
	statusUnavailable status = 69
	statusUnwritten   status = 74
	statusTempFail    status = 75
	statusRefused     status = 77
	statusConfig      status = 78
	statusTimeout     status = 124
	statusHangup      status = 128 + status(syscall.SIGHUP)
	statusInterrupted status = 128 + status(syscall.SIGINT)
	statusTerminated  status = 128 + status(syscall.SIGTERM)
	statusPipe        status = 128 + status(syscall.SIGPIPE)
)

// statusTable returns the section EXIT STATUS of the manual pages.
func statusTable() []meaning {
	return []meaning{
		{statusOK, "success, or nothing to do"},
		{statusFailed, "the run failed, or ended without a required report; several arguments failed differently"},
		{statusUsage, "usage error"},
		{statusData, "invalid file or input"},
		{statusNoJob, "no such job, run, message, skill, session, task or secret; no fork is open"},
		{statusUnavailable, "engine or service unavailable"},
		{statusUnwritten, "state or output could not be written"},
		{statusTempFail, "skipped, paused or busy; try again later"},
		{statusRefused, "refused"},
		{statusConfig, "missing or invalid configuration"},
		{statusTimeout, "time limit reached"},
		{statusHangup, "ended by SIGHUP"},
		{statusInterrupted, "ended by SIGINT"},
		{statusTerminated, "ended by SIGTERM"},
	}
}

type meaning struct {
	status status
	text   string
}

type usageError struct{ reason string }

func (e *usageError) Error() string { return e.reason }

func usage(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

func hint(err error, format string, args ...any) error { return app.Hint(err, format, args...) }

// withStatus is an error whose status does not follow from its type.
type withStatus struct {
	error
	status status
}

func (e *withStatus) Unwrap() error { return e.error }

// statusOf returns the exit status of an error. Nothing else turns errors into numbers.
func statusOf(err error) status {
	if err == nil {
		return statusOK
	}
	if errors.Is(err, context.Canceled) { // a signal ended the work, whatever it was
		return statusInterrupted
	}
	if given, ok := errors.AsType[*withStatus](err); ok {
		return given.status
	}
	for _, rule := range rules() {
		if rule.fits(err) {
			return rule.status
		}
	}
	return statusFailed
}

type rule struct {
	fits   func(error) bool
	status status
}

func rules() []rule {
	return []rule{
		{as[*usageError], statusUsage}, {as[*app.BadArgument], statusUsage},
		{as[*replay.Unfit], statusData}, {is(replay.ErrRunning), statusTempFail},
		{is(setup.ErrNotSent), statusUnavailable}, {is(api.ErrToken), statusConfig}, {is(api.ErrClosed), statusUnavailable}, {is(gateway.ErrIntents), statusConfig}, {is(gateway.ErrRefused), statusConfig},
		{is(engine.ErrAttachment), statusData}, {is(turn.ErrUnfit), statusData},
		{is(session.ErrForkOpen), statusTempFail}, {is(session.ErrMainMoved), statusTempFail}, {is(session.ErrResumed), statusTempFail},
		{is(session.ErrNoFork), statusNoJob}, {is(session.ErrNoTurn), statusNoJob},
		{is(inbox.ErrGone), statusNoJob}, {is(fire.ErrNotNext), statusTempFail}, {is(fire.ErrUnasked), statusTempFail}, {is(lock.ErrBusy), statusTempFail}, {is(runlog.ErrClosed), statusTempFail}, {as[*run.Later], statusTempFail},
		{is(seal.ErrUnsupported), statusConfig}, {is(run.ErrNoEngine), statusConfig}, {is(app.ErrNoConfig), statusConfig}, {is(app.ErrNoDirectory), statusConfig}, {is(engine.ErrForeignSession), statusConfig},
		{as[*config.Wrong], statusConfig}, {as[*app.ConfigFault], statusConfig},
		{is(app.ErrNotAllowed), statusRefused}, {is(run.ErrRefused), statusRefused}, {is(run.ErrPaused), statusTempFail},
		{as[*store.NotWritten], statusUnwritten}, {as[*lock.Failed], statusUnwritten}, {as[*unwritten], statusUnwritten},
		{is(request.ErrNone), statusNoJob}, {is(request.ErrDamaged), statusData}, {as[*plaintext.Unknown], statusNoJob},
		{is(app.ErrNoSession), statusNoJob}, {is(trace.ErrNothing), statusNoJob},
		{is(session.ErrID), statusUsage}, {is(channel.ErrName), statusUsage}, {is(transcript.ErrAmbiguous), statusUsage}, {is(transcript.ErrForeign), statusData},
		{as[*plaintext.Ambiguous], statusUsage}, {as[*config.UnknownKey], statusUsage},
		{as[yamldoc.Faults], statusData}, {as[*approval.Unfit], statusData}, {as[*yamldoc.Fault], statusData}, {is(update.ErrEmpty), statusData},
		{as[*model.BadLine], statusData},
		{is(errTooLong), statusData}, {as[*channel.Damaged], statusData}, {as[*question.Closed], statusData}, {is(fs.ErrExist), statusData}, {as[*json.SyntaxError], statusData},
		{is(engine.ErrUnavailable), statusUnavailable},
		{as[*fs.PathError], statusUnwritten}, // state that cannot even be read
	}
}

func is(target error) func(error) bool { return func(err error) bool { return errors.Is(err, target) } }

func as[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}

func statusOfRun(r runlog.Record) status {
	s, known := map[runlog.Outcome]status{
		runlog.OK: statusOK, runlog.Gated: statusOK, runlog.Waiting: statusOK, runlog.Skipped: statusTempFail, runlog.Paused: statusTempFail,
		runlog.Refused: statusRefused, runlog.Timeout: statusTimeout, runlog.Interrupted: statusInterrupted,
	}[r.Outcome]
	if !known {
		return statusFailed
	}
	return s
}

// reported is a failure whose line has been written already, or for which the caller wanted no line.
type reported struct{ status status }

func (e *reported) Error() string { return "reported" }

// conclude writes the line of an error, if it is not written yet, and returns the exit status.
func (d *deps) conclude(verb string, err error) int {
	if done, ok := errors.AsType[*reported](err); ok {
		return int(done.status)
	}
	if err != nil && !as[*ran](err) {
		other := asksWith(d, err)
		err = &usageError{strings.TrimSpace(strings.SplitN(err.Error(), "\n", 2)[0])} // cobra's own
		switch {
		case other != "":
			err = hint(err, "%s is a flag of ollim ask", other)
		case verb != "":
			err = hint(err, "ollim %s --help", verb)
		default:
			err = hint(err, "ollim help all")
		}
	}
	if err != nil {
		d.fail(verb, "", err)
	}
	return int(statusOf(err))
}

// asksWith returns the flag that a command does not have and ask does, "" if that is not the error.
func asksWith(d *deps, err error) string {
	if missing, ok := errors.AsType[*pflag.NotExistError](err); ok && newAsk(d).Flags().Lookup(missing.GetSpecifiedName()) != nil {
		return "--" + missing.GetSpecifiedName()
	}
	return ""
}

// ran marks an error of a command's work, to distinguish it from cobra's errors about the command line.
type ran struct{ error }

func (e *ran) Unwrap() error { return e.error }

// failures collects the errors of several arguments: one bad argument does not stop the rest.
type failures struct {
	d        *deps
	verb     string
	statuses []status
}

func (f *failures) add(object string, err error) {
	var done *reported
	switch {
	case err == nil:
	case errors.As(err, &done):
		f.statuses = append(f.statuses, done.status)
	default:
		f.d.fail(f.verb, object, err)
		f.statuses = append(f.statuses, statusOf(err))
	}
}

func (d *deps) each(verb string, names []string, do func(name string) error) error {
	f := failures{d: d, verb: verb}
	for _, name := range names {
		f.add(name, do(name))
	}
	return f.err()
}

// err is nil, or one reported error: the status that all failures share, else 1.
func (f *failures) err() error {
	switch kinds := slices.Compact(slices.Clone(f.statuses)); len(kinds) {
	case 0:
		return nil
	case 1:
		return &reported{kinds[0]}
	}
	return &reported{statusFailed}
}
