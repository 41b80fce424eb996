package main

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// packages are those of Debian that the machines and the server are made of.
func packages() []string {
	return []string{"qemu-system-x86", "nfs-ganesha", "nfs-ganesha-vfs", "linux-image-cloud-amd64", "busybox-static"}
}

// fetch downloads and unpacks Debian's packages and what they depend on, without installing anything, unless that was done before.
func (b *bench) fetch() error {
	done := filepath.Join(b.root, "unpacked")
	if _, err := os.Stat(done); err == nil {
		return nil
	}
	debs := filepath.Join(b.root, "debs")
	if err := os.MkdirAll(debs, 0o755); err != nil {
		return err
	}
	out, err := exec.Command("apt-get", slices.Concat([]string{"install", "--simulate", "--no-install-recommends"}, packages())...).Output()
	if err != nil {
		return fmt.Errorf("apt-get install --simulate: %w", err)
	}
	names := packages()
	for line := range strings.Lines(string(out)) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == "Inst" && !slices.Contains(names, words[1]) {
			names = append(names, words[1])
		}
	}
	download := exec.Command("apt-get", slices.Concat([]string{"download"}, names)...)
	download.Dir, download.Stderr = debs, os.Stderr
	if err := download.Run(); err != nil {
		return fmt.Errorf("apt-get download: %w", err)
	}
	files, err := filepath.Glob(filepath.Join(debs, "*.deb"))
	if err != nil {
		return err
	}
	for _, file := range files {
		if out, err := exec.Command("dpkg-deb", "-x", file, b.root).CombinedOutput(); err != nil {
			return fmt.Errorf("dpkg-deb %s: %w: %s", file, err, out)
		}
	}
	return errors.Join(os.RemoveAll(debs), os.WriteFile(done, nil, 0o600))
}

// program returns a command of the unpacked packages.
func (b *bench) program(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(b.root, "usr/bin", name), args...)
	var libraries []string
	for _, dir := range []string{"usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu", "usr/lib/ganesha"} {
		libraries = append(libraries, filepath.Join(b.root, dir))
	}
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+strings.Join(libraries, ":"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// image makes the file system of the machines: this program as the first process, ollim, busybox and modules of the kernel.
func (b *bench) image() error {
	kernels, err := filepath.Glob(filepath.Join(b.root, "boot/vmlinuz-*"))
	if err != nil || len(kernels) == 0 {
		return errors.Join(err, errors.New("the packages have no kernel"))
	}
	b.kernel, b.initrd = kernels[0], filepath.Join(b.dir, "initrd")
	init, ollim := filepath.Join(b.dir, "init"), filepath.Join(b.dir, "ollim")
	for target, pkg := range map[string]string{init: "./bench/nfs", ollim: "./cmd/ollim"} {
		cmd := exec.Command("go", "build", "-trimpath", "-tags=nethttpomithttp2", "-o", target, pkg)
		cmd.Env, cmd.Stderr = append(os.Environ(), "CGO_ENABLED=0"), os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("go build %s: %w", pkg, err)
		}
	}
	var a archive
	for _, dir := range []string{"bin", "proc", "sys", "dev", "tmp", "data", "modules", "etc"} {
		a.add(dir, 0o40755, nil)
	}
	a.add("etc/passwd", 0o100644, []byte("root:x:0:0::/tmp:/bin/sh\n"))
	modules, err := b.modules(strings.TrimPrefix(filepath.Base(b.kernel), "vmlinuz-"))
	if err != nil {
		return err
	}
	files := [][2]string{{"init", init}, {"bin/ollim", ollim}, {"bin/busybox", filepath.Join(b.root, "bin/busybox")}}
	for i, path := range modules {
		files = append(files, [2]string{fmt.Sprintf("modules/%02d-%s", i, filepath.Base(path)), path})
	}
	for _, f := range files {
		data, err := os.ReadFile(f[1])
		if err != nil {
			return err
		}
		a.add(f[0], 0o100755, data)
	}
	a.add("TRAILER!!!", 0, nil)
	return os.WriteFile(b.initrd, a.Bytes(), 0o600)
}

// modules returns the paths of the modules that a machine needs, each after those on which it depends.
func (b *bench) modules(version string) (order []string, err error) {
	paths := map[string]string{}
	walkErr := filepath.WalkDir(filepath.Join(b.root, "lib/modules", version), func(path string, _ fs.DirEntry, err error) error {
		if name, found := strings.CutSuffix(filepath.Base(path), ".ko"); found {
			paths[strings.ReplaceAll(name, "-", "_")] = path
		}
		return err
	})
	if walkErr != nil {
		return nil, walkErr
	}
	var add func(name string) error
	add = func(name string) error {
		path, found := paths[name]
		if !found || slices.Contains(order, path) { // a name without a file is built in
			return nil
		}
		needs, err := depends(path)
		if err != nil {
			return err
		}
		for _, n := range needs {
			if err := add(n); err != nil {
				return err
			}
		}
		order = append(order, path)
		return nil
	}
	for _, name := range []string{"virtio_pci", "virtio_net", "virtio_console", "nfsv4"} {
		if err := add(name); err != nil {
			return nil, err
		}
	}
	return order, nil
}

// depends returns the names of the modules on which a module depends.
func depends(path string) (names []string, err error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Section(".modinfo").Data()
	if err != nil {
		return nil, err
	}
	for entry := range bytes.SplitSeq(info, []byte{0}) {
		if list, found := strings.CutPrefix(string(entry), "depends="); found && list != "" {
			for name := range strings.SplitSeq(list, ",") {
				names = append(names, strings.ReplaceAll(name, "-", "_"))
			}
		}
	}
	return names, nil
}

// archive is a cpio archive in the form that the kernel unpacks, newc.
type archive struct {
	bytes.Buffer
	files int
}

func (a *archive) add(name string, mode int, data []byte) {
	a.files++
	_, _ = fmt.Fprintf(a, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%s\x00", a.files, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0,
		len(name)+1, 0, name)
	a.pad()
	a.Write(data)
	a.pad()
}

func (a *archive) pad() {
	for a.Len()%4 != 0 {
		a.WriteByte(0)
	}
}
