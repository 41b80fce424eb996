package main

import (
	"fmt"
	"io/fs"
	"strings"
	"syscall"
)

// apply changes the model as a system call changed the files. changed reports whether it changed anything of the tree.
func (d *disk) apply(c call) (changed bool, err error) {
	defer func() {
		d.now++
		if err != nil {
			err = fmt.Errorf("%s(%.300s): %w", c.name, strings.Join(c.args, ", "), err)
		}
	}()
	switch c.name {
	case "open", "creat":
		return false, fmt.Errorf("not part of the model")
	case "openat":
		return d.opens(c)
	case "write", "writev", "pwrite64", "pwritev", "copy_file_range", "sendfile", "splice", "fallocate", "lseek", "dup", "dup2", "dup3", "fcntl":
		return d.uses(c)
	case "ftruncate", "fsync", "fdatasync", "fchmod":
		return d.whole(c)
	}
	return d.names(c)
}

// opens notes what a new descriptor means, and makes or empties the file.
func (d *disk) opens(c call) (changed bool, err error) {
	key, _ := descriptor(c.result)
	path, err := c.path(0)
	dir, name, ok := d.inside(path)
	if err != nil || !ok {
		return false, err
	}
	flags := "|" + c.args[2] + "|"
	has := func(flag string) bool { return strings.Contains(flags, "|"+flag+"|") }
	n := dir.seen()[name]
	switch {
	case n == nil && !has("O_CREAT"):
		return false, fmt.Errorf("%s is not in the model", path)
	case n == nil:
		mode, err := number(c.args[3])
		if err != nil {
			return false, err
		}
		d.change(path, dir, change{added: name, node: &node{mode: masked(mode)}})
		changed = true
	case has("O_TRUNC") && len(n.content(len(n.pending))) > 0:
		d.change(path, n, change{cut: true})
		changed = true
	}
	d.open[key] = &position{appends: has("O_APPEND")}
	return changed, nil
}

// masked is a mode as the process's mask leaves it.
func masked(mode int64) fs.FileMode {
	mask := syscall.Umask(0)
	syscall.Umask(mask)
	return fs.FileMode(mode) & 0o777 &^ fs.FileMode(mask)
}

// uses moves or copies a descriptor, or writes with one.
func (d *disk) uses(c call) (changed bool, err error) {
	key, path := descriptor(c.args[0])
	n := d.find(path)
	if n == nil || n.entries != nil {
		return false, nil // a pipe, or a file that was deleted
	}
	at := d.open[key]
	if at == nil {
		at = &position{appends: true} // opened before, by a shell
		d.open[key] = at
	}
	switch c.name {
	case "lseek":
		at.offset, err = number(c.result)
		return false, err
	case "dup", "dup2", "dup3", "fcntl":
		if other, name := descriptor(c.result); name != "" {
			d.open[other] = at
		}
		return false, nil
	case "write", "writev", "pwrite64":
	default:
		return false, fmt.Errorf("not part of the model")
	}
	length, err := number(c.result)
	if err != nil {
		return false, err
	}
	text, err := quotedText(c.args[1])
	if c.name == "writev" {
		text, err = quotedText(strings.Join(c.args[1:], ", "))
	}
	if err != nil || int64(len(text)) < length {
		return false, fmt.Errorf("%d bytes of %d: %w", len(text), length, err)
	}
	offset := at.offset
	switch {
	case c.name == "pwrite64":
		if offset, err = number(c.args[3]); err != nil {
			return false, err
		}
	case at.appends:
		offset = int64(len(n.content(len(n.pending))))
	}
	d.change(path, n, change{offset: offset, data: []byte(text)[:length]})
	if c.name != "pwrite64" {
		at.offset = offset + length
	}
	return true, nil
}

// whole changes or syncs all of an open file or directory.
func (d *disk) whole(c call) (changed bool, err error) {
	_, path := descriptor(c.args[0])
	n := d.find(path)
	if n == nil {
		return false, nil
	}
	switch c.name {
	case "fsync", "fdatasync":
		n.sync(d.now - c.ended + c.began)
		return true, nil
	}
	value, err := number(c.args[1])
	if err != nil {
		return false, err
	}
	if c.name == "fchmod" {
		n.mode = fs.FileMode(value) & 0o777
	} else {
		if grow := value - int64(len(n.content(len(n.pending)))); grow > 0 {
			return false, fmt.Errorf("a file that grows by %d is not part of the model", grow)
		}
		d.change(path, n, change{cut: true, offset: value})
	}
	return true, nil
}

// names changes the entries of directories.
func (d *disk) names(c call) (changed bool, err error) {
	path, err := c.path(0)
	dir, name, ok := d.inside(path)
	if err != nil || !ok {
		return false, err
	}
	n := dir.seen()[name]
	switch c.name {
	case "mkdir", "mkdirat":
		mode, err := number(c.args[len(c.args)-1])
		if err != nil {
			return false, err
		}
		d.change(path, dir, change{added: name, node: &node{mode: masked(mode), entries: map[string]*node{}}})
	case "unlink", "unlinkat", "rmdir":
		d.change(path, dir, change{removed: name})
	case "chmod", "fchmodat":
		at := 1
		if c.name != "chmod" {
			at = 2
		}
		mode, err := number(c.args[at])
		if err != nil {
			return false, err
		}
		n.mode = fs.FileMode(mode) & 0o777
	case "rename", "renameat", "renameat2", "link", "linkat":
		at := 1
		if strings.Contains(c.name, "at") {
			at = 2
		}
		return true, d.moves(c, at, path, dir, name, n)
	default:
		return false, fmt.Errorf("not part of the model")
	}
	return true, nil
}

// moves gives a node another name, and takes the first one from it if the call is a rename.
func (d *disk) moves(c call, at int, path string, dir *node, name string, n *node) error {
	target, err := c.path(at)
	if err != nil {
		return err
	}
	to, as, ok := d.inside(target)
	if !ok || n == nil {
		return fmt.Errorf("%s to %s leaves the tree", path, target)
	}
	if strings.HasPrefix(c.name, "link") {
		d.change(target, to, change{added: as, node: n})
		return nil
	}
	if to == dir {
		d.change(target, dir, change{removed: name, added: as, node: n})
		return nil
	}
	entered := d.change(target, to, change{added: as, node: n})
	d.change(path, dir, change{removed: name, node: n, after: entered})
	return nil
}
