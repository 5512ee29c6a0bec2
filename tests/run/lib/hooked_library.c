/* SPDX-License-Identifier: Apache-2.0 */
/* The library of hooked.c: functions and a probe of known numbers of hits. */
#include <time.h>

#define APART __attribute__((noinline, visibility("default")))
#define AND_NO_TAIL_CALL __asm__ volatile("" ::: "memory")

#ifndef WITHOUT
APART void hook_call(int i)
{
	(void)i;
	AND_NO_TAIL_CALL;
}
#endif

APART void hook_other(void)
{
	AND_NO_TAIL_CALL;
}

APART void hook_sleep(void)
{
	const struct timespec t = {.tv_nsec = 2000000};

	nanosleep(&t, 0);
	AND_NO_TAIL_CALL;
}

/* As <sys/sdt.h> writes it, of the argument i. */
APART void hook_probe(int i)
{
	__asm__ volatile("990:	nop\n"
			 ".pushsection .note.stapsdt,\"\",\"note\"\n"
			 ".balign 4\n"
			 ".4byte 992f-991f, 994f-993f, 3\n"
			 "991: .asciz \"stapsdt\"\n"
			 "992: .balign 4\n"
			 "993: .8byte 990b\n"
			 ".8byte 0\n"
			 ".8byte 0\n"
			 ".asciz \"test\"\n"
			 ".asciz \"hooked\"\n"
			 ".asciz \"-4@%0\"\n"
			 "994: .balign 4\n"
			 ".popsection\n"
			 :
			 : "D"(i));
}
