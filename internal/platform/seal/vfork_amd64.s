//go:build linux

#include "textflag.h"

#define SYS_clone 56

// func vfork(flags uintptr) (result uintptr)
TEXT ·vfork(SB), NOSPLIT|NOFRAME, $0-16
	MOVQ flags+0(FP), DI
	MOVQ $0, SI
	MOVQ $0, DX
	MOVQ $0, R10
	MOVQ $0, R8
	MOVQ $SYS_clone, AX
	POPQ R12  // the child shares the stack, and overwrites the return address
	SYSCALL
	PUSHQ R12
	MOVQ AX, result+8(FP)
	RET
