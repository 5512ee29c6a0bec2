/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For continued.py, which calls it by ctypes. hard() calls a function, and its CFA is an expression
 * that no table has: a walk in the kernel stops there, user space goes on.
 */
#include <alloca.h>

#define FN __attribute__((noipa))

typedef long (*function)(long);

long hard(function f, long n);

__asm__(".globl hard\n.type hard,@function\nhard:\n.cfi_startproc\n"
	"mov %rsp,%rax\n.cfi_def_cfa_register 0\nsub $64,%rsp\nand $-64,%rsp\nmov %rax,24(%rsp)\n"
	/* breg7 24, deref, plus_uconst 8, nop */
	".cfi_escape 0x0f,6,0x77,24,0x06,0x23,8,0x96\n"
	"mov %rdi,%rdx\nmov %rsi,%rdi\ncall *%rdx\n"
	"mov 24(%rsp),%rax\n.cfi_def_cfa 0,8\nmov %rax,%rsp\n.cfi_def_cfa_register 7\nret\n"
	".cfi_endproc\n.size hard,.-hard\n");

static volatile long sink;

/* The test changes it in copies of the library. */
__attribute__((used)) static const char mark[] = "0000 of continued.c";

FN long burn(long n)
{
	for (long i = 0; i < n; i++)
		sink += i;
	return sink;
}

FN long run(long n)
{
	return hard(burn, n) + sink;
}

/* Its frame has what remains on the stack of the callback. */
FN long hollow(long n)
{
	volatile char *room = alloca(6 << 10);

	room[0] = 1;
	return hard(burn, n) + room[0];
}

FN long run_stale(function callback, long depth, long n)
{
	callback(depth);
	return hollow(n) + sink;
}

/* The callback is below hard(). */
FN long run_between(function callback, long n)
{
	return hard(callback, n) + sink;
}
