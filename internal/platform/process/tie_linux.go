package process

import "syscall"

// tie makes the kernel kill the program when the thread that starts it ends.
func tie(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
