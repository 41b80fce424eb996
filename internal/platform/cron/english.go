package cron

import (
	"slices"
	"strconv"
	"strings"
)

// english is what has been understood of a schedule in plain words.
type english struct {
	minute, hour int // -1 if there is no time
	every        string
	step         int // N of "every N units"; 0 means each
	days         []string
	monthDay     string
}

// meant returns the expression that a schedule in plain English means, such as "every day at 9"; "" if the text is not one.
func meant(text string) string {
	words := strings.Fields(strings.NewReplacer(",", " ", " and ", " ", "o'clock", " ", " am", "am", " pm", "pm").Replace(strings.ToLower(text)))
	e := english{minute: -1, hour: -1}
	for i, word := range words {
		last, next := "", ""
		if i > 0 {
			last = words[i-1]
		}
		if i+1 < len(words) {
			next = words[i+1]
		}
		if !e.read(word, last, next) {
			return ""
		}
	}
	expr := e.expression()
	if strings.HasPrefix(expr, "@") {
		return expr
	}
	if _, err := parseFields(expr, split(expr)); err != nil {
		return ""
	}
	return expr
}

// read interprets a word by its neighbours, and reports whether it understands it.
func (e *english) read(word, last, next string) bool {
	single := strings.TrimSuffix(word, "s")
	if n, err := strconv.Atoi(word); err == nil && last == "every" && n > 0 {
		e.step = n
		return slices.Contains([]string{"minute", "hour"}, strings.TrimSuffix(next, "s"))
	}
	if day, ok := monthDay(word); ok {
		e.monthDay = day
		return true
	}
	switch {
	case slices.Contains([]string{"every", "each", "at", "on", "the", "of", "in", "a"}, word):
		return true
	case slices.Contains([]string{"minute", "hour", "day", "week", "month", "morning", "evening"}, single):
		e.every = single
	case slices.Contains([]string{"hourly", "daily", "weekly", "monthly", "everyday"}, word):
		e.every = map[string]string{"hourly": "hour", "daily": "day", "weekly": "week", "monthly": "month", "everyday": "day"}[word]
	case single == "weekday" || single == "workday":
		e.days = append(e.days, "1-5")
	case single == "weekend":
		e.days = append(e.days, "0", "6")
	case e.readDay(single):
	default:
		return e.readTime(word, last)
	}
	return true
}

func (e *english) readDay(word string) bool {
	for n, name := range []string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"} {
		if len(word) >= 3 && strings.HasPrefix(name, word) {
			e.days = append(e.days, strconv.Itoa(n))
			return true
		}
	}
	return false
}

func monthDay(word string) (string, bool) {
	if word == "first" {
		return "1", true
	}
	for _, end := range []string{"st", "nd", "rd", "th"} {
		number, found := strings.CutSuffix(word, end)
		if _, err := strconv.Atoi(number); found && err == nil {
			return number, true
		}
	}
	return "", false
}

// readTime parses 9, 9am, 9:30 or noon. A bare number is a time only after "at".
func (e *english) readTime(word, last string) bool {
	switch word {
	case "noon", "midnight":
		e.hour, e.minute = map[string]int{"noon": 12, "midnight": 0}[word], 0
		return true
	}
	number, afternoon := strings.CutSuffix(word, "pm")
	number, morning := strings.CutSuffix(number, "am")
	hour, minute, exact := strings.Cut(number, ":")
	h, err := strconv.Atoi(hour)
	m := 0
	if err == nil && exact {
		m, err = strconv.Atoi(minute)
	}
	if err != nil || !afternoon && !morning && !exact && last != "at" {
		return false
	}
	if (afternoon || morning) && (h < 1 || h > 12) {
		return false
	}
	if h == 12 && morning || h < 12 && afternoon {
		h = (h + 12) % 24
	}
	e.hour, e.minute = h, m
	return true
}

// expression returns the cron expression; "" if the words do not make a schedule.
func (e *english) expression() string {
	if e.hour < 0 {
		switch {
		case len(e.days) > 0 || e.monthDay != "":
			return ""
		case e.every == "minute" && e.step > 1:
			return "*/" + strconv.Itoa(e.step) + " * * * *"
		case e.every == "hour" && e.step > 1:
			return "0 */" + strconv.Itoa(e.step) + " * * *"
		}
		return map[string]string{"minute": "* * * * *", "hour": "0 * * * *", "day": "@daily", "week": "@weekly", "month": "@monthly"}[e.every]
	}
	date, days := "*", strings.Join(e.days, ",")
	switch {
	case e.every == "minute" || e.every == "hour" || e.step > 0:
		return ""
	case e.monthDay != "":
		date = e.monthDay
	case e.every == "month":
		date = "1"
	case e.every == "week" && days == "":
		days = "1"
	case e.every == "" && days == "":
		return ""
	}
	if days == "" {
		days = "*"
	}
	return strings.Join([]string{strconv.Itoa(e.minute), strconv.Itoa(e.hour), date, "*", days}, " ")
}
