package cli

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/state/channel"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/transcript"
)

type sessionRow struct {
	Session string `json:"session"`
	ID      string `json:"id"`
	Routine string `json:"name,omitempty"`
	Busy    bool   `json:"busy"`
}

func idleOr(busy bool) string {
	if busy {
		return "busy"
	}
	return "idle"
}

func newSessionList(d *deps) *cobra.Command {
	var all, here, channels bool
	cmd := command(agentAll(), "list", "List sessions: name, id, idle or busy, routine; with --all or --here transcripts",
		func(cmd *cobra.Command, _ []string) error {
			switch {
			case channels && (all || here):
				return usage("--channels excludes --all and --here")
			case !channels && !all && !here:
				return runSessionList(cmd.Context(), d)
			}
			h, err := d.AnyHome()
			if err == nil {
				err = d.OwnerOnly()
			}
			switch {
			case err != nil:
				return err
			case channels:
				return runChannelList(d, h)
			}
			return runTranscriptList(d, h, here)
		})
	f := cmd.Flags()
	f.BoolVarP(&all, "all", "a", false, "list the transcripts of all directories")
	f.BoolVar(&here, "here", false, "list the transcripts of this directory")
	f.BoolVar(&channels, "channels", false, "list the sessions of channels")
	return withJSON(d, cmd, jsonLines)
}

func runSessionList(ctx context.Context, d *deps) error {
	files, h, err := d.jobSet()
	if err != nil {
		return err
	}
	if err := sweepSessions(ctx, h); err != nil {
		d.warn(err.Error())
	}
	names, err := h.SessionNames()
	if err != nil {
		return err
	}
	var rows []sessionRow
	for _, n := range names {
		id, err := n.ID(h.Sessions)
		if err != nil {
			if !errors.Is(err, app.ErrNoSession) {
				d.warn(n.Text + ": " + err.Error())
			}
			continue
		}
		row := sessionRow{Session: n.Text, ID: id, Busy: !lock.Free(h.Dir.SessionLock(n.Routine))}
		if j, err := files.Find(n.Routine); err == nil && n.Routine != "" {
			row.Routine = j.Name()
		}
		rows = append(rows, row)
	}
	return records(d, "SESSION ID STATE ROUTINE", rows, func(r sessionRow) []any {
		return []any{r.Session, r.ID, state(idleOr(r.Busy)), brief(r.Routine)}
	})
}

// sweepSessions removes the sessions of routines that are gone or no longer persistent. It removes none while a job file cannot be read,
// which may be that of such a routine.
func sweepSessions(ctx context.Context, h app.Home) error {
	ids, err := h.Sessions.Routines() // before the files are read: a routine added meanwhile keeps its session
	if err != nil {
		return err
	}
	files, err := h.Jobs.Load()
	if err != nil || len(files.Faults) > 0 {
		return err
	}
	held := map[string]bool{}
	for _, j := range files.Jobs {
		held[j.ID] = j.Mode() == job.Persistent
	}
	for _, id := range ids {
		if !held[id] {
			err = errors.Join(err, forget(ctx, h, app.NameOf(id)))
		}
	}
	return err
}

type transcriptRow struct {
	transcript.Summary
	Session string `json:"session,omitempty"` // main or routine:ID
}

// service returns the provider and the model of a conversation, in one word.
func service(h transcript.Header) string { return strings.TrimSuffix(h.Provider+"/"+h.Model, "/") }

func runTranscriptList(d *deps, h app.Home, here bool) (err error) {
	cwd := ""
	if here {
		if cwd, err = workingDir(); err != nil {
			return err
		}
	}
	list, skipped, err := h.Transcripts().List(cwd, prompt.Said())
	if err != nil {
		return err
	}
	d.warnOmitted(h.Dir.Sessions(), skipped, "file")
	held, err := h.CurrentNames()
	if err != nil {
		d.warn(err.Error())
	}
	rows := make([]transcriptRow, 0, len(list))
	for _, s := range list {
		s.Modified, s.Timestamp = s.Modified.In(h.Config.Zone), inZone(s.Timestamp, h)
		rows = append(rows, transcriptRow{s, held[s.ID].Text})
	}
	return records(d, "ID CHANGED SESSION DIRECTORY MODEL FIRST-WORDS", rows, func(r transcriptRow) []any {
		return []any{r.ID, past(r.Modified), cmp.Or(r.Session, "-"), brief(r.Cwd), brief(service(r.Header)), prose(r.First)}
	})
}

type channelRow struct {
	Session      string    `json:"session"` // its name
	Channel      string    `json:"channel"`
	ChatID       string    `json:"chat_id"`
	CreatedAt    time.Time `json:"created_at"`
	LastAccessed time.Time `json:"last_accessed"`
	Messages     int       `json:"messages"`
	Busy         bool      `json:"busy"`
}

func runChannelList(d *deps, h app.Home) error {
	names, err := h.Channels.Names()
	if err != nil {
		return err
	}
	rows := make([]channelRow, 0, len(names))
	for _, n := range names {
		s, err := h.Channels.Read(n)
		switch {
		case err == nil:
			rows = append(rows, channelRow{
				n.String(), s.Channel, s.ChatID, inZone(s.CreatedAt, h), inZone(s.LastAccessed, h), len(s.Messages), channelBusy(h, n),
			})
		case !errors.Is(err, fs.ErrNotExist): // it expired meanwhile
			d.warn(err.Error())
		}
	}
	slices.SortStableFunc(rows, func(a, b channelRow) int { return b.LastAccessed.Compare(a.LastAccessed) })
	return records(d, "SESSION USED MESSAGES STATE", rows, func(r channelRow) []any {
		return []any{r.Session, past(r.LastAccessed), strconv.Itoa(r.Messages), state(idleOr(r.Busy))}
	})
}

func channelBusy(h app.Home, n channel.Name) bool { return !lock.Free(h.Dir.ConversationLock(n.Key())) }

// channelNamed returns the session of a channel that text names as listings do. found is false if it has no file.
func (d *deps) channelNamed(h app.Home, text string) (n channel.Name, found bool) {
	n, err := channel.Parse(text)
	if err != nil || d.OwnerOnly() != nil {
		return n, false
	}
	_, err = os.Lstat(h.Dir.Channel(n.String()))
	return n, err == nil
}

func channelFacts(h app.Home, n channel.Name) (sessionFacts, error) {
	path := h.Dir.Channel(n.String())
	s, err := h.Channels.Read(n)
	if err != nil {
		return sessionFacts{}, err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return sessionFacts{}, err
	}
	return sessionFacts{
		Session: n.String(), ID: s.SessionID, Busy: channelBusy(h, n), Path: path, Timestamp: inZone(s.CreatedAt, h),
		Last: inZone(s.LastAccessed, h), Messages: len(s.Messages), Size: info.Size(),
	}, nil
}
