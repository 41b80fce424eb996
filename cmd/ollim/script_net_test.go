package main

import (
	"fmt"
	"hash/fnv"
	"net"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"
)

// The ports that freeport chooses from: those that a kernel gives to connections are above them.
const (
	firstPort = 20000
	lastPort  = 30000
)

// cmdFreeport is
//
//	freeport VARIABLE
//
// It sets a variable to 127.0.0.1 and a port on which nobody listens.
func cmdFreeport(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: freeport VARIABLE")
	}
	h := fnv.New32a() // scripts that run at the same time begin at different ones
	_, _ = h.Write([]byte(ts.Getenv("WORK")))
	first := int(h.Sum32() % (lastPort - firstPort))
	for i := range lastPort - firstPort {
		port := firstPort + (first+i)%(lastPort-firstPort)
		l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
		if err != nil {
			continue
		}
		ts.Setenv(args[0], l.Addr().String())
		_ = l.Close()
		return
	}
	ts.Fatalf("no port is free")
}

// cmdListens waits until somebody listens on an address.
func cmdListens(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: listens HOST:PORT")
	}
	waitFor(ts, fmt.Sprintf("%s accepts connections", args[0]), func() bool {
		c, err := net.Dial("tcp", args[0])
		if err != nil {
			return false
		}
		_ = c.Close()
		return true
	})
}
