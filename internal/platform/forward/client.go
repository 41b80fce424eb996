package forward

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
)

// Run asks the server at a socket to execute a call with these streams, and returns its exit status. An error means that there is no
// status: the server does not listen, has ended or rejects the call, or ctx has ended. An empty write to an output stream asks whether
// its reader is still there. Run may leave a goroutine behind that reads standard input.
func Run(ctx context.Context, socket string, c Call, in io.Reader, out, errOut io.Writer) (status int, err error) {
	data := c.encode()
	if len(data) > maxCall {
		return 0, ErrTooLong
	}
	conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		return 0, causeOf(ctx, err)
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	w := &wire{ReadWriteCloser: conn}
	if err := w.send(call, data); err != nil {
		return 0, causeOf(ctx, err)
	}
	for {
		kind, data, err := w.receive(maxData)
		if err != nil {
			return 0, causeOf(ctx, err)
		}
		switch kind {
		case stdin:
			go w.read(in, data)
		case stdout:
			go w.put(kind, out, data)
		case stderr:
			go w.put(kind, errOut, data)
		case exit:
			if n, _, ok := cutNumber(data); ok {
				return n, nil
			}
			fallthrough
		default:
			return 0, fmt.Errorf("an unknown frame (%d)", kind)
		}
	}
}

// read answers a request for bytes of standard input. An answer without bytes or an error means the end of the input. An error of the
// connection is found when the next frame is received.
func (w *wire) read(in io.Reader, question []byte) {
	n, _, _ := cutNumber(question)
	data := make([]byte, max(1, min(n, maxData)))
	for {
		n, err := in.Read(data)
		if n == 0 && err == nil {
			continue
		}
		if n > 0 || errors.Is(err, io.EOF) {
			err = nil // the next read returns the error again
		}
		_ = w.send(stdin, encodeNumber(errnoOf(err)), data[:n])
		return
	}
}

// put writes output of the command to a stream, and answers when it has done so.
func (w *wire) put(kind byte, to io.Writer, data []byte) {
	_, err := to.Write(data)
	_ = w.send(kind, encodeNumber(errnoOf(err)))
}

// causeOf returns the error of a connection without addresses, or the cause why ctx ended.
func causeOf(ctx context.Context, err error) error {
	errno := syscall.Errno(0)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return errors.New("it has ended")
	case errors.As(err, &errno):
		return errno
	}
	return err
}
