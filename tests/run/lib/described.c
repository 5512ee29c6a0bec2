/* SPDX-License-Identifier: Apache-2.0 */
/* A probe whose arguments are known and in places of each kind, for tests/run/usdt: `described N`
 * comes to it with i from 0 to N - 1. What its registers have beside the arguments is not 0. */
#include <stdint.h>
#include <stdlib.h>

#ifdef HEADER
#include <sys/sdt.h>
#else
#define NOTE(name, arguments)                        \
	"990:	nop\n"                                 \
	".pushsection .note.stapsdt,\"\",\"note\"\n" \
	".balign 4\n"                                \
	".4byte 992f-991f, 994f-993f, 3\n"           \
	"991: .asciz \"stapsdt\"\n"                  \
	"992: .balign 4\n"                           \
	"993: .8byte 990b, 0, 0\n"                   \
	".asciz \"test\"\n.asciz \"" name "\"\n"     \
	".asciz \"" arguments "\"\n"                 \
	"994: .balign 4\n"                           \
	".popsection\n"
#endif

#define ONES 0xffffffff00000000

int64_t table[65536];
static volatile int32_t halves[4];
char *nowhere = (char *)4096; /* no process has memory there */

__attribute__((noinline)) static void come(uint64_t i)
{
	int32_t in_memory = -(int32_t)i;
#ifdef HEADER
	STAP_PROBE8(test, described, (int32_t)(i - 50), i << 40, (int8_t)i, (uint16_t)(i * 300),
		    in_memory, -5, table[i], (uint8_t)(i / 2));
#else
	__asm__ volatile(NOTE("described",
			      "-4@%k0 8@%1 -1@%b2 2@%w3 -4@%4 -8@$-5 -8@(%5,%1,8) 1@%h6 8f@%%xmm0 "
			      "4@8(%7) -4@8+halves(%%rip)")::"r"(ONES | (uint32_t)(i - 50)),
			 "r"(i), "q"(ONES | (uint8_t)i | 0x700),
			 "r"(ONES | (uint16_t)(i * 300) | 0x70000), "m"(in_memory), "r"(table),
			 "Q"(ONES | (i / 2 & 0xff) << 8 | 0x22), "r"(nowhere)
			 : "memory");
#endif
}

int main(int argc, char **argv)
{
	uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;

	for (uint64_t i = 0; i < n; i++)
		table[i] = i % 3 ? (int64_t)i << 33 : -1;
	for (uint64_t i = 0; i < n; i++) {
		halves[2] = 7 - (int32_t)(i / 2);
		come(i);
	}
	return 0;
}
