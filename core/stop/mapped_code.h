/* SPDX-License-Identifier: Apache-2.0 */
/* The mappings of files with code that a process has, to find out later whether one of them is not
 * there any more: stacks that were unwound over them could be wrong. For one thread. */
#ifndef STOP_MAPPED_CODE_H
#define STOP_MAPPED_CODE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct mapped_code {
	struct code_range *at; /* owned; in order of address */
	uint32_t n;
	size_t cap;
};

int mapped_code_read(struct mapped_code *, pid_t pid); /* 0 or -errno; *ret is {0} before */
void mapped_code_fini(struct mapped_code *);
/* Are all of them there still? Those that were added do not count. */
bool mapped_code_holds(const struct mapped_code *, pid_t pid);
/* Are they of one program? An exec, of the same program too, has the vdso at another address,
 * unless addresses are not random. */
bool mapped_code_is_same_program(const struct mapped_code *, const struct mapped_code *);
#endif
