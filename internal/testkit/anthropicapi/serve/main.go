// Command serve is a server of Anthropic's API on 127.0.0.1 for a program that is tested by a shell script. Its first line is its
// address. Each line of standard input is a rule, a JSON object: has (texts that a request must have), and text, the answer, or tool
// and input, a call of a tool. The first rule that fits answers. It ends with its input, and its status is 1 if a request was one
// that the service refuses.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/ollim/ollim/internal/testkit"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

type rule struct {
	Has   []string       `json:"has"`
	Text  string         `json:"text"`
	Tool  string         `json:"tool"`
	Input map[string]any `json:"input"`
}

func (r rule) fits(q anthropicapi.Request) bool {
	return !slices.ContainsFunc(r.Has, func(text string) bool { return !q.Has(text) })
}

func main() {
	s := &testkit.Script{}
	var mu sync.Mutex
	var rules []rule
	api := anthropicapi.New(s)
	api.Handle(func(q anthropicapi.Request) anthropicapi.Reply {
		mu.Lock()
		defer mu.Unlock()
		i := slices.IndexFunc(rules, func(r rule) bool { return r.fits(q) })
		switch {
		case i < 0:
			return anthropicapi.Reply{Text: "ok"}
		case rules[i].Tool != "":
			return anthropicapi.Use(rules[i].Tool, rules[i].Input)
		}
		return anthropicapi.Reply{Text: rules[i].Text}
	})
	fmt.Println(api.URL())
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var r rule
		if err := json.Unmarshal(in.Bytes(), &r); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		mu.Lock()
		rules = append(rules, r)
		mu.Unlock()
	}
	s.End()
}
