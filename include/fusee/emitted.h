/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fusee/emitted.h - what a language unwinder's step has emitted, by process and key. Optional:
 * nothing here is part of the ABI, everything is compiled into the plugin.
 *
 * A plugin has a tree of processes, and each process trees of elements: for <search.h>, so that
 * tdestroy() frees them. A process's struct begins with struct fusee_emitted, an element with its
 * 64-bit key.
 *
 * The header needs libc, and compiles as C11 and as C++17 with the extensions of gcc and clang. All
 * functions may be called from any thread, one at a time for the same trees.
 */
#ifndef FUSEE_EMITTED_H
#define FUSEE_EMITTED_H

#include <errno.h>
#include <search.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <fusee/helpers.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FUSEE_EMITTED_BYTES (64u << 20) /* of memory of one process, which may be hostile */

struct fusee_emitted {
	uint64_t process;
	uint64_t bytes; /* of all its elements */
};

static inline int fusee_emitted_order(const void *a, const void *b)
{
	const uint64_t *x = (const uint64_t *)a, *y = (const uint64_t *)b;

	return (*x > *y) - (*x < *y);
}

/* Finds a process by its number, or an element by its key. NULL: it is not in the tree. */
static inline void *fusee_emitted_find(void *const *tree, uint64_t key)
{
	void **node = (void **)tfind(&key, tree, fusee_emitted_order);

	return node ? *node : NULL;
}

/* Finds the process, or makes one of `size` bytes, zeroed. NULL: no memory. */
static inline void *fusee_emitted_process(void **processes, uint64_t process, size_t size)
{
	void *p = fusee_emitted_find(processes, process);

	if (p)
		return p;
	p = calloc(1, size);
	if (!p)
		return NULL;
	memcpy(p, &process, sizeof(process));
	if (tsearch(p, processes, fusee_emitted_order))
		return p;
	free(p);
	return NULL;
}

/* Removes the process, which the caller frees. NULL: there is none. */
static inline void *fusee_emitted_remove(void **processes, uint64_t process)
{
	void *p = fusee_emitted_find(processes, process);

	if (p)
		tdelete(p, processes, fusee_emitted_order);
	return p;
}

/* Makes an element of `size` bytes with this key, otherwise zeroed, for fusee_emitted_keep().
 * element: the address of a pointer to it. 1; 0: the tree has the key; -ENOSPC: the process has too
 * many elements; -ENOMEM. */
static inline int fusee_emitted_new(const struct fusee_emitted *p, void *const *tree, uint64_t key,
				    uint64_t size, void *element)
{
	void *made;

	if (fusee_emitted_find(tree, key))
		return 0;
	if (p->bytes + size > FUSEE_EMITTED_BYTES)
		return -ENOSPC;
	made = calloc(1, (size_t)size);
	if (!made)
		return -ENOMEM;
	memcpy(made, &key, sizeof(key));
	memcpy(element, &made, sizeof(made));
	return 1;
}

/* Adds the element, and owns it: free_element() frees it on failure, NULL is a failure. bytes: of
 * memory that it takes. Returns them, as record() does, or -ENOMEM. */
static inline int fusee_emitted_keep(struct fusee_emitted *p, void **tree, void *element,
				     uint64_t bytes, void (*free_element)(void *))
{
	if (element && tsearch(element, tree, fusee_emitted_order)) {
		p->bytes += bytes;
		return (int)bytes;
	}
	if (element)
		free_element(element);
	return -ENOMEM;
}

/* What record() returns for `kept`, the result of adding an emission: an error is counted by
 * `counter`, with its reason. */
static inline int fusee_emitted_result(const struct fusee_self *self, const char *counter, int kept)
{
	if (kept < 0)
		fusee_count_by(self, counter, "reason",
			       kept == -ENOSPC   ? "too many of one process"
			       : kept == -ENOMEM ? "no memory"
						 : "damaged",
			       1);
	return kept;
}

#ifdef __cplusplus
}
#endif
#endif
