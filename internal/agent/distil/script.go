package distil

import (
	"fmt"
	"strings"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/shell"
)

// head begins the second line of a gate, before the id.
const head = "# Written by ollim distil "

// Written returns the id of the distil that wrote a gate; "" if none did.
func Written(gate []byte) string {
	_, rest, _ := strings.Cut(string(gate), "\n")
	line, _, _ := strings.Cut(rest, "\n")
	id, found := strings.CutPrefix(line, head)
	if !found {
		return ""
	}
	return strings.TrimSpace(id)
}

// Script returns the gate with a deciding part.
func (p Plan) Script(filter string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "#!/bin/sh\n%s%s\n# for the job %s. It exits 1 if there is nothing to do. If an input cannot be fetched, the model runs.\n", head, p.ID, plaintext.Line(p.Job))
	for i, in := range p.Inputs {
		fmt.Fprintf(&b, "in%d=$(%s 2>&1) || exit 0\n", i+1, in.fetch())
	}
	b.WriteString(tail(len(p.Inputs), filter, "# What follows was written by "+plaintext.Line(p.Model)+" and decides by its arguments.\n"))
	return []byte(b.String())
}

// fetch returns the command that repeats the use of a tool.
func (in Input) fetch() string {
	switch in.Tool {
	case "Read":
		return "cat -- " + shell.Quote(in.What)
	case "WebFetch":
		return "curl -fsSL -- " + shell.Quote(in.What)
	}
	return "sh -c " + shell.Quote(in.What)
}

// deciding returns the deciding part for the judge, with n inputs in the files 1, 2 and so on of the working directory.
func deciding(n int, filter string) []byte {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "in%d=$(cat %d) || exit 2\n", i+1, i+1)
	}
	b.WriteString(tail(n, filter, ""))
	return []byte(b.String())
}

// tail is what the gate and the judge have in common: the inputs become the arguments, and the part decides. No file is near.
func tail(n int, filter, comment string) string {
	var b strings.Builder
	b.WriteString("set --")
	for i := range n {
		fmt.Fprintf(&b, ` "$in%d"`, i+1)
	}
	return b.String() + "\ncd /\n" + comment + strings.TrimRight(filter, "\n") + "\nexit 0\n"
}
