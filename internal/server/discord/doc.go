// Package discord is the bot in Discord: what the owner says there becomes turns of the agent, and the answers are shown while they
// arrive.
package discord
