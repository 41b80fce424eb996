// Package paths defines where what several packages use in the data directory is. Names that one package uses stand there, below
// Path or State. No function here accesses the disk.
package paths

import (
	"path/filepath"
	"strings"
)

// Dir is the absolute path of a data directory, by default ~/.ollim-bot.
type Dir string

// Path joins elements below the data directory.
func (d Dir) Path(elem ...string) string {
	return filepath.Join(append([]string{string(d)}, elem...)...)
}

// Relative returns a path relative to the data directory if it is in it, else the path as it is.
func (d Dir) Relative(path string) string {
	if rel, err := filepath.Rel(string(d), path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// State joins elements below state/, which is ollim's own.
func (d Dir) State(elem ...string) string {
	return d.Path(append([]string{"state"}, elem...)...)
}

// Folders lists the directories of a new data directory, parents first, absolute.
func (d Dir) Folders() []string {
	return []string{
		d.Path(), d.Path("routines"), d.Path("reminders"), d.Webhooks(), d.Path("skills"), d.Path("gates"),
		d.Path("agents"), d.Path("tasks"), d.Sessions(), d.State(), d.Locks(), d.Runs(), d.Outbox(),
		d.State("routine_sessions"),
	}
}

// StateFolders lists the directories of state/ that ollim makes when it first needs them, besides those of Folders, absolute.
func (d Dir) StateFolders() []string {
	return []string{
		d.Slots(), d.Ledger(), d.Questions(), d.Queue(), d.Inbox(), d.Firing(), d.Late(), d.Channels(), d.Objects(),
	}
}

// Config is the settings file.
func (d Dir) Config() string { return d.Path("config.yaml") }

// Routines is the directory of routine files.
func (d Dir) Routines() string { return d.Path("routines") }

// Webhooks is the directory of webhook files.
func (d Dir) Webhooks() string { return d.Path("webhooks") }

// ChatHistory is the file of what was typed at the prompt of chat.
func (d Dir) ChatHistory() string { return d.State("chat_history.jsonl") }

// Sessions is the directory of transcripts.
func (d Dir) Sessions() string { return d.Path("sessions") }

// Locks is the directory of flock files; the holder of a deleted job's lock deletes its file.
func (d Dir) Locks() string { return d.State("locks") }

// Lock is the flock file of one name, such as "ledger" or "job-a1b2c3d4".
func (d Dir) Lock(name string) string { return filepath.Join(d.Locks(), name+".lock") }

// JobLock is the flock that a job's run holds from before its record exists to its end.
func (d Dir) JobLock(id string) string { return d.Lock("job-" + id) }

// MainKey is the key of the main conversation, and RoutinePrefix begins that of a persistent routine, before its id.
const (
	MainKey       = "main"
	RoutinePrefix = "routine-"
)

// ConversationLock is the flock that a process holds while it writes the session of a conversation, by the conversation's key.
func (d Dir) ConversationLock(key string) string { return d.Lock("session-" + key) }

// SessionLock is the ConversationLock of a routine's session, or of main's for "".
func (d Dir) SessionLock(routine string) string {
	if routine == "" {
		return d.ConversationLock(MainKey)
	}
	return d.ConversationLock(RoutinePrefix + routine)
}

// Runs is the directory of run records, which lie in directories by year, month and day in UTC.
func (d Dir) Runs() string { return d.State("runs") }

// Run joins elements below one run's record. The id begins with its day.
func (d Dir) Run(id string, elem ...string) string {
	day := ""
	if len(id) > len("20261123") && strings.Trim(id[:8], "0123456789") == "" {
		day = filepath.Join(id[:4], id[4:6], id[6:8])
	}
	return filepath.Join(append([]string{d.Runs(), day, id}, elem...)...)
}

// RunLock is the flock that the process of a run holds, from before the record exists until the run ends.
func (d Dir) RunLock(id string) string { return d.Run(id, "running") }

// Canary is the file that no sealed program may open: each start of one tries it.
func (d Dir) Canary() string { return d.State("canary") }

// Requests is what a run has sent to models, one line for each request.
func (d Dir) Requests(id string) string { return d.Run(id, "requests.jsonl") }

// Answers is what models have answered to a run, one line for each answer.
func (d Dir) Answers(id string) string { return d.Run(id, "answers.jsonl") }

// PendingUpdates is the array of updates that the next main turn pops.
func (d Dir) PendingUpdates() string { return d.State("pending_updates.json") }

// MainSession holds the id of the main session as a bare string.
func (d Dir) MainSession() string { return d.State("sessions.json") }

// SessionHistory is the log of session lifecycle events.
func (d Dir) SessionHistory() string { return d.State("session_history.jsonl") }

// RoutineSession holds the session id of one persistent routine as a bare string.
func (d Dir) RoutineSession(id string) string { return d.State("routine_sessions", id) }

// Carry records which session the conversation of a key goes on from, until its agent has answered.
func (d Dir) Carry(key string) string { return d.State("carried", key+".json") }

// Channels is the directory of the sessions of channels.
func (d Dir) Channels() string { return d.State("channels") }

// Channel is the file of one session of a channel, by its name such as telegram_987.
func (d Dir) Channel(name string) string { return filepath.Join(d.Channels(), name+".json") }

// Outbox is the directory of messages that have not reached the owner yet.
func (d Dir) Outbox() string { return d.State("outbox") }

// Queue is the directory of the owner's messages that wait for their turn.
func (d Dir) Queue() string { return d.State("queue") }

// Inbox is the directory of accepted webhook events that have not run, one directory for each hook.
func (d Dir) Inbox() string { return d.State("inbox") }

// RunEntry is the webhook event that a run was given.
func (d Dir) RunEntry(run string) string { return d.Run(run, "webhook.json") }

// Reminders is the directory of reminder files.
func (d Dir) Reminders() string { return d.Path("reminders") }

// Firing is the directory of reminders whose run has begun: <id>.md, and <id>.retry.md at the second attempt.
func (d Dir) Firing() string { return d.State("firing") }

// Questions is the directory of questions that wait for the owner's answer.
func (d Dir) Questions() string { return d.State("questions") }

// Question is the question of one run.
func (d Dir) Question(run string) string { return filepath.Join(d.Questions(), run+".json") }

// Late is the directory of the reminders that were reported and not run.
func (d Dir) Late() string { return d.State("late") }

// Skill is the file of one skill.
func (d Dir) Skill(name string) string { return filepath.Join(d.Skills(), name, "SKILL.md") }

// Skills is the directory of skills, one directory each.
func (d Dir) Skills() string { return d.Path("skills") }

// Gate is one of the owner's executables.
func (d Dir) Gate(name string) string { return d.Path("gates", name) }

// Agent is the file of one subagent.
func (d Dir) Agent(name string) string { return d.Path("agents", name+".md") }

// Tasks is the owner's list of tasks.
func (d Dir) Tasks() string { return d.Path("tasks", "todo.txt") }

// ToolPolicy is the owner's file of tools for all runs.
func (d Dir) ToolPolicy() string { return d.Path("tool-policy.yaml") }

// PingBudget is the token bucket of pings.
func (d Dir) PingBudget() string { return d.State("ping_budget.json") }

// Approvals is the file of the owner's approvals.
func (d Dir) Approvals() string { return d.State("approvals.json") }

// Fork is the file of the interactive fork that is open.
func (d Dir) Fork() string { return d.State("fork.json") }

// Slots is the ledger of scheduled instants, one directory for each job.
func (d Dir) Slots() string { return d.State("slots") }

// Ledger is the directory of facts, one file for each day, or a file in it.
func (d Dir) Ledger(elem ...string) string { return d.State(append([]string{"ledger"}, elem...)...) }

// LedgerLock is the flock of every change of facts.
func (d Dir) LedgerLock() string { return d.Lock("ledger") }

// Schedules is the history of each routine's schedule.
func (d Dir) Schedules() string { return d.State("schedules.jsonl") }

// Clusters is the file with the clusters in which schedule install has installed CronJobs.
func (d Dir) Clusters() string { return d.State("clusters.json") }

// Backtest returns the directory of a backtest, or a file in it.
func (d Dir) Backtest(id string, elem ...string) string {
	return d.State(append([]string{"backtests", id}, elem...)...)
}

// Distil returns the directory of a gate that a model has written, or a file in it.
func (d Dir) Distil(id string, elem ...string) string {
	return d.State(append([]string{"distils", id}, elem...)...)
}

// Objects is the directory of what models saw, by the hash of its content: images, documents, the parts of requests.
func (d Dir) Objects() string { return d.State("objects") }

// ClaudeContract is what was found out about the installed claude command. It is a cache.
func (d Dir) ClaudeContract() string { return d.State("cache", "claude.json") }

// ModelLists is what the model services listed when they were last asked. It is a cache.
func (d Dir) ModelLists() string { return d.State("cache", "models.json") }

// JobIndex is what earlier processes learnt of the job files. It is a cache.
func (d Dir) JobIndex() string { return d.State("cache", "jobs") }

// ClaudeSessions is the directory of the sessions that sealed claude commands began, one directory for each.
func (d Dir) ClaudeSessions() string { return d.Path("sessions", "claude") }

// ACPSessions is the directory of the sessions of agents that speak ACP, one directory for each.
func (d Dir) ACPSessions() string { return d.Path("sessions", "acp") }

// ScriptSessions is the directory of the script engine's sessions.
func (d Dir) ScriptSessions() string { return d.Path("sessions", "script") }
