package main

import (
	"fmt"
	"net"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ollim/ollim/internal/testkit"
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
	address, err := testkit.FreeAddress("127.0.0.1")
	ts.Check(err)
	ts.Setenv(args[0], address)
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
