//go:build linux

#include "textflag.h"

#define SYS_clone 220

// func vfork(flags uintptr) (result uintptr)
TEXT ·vfork(SB), NOSPLIT|NOFRAME, $0-16
	MOVD flags+0(FP), R0
	MOVD $0, R1
	MOVD $0, R2
	MOVD $0, R3
	MOVD $0, R4
	MOVD $SYS_clone, R8
	SVC // the return address is in a register
	MOVD R0, result+8(FP)
	RET
