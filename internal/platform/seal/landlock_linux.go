//go:build amd64 || arm64

package seal

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The rights of Landlock up to ABI 5. Rights that later versions add are not restricted.
const (
	reading = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	writing = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE |
		unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REFER |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_SYM |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO
	// Rights that no directory grants: a device node in a writable directory would give root access to the disk. A device that is listed
	// itself gets the last of them.
	never = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV

	ofFiles = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV

	scopes = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
)

// landlockABI returns the version of Landlock, or an error if it is less than MinABI.
func landlockABI() (int, error) {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	switch {
	case errno == unix.ENOSYS, errno == unix.EOPNOTSUPP:
		return 0, fmt.Errorf("the kernel has no Landlock, or it is off; ABI %d (Linux 6.12) is needed", MinABI)
	case errno != 0:
		return 0, fmt.Errorf("landlock: %w; ABI %d (Linux 6.12) is needed", errno, MinABI)
	case abi < MinABI:
		return 0, fmt.Errorf("the kernel has Landlock ABI %d; ABI %d (Linux 6.12) is needed", abi, MinABI)
	}
	return int(abi), nil
}

// file identifies the target of a path; the zero value means that there is none. Inode numbers are not reused while a rule is in force.
type file struct{ device, number uint64 }

// paths yields the paths of rules, each with the rights that it grants.
func (r Rules) paths(yield func(path string, access uint64) bool) {
	for _, paths := range []struct {
		list   []string
		access uint64
	}{{r.Read, reading}, {r.List, unix.LANDLOCK_ACCESS_FS_READ_DIR}, {r.Write, reading | writing}} {
		for _, path := range paths.list {
			if !yield(path, paths.access) {
				return
			}
		}
	}
}

// filesOf returns the targets of the paths of rules.
func filesOf(r Rules) (list []file) {
	for path := range r.paths {
		var stat unix.Stat_t
		err := unix.Fstatat(unix.AT_FDCWD, path, &stat, unix.AT_SYMLINK_NOFOLLOW)
		if err != nil || stat.Mode&unix.S_IFMT == unix.S_IFLNK {
			stat = unix.Stat_t{}
		}
		list = append(list, file{stat.Dev, stat.Ino})
	}
	return list
}

// ruleset returns a descriptor of the rules about files, and the targets of their paths. The caller closes it.
func ruleset(r Rules) (fd int, list []file, err error) {
	attr := unix.LandlockRulesetAttr{Handled_access_fs: reading | writing | never, Scoped: scopes}
	set, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return -1, nil, fmt.Errorf("landlock_create_ruleset: %w", errno)
	}
	for path, access := range r.paths {
		f, err := allow(int(set), path, access)
		if err != nil {
			_ = unix.Close(int(set))
			return -1, nil, err
		}
		list = append(list, f)
	}
	return int(set), list, nil
}

// allow adds a path to a ruleset and returns its target.
func allow(ruleset int, path string, access uint64) (file, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &how)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP), errors.Is(err, unix.EACCES):
		return file{}, nil // a missing path needs no rule, and a link may lead anywhere
	case err != nil:
		return file{}, fmt.Errorf("open %s: %w", path, err)
	}
	defer func() { _ = unix.Close(fd) }()
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return file{}, fmt.Errorf("stat %s: %w", path, err)
	}
	switch stat.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
	case unix.S_IFCHR:
		if access&unix.LANDLOCK_ACCESS_FS_WRITE_FILE != 0 {
			access |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
		}
		access &= ofFiles
	default:
		access &= ofFiles
	}
	attr := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(fd)}
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&attr)), 0, 0, 0); errno != 0 {
		return file{}, fmt.Errorf("landlock_add_rule %s: %w", path, errno)
	}
	return file{stat.Dev, stat.Ino}, nil
}

// restrictSelf applies a ruleset to the calling thread.
func restrictSelf(ruleset int) error {
	abi, err := landlockABI()
	if err != nil {
		return err
	}
	var flags uintptr
	if abi >= 7 {
		flags = unix.LANDLOCK_RESTRICT_SELF_LOG_SAME_EXEC_OFF // keeps the trial of each start out of the audit log
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(ruleset), flags, 0); errno != 0 {
		return fmt.Errorf("landlock_restrict_self: %w", errno)
	}
	return nil
}
