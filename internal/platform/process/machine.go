package process

import "strings"

// Elsewhere reports whether what is bound to the machine of a name is not for the machine with this host name. "" binds to no machine.
// Capital letters do not differ from small ones, and a name without a dot also fits a host name with a domain.
func Elsewhere(name, host string) bool {
	if name == "" || strings.EqualFold(name, host) {
		return false
	}
	short, _, _ := strings.Cut(host, ".")
	return !strings.EqualFold(name, short)
}
