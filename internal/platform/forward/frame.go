// Package forward executes commands for other processes: a client sends its arguments and its working directory over a unix socket, and
// the server executes the command with the client's streams and sends the exit status.
//
// A connection carries one command, in frames. The client sends one frame with the call. From then on the server asks, and the client
// answers: one frame asks for bytes of standard input, which the client reads only then, or holds bytes of standard output or
// standard error, which the client has written when it answers. So no stream is buffered as a whole, an error of a stream reaches the
// command as if the stream were its own, and a client that does not read delays only its own command. Each stream has at
// most one open question, and none waits for another stream. The last frame is the exit status. A connection that ends before is an
// error for the client, and cancels the command.
package forward

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"syscall"
)

// The kinds of frames. The first three are the descriptors of the streams.
const (
	stdin  = 0
	stdout = 1
	stderr = 2
	call   = 3
	exit   = 4

	streams = 3
)

const (
	maxData = 32 << 10 // largest part of a stream in one frame, in bytes
	maxCall = 1 << 20  // largest call, in bytes
	header  = 5        // length of the kind and the length in front of a frame, in bytes
	number  = 4        // length of a number in a frame, in bytes
)

// ErrTooLong is the error of a call whose arguments are too long to be sent.
var ErrTooLong = errors.New("the arguments are too long")

// Call is a command that a client wants to have executed.
type Call struct {
	Dir  string   // working directory of the client, absolute; "" if unknown
	Args []string // arguments without the name of the program
}

// encode joins the parts with NUL bytes, which none of them contains.
func (c Call) encode() []byte {
	return []byte(strings.Join(append([]string{c.Dir}, c.Args...), "\x00"))
}

func decode(data []byte) Call {
	parts := strings.Split(string(data), "\x00")
	return Call{parts[0], parts[1:]}
}

// wire is one end of a connection. Several goroutines may send on it.
type wire struct {
	io.ReadWriteCloser

	mu sync.Mutex
}

func (w *wire) send(kind byte, parts ...[]byte) error {
	frame := make([]byte, header, header+number+maxData)
	for _, p := range parts {
		frame = append(frame, p...)
	}
	frame[0] = kind
	binary.BigEndian.PutUint32(frame[1:], uint32(len(frame)-header))
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.Write(frame)
	return err
}

// receive reads a frame whose content has at most most bytes.
func (w *wire) receive(most int) (kind byte, data []byte, err error) {
	var head [header]byte
	if _, err := io.ReadFull(w, head[:]); err != nil {
		return 0, nil, err
	}
	length := binary.BigEndian.Uint32(head[1:])
	if length > uint32(most) {
		return 0, nil, fmt.Errorf("a frame of %d bytes", length)
	}
	data = make([]byte, length)
	_, err = io.ReadFull(w, data)
	return head[0], data, err
}

func encodeNumber(n int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }

// cutNumber reads the number at the beginning of data.
func cutNumber(data []byte) (n int, rest []byte, ok bool) {
	if len(data) < number {
		return 0, nil, false
	}
	return int(binary.BigEndian.Uint32(data)), data[number:], true
}

// errnoOf returns the error number of a stream's error; 0 for no error.
func errnoOf(err error) int {
	errno := syscall.EIO
	if err == nil {
		return 0
	}
	errors.As(err, &errno)
	return int(errno)
}
