//go:build amd64 || arm64

package seal

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// keeper is a process that ends the programs of a sealed thread if this process ends without having done so, even by SIGKILL. It is in a
// Landlock domain of its own, which restricts only signals and encloses the domain of the thread. Its kill(-1) reaches every process in
// that domain and no other, and no process in that domain can signal the keeper. A process cannot leave its domain by changing its group,
// session, namespace or environment.
//
// The keeper is a shell, because a shell starts faster than this program, shares no memory with it, and is not killed together with it by
// name.
type keeper struct {
	cmd   *exec.Cmd
	watch int  // the end of its standard input that only this process holds: the kernel closes it when this process ends
	armed bool // the start of a program was announced
}

// keeperProgram is the shell that a keeper executes.
const keeperProgram = "/bin/sh"

// keeperScript waits for a line, which is sent before the first program is started. If the kernel does not restrict the signals of the
// keeper, the script does nothing, because its last line would kill every process of the user.
const keeperScript = `# If the process that started sealed programs is killed, this shell ends those programs and all that they have started.
trap '' HUP INT TERM
kill -0 $PPID && exit
read -r line || exit
read -r line
kill -KILL -1`

// checkKeeper returns an error if no keeper can be started.
func checkKeeper() error {
	if err := unix.Access(keeperProgram, unix.X_OK); err != nil {
		return fmt.Errorf("%s, which ends sealed programs if ollim is killed: %w", keeperProgram, err)
	}
	return nil
}

// keep restricts the signals of the calling thread, which has no privileges any more, and starts a keeper from it.
func keep(null *os.File) (*keeper, error) {
	attr := unix.LandlockRulesetAttr{Scoped: unix.LANDLOCK_SCOPE_SIGNAL}
	set, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return nil, fmt.Errorf("landlock_create_ruleset: %w", errno)
	}
	defer func() { _ = unix.Close(int(set)) }()
	if err := restrictSelf(int(set)); err != nil {
		return nil, err
	}
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return nil, os.NewSyscallError("pipe", err)
	}
	in := os.NewFile(uintptr(pipe[0]), "pipe")
	defer func() { _ = in.Close() }()
	k := &keeper{watch: pipe[1], cmd: &exec.Cmd{
		Path: keeperProgram, Args: []string{"sh", "-c", keeperScript}, Env: []string{}, Dir: "/",
		Stdin: in, Stdout: null, Stderr: null,
		// a session of its own: neither a key at the terminal nor a signal to our process group ends it
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}}
	if err := k.cmd.Start(); err != nil {
		_ = unix.Close(k.watch)
		return nil, err
	}
	return k, nil
}

// arm prepares the keeper for the start of a program. An error means that the keeper has ended.
func (k *keeper) arm() (err error) {
	if !k.armed {
		_, err = unix.Write(k.watch, []byte("\n"))
	} else if poll(0, k.watch) { // POLLERR: the reading end is closed
		err = unix.EPIPE
	}
	if err != nil {
		return fmt.Errorf("the process that ends sealed programs if ollim is killed has ended: %w", err)
	}
	k.armed = true
	return nil
}

// end ends the keeper when no program is left. The calling thread is sealed and cannot signal the keeper, so another thread does.
func (k *keeper) end() {
	if k == nil {
		return
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = k.cmd.Process.Kill()
		_ = k.cmd.Wait()
		_ = unix.Close(k.watch)
	}()
	<-ended
}
