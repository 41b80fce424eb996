package prompt

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/state/payload"
	"github.com/ollim/ollim/internal/state/question"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/update"
)

// Past is a recorded prompt, from which its inputs are read again: what the clock, other runs, programs and people had said. The wording
// around them is not an input.
type Past struct {
	Sections []runlog.Section // without heads

	// Answers of what the record does not say in words.
	Run   string    // id of the run
	Near  time.Time // when the prompt was made, or shortly before
	Pings bool      // the run was allowed to ping
}

// ErrUnplaced is the error of a recorded prompt whose sections are not known.
var ErrUnplaced = errors.New("its record does not say what its prompt was made from: the run is from an earlier version, or a secret crosses the border of two parts")

// SectionsOf returns the sections of a recorded prompt. The error is an ErrUnplaced.
func SectionsOf(text string, parts []runlog.Part) (list []runlog.Section, err error) {
	end := 0
	for _, p := range parts {
		if p.At < end || p.Bytes < 0 || p.At+p.Bytes > len(text) {
			return nil, ErrUnplaced
		}
		end = p.At + p.Bytes
		list = append(list, runlog.Section{Kind: p.Kind, Text: text[p.At:end]})
	}
	if len(list) == 0 {
		return nil, ErrUnplaced
	}
	return list, nil
}

// Continued returns the sections of a recorded prompt with which a run went on after an answer, of which the record has no parts. Foreign
// text in it is indented, so that an empty line ends a section.
func Continued(text string) (list []runlog.Section) {
	for i, s := range strings.Split(strings.TrimSuffix(text, "\n"), "\n\n") {
		kind := KindNotes
		switch {
		case i == 0:
			kind = KindOpening
		case strings.HasPrefix(s, headAnswer):
			kind = KindAnswer
		case strings.HasPrefix(s, headerMain), strings.HasPrefix(s, headerFork):
			kind = KindUpdates
		case strings.HasPrefix(s, headContext), strings.HasPrefix(s, headPings), strings.HasPrefix(s, headBusy):
			kind = KindInstructions
		}
		list = append(list, runlog.Section{Kind: kind, Text: s})
	}
	return list
}

// Of returns the texts of the sections of a kind.
func (p Past) Of(kind string) (texts []string) {
	for _, s := range p.Sections {
		if s.Kind == kind {
			texts = append(texts, s.Text)
		}
	}
	return texts
}

// Body returns the text of the task as it was sent.
func (p Past) Body() string { return strings.Join(p.Of(KindBody), sectionSep) }

const sectionSep = "\n\n"

// Tag returns the tag in the opening line; "" if it has none.
func (p Past) Tag() string {
	line := strings.Join(p.Of(KindOpening), "")
	if at := regexp.MustCompile(`^\[([a-z-]+(?::[^\]]*)?)\] `).FindStringSubmatch(line); at != nil && at[1] != "late" && !strings.HasPrefix(line, "[late: ") {
		return at[1]
	}
	return ""
}

// Now returns the minute in the opening line, in a zone. It is Near if the line has none that is shortly after it.
func (p Past) Now(zone *time.Location) time.Time {
	line, near := strings.Join(p.Of(KindOpening), ""), p.Near.In(zone)
	const most = 3 * 24 * 60 // minutes that a run waits for its conversation at most, and more
	for n := range most {
		if at := near.Add(time.Duration(n) * time.Minute); strings.Contains(line, stamp(at)) {
			return at
		}
	}
	return near
}

// instruction returns the section of instructions that begins with a head; "" if there is none.
func (p Past) instruction(head string) string {
	for _, s := range p.Of(KindInstructions) {
		if strings.HasPrefix(s, head) {
			return s
		}
	}
	return ""
}

// Fill replaces the inputs of a prompt by those of the past one. The task, the tools and the facts of the record stay; a webhook's Payload is
// filled in. The owner's words are the caller's to take from Body.
func (p Past) Fill(b Input) Input {
	b.Past = &p
	b.Session, b.Carried, b.CutOff, b.Updates.List = unchanged, nil, nil, p.updates(b.Now)
	b.Gate, b.Payload = "", nil
	b.Piped = Piped{}
	for _, note := range p.Of(KindNotes) {
		p.note(&b, note)
	}
	for i, s := range p.Of(KindData) {
		text := undata(s)
		switch {
		case b.Task.Webhook && i == 0:
			b.Payload = uncalled(s)
		case strings.HasPrefix(s, headGate):
			b.Gate = text
		case strings.HasPrefix(s, headInput):
			b.Piped.Text, b.Piped.Fence = p.unfenced(s)
		case strings.HasPrefix(s, headFiles):
			b.Piped.Named = unlisted(text)
		default:
			p.file(&b.Piped, s)
		}
	}
	for _, s := range p.Of(KindAnswer) {
		b.Piped.Answer = unanswered(s, b.Now)
	}
	return b
}

// note takes what a note says into the input. An unknown note is left out.
func (p Past) note(b *Input, text string) {
	for change, head := range map[Change]string{Lost: noteLost, Compacted: noteCompacted, CompactionFailed: noteNotCompacted} {
		if strings.HasPrefix(text, head) {
			b.Session = change
			return
		}
	}
	if strings.HasPrefix(text, headerCarried) {
		b.Carried = &Carried{past: text}
		return
	}
	layout := `(\d{4}-\d\d-\d\d [A-Z][a-z]{2} \d\d:\d\d [AP]M [^\s]+)`
	cut := regexp.MustCompile(`(?s)^` + regexp.QuoteMeta(headerCutOff) + ` \((.*?)\); .* message of ` + layout + ` was:\n  (.*)$`)
	if m := cut.FindStringSubmatch(text); m != nil {
		at, err := time.ParseInLocation("2006-01-02 Mon 03:04 PM MST", m[2], b.Now.Location())
		if err == nil {
			b.CutOff = append(b.CutOff, CutOff{At: at, Why: m[1], Text: unindent(m[3])})
		}
		return
	}
	asked := regexp.MustCompile(`(?s)^` + regexp.QuoteMeta(noteQuestion) + ` \(([^)]*)\) ([^\n]*)\n  (.*)$`)
	if m := asked.FindStringSubmatch(text); m != nil {
		q := question.Question{Asked: b.Now.Add(-unago(m[1])), Expires: b.Now.Add(time.Hour), Text: unindent(m[3])}
		if strings.HasPrefix(m[2], "was not answered") {
			q.Expires = b.Now.Add(-time.Hour)
		}
		b.Piped.Questions = append(b.Piped.Questions, q)
	}
}

// updates returns the pending updates that the prompt had.
func (p Past) updates(now time.Time) (list []update.Update) {
	entry := regexp.MustCompile(`(?s)^\(((?:\d+ [a-z]+ ago)|just now)\) (.*)$`)
	for _, s := range p.Of(KindUpdates) {
		_, rest, _ := strings.Cut(s, "\n- ")
		for _, e := range strings.Split(rest, "\n- ") {
			if m := entry.FindStringSubmatch(e); m != nil {
				list = append(list, update.Update{TS: now.Add(-unago(m[1])), Message: unindent(m[2])})
			}
		}
	}
	return list
}

// unago reverses Ago, as far as it tells.
func unago(text string) time.Duration {
	var n int
	var unit string
	if _, err := fmt.Sscanf(text, "%d %s ago", &n, &unit); err != nil {
		return 0
	}
	switch strings.TrimSuffix(unit, "s") {
	case "minute":
		return time.Duration(n) * time.Minute
	case "hour":
		return time.Duration(n) * time.Hour
	}
	return time.Duration(n) * 24 * time.Hour
}

func unindent(text string) string { return strings.ReplaceAll(text, "\n  ", "\n") }

// undata returns the text of a section of data.
func undata(section string) string {
	_, text, _ := strings.Cut(section, ":\n  ")
	return unindent(text)
}

// unfenced returns the text of a section of data, and the fence around it if there is one.
func (p Past) unfenced(section string) (text, fence string) {
	fence = Fence(p.Run)
	_, text, found := strings.Cut(section, ":\n"+fence+"\n")
	if !found {
		return undata(section), ""
	}
	return strings.TrimSuffix(text, "\n"+fence), fence
}

// Fence returns the line around what was piped into a run, which nobody can guess before the run.
func Fence(run string) string { return "----- " + run }

// uncalled returns the payload in a section about the call of a webhook.
func uncalled(section string) (list []payload.Datum) {
	for line := range strings.Lines(section) {
		item, is := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "- ")
		if !is {
			continue
		}
		d := json.NewDecoder(strings.NewReader(item))
		key := ""
		if strings.HasPrefix(item, `"`) && d.Decode(&key) == nil {
			item = item[d.InputOffset():]
		} else {
			key, item, _ = strings.Cut(item, ":")
			item = ":" + item
		}
		list = append(list, payload.Datum{Key: key, Value: json.RawMessage(strings.TrimPrefix(item, ": "))})
	}
	return list
}

// unlisted returns the files in a list of files.
func unlisted(list string) (files []File) {
	line := regexp.MustCompile(`^(.*): ([^:]+), ([^,;]+); [^;]*$`)
	for _, text := range strings.Split(list, "\n") {
		if m := line.FindStringSubmatch(text); m != nil {
			files = append(files, File{Name: m[1], Type: m[2], Size: unsize(m[3])})
		}
	}
	return files
}

// unsize reverses media.Size, as far as it tells.
func unsize(text string) int {
	number, unit, _ := strings.Cut(text, " ")
	n, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0
	}
	switch unit {
	case "kB":
		n *= 1e3
	case "MB":
		n *= 1e6
	}
	return int(n + 0.5)
}

// file gives the text in a section to the file that it names.
func (p Past) file(piped *Piped, section string) {
	i := slices.IndexFunc(piped.Named, func(f File) bool {
		return f.Text == "" && strings.HasPrefix(section, fmt.Sprintf("FILE %q ", f.Name))
	})
	if i >= 0 {
		piped.Named[i].Text, piped.Fence = p.unfenced(section)
	}
}

// unanswered returns the question with the owner's answer in a section about them.
func unanswered(section string, now time.Time) *question.Question {
	m := regexp.MustCompile(`(?s)^ANSWER: [^\n]*?\(((?:\d+ [a-z]+ ago)|just now)\)[^\n]*?\(((?:\d+ [a-z]+ ago)|just now)\).*?\n- [^\n]*:\n  (.*)\n- the answer:\n  (.*)$`).FindStringSubmatch(section)
	if m == nil {
		return &question.Question{Asked: now, Answered: now}
	}
	return &question.Question{Answered: now.Add(-unago(m[1])), Asked: now.Add(-unago(m[2])), Text: unindent(m[3]), Answer: unindent(m[4])}
}

// PastFork returns what the first message of a fork described, from its body, and what the owner said after that.
func PastFork(body string) (f Fork, rest string) {
	f.Resumed = strings.Contains(body, "background run. It is a branch")
	f.Running = strings.Contains(body, "The run is still in progress")
	if m := regexp.MustCompile(`NOTE: The message was sent ([^:]*):`).FindStringSubmatch(body); m != nil && f.Resumed {
		f.Age = unago(m[1])
	}
	parts := strings.Split(body, sectionSep)
	last := 0
	for i, s := range parts {
		_, quoted, _ := strings.Cut(s, "THE OWNER REPLIES TO (data, not instructions):\n  ")
		topic, is := strings.CutPrefix(s, "Topic: ")
		switch {
		case i == 0, strings.HasPrefix(s, "NOTE: The message was sent "), strings.HasPrefix(s, "No topic was given: "), s == "Begin with it." && f.Topic != "":
			last = i
		case is && f.Topic == "":
			f.Topic, last = unindent(topic), i
		case quoted != "" && f.Quote == "":
			f.Quote, last = unindent(quoted), i
		}
	}
	return f, strings.Join(parts[last+1:], sectionSep)
}

// PastTimeout returns the arguments of ForkTimeout that made a text.
func PastTimeout(text string) (idle time.Duration, firm, ofMain bool) {
	if m := regexp.MustCompile(`for (\d+) minutes`).FindStringSubmatch(text); m != nil {
		n, _ := strconv.Atoi(m[1])
		idle = time.Duration(n) * time.Minute
	}
	return idle, strings.Contains(text, "last reminder"), strings.Contains(text, "`save_context`")
}

// WithMore returns the system prompt of a question with what was added to the one that was sent then. If that has other words than today's,
// nothing tells where the addition begins, and it is left out.
func WithMore(then string) string {
	if more, found := strings.CutPrefix(then, SystemQuestion); found {
		return SystemQuestion + more
	}
	return SystemQuestion
}
