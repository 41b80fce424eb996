package seal

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit"
)

// inChroot runs a test of a copy of this program in a directory that is no mount point. The mount that holds the directory is then
// none that a process in it can see.
const inChroot = `set -e
PATH=$PATH:/usr/sbin:/sbin
cd "$1"
for dir in /bin /dev /etc /lib /lib64 /proc /usr; do
	if [ -L "$dir" ]; then
		cp -P "$dir" ".$dir"
	elif [ -d "$dir" ]; then
		mkdir ".$dir"
		mount --rbind "$dir" ".$dir"
	fi
done
mkdir -m 1777 tmp
cp "$2" test
TMPDIR=/tmp exec chroot . /test -test.v -test.run "^$3\$"`

// TestReachInChroot: every socket inside is reached, and none outside, in a plain chroot too.
func TestReachInChroot(t *testing.T) {
	t.Parallel()
	testkit.OnlyInCI(t, "TestReach once more, in a chroot")
	unshare := testkit.Program(t, "unshare", "util-linux")
	if os.Getuid() != 0 {
		testkit.Missing(t, "no chroot can be made: run the test as root")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), unshare, "--mount", "sh", "-c", inChroot, "sh", t.TempDir(), self, "TestReach").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestReach") {
		t.Errorf("%v\n%s", err, out)
	}
}
