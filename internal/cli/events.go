package cli

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/forward"
)

func newEvents(d *deps) *cobra.Command {
	var follow bool
	var since string
	cmd := command(agentOwn(""), "events", "Print what all runs did as one stream of JSON lines",
		inAnyHome(d, func(ctx context.Context, h app.Home, _ []string) error { return runEvents(ctx, d, h, since, follow) }))
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "then print new events as they happen, until a signal or until the reader closes the pipe")
	cmd.Flags().StringVar(&since, "since", "", "how far to look back, such as 1d; 0 prints only what happens from now on (default: everything)")
	return cmd
}

func runEvents(ctx context.Context, d *deps, h app.Home, since string, follow bool) error {
	var from time.Time
	if since != "" {
		var err error
		if from, err = d.since(since); err != nil {
			return err
		}
	}
	stream := d.runs(h).Stream(from)
	for !follow || ctx.Err() == nil { // the first ctx.Err begins to handle signals
		for line, err := range stream.Next() {
			if err != nil && line.Run == "" {
				return err
			}
			if err != nil {
				d.warn(fmt.Sprintf("run %s: %v", line.Run, err))
			} else if err := d.emit(line); err != nil {
				return err
			}
		}
		if !follow {
			d.warnOmitted("events of runs", stream.Bad, "line")
			return nil
		}
		if err := d.flush(); err != nil {
			return err
		}
		if readerGone(d.Stdout) {
			return &reported{statusPipe}
		}
		if err := d.Sleep(ctx, followEvery); err != nil {
			return &reported{statusOf(err)}
		}
	}
	return &reported{statusOf(ctx.Err())}
}

// readerGone reports whether a pipe or a socket has no reader any more. A follower that has nothing to write would not notice otherwise.
func readerGone(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		w, ok := stream.(*forward.Stream)
		return ok && w.Gone()
	}
	fds := []unix.PollFd{{Fd: int32(f.Fd())}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
}
