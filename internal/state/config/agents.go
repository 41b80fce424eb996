package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/yamldoc"
)

// Agent is a program that speaks the Agent Client Protocol, which is the engine acp:NAME. Its keys are lines engine.KEY=… of the secrets file.
type Agent struct {
	Name    string
	Command []string // argv; empty: that of the profile, with the program in PATH
	Env     []string // KEY=value, added to the environment of engines
	Profile string   // one of AgentProfiles, or NoProfile; "": the profile named like the agent, else NoProfile
	Trusted string   // on: without a profile it runs also where it is not sealed, or may connect to any address; or Off
}

// Agents are the configured agents, sorted by name.
type Agents []Agent

// Find returns the agent of a name. One that is named like a profile needs no settings.
func (a Agents) Find(name string) (Agent, bool) {
	i := slices.IndexFunc(a, func(agent Agent) bool { return agent.Name == name })
	if i < 0 {
		return Agent{Name: name}, slices.Contains(AgentProfiles(), name)
	}
	return a[i], true
}

// AgentProfiles are the agents that ollim was tested with, sorted.
func AgentProfiles() []string { return []string{"codex", "gemini", "opencode"} }

// NoProfile is the profile of an agent that ollim was not tested with.
const NoProfile = "none"

// ProfileName returns the name of the agent's profile, or NoProfile.
func (a Agent) ProfileName() string {
	switch {
	case a.Profile != "":
		return a.Profile
	case slices.Contains(AgentProfiles(), a.Name):
		return a.Name
	}
	return NoProfile
}

const agentSection = "acp"

// agentEngine returns the name of the agent of an engine acp:NAME.
func agentEngine(engine string) (name string, is bool) {
	return strings.CutPrefix(engine, agentSection+":")
}

// checkAgentName returns an error if a text is not the name of an agent.
func checkAgentName(name string) error {
	if name == "" || len(name) > serverNames || !plaintext.IsWord(name, "-") || strings.ToLower(name) != name || strings.Trim(name, "-") != name {
		return fmt.Errorf("%q is not the name of an agent: want lower-case letters, digits and hyphens, at most %d", name, serverNames)
	}
	return nil
}

func (a *Agent) keys() []key {
	return []key{
		{name: "command", at: &a.Command, check: checkWord},
		{name: "env", at: &a.Env, check: func(s string) error { return errors.Join(checkVariable(s), checkNUL(s)) }},
		{name: "profile", at: &a.Profile, check: oneOf(append(AgentProfiles(), NoProfile)...)},
		{name: "trusted", at: &a.Trusted, check: oneOf(on, Off)},
	}
}

// fault returns what is wrong with the settings of an agent in combination; "" if nothing is.
func (a *Agent) fault() string {
	if len(a.Command) == 0 && a.ProfileName() == NoProfile {
		return "want a command, or one of the profiles " + strings.Join(AgentProfiles(), ", ")
	}
	return ""
}

// IsTrusted reports whether the owner lets an agent without a profile run where the seal does not hold it.
func (a Agent) IsTrusted() bool { return a.Trusted == on }

// readAgents returns the field that reads the section acp of a file.
func readAgents(doc *yamldoc.Doc, into *Agents) yamldoc.Field {
	return readNamed(doc, agentSection, checkAgentName, func(name string, v yamldoc.Value) error {
		a := Agent{Name: name, Trusted: Off}
		err := readEntry(&a, v)
		*into = append(*into, a)
		slices.SortFunc(*into, func(a, b Agent) int { return strings.Compare(a.Name, b.Name) })
		return err
	})
}

// agentTemplate is the section acp of a new config.yaml.
const agentTemplate = `
acp:
  # Other agents, as engine: acp:NAME; ollim help engines shows what each can promise. The program, with its absolute path, and
  # its arguments; the key is stored by ollim secret set engine.KEY.
  # opencode: {command: [/usr/local/bin/opencode, acp]}
`
