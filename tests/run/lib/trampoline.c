/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trampoline SECONDS: calls through three of CPython's trampolines (perf trampolines, -X perf),
 * with a perf map that names them as CPython does, and burns CPU below. What main calls is
 * enter, py_outer, enter, py_middle, enter, py_inner, enter, burn.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define CALLS 3

typedef long enter_fn(long depth, long seconds, long unused);
typedef long trampoline(long depth, long seconds, long unused, enter_fn *);

static const unsigned char code[] = {0x48, 0x83, 0xec, 0x08, 0xff, 0xd1,
				     0x48, 0x83, 0xc4, 0x08, 0xc3};
static const char *const names[CALLS] = {"py_outer", "py_middle", "py_inner"};
static char *memory;
static volatile unsigned long sink;

__attribute__((noinline)) static long burn(long seconds)
{
	time_t end = time(NULL) + seconds;

	while (time(NULL) < end)
		for (unsigned long i = 0; i < 100000; i++)
			sink += i * i;
	return (long)sink;
}

__attribute__((noinline)) static long enter(long depth, long seconds, long unused)
{
	trampoline *next;
	long r;

	if (depth == CALLS) {
		r = burn(seconds);
	} else {
		next = (trampoline *)(void *)(memory + 64 * depth);
		r = next(depth + 1, seconds, unused, enter);
	}
	__asm__ volatile("" : "+r"(r)); /* no tail call */
	return r;
}

int main(int argc, char **argv)
{
	char path[64];
	FILE *map;

	memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
		      -1, 0);
	if (memory == MAP_FAILED)
		return 1;
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	map = fopen(path, "w");
	for (int i = 0; i < CALLS; i++) {
		memcpy(memory + 64 * i, code, sizeof(code));
		if (map)
			fprintf(map, "%lx %zx py::%s:x.py\n", (unsigned long)memory + 64ul * i,
				sizeof(code), names[i]);
	}
	if (!map || fclose(map))
		return 1;
	return !enter(0, argc > 1 ? atol(argv[1]) : 1, 0);
}
