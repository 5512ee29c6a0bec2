/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a module of WebAssembly, as its format has them: names and numbers of functions. */
#ifndef V8_BYTES_H
#define V8_BYTES_H

#include <stdbool.h>
#include <stdint.h>

struct v8_functions {
	uint32_t imported, declared; /* how many; those that are imported have the first numbers */
	uint32_t *
		names; /* of each, where its name is in `texts`, from 1 on; 0: it has none; owned */
	unsigned char *texts; /* the sections with names, owned */
	uint32_t ntexts;
};

/* Copies n bytes at `at` of the module. false: they cannot be read. */
typedef bool v8_read_bytes(void *arg, uint64_t at, void *to, uint32_t n);

/* Reads a module of so many bytes, which can be anything. false: it is none, or it cannot be read,
 * or there is no memory; *f is empty then. Names that are damaged are not used. */
bool v8_bytes_read(v8_read_bytes *, void *arg, uint64_t size, struct v8_functions *f);
/* The bytes of the name of a function. NULL: it has none. */
const unsigned char *v8_bytes_name(const struct v8_functions *, uint32_t function, uint32_t *n);
void v8_bytes_free(struct v8_functions *);

#endif
