package setup

import (
	"strings"
	"time"
	"unicode"
)

// ZoneOf returns the zone that an answer means: the answer itself or, for a city that occurs in only one area of the zone database, the
// zone of that city, such as Europe/Berlin for Berlin.
func ZoneOf(answer string) string {
	if _, err := time.LoadLocation(answer); err == nil || strings.ContainsAny(answer, "/.") {
		return answer
	}
	city := capitals(answer)
	var found []string
	for _, area := range []string{"Africa", "America", "Antarctica", "Arctic", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific"} {
		if _, err := time.LoadLocation(area + "/" + city); err == nil {
			found = append(found, area+"/"+city)
		}
	}
	if len(found) != 1 {
		return answer
	}
	return found[0]
}

// capitals writes the name of a city as the zone database does: New_York, Port-au-Prince as it is.
func capitals(name string) string {
	begins := true
	return strings.Map(func(r rune) rune {
		if r == ' ' {
			r = '_'
		}
		if begins {
			r = unicode.ToUpper(r)
		}
		begins = r == '_'
		return r
	}, strings.TrimSpace(name))
}
