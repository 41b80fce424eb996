package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// apartVariable is set in the process that works over a copy of the file system.
const apartVariable = "OLLIM_MUTATE_APART"

// copySystem continues with a program over a copy of the file system: what is written or removed there is in memory, and ends with it. Its
// arguments are the program, a file that is shared or "", and the program's arguments.
const copySystem = `set -e
program=$1 shared=$2
shift 2
new=$(mktemp -d)
mount -t tmpfs tmpfs "$new"
mkdir "$new"/{root,upper,work,dev,devwork}
mount -t overlay -o "lowerdir=/,upperdir=$new/upper,workdir=$new/work" system "$new/root"
mount -t overlay -o "lowerdir=/dev,upperdir=$new/dev,workdir=$new/devwork" devices "$new/root/dev"
mount --rbind /dev/pts "$new/root/dev/pts"
mount -t tmpfs -o mode=1777 tmpfs "$new/root/dev/shm"
mount --rbind /proc "$new/root/proc"
mount --rbind /sys "$new/root/sys"
mount -t tmpfs -o mode=1777 tmpfs "$new/root/tmp"
cp "$program" "$new/root/tmp/mutate"
if [ -n "$shared" ]; then
  touch "$shared" "$new/root/tmp/shared"
  mount --bind "$shared" "$new/root/tmp/shared"
fi
mkdir "$new/root/old"
here=$PWD
cd "$new/root"
pivot_root . old
umount --lazy old
cd "$here" 2>/dev/null || { echo "$here is below /tmp, or not on the file system of /: run this elsewhere" >&2; exit 1; }
TMPDIR=/tmp exec /tmp/mutate "$@"
`

// apart runs the program again over a copy of the file system, because a changed program may remove or overwrite anything. shared is the file
// that stays; "" if there is none.
func apart(shared string) error {
	if os.Getuid() != 0 {
		return errors.New("a changed program may remove any file, so this runs over a copy of the file system, which only root can make")
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if shared != "" {
		if shared, err = filepath.Abs(shared); err != nil {
			return err
		}
	}
	args := []string{"--mount", "--propagation", "private", "bash", "-c", copySystem, "mutate", self, shared}
	cmd := exec.Command("unshare", append(args, os.Args[1:]...)...)
	cmd.Env = append(os.Environ(), apartVariable+"=1")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("over a copy of the file system: %w", err)
	}
	return nil
}
