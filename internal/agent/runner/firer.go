package runner

// Firer fires the jobs of a data directory.
type Firer struct {
	r *Runner

	Answers  Answers
	Entries  Entries
	Monitors Monitors
	Pauses   Pauses
	Reports  Reports
	Rules    Rules
	Slots    Slots
}

// NewFirer returns the Firer of a runner.
func NewFirer(r *Runner) Firer {
	return Firer{r, Answers{r}, Entries{r}, Monitors{r}, Pauses{r}, Reports{r}, Rules{r}, Slots{r}}
}

// Answers continues runs that asked the owner a question.
type Answers struct{ r *Runner }

// Entries starts runs for what waits in the inbox.
type Entries struct{ r *Runner }

// Monitors calls the monitors of jobs.
type Monitors struct{ r *Runner }

// Pauses says what a pause has held.
type Pauses struct{ r *Runner }

// Reports reports to the owner what keeps jobs from running.
type Reports struct{ r *Runner }

// Rules decides which jobs may run.
type Rules struct{ r *Runner }

// Slots decides which slots of routines are due, and what became of them.
type Slots struct{ r *Runner }
