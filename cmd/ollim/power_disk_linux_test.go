package main

import (
	"fmt"
	"io/fs"
	"maps"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// disk is a model of a file system that forgets at a power failure what no fsync made durable. It is pessimistic: the fsync of a file does not
// make its name durable, a new file's name may be durable without its content, and entries of a directory become durable in any order.
type disk struct {
	root string
	safe string // below this directory every change is durable at once
	top  *node
	open map[string]*position // by number and path of the descriptor
	now  int                  // the number of calls that were applied
}

// position is where a descriptor writes.
type position struct {
	appends bool
	offset  int64
}

// node is a file or a directory.
type node struct {
	mode    fs.FileMode
	text    []byte           // durable content of a file
	entries map[string]*node // durable entries of a directory; nil for a file
	pending []*change        // in their order
}

// change is a change that no fsync has made durable.
type change struct {
	at int // the number of calls before it

	cut    bool // the file ends at offset now
	offset int64
	data   []byte // written at offset

	removed string // the name that goes away; "" for none
	added   string // the name that node gets; "" for none
	node    *node
	after   *change // it happens only if this one did: the other half of a rename
	synced  bool    // it happened, if after did
}

// newDisk reads a directory tree and takes it for durable.
func newDisk(root, safe string) (*disk, error) {
	top, err := readTree(root)
	return &disk{root: root, safe: safe, top: top, open: map[string]*position{}}, err
}

func readTree(path string) (*node, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	n := &node{mode: info.Mode().Perm()}
	if !info.IsDir() {
		n.text, err = os.ReadFile(path)
		return n, err
	}
	n.entries = map[string]*node{}
	list, err := os.ReadDir(path)
	for _, e := range list {
		if n.entries[e.Name()], err = readTree(filepath.Join(path, e.Name())); err != nil {
			return nil, err
		}
	}
	return n, err
}

// inside reports whether a path is in the tree, and returns its directory and its name there.
func (d *disk) inside(path string) (dir *node, name string, ok bool) {
	rest, ok := strings.CutPrefix(path, d.root+"/")
	if !ok {
		return nil, "", false
	}
	names := strings.Split(rest, "/")
	dir = d.top
	for _, name := range names[:len(names)-1] {
		if dir = dir.seen()[name]; dir == nil || dir.entries == nil {
			return nil, "", false
		}
	}
	return dir, names[len(names)-1], true
}

// find returns the node at a path as running programs see it, nil if there is none.
func (d *disk) find(path string) *node {
	if path == d.root {
		return d.top
	}
	if dir, name, ok := d.inside(path); ok {
		return dir.seen()[name]
	}
	return nil
}

// seen returns a directory's entries as running programs see them.
func (n *node) seen() map[string]*node {
	return n.after(func(*change) bool { return true })
}

// after returns a directory's entries if only some of the pending changes happened.
func (n *node) after(happened func(*change) bool) map[string]*node {
	entries := maps.Clone(n.entries)
	for _, c := range n.pending {
		if happened(c) {
			c.enter(entries)
		}
	}
	return entries
}

func (c *change) enter(entries map[string]*node) {
	if c.removed != "" && (c.node == nil || c.after == nil || entries[c.removed] == c.node) {
		delete(entries, c.removed)
	}
	if c.added != "" {
		entries[c.added] = c.node
	}
}

// content returns a file's content after the first so many pending changes.
func (n *node) content(changes int) []byte {
	text := slices.Clone(n.text)
	for _, c := range n.pending[:changes] {
		text = c.edit(text)
	}
	return text
}

func (c *change) edit(text []byte) []byte {
	end := c.offset + int64(len(c.data))
	if grow := end - int64(len(text)); grow > 0 {
		text = append(text, make([]byte, grow)...)
	}
	if c.cut {
		return text[:c.offset]
	}
	copy(text[c.offset:], c.data)
	return text
}

// change notes a change of the node at a path, or makes it durable at once.
func (d *disk) change(path string, n *node, c change) *change {
	c.at = d.now
	n.pending = append(n.pending, &c)
	if path == d.safe || strings.HasPrefix(path, d.safe+"/") {
		n.sync(d.now + 1)
	}
	return &c
}

// sync makes durable what was changed before the call of that number.
func (n *node) sync(before int) {
	var left []*change
	for _, c := range n.pending {
		if c.synced = c.synced || c.at < before; !c.synced || !c.after.did() {
			left = append(left, c)
		} else if n.entries != nil {
			c.enter(n.entries)
		} else {
			n.text = c.edit(n.text)
		}
	}
	n.pending = left
}

// did reports whether a change that another one needs is durable.
func (c *change) did() bool { return c == nil || c.synced }

// choice decides what a power failure takes.
type choice struct {
	random *rand.Rand
	keep   int // of 100 pending changes, how many are kept on average
	torn   bool
	chosen map[*change]bool
}

// happened reports whether a change of a directory is kept.
func (o *choice) happened(c *change) bool {
	if c == nil {
		return true
	}
	kept, known := o.chosen[c]
	if !known {
		kept = (c.synced || o.random.Intn(100) < o.keep) && o.happened(c.after)
		o.chosen[c] = kept
	}
	return kept
}

// sector is what a disk writes as a whole, in bytes.
const sector = 512

// left returns what is left of a file: its pending changes up to one of them, of which a part may be there, with zeros for what was not written.
func (o *choice) left(n *node) []byte {
	kept := 0
	for kept < len(n.pending) && o.random.Intn(100) < o.keep {
		kept++
	}
	text := n.content(kept)
	if !o.torn || kept == len(n.pending) || len(n.pending[kept].data) == 0 {
		return text
	}
	part := *n.pending[kept]
	if end := part.offset + int64(len(part.data)); end <= int64(len(text)) && part.offset/sector == (end-1)/sector {
		return text // a disk writes a sector as a whole
	}
	part.data = part.data[:o.random.Intn(len(part.data))]
	text = part.edit(text)
	if o.random.Intn(4) == 0 && int64(len(text)) == part.offset+int64(len(part.data)) {
		text = append(text, make([]byte, len(n.pending[kept].data)-len(part.data))...)
	}
	return text
}

// write makes the tree that is left after a power failure.
func (d *disk) write(o *choice, to string) error {
	o.chosen = map[*change]bool{}
	return o.write(d.top, to, map[*node]string{})
}

func (o *choice) write(n *node, path string, written map[*node]string) error {
	if first, again := written[n]; again {
		return os.Link(first, path)
	}
	written[n] = path
	if n.entries == nil {
		return os.WriteFile(path, o.left(n), n.mode)
	}
	if err := os.Mkdir(path, n.mode); err != nil {
		return err
	}
	entries := n.after(o.happened)
	for _, name := range slices.Sorted(maps.Keys(entries)) { // the same for the same seed
		if err := o.write(entries[name], filepath.Join(path, name), written); err != nil {
			return err
		}
	}
	return nil
}

// differs compares what the model says that programs see with a real tree.
func (n *node) differs(path string) error {
	real, err := readTree(path)
	if err != nil {
		return err
	}
	if (n.entries == nil) != (real.entries == nil) {
		return fmt.Errorf("%s: one is a directory", path)
	}
	if n.entries == nil {
		if text := n.content(len(n.pending)); string(text) != string(real.text) {
			return fmt.Errorf("%s: the model has %.300q, the file %.300q", path, text, real.text)
		}
	} else {
		seen := n.seen()
		if a, b := slices.Sorted(maps.Keys(seen)), slices.Sorted(maps.Keys(real.entries)); !slices.Equal(a, b) {
			return fmt.Errorf("%s: the model has %q, the directory %q", path, a, b)
		}
		for name, child := range seen {
			if err := child.differs(filepath.Join(path, name)); err != nil {
				return err
			}
		}
	}
	if n.mode != real.mode {
		return fmt.Errorf("%s: the model has mode %o, the file %o", path, n.mode, real.mode)
	}
	return nil
}
