package testkit

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports that FreeAddress chooses from. The kernel chooses none of them for those who ask for any port, such as the other tests.
const (
	firstPort = 20000
	lastPort  = 30000
)

// FreeAddress returns the address of a port of a host, such as 127.0.0.1, on which nobody listens, for a program that is told where to
// listen.
func FreeAddress(host string) (string, error) {
	first := rand.IntN(lastPort - firstPort)
	for i := range lastPort - firstPort {
		port := firstPort + (first+i)%(lastPort-firstPort)
		if l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port))); err == nil {
			return l.Addr().String(), l.Close()
		}
	}
	return "", errors.New("no port is free")
}
