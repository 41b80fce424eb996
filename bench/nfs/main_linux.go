// Command nfs runs ollim on two machines over one NFS export, and shows what it promises and what happens when a machine is stopped, paused,
// killed or cut off, and when the server is restarted. The machines are QEMU's, with Debian's kernel and software emulation; the server is
// NFS-Ganesha on this machine. Debian's packages are downloaded by apt-get and unpacked in the user's cache; nothing is installed. It
// needs root, for the server, and takes some fifteen minutes. Run it from the repository:
//
//	go run ./bench/nfs
//	go run ./bench/nfs -only stopped,contest -slots 20
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

func main() {
	if os.Getpid() == 1 {
		guest()
	}
	runtime.LockOSThread() // the machines and the server are killed when the thread that started them ends
	b := &bench{}
	flag.StringVar(&b.only, "only", "", "the scenarios to run, with commas; none: all of "+strings.Join(names(), ","))
	flag.IntVar(&b.slots, "slots", 100, "how many slots are contested")
	flag.IntVar(&b.lease, "lease", 35, "lease of the server, in seconds")
	flag.IntVar(&b.nice, "nice", 10, "the nice value of the machines")
	flag.StringVar(&b.root, "packages", "", "where the packages are unpacked; none: in the user's cache")
	flag.Parse()
	if err := b.run(); err != nil {
		fmt.Fprintln(os.Stderr, "nfs:", err)
		os.Exit(1)
	}
}

// bench is two machines and the server.
type bench struct {
	only               string
	slots, lease, nice int
	root               string // where the packages are
	dir                string // temporary, and on a disk: the server cannot export a file system in memory
	kernel, initrd     string
	port               int
	server             *server
	a, b               *machine
	failed             bool
}

func (b *bench) run() (err error) {
	if b.root == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return err
		}
		b.root = filepath.Join(cache, "ollim-test", "nfs")
	}
	if err := b.fetch(); err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp("/var/tmp", "nfs"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if err := b.image(); err != nil {
		return err
	}
	if err := b.export(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.server.kill()) }()
	if b.a, err = b.boot("a"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.a.kill()) }()
	if b.b, err = b.boot("b"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.b.kill()) }()
	kernel, _ := b.a.run("uname -r")
	fmt.Printf("Linux %s, NFS 4.2, lease %d s; the machines were ready after %.0f and %.0f s.\n\n| scenario | promised | seen | |\n| --- | --- | --- | --- |\n",
		kernel.Out, b.lease, b.a.started.Seconds(), b.b.started.Seconds())
	for _, s := range scenarios() {
		if b.only != "" && !slices.Contains(strings.Split(b.only, ","), s.name) {
			continue
		}
		if err := s.play(b, s); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	if b.failed {
		return errors.New("not everything was as promised")
	}
	return nil
}

// row prints what was promised and what happened.
func (b *bench) row(s scenario, promised string, ok bool, seen string, args ...any) {
	word := "yes"
	if !ok {
		word, b.failed = "NO", true
	}
	text := strings.NewReplacer("\n", " ", "|", "/").Replace(fmt.Sprintf(seen, args...))
	fmt.Printf("| %s | %s | %s | %s |\n", s.title, promised, text, word)
}
