/* SPDX-License-Identifier: Apache-2.0 */
/* Machine code of a file with a CRuby, which inspect() searches. x86-64. */
#ifndef RUBY_CODE_H
#define RUBY_CODE_H

#include <stdint.h>

#include <fusee/code.h>

#include "words.h"

struct ruby_file {
	const struct fusee_self *self;
	const struct fusee_unwinder_host *host;
	uint64_t file;
	struct fusee_range exec, core, cold; /* vaddrs; hi 0: there is none */
	struct fusee_range coroutine[2];     /* with which stacks of fibers and threads begin */
	uint32_t claim_flags;
	uint32_t words[RUBY_WORDS];
};

/* Bytes of mov D(%rax),%reg at p, which has 7, and *offset: D. 0: it is another instruction. */
uint32_t ruby_load(const unsigned char *p, int64_t *offset);
void ruby_set_address(uint32_t *words, uint64_t vaddr);

/* The function with this symbol, with the end that call frame information gives it. 0 or -ENOENT.
 */
int ruby_function(const struct ruby_file *, const char *name, struct fusee_range *at);
/* Does a function begin at this vaddr? 1, and *at: it does. */
int ruby_begins(const struct ruby_file *, uint64_t vaddr, struct fusee_range *at);

#define RUBY_SEARCHED 256

/* The functions of a search, in the order in which they were found. */
struct ruby_search {
	struct fusee_range at[RUBY_SEARCHED];
	uint32_t n;
};

/* Adds a function that is not there yet; what has no room is not searched. */
void ruby_search_add(struct ruby_search *, struct fusee_range);
/* Adds the functions that a function calls or jumps to. */
void ruby_search_calls(const struct ruby_file *, const struct fusee_code *, struct ruby_search *);

#endif
