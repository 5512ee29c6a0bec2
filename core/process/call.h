/* SPDX-License-Identifier: Apache-2.0 */
/* Call instructions of x86-64, which lie before return addresses, and where they lead. */
#ifndef PROCESS_CALL_H
#define PROCESS_CALL_H

#include <stdbool.h>
#include <stdint.h>

#define CALL_BYTES 7u /* of the longest, without its prefix */

/* May these bytes end with a call? */
bool call_ends(const unsigned char code[CALL_BYTES]);

struct fusee_native;

/* The code of a file that a process has mapped. */
struct call_file {
	int fd;        /* an ELF file */
	uint32_t file; /* its number, by which answers are kept */
	uint64_t bias; /* runtime address - ELF virtual address */
	/* Reads memory of the process. 0 or -1. */
	int (*read)(struct fusee_native *, void *dst, unsigned int len, unsigned long long addr);
	struct fusee_native *arg;
};

struct call_answers;

/* Can the call before the return address `ret` have led to the function at `callee`, of the same
 * file? Not if it names another function, which has no jump there. callee 0: to code that is in no
 * file; not if the function has no jump through a register or memory, nor to another function. true
 * also where that is not known. A jump through a register does not count as one to a function of
 * the file. *answers: NULL at first; free() it, also before a number is another file's. *searched:
 * whether the file was read for the answer. Addresses are the process's. */
bool call_may_lead(struct call_answers **answers, const struct call_file *, uint64_t ret,
		   uint64_t callee, bool *searched);
#endif
