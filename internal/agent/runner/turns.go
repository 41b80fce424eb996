package runner

// Turns takes turns that a person asked for.
type Turns struct {
	r *Runner

	Forks   Forks
	Queue   Queue
	Replies Replies
}

// NewTurns returns the Turns of a runner.
func NewTurns(r *Runner) Turns { return Turns{r, Forks{r}, Queue{r}, Replies{r}} }

// Forks opens interactive forks, takes turns in them, and ends them.
type Forks struct{ r *Runner }

// Queue answers the messages of the owner, one turn at a time.
type Queue struct{ r *Runner }

// Replies finds what the owner replies to.
type Replies struct{ r *Runner }
