package update

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/store"
)

// recover completes the unfinished work of dead processes and reads the queue. It first restores the queue, then
// archives delivered updates, then settles the claims of dead owners. It leaves the claim named mine alone.
func (o *opened) recover(owner Owner, mine string) error {
	files, err := o.claimFiles()
	if err != nil {
		return err
	}
	for _, name := range files[back] {
		doc, err := store.ReadJSON[claimFile](o.Disk, o.claimPath(name, back)) // if it is corrupt, the claim next to it, if any, counts
		if err == nil && len(doc.Updates) > 0 {
			err = o.restore(name, o.pendingOf(doc.Updates))
		}
		if err != nil {
			return err
		}
	}
	entries, err := store.ReadJSON[[]entry](o.Disk, o.Home.PendingUpdates()) // a corrupt file is read as empty
	if err != nil {
		return err
	}
	o.pending = o.pendingOf(entries)
	for _, name := range files[done] {
		if err := o.finish(name, true); err != nil {
			return err
		}
	}
	for _, name := range files[inUse] {
		if err := o.judge(name, owner, name == mine); err != nil {
			return err
		}
	}
	return nil
}

// claimFiles lists the names of claims by state, oldest first. A state without claims has no key.
func (b Box) claimFiles() (map[string][]string, error) {
	list, err := os.ReadDir(b.Home.UpdateClaims())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	files := map[string][]string{}
	for _, f := range list {
		suffix := filepath.Ext(f.Name())
		name := strings.TrimSuffix(f.Name(), suffix)
		if slices.Contains([]string{back, done, inUse}, suffix) {
			files[suffix] = append(files[suffix], name)
		}
	}
	return files, nil
}

// restore makes the queue hold exactly p and ends the claim. It may be repeated from any point, because the .back file,
// which starts it again, is removed last.
func (o *opened) restore(name string, p pending) error {
	err := o.write(p)
	for _, suffix := range []string{inUse, back} {
		if err == nil {
			err = store.Remove(o.claimPath(name, suffix))
		}
	}
	if err == nil {
		o.pending = p
	}
	return err
}

// finish archives a delivered claim and removes it. If again is set, updates that are in the archive are skipped.
func (o *opened) finish(name string, again bool) error {
	path := o.claimPath(name, done)
	doc, err := store.ReadJSON[claimFile](o.Disk, path)
	if err != nil {
		return err
	}
	became := becamePopped
	if doc.Cleared {
		became = becameCleared
	}
	fates := o.fates(o.pendingOf(doc.Updates).list(), became, doc.Run)
	if again {
		if fates, err = o.notArchived(fates); err != nil {
			return err
		}
	}
	if err := o.archive(fates, store.Synced); err != nil {
		return err
	}
	return store.Remove(path)
}

// judge settles a claim if its owner is dead. An unreadable file is reported and left in place, so that it does not
// block the others.
func (o *opened) judge(name string, owner Owner, mine bool) error {
	path := o.claimPath(name, inUse)
	doc, err := store.ReadJSON[claimFile](o.Disk, path)
	switch {
	case err != nil:
		o.Disk.Warn(fmt.Sprintf("a claim of updates was ignored: %v", err))
		return nil
	case len(doc.Updates) == 0: // set aside as corrupt, or without a use
		return store.Remove(path)
	case mine || !dead(doc, path, owner):
		o.claimed = latest(o.claimed, o.pendingOf(doc.Updates).newest())
		return nil
	case !doc.Cleared && doc.Run != "" && o.Started != nil && o.Started(doc.Run):
		return o.deliver(name)
	}
	return o.giveBack(name)
}

// dead reports whether the owner of the claim has died. A caller that pops under the same session lock for another run
// proves it by holding that lock. The lock would look taken otherwise, and each new turn of a conversation would skip
// the claim.
func dead(doc claimFile, path string, owner Owner) bool {
	if doc.Lock == "" {
		return lock.Free(path)
	}
	return lock.Free(doc.Lock) || doc.Lock == owner.Lock && doc.Run != owner.Run
}

// writeClaim creates the file of a claim.
func (o *opened) writeClaim(name, suffix string, doc claimFile) error {
	path := o.claimPath(name, suffix)
	data, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return &store.NotWritten{Path: path, Err: err}
	}
	return store.Create(path, append(data, '\n'))
}

// move renames a claim's file to another state, durably.
func (o *opened) move(name, from, to string) error {
	return store.Rename(o.claimPath(name, from), o.claimPath(name, to))
}
