// Command serve is a Discord on 127.0.0.1 for a program that is tested by a shell script. Its first line is its address. Then it
// answers each line of standard input with one line:
//
//	say TEXT      the owner says something: the id of the message
//	wait N TEXT   waits until no message shows that the agent works and the bot's N-th message ends with TEXT: all that it has said
//	silence       from now on the gateway accepts everything and answers nothing: ok
//	sound         ends the silence: ok
//
// It ends with its input. What the bot did that the documentation forbids is its exit status.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/testkit"
	"github.com/ollim/ollim/internal/testkit/discordapi"
)

func main() {
	s := &testkit.Script{}
	d := discordapi.New(s, discordapi.Options{Heartbeat: time.Second})
	fmt.Println(d.URL())
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		verb, rest, _ := strings.Cut(in.Text(), " ")
		switch verb {
		case "say":
			fmt.Println(d.Say(discordapi.Post{Text: rest}))
		case "wait":
			number, text, _ := strings.Cut(rest, " ")
			n, _ := strconv.Atoi(number)
			d.Wait(rest, func() bool { said := settled(d); return n > 0 && len(said) >= n && strings.HasSuffix(said[n-1], text) })
			fmt.Printf("%q\n", settled(d))
		case "silence", "sound":
			d.Silence(verb == "silence")
			fmt.Println("ok")
		default:
			fmt.Printf("unknown: %q\n", verb)
		}
	}
	s.End()
}

// settled returns what the bot has said; nil while a message shows that the agent works.
func settled(d *discordapi.Server) []string {
	for _, m := range d.Messages(discordapi.DM) {
		if len(m.Reactions["👀"])+len(m.Reactions["⏳"]) > 0 {
			return nil
		}
	}
	return d.Said(discordapi.DM)
}
