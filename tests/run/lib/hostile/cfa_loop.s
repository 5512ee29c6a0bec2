# SPDX-License-Identifier: Apache-2.0
# For cfa_loops.c: a function whose CFA is an expression that jumps to itself (DW_OP_skip -3).
# cc -shared -nostdlib -Wl,--build-id=0x0102030405060708 -o LIBRARY cfa_loop.s
	.text
	.globl	loop
	.type	loop, @function
loop:
	.cfi_startproc
	sub	$8, %rsp
	.cfi_escape 0x0f, 3, 0x2f, 0xfd, 0xff
	call	*%rdi
	add	$8, %rsp
	.cfi_def_cfa %rsp, 8
	ret
	.cfi_endproc
	.size	loop, . - loop
	.section .note.GNU-stack,"",@progbits
