package cron

import "strings"

// nickname returns the five fields that an @word stands for. They are written
// out here and nowhere handed on by name: systemd's weekly is a Monday.
func nickname(parts []part) (string, *SyntaxError) {
	name := parts[0]
	meaning := meaningOf(name.text)
	switch lower := strings.ToLower(name.text); {
	case meaning != "" && len(parts) == 1:
		return meaning, nil
	case meaning != "":
		return "", parts[1].fail("nothing may follow " + name.text)
	case meaningOf(lower) != "":
		return "", name.fail("nicknames are lower case (write " + lower + ")")
	case lower == "@reboot":
		return "", name.fail("a system start is not a time on the calendar")
	case lower == "@every":
		return "", name.fail("intervals are not supported (write a step such as */5 * * * *)")
	}
	return "", name.fail("unknown nickname (write @hourly, @daily, @weekly, @monthly or @yearly)")
}

func meaningOf(nickname string) string {
	switch nickname {
	case "@hourly":
		return "0 * * * *"
	case "@daily", "@midnight":
		return "0 0 * * *"
	case "@weekly":
		return "0 0 * * 0"
	case "@monthly":
		return "0 0 1 * *"
	case "@yearly", "@annually":
		return "0 0 1 1 *"
	}
	return ""
}
