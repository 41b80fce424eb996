package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// constructors returns the constructor of each command by the command's name.
func constructors() map[string]func(*Deps) *cobra.Command {
	return map[string]func(*Deps) *cobra.Command{
		"init":     newInit,
		"demo":     newDemo,
		"fire":     newFire,
		"run":      newRun,
		"routine":  newRoutine,
		"schedule": newSchedule,
		"update":   newUpdates,
		"check":    newCheck,
		"reminder": newReminder,
		"remind":   newRemind,
		"tick":     newTick,
		"approve":  newApprove,
		"ping":     newPing,
		"budget":   newBudget,
		"skill":    newSkill,
		"task":     newTask,
		"changed":  newChanged,
		"names":    newNames,
		"import":   newImport,
		"config":   newConfig,
		"session":  newSession,
		"chat":     newChat,
		"ask":      newAsk,
		"model":    newModel,
		"pause":    newPause,
		"resume":   newResume,
		"stop":     newStop,
		"cost":     newCost,
		"mcp":      newMCP,
		"hook":     newHook,
		"version":  newVersion,
	}
}

// commandsFor builds the command that a command line begins with. If it begins with anything else (a flag, help, an unknown
// word) it builds every command. Building them all takes a tenth of the time that a start takes.
func commandsFor(d *Deps, args []string) (list []*cobra.Command) {
	all := constructors()
	if len(args) > 0 {
		for _, name := range []string{args[0], strings.TrimSuffix(args[0], "s")} { // nouns may stand in the plural
			if build := all[name]; build != nil {
				return []*cobra.Command{build(d)}
			}
		}
	}
	for _, build := range all {
		list = append(list, build(d))
	}
	return list
}
