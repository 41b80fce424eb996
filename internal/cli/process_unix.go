package cli

import "syscall"

func processGroup() int { return syscall.Getpgrp() }
