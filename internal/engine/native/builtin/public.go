package builtin

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"syscall"
	"time"
)

var errPrivate = errors.New("it is not a public address")

// fetcher returns an HTTP client that connects only to addresses that public allows, whatever a name resolves to and however often that
// changes. It uses no proxy, keeps no cookies and reads nothing from the environment.
func fetcher(public func(netip.Addr) bool) *http.Client {
	dialer := &net.Dialer{Timeout: 10 * time.Second, Control: func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		if !public(at.Addr()) {
			return fmt.Errorf("%s: %w", at.Addr(), errPrivate)
		}
		return nil
	}}
	return &http.Client{Transport: &http.Transport{
		DialContext:            dialer.DialContext,
		ForceAttemptHTTP2:      true,
		DisableKeepAlives:      true,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxResponseHeaderBytes: 256 << 10,
	}}
}

// isPublic reports whether an address is on the public internet. It rejects addresses of this machine, its networks and its provider's
// services, addresses without a location, and addresses that contain such an IPv4 address. The blocks are those of the IANA registries of
// special-purpose addresses.
func isPublic(a netip.Addr) bool {
	if a.Zone() != "" || a.Is4In6() {
		return false
	}
	if a.Is4() {
		return !in(a, "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
			"192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15",
			"198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3",
			"168.63.129.16/32") // services of Azure for its own machines
	}
	if in(a, "64:ff9b::/96") { // NAT64: a network without IPv4 reaches IPv4 addresses by this prefix
		b := a.As16()
		return isPublic(netip.AddrFrom4([4]byte(b[12:])))
	}
	return in(a, "2000::/3") && !in(a, "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
}

func in(a netip.Addr, blocks ...string) bool {
	return slices.ContainsFunc(blocks, func(block string) bool { return netip.MustParsePrefix(block).Contains(a) })
}
