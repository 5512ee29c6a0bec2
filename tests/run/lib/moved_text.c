/* SPDX-License-Identifier: Apache-2.0 */
/*
 * moved_text [COMMANDS]: a program that moves its own code to memory, as node and others do for
 * large pages. COMMANDS are characters, obeyed at once; more are read from standard input. A
 * capital letter: all of its code; else a part of it. a: anonymous memory is mapped in the code's
 * place, and the code copied back; r: mremap() of a copy; f: a memfd; j: anonymous memory in the
 * place of spare(), with code that is made at run time; s: what is in this memory is spare() again.
 * It prints each command when it has obeyed it. All but the move itself is moved.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096
#define AT __attribute__((noinline, noclone, section(".text.work")))
#define PAGED AT __attribute__((aligned(PAGE)))
#define STAYS __attribute__((noinline, noclone, section(".stays")))

static volatile unsigned long sink;

PAGED static void leaf(void)
{
	for (int i = 0; i < 200000; i++)
		sink = sink * 2862933555777941757ul + 3037000493ul;
	sink++;
}

AT static void middle(void)
{
	leaf();
	sink++;
}

AT static void top(void)
{
	for (int i = 0; i < 10; i++)
		middle();
	sink++;
}

/* Its page begins behind those of the others. */
PAGED static void spare(void)
{
	for (int i = 0; i < 1200000; i++)
		sink ^= sink << 1;
	sink++;
}

PAGED static void behind_spare(void)
{
	sink++;
}

AT static void call_spare(void)
{
	void (*volatile f)(void) = spare;

	f();
	sink++;
}

/* ---- what is not moved, and calls nothing ---- */

STAYS static long call(long n, const void *a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
	long r;

	__asm__ volatile("syscall"
			 : "=a"(r)
			 : "0"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return r;
}

STAYS static void copy(char *to, const char *from, size_t n)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
}

STAYS static long move(char how, char *at, size_t n, char *scratch, int fd)
{
	const long rwx = PROT_READ | PROT_WRITE | PROT_EXEC, rx = PROT_READ | PROT_EXEC;
	long r;

	if (how == 'r')
		return call(SYS_mremap, scratch, (long)n, (long)n, MREMAP_MAYMOVE | MREMAP_FIXED,
			    (long)at, 0);
	if (how == 'f')
		return call(SYS_mmap, at, (long)n, rx, MAP_SHARED | MAP_FIXED, fd, 0);
	r = call(SYS_mmap, at, (long)n, rwx, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	if (r == (long)at)
		copy(at, scratch, n);
	return r == (long)at ? call(SYS_mprotect, at, (long)n, rx, 0, 0, 0) : r;
}

/* ---- commands ---- */

/* The mapping of the code. */
static void find_code(char **at, size_t *n)
{
	unsigned long lo, hi;
	char line[4400];
	FILE *maps = fopen("/proc/self/maps", "re");

	while (maps && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx", &lo, &hi) == 2 && lo <= (unsigned long)leaf &&
		    hi > (unsigned long)leaf) {
			*at = (char *)lo;
			*n = hi - lo;
		}
	if (maps)
		fclose(maps);
}

static long move_code(char how, bool all)
{
	size_t n = (size_t)((char *)spare - (char *)leaf);
	char *at = (char *)leaf, *scratch;
	int fd = -1;

	if (all)
		find_code(&at, &n);
	scratch = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(scratch, at, n);
	if (how == 'r')
		mprotect(scratch, n, PROT_READ | PROT_EXEC);
	if (how == 'f') {
		fd = memfd_create("text", 0);
		if (write(fd, scratch, n) != (ssize_t)n)
			return -1;
	}
	return move(how, at, n, scratch, fd);
}

/* mov $4000000, %ecx; 1: dec %ecx; jne 1b; ret */
static const unsigned char made[] = {0xb9, 0x00, 0x09, 0x3d, 0x00, 0xff, 0xc9, 0x75, 0xfc, 0xc3};

static long make_code(bool again)
{
	static char was[PAGE];
	char *at = (char *)spare;

	if (!again) {
		memcpy(was, at, PAGE);
		if (mmap(at, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != at)
			return -1;
	}
	memcpy(at, again ? was : (const char *)made, again ? PAGE : sizeof(made));
	return again ? mprotect(at, PAGE, PROT_READ | PROT_EXEC) : 0;
}

static void obey(char c)
{
	char how = (char)tolower(c);
	long r = how == 'j' || how == 's' ? make_code(how == 's') : move_code(how, isupper(c));

	if (r < 0 && r > -PAGE)
		exit(3);
	printf("%c\n", c);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	char c;

	fcntl(0, F_SETFL, O_NONBLOCK);
	for (const char *p = argc > 1 ? argv[1] : ""; *p; p++)
		obey(*p);
	behind_spare();
	for (;;) {
		top();
		call_spare();
		if (read(0, &c, 1) == 1)
			obey(c);
	}
}
