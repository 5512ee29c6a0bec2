/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probes whose hits are known, for tests/run/usdt: by <sys/sdt.h>, or with -DOWN_NOTES by notes of
 * its own. `usdt N` goes through each place N times and prints how often: "PLAIN GUARDED"; the
 * probe "guarded" is only come to while a tool watches it. `usdt N wait` does so for each byte
 * that it reads.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define APART __attribute__((noinline))
#define AND_NO_TAIL_CALL __asm__ volatile("" ::: "memory")

__extension__ unsigned short test_guarded_semaphore __attribute__((unused, section(".probes")));

#ifdef OWN_NOTES
#define STRING(x) #x
#define PROBE(name, semaphore)                                                                  \
	__asm__ volatile(                                                                       \
		"990:	nop\n"                                                                    \
		".pushsection .note.stapsdt,\"\",\"note\"\n"                                    \
		".balign 4\n"                                                                   \
		".4byte 992f-991f, 994f-993f, 3\n"                                              \
		"991: .asciz \"stapsdt\"\n"                                                     \
		"992: .balign 4\n"                                                              \
		"993: .8byte 990b\n"                                                            \
		".8byte _.stapsdt.base\n"                                                       \
		".8byte " STRING(semaphore) "\n"                                                \
					    ".asciz \"test\"\n"                                 \
					    ".asciz \"" STRING(                                 \
						    name) "\"\n"                                \
							  ".asciz \"\"\n"                       \
							  "994: .balign 4\n"                    \
							  ".popsection\n"                       \
							  ".ifndef _.stapsdt.base\n"            \
							  ".pushsection "                       \
							  ".stapsdt.base,\"aG\",\"progbits\",." \
							  "stapsdt.base,comdat\n"               \
							  ".weak _.stapsdt.base\n"              \
							  ".hidden _.stapsdt.base\n"            \
							  "_.stapsdt.base: .space 1\n"          \
							  ".size _.stapsdt.base, 1\n"           \
							  ".popsection\n"                       \
							  ".endif\n")
#define PLAIN() PROBE(plain, 0)
#define GUARDED() PROBE(guarded, test_guarded_semaphore)
#else
#define _SDT_HAS_SEMAPHORES 1 /* each probe has one, whether or not it is looked at */
#include <sys/sdt.h>
__extension__ unsigned short test_plain_semaphore __attribute__((unused, section(".probes")));
#define PLAIN() STAP_PROBE(test, plain)
#define GUARDED() STAP_PROBE1(test, guarded, n)
#endif

static int n;
static unsigned long plain, guarded;

APART static void first(void)
{
	for (int i = 0; i < n; i++) {
		PLAIN();
		__atomic_fetch_add(&plain, 1, __ATOMIC_RELAXED);
	}
	AND_NO_TAIL_CALL;
}

APART static void *second(void *arg)
{
	for (int i = 0; i < n; i++) {
		PLAIN();
		__atomic_fetch_add(&plain, 1, __ATOMIC_RELAXED);
	}
	AND_NO_TAIL_CALL;
	return arg;
}

APART static void third(void)
{
	for (int i = 0; i < n; i++)
		if (*(volatile unsigned short *)&test_guarded_semaphore) {
			GUARDED();
			guarded++;
		}
	AND_NO_TAIL_CALL;
}

static void all(void)
{
	pthread_t t;

	plain = guarded = 0;
	first();
	if (pthread_create(&t, NULL, second, NULL))
		exit(1);
	pthread_join(t, NULL);
	third();
	printf("%lu %lu\n", plain, guarded);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	char c;

	n = argc > 1 ? atoi(argv[1]) : 0;
	if (argc > 2)
		while (read(0, &c, 1) == 1)
			all();
	else
		all();
	return 0;
}
