package outbox

import "strings"

// Button is something that the owner can press below a message, where the messenger has buttons.
type Button struct {
	Label string `json:"label"`           // at most 80 characters
	ID    string `json:"id"`              // from ButtonID; it alone says what the button does, even after a restart
	Style string `json:"style,omitempty"` // primary, success or danger; "" is plain

	Disabled bool `json:"-"` // it cannot be pressed any more
}

// The verbs of buttons.
const (
	ButtonAnswer   = "answer"    // RUN:N, the n-th choice of the question of a run
	ButtonAgent    = "agent"     // ID of a stored prompt
	ButtonTaskDone = "task_done" // ID of a task
	ButtonTaskDel  = "task_del"  // ID of a task
)

// ButtonID returns the id of a button with a verb and its arguments.
func ButtonID(verb string, args ...string) string {
	return strings.Join(append([]string{"ollim", verb}, args...), ":")
}
