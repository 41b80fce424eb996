package installer

import (
	"fmt"
	"html"
	"strconv"
	"strings"

	"github.com/ollim/ollim/internal/state/job"
)

// maxMoments is how many moments a file for launchd may list, which knows no steps and no lists.
const maxMoments = 250

// Launchd is the files of a Mac: an agent for each routine, and one for the tick. The error, if any, is ErrUnfit.
func Launchd(h Host, jobs []job.Job) (files []File, left []Left, err error) {
	routines, err := h.routines(jobs, unprintable)
	if err != nil {
		return nil, nil, err
	}
	write := func(a agent) { files = append(files, File{a.Name + ".plist", a.text()}) }
	for _, j := range routines {
		fields, why := h.portable(j, "launchd")
		var times []moment
		if why == "" {
			times, why = moments(fields)
		}
		if why != "" {
			left = append(left, Left{j, why})
			continue
		}
		write(agent{lowerName(j.ID), h.fire(j.ID), times})
	}
	write(agent{tickName, h.tick(), nil})
	return files, left, nil
}

// agent is what one file is made from.
type agent struct {
	Name    string
	Command []string
	Times   []moment // none: each minute
}

func (a agent) text() string {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<!-- Written by ollim. -->
<plist version="1.0">
<dict>
	<key>Label</key>
	<string>` + html.EscapeString(a.Name) + `</string>
	<key>ProgramArguments</key>
	<array>
`)
	for _, word := range a.Command {
		b.WriteString("\t\t<string>" + html.EscapeString(word) + "</string>\n")
	}
	b.WriteString("\t</array>\n")
	if len(a.Times) == 0 {
		b.WriteString("\t<key>StartInterval</key>\n\t<integer>60</integer>\n\t<key>AbandonProcessGroup</key>\n\t<true/>\n")
	} else {
		b.WriteString("\t<key>StartCalendarInterval</key>\n\t<array>\n")
		for _, m := range a.Times {
			b.WriteString("\t\t<dict>" + m.text() + "</dict>\n")
		}
		b.WriteString("\t</array>\n")
	}
	b.WriteString("</dict>\n</plist>\n")
	return b.String()
}

// moment is the parts of a time that have to be so; the others may be anything.
type moment []part

func (m moment) text() string {
	var b strings.Builder
	for _, p := range m {
		fmt.Fprintf(&b, "<key>%s</key><integer>%d</integer>", p.Key, p.Value)
	}
	return b.String()
}

type part struct {
	Key   string
	Value int
}

// moments are the times of five portable fields; why is set when they are too many. Where either day field is enough, each
// has its own moments, because it is not written down what launchd makes of both in one.
func moments(fields string) (times []moment, why string) {
	five := strings.Fields(fields)
	minute, hour := values("Minute", five[0], 0, 59), values("Hour", five[1], 0, 23)
	day, month, weekday := values("Day", five[2], 1, 31), values("Month", five[3], 1, 12), values("Weekday", five[4], 0, 6)
	days := [][]part{day}
	switch {
	case day == nil:
		days = [][]part{weekday}
	case weekday != nil:
		days = [][]part{day, weekday}
	}
	count := 0
	for _, either := range days {
		count += max(1, len(month)) * max(1, len(either)) * max(1, len(hour)) * max(1, len(minute))
	}
	if count > maxMoments {
		return nil, fmt.Sprintf("launchd would need %d calendar entries", count)
	}
	for _, either := range days {
		each := []moment{nil}
		for _, field := range [][]part{month, either, hour, minute} {
			each = cross(each, field)
		}
		times = append(times, each...)
	}
	return times, ""
}

// cross is every moment with every one of the parts; no parts leave them as they are.
func cross(times []moment, parts []part) []moment {
	if parts == nil {
		return times
	}
	var all []moment
	for _, t := range times {
		for _, p := range parts {
			all = append(all, append(t[:len(t):len(t)], p))
		}
	}
	return all
}

// values are the values of a portable field: numbers, or * with or without a step, with commas; none if it is all of them.
func values(key, field string, low, high int) (parts []part) {
	for item := range strings.SplitSeq(field, ",") {
		step, isStep := strings.CutPrefix(item, "*/")
		n, err := strconv.Atoi(step)
		switch {
		case err != nil:
			return nil // a bare star
		case !isStep:
			parts = append(parts, part{key, n})
		default:
			for v := low; v <= high; v += n {
				parts = append(parts, part{key, v})
			}
		}
	}
	return parts
}
