package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// history is one of the five routines: what it reads at each fire, when it has something to say, and the part of the gate that a model
// writes for it.
type history struct {
	name, body string
	use        func(b *bench) anthropicapi.ToolUse
	loud       func(s state) bool
	report     bool // it reports instead of pinging
	filter     string
	// drift changes the form of what is read, so that the gate overlooks it
	drift func(s state) string
}

// state is what the world is like at a fire.
type state struct {
	n     int
	value int    // 0 to 99
	text  string // what the routine reads
}

func histories() []history {
	read := func(name string) func(*bench) anthropicapi.ToolUse {
		return func(*bench) anthropicapi.ToolUse {
			return anthropicapi.ToolUse{Name: "Read", Input: map[string]string{"file_path": "data/" + name + ".txt"}}
		}
	}
	return []history{
		{
			name: "disk", body: "TASK disk. Read data/disk.txt and ping if a disk is more than 85 % full.", use: read("disk"),
			loud: func(s state) bool { return s.value > 85 },
			filter: `big=$(printf '%s\n' "$1" | awk '/%/ { seen = 1; for (i = 1; i <= NF; i++) if ($i ~ /^[0-9]+%$/ && $i + 0 > 85) big = 1 } END { if (!seen) print "odd"; else print big + 0 }')
[ "$big" = 0 ] && exit 1`,
			drift: func(s state) string { return fmt.Sprintf("0%% errors\n/dev/vda1 used %d.0 percent", s.value) },
		},
		{
			name: "service", body: "TASK service. Look at the service and ping if it is not active.",
			use: func(*bench) anthropicapi.ToolUse {
				return anthropicapi.ToolUse{Name: "Bash", Input: map[string]string{"command": "cat data/service.txt"}}
			},
			loud:   func(s state) bool { return s.value > 85 },
			filter: `case "$1" in *"Active: active (running)"*) exit 1 ;; esac`,
			drift: func(s state) string {
				return fmt.Sprintf("Active: active (running)\nSub-state: %s", map[bool]string{true: "crash-loop", false: "fine"}[s.value > 85])
			},
		},
		{
			name: "releases", body: "TASK releases. Get the releases and report a critical one.", report: true,
			use: func(b *bench) anthropicapi.ToolUse {
				return anthropicapi.ToolUse{Name: "Bash", Input: map[string]string{"command": "curl -fsS " + b.pages + "/releases.json"}}
			},
			loud: func(s state) bool { return s.value > 80 },
			filter: `printf '%s\n' "$1" | grep -q '"severity": *"' || exit 0
printf '%s\n' "$1" | grep -q '"severity": *"critical"' || exit 1`,
			drift: func(s state) string {
				return fmt.Sprintf(`{"n": %d, "severity": "%s"}`, s.n, map[bool]string{true: "CRITICAL", false: "low"}[s.value > 80])
			},
		},
		{
			name: "queue", body: "TASK queue. Read data/queue.txt and ping if more than 70 jobs wait.", use: read("queue"),
			loud: func(s state) bool { return s.value > 70 },
			filter: `n=$(printf '%s\n' "$1" | awk -F: '/^waiting:/ { print $2 + 0 }')
[ -n "$n" ] && [ "$n" -le 70 ] && exit 1`,
			drift: func(s state) string {
				return fmt.Sprintf("waiting: 0\nwaiting (low priority): 0\nbacklog: %d", s.value)
			},
		},
		{
			name: "builds", body: "TASK builds. Look at the builds and ping if one fails.",
			use: func(*bench) anthropicapi.ToolUse {
				return anthropicapi.ToolUse{Name: "Bash", Input: map[string]string{"command": "cat data/builds.txt"}}
			},
			loud: func(s state) bool { return s.value > 75 },
			filter: `printf '%s\n' "$1" | grep -q '^build ' || exit 0
printf '%s\n' "$1" | grep -q FAILED || exit 1`,
			drift: func(s state) string {
				return fmt.Sprintf("build %d: %s", s.n, map[bool]string{true: "broken", false: "passed"}[s.value > 75])
			},
		},
	}
}

// seen returns what the routine reads in a state.
func (h history) seen(s state) string {
	loud := h.loud(s)
	switch h.name {
	case "disk":
		return fmt.Sprintf("Filesystem Use%%\n/dev/vda1 %d%%\n/dev/vdb1 12%%", s.value)
	case "service":
		return fmt.Sprintf("● web.service\n   Active: %s\n   Main PID: %d", map[bool]string{true: "failed (Result: exit-code)", false: "active (running)"}[loud], 4000+s.n)
	case "releases":
		return fmt.Sprintf(`{"n": %d, "name": "v1.%d", "severity": "%s"}`, s.n, s.n, map[bool]string{true: "critical", false: "low"}[loud])
	case "queue":
		return fmt.Sprintf("sample: %d\nwaiting: %d", s.n, s.value)
	}
	text := fmt.Sprintf("build %d: passed\n", s.n)
	if loud {
		text += fmt.Sprintf("build %d: FAILED in step %d\n", s.n+1, s.value)
	}
	return text
}

// answer is what the model service answers.
func (b *bench) answer(q anthropicapi.Request) anthropicapi.Reply {
	usage := anthropicapi.Usage{In: 3000, Out: 100}
	text := string(q.Raw)
	for _, h := range b.list {
		writes := strings.Contains(q.System, "deciding part of a gate")
		if writes && !strings.Contains(text, "TASK "+h.name+".") || !writes && h.name != b.now.name { // other routines are in the prompt, too
			continue
		}
		if writes {
			part := h.filter
			if b.careless != "" {
				part = b.careless
			}
			return anthropicapi.Reply{Text: "```sh\n" + part + "\n```", Usage: anthropicapi.Usage{In: 20_000, Out: 300}}
		}
		switch len(q.Messages) {
		case 1:
			return anthropicapi.Reply{ToolUses: []anthropicapi.ToolUse{h.use(b)}, Usage: usage}
		case 3:
			if b.now.loud {
				tool := "ping_user"
				if h.report {
					tool = "report_updates"
				}
				r := anthropicapi.Use(tool, map[string]string{"message": "look at " + h.name})
				r.Usage = usage
				return r
			}
		}
		return anthropicapi.Reply{Text: "Done.", Usage: usage}
	}
	return anthropicapi.Reply{Text: "Fine.", Usage: usage}
}

// verdict is what ollim distil says.
type verdict struct {
	ID                         string
	Accepted                   bool
	Why                        []string
	Quiet, Skipped, Loud, Lost int
	Monthly, Cost              float64
}

func parse(out []byte) (v verdict, err error) { return v, json.Unmarshal(out, &v) }
