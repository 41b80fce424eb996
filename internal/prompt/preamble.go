package prompt

import "github.com/ollim/ollim/internal/job"

// preamble is what a background run must know before its task, a section a paragraph.
func preamble(b Brief) []string {
	var sections []string
	if b.Job.Mode() == job.Persistent {
		sections = append(sections, "SESSION: Persistent — your context carries across fires.\n"+
			"You have a `compact_session` tool to compress context when it grows large.")
	}
	sections = append(sections, output(b.Job), reporting(b.Job))
	if b.Busy && b.Job.AllowPing {
		sections = append(sections, busy(b.Job))
	}
	return sections
}

func output(j job.Job) string {
	const discarded = "OUTPUT: You run in the background: your text output is discarded and nobody reads it.\n"
	if j.AllowPing {
		return discarded + "To reach the owner send `ping_user`, at most once in this run, and only for what they would regret missing."
	}
	return discarded + "Pings are disabled for this task."
}

func reporting(j job.Job) string {
	switch j.Update {
	case job.Always:
		return "UPDATES: `report_updates` is mandatory: call it once, with a short summary, before you end."
	case job.Freely:
		if j.AllowPing {
			return "UPDATES: `report_updates` is optional; use it if you pinged or found something the main session should know."
		}
		return "UPDATES: `report_updates` is optional; use it if you found something the main session should know."
	case job.Blocked:
		if j.AllowPing {
			return "UPDATES: The main session will not hear of this run. You can still ping the owner directly."
		}
		return "UPDATES: This run is silent: neither the main session nor the owner hears of it. Do the task and end."
	}
	if j.AllowPing {
		return "UPDATES: If you ping, `report_updates` is mandatory afterwards; otherwise call it only if the main session needs to know."
	}
	return "UPDATES: Call `report_updates` only if the main session needs to know something."
}

func busy(j job.Job) string {
	s := "BUSY: The owner is in mid-conversation. Do not ping unless `critical` is true"
	if j.Update == job.Blocked {
		return s + "."
	}
	return s + "; use `report_updates` instead."
}
