package main

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit"
)

const dockerfile = "contrib/container/Dockerfile"

// TestContainerRoot makes the root of contrib/container/Dockerfile's image by the commands of the file, and uses the program in it as a pod
// does: as user 1000, over a root file system that is read-only. No builder of images is needed.
func TestContainerRoot(t *testing.T) {
	t.Parallel()
	testkit.OnlyInCI(t, "the read-only root of the container")
	if !canMount() {
		testkit.Missing(t, "mounting is not permitted here: run the test as root")
	}
	source, err := os.ReadFile(filepath.Join("..", "..", dockerfile))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(source), "\\\n", "")
	build := regexp.MustCompile(`(?m)^RUN (.*go build .*)$`).FindStringSubmatch(text)
	if build == nil {
		t.Fatal("no RUN with go build")
	}
	for _, folder := range regexp.MustCompile(`(?m)^COPY (\w+) \w+$`).FindAllStringSubmatch(text, -1) {
		if _, err := os.Stat(filepath.Join("..", "..", folder[1])); err != nil {
			t.Error(err)
		}
	}
	root := filepath.Join(t.TempDir(), "root")
	cmd := exec.Command("sh", "-c", strings.ReplaceAll(build[1], "/root-of-image", root))
	cmd.Dir = filepath.Join("..", "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	program, err := elf.Open(filepath.Join(root, "usr/local/bin/ollim"))
	if err != nil {
		t.Fatal(err)
	}
	if libraries, err := program.ImportedLibraries(); err != nil || len(libraries) > 0 || program.Section(".interp") != nil {
		t.Errorf("not static: %v %v", libraries, err)
	}
	inPod(t, root)
}

// inPod uses the program of an image's root as a pod does.
func inPod(t *testing.T, root string) {
	t.Helper()
	out, err := exec.Command("unshare", "--mount", "sh", "-ec", podScript, "sh", root).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "uid=1000 gid=1000") || !strings.Contains(string(out), "\thello\n") {
		t.Errorf("%v\n%s", err, out)
	}
}

// podScript mounts what a pod has, and uses a data directory there.
const podScript = `
mount --bind "$1" "$1"
mount -o remount,bind,ro "$1"
mount -t tmpfs -o mode=1777 tmp "$1/tmp"
mount -t tmpfs -o uid=1000,gid=1000,mode=700 home "$1/home/ollim"
inside() { env -i PATH="$PATH" HOME=/home/ollim chroot --userspec=1000:1000 "$1" /usr/local/bin/ollim "$2" "$3" ${4:+"$4"}; }
! touch "$1/x" 2>/dev/null
inside "$1" init --yes
inside "$1" update add hello
inside "$1" update pop
stat -c 'uid=%u gid=%g' "$1"/home/ollim/.ollim-bot/config.yaml
`

// TestContainerImage builds the image where a builder answers, and uses the program in it. Here and in CI there may be none, since a builder
// also needs the base image from a registry, or one that OLLIM_TEST_GO_IMAGE names; TestContainerRoot then shows what can be shown without.
func TestContainerImage(t *testing.T) {
	t.Parallel()
	builder := os.Getenv("OLLIM_TEST_BUILDER")
	if builder == "" {
		t.Skip("no builder of images: set OLLIM_TEST_BUILDER to docker, podman or buildah")
	}
	const image = "localhost/ollim-test"
	do := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(builder, args...)
		cmd.Dir = filepath.Join("..", "..")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", builder, args[0], err, out)
		}
		return strings.TrimSpace(string(out))
	}
	build := []string{"build", "-f", dockerfile, "-t", image}
	if base := os.Getenv("OLLIM_TEST_GO_IMAGE"); base != "" {
		build = append(build, "--build-arg", "GO="+base)
	}
	if builder != "buildah" {
		do(append(build, ".")...)
		do("run", "--rm", "--read-only", "--user=1000:1000", "--cap-drop=ALL", "--security-opt=no-new-privileges", image, "version")
		do("rmi", image)
		return
	}
	do(append(build, "--isolation", "chroot", ".")...) // it needs no service, and has no command that runs an image as a pod does
	container := do("from", image)
	defer do("rm", container)
	inPod(t, do("mount", container))
}
