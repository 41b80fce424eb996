package claudecode

import (
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/plaintext"
)

// judge returns how a process ended that ollim did not stop. It needs both the exit status and the result event: an interrupted turn
// exits 0, and an API error is reported as a success.
func (t *turn) judge(waitErr error, stderr string) error {
	var exit *exec.ExitError
	if waitErr != nil && !errors.As(waitErr, &exit) && !errors.Is(waitErr, exec.ErrWaitDelay) {
		return waitErr
	}
	e := t.ended.event
	if e == nil {
		if strings.Contains(stderr, "No conversation found") {
			return engine.ErrSessionUnknown
		}
		if exit == nil {
			return fmt.Errorf("the engine ended without a result (exit 0): %s",
				orElse(firstLine(stderr), "no output, as where it cannot write its temporary files"))
		}
		return fmt.Errorf("the engine ended without a result (%s): %s", exit.String(), orElse(firstLine(stderr), "no output"))
	}
	why := orElse(e.Result, strings.Join(e.Errors, "; "), firstLine(stderr), e.Subtype)
	switch {
	case strings.Contains(why, "No conversation found"):
		return engine.ErrSessionUnknown
	case e.Subtype == "error_max_budget_usd":
		return fmt.Errorf("%w: %s USD", engine.ErrMaxCost, engine.USD(t.result.Cost))
	case e.Subtype == "error_max_turns":
		// the command also counts the turn that the last answer asked for
		return fmt.Errorf("%w: %s", engine.ErrMaxTurns, plaintext.Count(max(1, e.Turns-1), "answer"))
	case !e.IsError && exit == nil && e.Subtype == "success":
		return nil
	case t.ended.apiError == "model_not_found",
		e.Status != nil && *e.Status == http.StatusForbidden && engine.RefusesModel(t.model, why):
		return fmt.Errorf("%w: %s", engine.ErrModel, firstLine(why))
	case t.ended.apiError == "authentication_failed" && e.Status != nil:
		return fmt.Errorf("%w: the key or login was refused (%d): %s", engine.ErrKey, *e.Status, firstLine(why))
	case strings.Contains(why, "Not logged in"):
		return fmt.Errorf("%w: %s", engine.ErrNoKey, firstLine(why))
	case t.ended.apiError == "authentication_failed", t.ended.apiError == "billing_error":
		return fmt.Errorf("%w: %s", engine.ErrKey, firstLine(why))
	case t.ended.apiError == "rate_limit", t.ended.apiError == "overloaded", strings.Contains(why, "verloaded"),
		e.Status != nil && (*e.Status == 429 || *e.Status == 529):
		return &engine.Overloaded{Reason: firstLine(why), After: t.after(e)}
	case cutOff(why):
		return fmt.Errorf("%w: %s", engine.ErrUnavailable, firstLine(why))
	}
	return errors.New(firstLine(why))
}

// cutOff reports whether the service could not be reached. From about version 2.1.260 on the command's message ends with the code.
func cutOff(why string) bool {
	return slices.ContainsFunc([]string{
		"Unable to connect", "Connection refused", "Connection dropped", "(ECONNREFUSED)", "(ECONNRESET)", "(ENETUNREACH)", "(EHOSTUNREACH)",
		"(ENOTFOUND)", "(EAI_AGAIN)", "(ETIMEDOUT)",
	}, func(words string) bool { return strings.Contains(why, words) })
}

// ownPause is the longest time that the command waits before try n+1, unless the service asks for more.
func ownPause(n int) time.Duration {
	return min(500*time.Millisecond<<max(0, min(n-1, 10)), 32*time.Second) * 5 / 4
}

// longestPause is the longest wait that the command accepts. If the service asks for more, it gives up at once.
const longestPause = time.Minute

// after returns the wait that the service asked for, as the gateway knows it, or as far as the command reports it.
func (t *turn) after(e *event) time.Duration {
	if g := t.cost.gate; g != nil && g.After() > 0 {
		return g.After()
	}
	if !t.outage.retried && e.Status != nil {
		return longestPause
	}
	return t.outage.wait
}

// firstLine returns the first line of a text, or the second if the first only announces it.
func firstLine(s string) string {
	line, rest, _ := strings.Cut(strings.TrimSpace(s), "\n")
	if line = strings.TrimRight(line, ". "); strings.HasSuffix(line, ":") && rest != "" {
		second, _, _ := strings.Cut(strings.TrimSpace(rest), "\n")
		line += " " + strings.TrimRight(second, ". ")
	}
	return line
}
