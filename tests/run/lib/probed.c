/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of known number and chains, for tests/run/uprobe: `probed N [LIBRARY]` calls hit() from
 * places of its own, in threads and in child processes, of which one executes this program anew;
 * and hit_library() of a library that it loads later. `probed N wait` waits for a byte first.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 4
#define DEEP 40
#define APART __attribute__((noinline))
#define AND_NO_TAIL_CALL __asm__ volatile("" ::: "memory")

static int n;

APART void hit(void)
{
	AND_NO_TAIL_CALL;
}

/* The probe is at its second instruction, which is run once more than the first. */
void twice(void);
__asm__(".pushsection .text\n"
	".globl twice\n"
	".type twice, @function\n"
	"twice:	.cfi_startproc\n"
	"	xor %eax, %eax\n"
	"1:	inc %eax\n"
	"	cmp $2, %eax\n"
	"	jne 1b\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size twice, . - twice\n"
	".popsection\n");

/* Never runs. Its instructions begin at 0, 2, 7, 17; at 18 are bytes that are none. Behind it are a
 * function whose symbol has no size, data, and a function and data whose symbols have no type. */
__asm__(".pushsection .text\n"
	".globl bytes\n"
	".type bytes, @function\n"
	"bytes:	xor %eax, %eax\n"
	"	mov $0xcccccccc, %eax\n"
	"	movabs $0x9090909090909090, %rax\n"
	"	ret\n"
	"	.byte 0x06, 0x90, 0x90\n"
	".size bytes, . - bytes\n"
	".globl sizeless\n"
	".type sizeless, @function\n"
	"sizeless: nop\n"
	"	ret\n"
	".globl table\n"
	".type table, @object\n"
	"table:	.quad 0x9090909090909090\n"
	".size table, . - table\n"
	".globl typeless\n"
	"typeless: nop\n"
	"	ret\n"
	".popsection\n"
	".pushsection .rodata\n"
	".globl untyped\n"
	"untyped: .quad 0x9090909090909090\n"
	".popsection\n");

APART static void plain(void)
{
	for (int i = 0; i < n; i++)
		hit();
	AND_NO_TAIL_CALL;
}

APART static void deep(int depth)
{
	if (depth)
		deep(depth - 1);
	else
		hit();
	AND_NO_TAIL_CALL;
}

APART static void second(void)
{
	for (int i = 0; i < n; i++)
		twice();
	AND_NO_TAIL_CALL;
}

APART static void *of_thread(void *arg)
{
	for (int i = 0; i < n; i++)
		hit();
	AND_NO_TAIL_CALL;
	return arg;
}

static int threads(void)
{
	pthread_t t[THREADS];

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&t[i], NULL, of_thread, NULL))
			return 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	return 0;
}

APART static void of_child(void)
{
	for (int i = 0; i < n; i++)
		hit();
	AND_NO_TAIL_CALL;
}

static int children(char **argv)
{
	char *again[] = {argv[0], argv[1], "again", NULL};
	int status;

	if (!fork()) {
		of_child();
		_exit(0);
	}
	if (wait(&status) < 0 || status)
		return 1;
	if (!fork()) {
		execv(argv[0], again);
		_exit(1);
	}
	return wait(&status) < 0 || status;
}

APART static void loaded(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);
	void (*call)(int) = library ? (void (*)(int))dlsym(library, "call_library") : NULL;

	if (!call)
		exit(1);
	call(n);
	AND_NO_TAIL_CALL;
}

APART static void again(void)
{
	for (int i = 0; i < n; i++)
		hit();
	AND_NO_TAIL_CALL;
}

int main(int argc, char **argv)
{
	const char *how = argc > 2 ? argv[2] : "";
	char c;

	n = argc > 1 ? atoi(argv[1]) : 0;
	if (!strcmp(how, "again")) {
		again();
		return 0;
	}
	if (!strcmp(how, "wait") && read(0, &c, 1) != 1)
		return 1;
	plain();
	for (int i = 0; i < n; i++)
		deep(DEEP);
	second();
	if (threads() || (*how == '/' && children(argv)))
		return 1;
	if (*how == '/')
		loaded(how);
	return 0;
}
