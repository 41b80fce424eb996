package cli

import (
	"bufio"
	"fmt"
	"strconv"
	"strings"

	"github.com/ollim/ollim/internal/state/transcript"
)

const picks = 20

// pickSession lets the owner choose one of the latest sessions of a directory.
func (d *deps) pickSession(in *bufio.Reader, list []transcript.Summary) (transcript.Transcript, error) {
	var none transcript.Transcript
	list = list[:min(len(list), picks)]
	for i, s := range list {
		at := s.Modified.Format("2006-01-02 15:04")
		if isTerminal(d.Stderr) {
			at = fmt.Sprintf("%-16s", relative(d.Now(), s.Modified, at))
		}
		_, _ = fmt.Fprintf(d.Stderr, "%2d  %s  %s  %s\n", i+1, at, s.ID, printable(s.First))
	}
	_, _ = fmt.Fprint(d.Stderr, "which? ")
	line, err := in.ReadString('\n')
	if err != nil {
		return none, usage("no choice was made")
	}
	n, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || n < 1 || n > len(list) {
		return none, usage("%q is not in the list: want a number from 1 to %d", strings.TrimSpace(line), len(list))
	}
	return list[n-1].Transcript, nil
}

// readQuestion reads one line from the terminal, for a session that was chosen without words.
func (d *deps) readQuestion(in *bufio.Reader) (string, error) {
	_, _ = fmt.Fprint(d.Stderr, "> ")
	line, _ := in.ReadString('\n') // what was typed before the end counts
	if line = strings.TrimSpace(line); line == "" {
		return "", usage("nothing to ask")
	}
	return line, nil
}
