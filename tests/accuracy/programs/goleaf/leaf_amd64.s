// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// func leaf(n uint64) uint64
TEXT ·leaf(SB), NOSPLIT|NOFRAME, $0-16
	MOVQ n+0(FP), AX
	MOVQ $200, CX
loop:
	IMULQ $3, AX
	INCQ  AX
	DECQ  CX
	JNZ   loop
	MOVQ AX, ret+8(FP)
	RET
