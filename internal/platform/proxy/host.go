package proxy

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// Host is a host that may be reached.
type Host struct {
	name string // lower case; a name that begins with a dot stands for every name that ends with it
	port uint16 // 0: every port
}

// maxName is the most bytes of a DNS name.
const maxName = 253

// Parse reads HOST or HOST:PORT. HOST is a name, *.NAME for the names below one, or an address; an IPv6 address with a port is in brackets.
func Parse(text string) (h Host, err error) {
	wrong := fmt.Errorf("%.300q is not a host: want NAME, *.NAME or an address, or one of them with :PORT", text)
	h.name = text
	if name, port, err := net.SplitHostPort(text); err == nil {
		number, err := strconv.ParseUint(port, 10, 16)
		if err != nil || number == 0 {
			return Host{}, wrong
		}
		h = Host{name, uint16(number)}
	}
	if ip, err := netip.ParseAddr(h.name); err == nil {
		h.name = ip.Unmap().String()
		return h, nil
	}
	name := strings.TrimPrefix(h.name, "*.")
	if h.name = canonical(h.name); !isName(canonical(name)) {
		return Host{}, wrong
	}
	h.name = strings.TrimPrefix(h.name, "*")
	return h, nil
}

// isName reports whether a text can be the name of a host.
func isName(text string) bool {
	if len(text) > maxName {
		return false
	}
	for label := range strings.SplitSeq(text, ".") {
		other := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_' }
		if label == "" || len(label) > 63 || strings.ContainsFunc(label, other) {
			return false
		}
	}
	return true
}

// canonical returns a name or an address as Host has it.
func canonical(name string) string {
	if ip, err := netip.ParseAddr(name); err == nil {
		return ip.Unmap().String()
	}
	return strings.ToLower(strings.TrimSuffix(name, "."))
}

// is reports whether a host is meant, by its canonical name and port.
func (h Host) is(name string, port uint16) bool {
	return (h.port == 0 || h.port == port) && (h.name == name || h.name[0] == '.' && strings.HasSuffix(name, h.name))
}

// Addresses returns the addresses that hosts name without DNS: those that are addresses, and localhost. Port 0 stands for every port.
func Addresses(hosts []Host) (list []netip.AddrPort) {
	for _, h := range hosts {
		if h.name == "localhost" {
			list = append(list, netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), h.port), netip.AddrPortFrom(netip.IPv6Loopback(), h.port))
		} else if ip, err := netip.ParseAddr(h.name); err == nil {
			list = append(list, netip.AddrPortFrom(ip, h.port))
		}
	}
	return list
}
