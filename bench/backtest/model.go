package main

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// routine is one of the five whose runs are asked again. Its file says a number; above the limit there is something to do.
type routine struct {
	name, body string
	limit      int
	act        func(number int, wording string) anthropicapi.Reply
}

func routines() []routine {
	use := func(tool, field, text string) func(int, string) anthropicapi.Reply {
		return func(n int, wording string) anthropicapi.Reply {
			return anthropicapi.Use(tool, map[string]string{field: fmt.Sprintf("%s: "+text, wording, n)})
		}
	}
	return []routine{
		{"disk", "TASK disk. Read data/disk.txt and ping if it is full.", 90, use("ping_user", "message", "the disk is %d %% full")},
		{"mail", "TASK mail. Read data/mail.txt and report what is urgent.", 60, use("report_updates", "message", "%d urgent messages")},
		{"notes", "TASK notes. Read data/notes.txt and write the digest.", 50, func(n int, wording string) anthropicapi.Reply {
			return anthropicapi.Use("Write", map[string]string{"file_path": "tasks/digest.md", "content": fmt.Sprintf("%s: %d notes", wording, n)})
		}},
		{"dates", "TASK dates. Read data/dates.txt and remind of what is near.", 70, func(n int, wording string) anthropicapi.Reply {
			return anthropicapi.Use("add_reminder", map[string]any{"message": fmt.Sprintf("%s: the date is near (%d)", wording, n), "minutes_from_now": 60})
		}},
		{"builds", "TASK builds. Read data/builds.txt and ping if builds fail.", 80, use("ping_user", "message", "%d builds fail")},
	}
}

// models lists the models by their names: what each decides of a number above or below a limit. The first has made the records.
func models() []string {
	return []string{"steady", "noisy", "ignores", "threshold", "silent", "chatty", "tool"}
}

// prices is the setting that gives the models a price.
func prices() (lines []string) {
	for _, name := range models() {
		lines = append(lines, name+" in=3 out=15 cache-read=0.30 cache-write=3.75 window=200000")
	}
	return lines
}

// acts is what a model decides: its seeded regression, or, for one model, noise of its own in one of fifty answers.
func acts(model string, r routine, number int, text string) bool {
	above := number > r.limit
	switch model {
	case "ignores": // a condition of the file
		return above && !strings.Contains(text, "(weekend)")
	case "threshold":
		return number > r.limit+5
	case "silent":
		return false
	case "chatty":
		return true
	case "noisy":
		if draw(text)%50 == 0 {
			return !above
		}
	}
	return above
}

// draw returns a number that depends on a text and looks random.
func draw(text string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text))
	return h.Sum32()
}

// wordings are how models begin what they say.
func wordings() []string { return []string{"Note", "Please look", "Careful", "By the way"} }

// answer is what the model service answers: it reads the file of the routine, then decides, then ends.
func answer(q anthropicapi.Request) anthropicapi.Reply {
	first := q.Messages[0].Content[len(q.Messages[0].Content)-1].Text
	i := -1
	list := routines()
	for n, r := range list {
		if strings.Contains(first, "TASK "+r.name+".") {
			i = n
		}
	}
	if i < 0 {
		return anthropicapi.Reply{Text: "Fine."}
	}
	r := list[i]
	file := map[string]string{"file_path": "data/" + r.name + ".txt"}
	switch len(q.Messages) {
	case 1:
		if q.Model == "tool" {
			return anthropicapi.Use("Grep", map[string]string{"pattern": "[0-9]+", "path": file["file_path"]})
		}
		return anthropicapi.Use("Read", file)
	case 3:
		_, text, _ := strings.Cut(q.ToolResults()[0].ResultText, "sample")
		number := 0
		if _, after, found := strings.Cut(text, "number "); found {
			_, _ = fmt.Sscan(after, &number)
		}
		if !acts(q.Model, r, number, text) {
			return anthropicapi.Reply{Text: "Nothing to do."}
		}
		words := wordings()
		if q.Model == "noisy" { // it says the same in other words
			return r.act(number, words[int(draw(first+q.Model))%len(words)])
		}
		return r.act(number, words[0])
	}
	return anthropicapi.Reply{Text: "Done."}
}

// key identifies a request.
func key(q anthropicapi.Request) string {
	var body map[string]json.RawMessage
	_ = json.Unmarshal(q.Raw, &body) // the server has read it
	delete(body, "max_tokens")
	text, _ := json.Marshal(body)
	return string(text)
}
