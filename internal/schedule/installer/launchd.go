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
	left, err = h.write(jobs, unprintable, func(j job.Job) (why string) {
		fields, why := h.portable(j, "launchd")
		var times []string
		if why == "" {
			times, why = moments(fields)
		}
		if why == "" {
			name := lowerName(j.ID)
			files = append(files, File{name + ".plist", plist(name, h.fire(j.ID), times)})
		}
		return why
	})
	if err != nil {
		return nil, nil, err
	}
	return append(files, File{tickName + ".plist", plist(tickName, h.tick(), nil)}), left, nil
}

// plist is the file of an agent that runs a command at the times, each of which is the content of a dict; none is each minute.
func plist(name string, command, times []string) string {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<!-- Written by ollim. -->
<plist version="1.0">
<dict>
	<key>Label</key>
	<string>` + html.EscapeString(name) + `</string>
	<key>ProgramArguments</key>
	<array>
`)
	for _, word := range command {
		b.WriteString("\t\t<string>" + html.EscapeString(word) + "</string>\n")
	}
	b.WriteString("\t</array>\n")
	if len(times) == 0 {
		b.WriteString("\t<key>StartInterval</key>\n\t<integer>60</integer>\n\t<key>AbandonProcessGroup</key>\n\t<true/>\n")
	} else {
		b.WriteString("\t<key>StartCalendarInterval</key>\n\t<array>\n")
		for _, at := range times {
			b.WriteString("\t\t<dict>" + at + "</dict>\n")
		}
		b.WriteString("\t</array>\n")
	}
	b.WriteString("</dict>\n</plist>\n")
	return b.String()
}

// moments are the times of five portable fields; why is set when they are too many. Where either day field is enough, each
// has its own moments, because it is not written down what launchd makes of both in one.
func moments(fields string) (times []string, why string) {
	five := strings.Fields(fields)
	minute, hour := values("Minute", five[0], 0, 59), values("Hour", five[1], 0, 23)
	day, month, weekday := values("Day", five[2], 1, 31), values("Month", five[3], 1, 12), values("Weekday", five[4], 0, 6)
	days := [][]string{day}
	switch {
	case day == nil:
		days = [][]string{weekday}
	case weekday != nil:
		days = [][]string{day, weekday}
	}
	count := 0
	for _, either := range days {
		count += max(1, len(month)) * max(1, len(either)) * max(1, len(hour)) * max(1, len(minute))
	}
	if count > maxMoments {
		return nil, fmt.Sprintf("launchd would need %d calendar entries", count)
	}
	for _, either := range days {
		each := []string{""}
		for _, field := range [][]string{month, either, hour, minute} {
			each = cross(each, field)
		}
		times = append(times, each...)
	}
	return times, ""
}

// cross is each of the times with each of the parts; no parts leave them as they are.
func cross(times, parts []string) (all []string) {
	if parts == nil {
		return times
	}
	for _, t := range times {
		for _, p := range parts {
			all = append(all, t+p)
		}
	}
	return all
}

// values are the entries of a dict for the values of a portable field: numbers, or * with or without a step, with commas; none
// if it is all of them.
func values(key, field string, low, high int) (parts []string) {
	entry := func(n int) string { return fmt.Sprintf("<key>%s</key><integer>%d</integer>", key, n) }
	for item := range strings.SplitSeq(field, ",") {
		step, isStep := strings.CutPrefix(item, "*/")
		n, err := strconv.Atoi(step)
		switch {
		case err != nil:
			return nil // a bare star
		case !isStep:
			parts = append(parts, entry(n))
		default:
			for v := low; v <= high; v += n {
				parts = append(parts, entry(v))
			}
		}
	}
	return parts
}
