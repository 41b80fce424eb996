package prompt

import (
	"regexp"
	"slices"
	"strings"
)

// openingLine matches the first line of a prompt; its first group is the tag of a job.
const openingLine = `^(?:\[button\] )?(\[(?:routine|reminder|webhook)(?:-bg)?:[^\]\n]*\] )?(?:\[late: [^\]\n]*\] )?` +
	`\[\d{4}-\d\d-\d\d [A-Z][a-z]{2} \d\d:\d\d [AP]M [^\]\n]*\](?:\n\n|\n?$)`

// Said returns a function that reduces a prompt of Build to what the owner, a job or a program says in it: the prompt without its opening
// line, its preamble and its pending updates. Other texts stay unchanged.
func Said() func(prompt string) string {
	opening := regexp.MustCompile(openingLine) // not at every start of the program
	return func(prompt string) string {
		at := opening.FindStringSubmatchIndex(prompt)
		if at == nil {
			return prompt
		}
		ours := []string{
			noteLost, noteCompacted, noteNotCompacted,
			headerMain, headerFork, headerCutOff, headerCarried, "[system] A turn was cut off", // as it was called before
		}
		if at[2] >= 0 { // the owner's own words have no tag and no preamble
			ours = append(ours, "SESSION: Persistent", "CONTEXT: ", "OUTPUT: You run in the background", "UPDATES: ", "PINGS: ", "BUSY: The owner is",
				"CHAIN: This is check", "TOOL RESTRICTIONS: ", "FOLDERS: ", "REQUIRED SKILLS: ", "SUBAGENT: ")
		}
		rest := prompt[at[1]:]
		for slices.ContainsFunc(ours, func(begin string) bool { return strings.HasPrefix(rest, begin) }) {
			_, rest, _ = strings.Cut(rest, "\n\n")
		}
		return rest
	}
}
