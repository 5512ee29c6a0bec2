/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fusee/emitted.h - what a language unwinder's step has emitted, by process and key. Optional:
 * nothing here is part of the ABI, everything is compiled into the plugin.
 *
 * A plugin has a tree of processes, and each process trees of elements: for <search.h>, so that
 * tdestroy() frees them. A process's struct begins with struct fusee_emitted, an element with its
 * 64-bit key.
 *
 * Forgetting. A process that makes code for ever emits names for ever. So elements that begin with
 * struct fusee_emitted_element know when they were last used: in which of the times that begin with
 * ops->forget(.., FUSEE_FORGET_BEGIN). The invariant: each name of a frame that the core has, or
 * will have, is used between that call and the next with FUSEE_FORGET_UNUSED, which frees the
 * others. A frame that the core has is symbolized in between, so what symbolize() looks up has to
 * be looked up by fusee_emitted_use(). A frame that it will have is of a stack that is walked
 * later, for which the step emits all anew, and what record() finds to be there already is used
 * likewise: fusee_emitted_keep_used() and fusee_emitted_has() see to that.
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
	uint32_t time;  /* raised by each fusee_emitted_forget_begin() */
};

/* What an element begins with that can be forgotten. */
struct fusee_emitted_element {
	uint64_t key;
	uint32_t bytes; /* of memory that it takes */
	uint32_t used;  /* fusee_emitted.time at that time */
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

/* ---- elements that can be forgotten ---- */

/* fusee_emitted_find(), of an element that is used. */
static inline void *fusee_emitted_use(const struct fusee_emitted *p, void *const *tree,
				      uint64_t key)
{
	struct fusee_emitted_element *e = (struct fusee_emitted_element *)fusee_emitted_find(tree,
											     key);

	if (e)
		e->used = p->time;
	return e;
}

/* Is there an element with this key? Then it is used. */
static inline int fusee_emitted_has(const struct fusee_emitted *p, void *const *tree, uint64_t key)
{
	return fusee_emitted_use(p, tree, key) != NULL;
}

/* fusee_emitted_keep(), of such an element, which is used. */
static inline int fusee_emitted_keep_used(struct fusee_emitted *p, void **tree, void *element,
					  uint64_t bytes, void (*free_element)(void *))
{
	struct fusee_emitted_element *e = (struct fusee_emitted_element *)element;

	if (e) {
		e->bytes = (uint32_t)bytes;
		e->used = p->time;
	}
	return fusee_emitted_keep(p, tree, element, bytes, free_element);
}

/* An element takes more memory than it was kept with. */
static inline void fusee_emitted_grow(struct fusee_emitted *p, void *element, uint64_t bytes)
{
	p->bytes += bytes;
	((struct fusee_emitted_element *)element)->bytes += (uint32_t)bytes;
}

/* FUSEE_FORGET_BEGIN: no element counts as used any more. */
static inline void fusee_emitted_forget_begin(struct fusee_emitted *p)
{
	p->time++;
}

struct fusee_emitted_unused {
	const struct fusee_emitted *p;
	struct fusee_emitted_element **at; /* NULL: they are counted only */
	size_t n;
};

static inline void fusee_emitted_visit(const void *node, VISIT which, void *arg)
{
	struct fusee_emitted_unused *u = (struct fusee_emitted_unused *)arg;
	struct fusee_emitted_element *e = *(struct fusee_emitted_element *const *)node;

	if ((which != postorder && which != leaf) || e->used == u->p->time)
		return;
	if (u->at)
		u->at[u->n] = e;
	u->n++;
}

/* FUSEE_FORGET_UNUSED: frees the elements of a tree that were not used since. order: of the tree,
 * usually fusee_emitted_order. The bytes that they took; 0 also where there is no memory to find
 * them, with which they stay. */
static inline uint64_t fusee_emitted_forget_unused(struct fusee_emitted *p, void **tree,
						   int (*order)(const void *, const void *),
						   void (*free_element)(void *))
{
	struct fusee_emitted_unused u = {p, NULL, 0};
	uint64_t bytes = 0;

	twalk_r(*tree, fusee_emitted_visit, &u);
	if (u.n)
		u.at = (struct fusee_emitted_element **)calloc(u.n, sizeof(*u.at));
	if (!u.at)
		return 0;
	u.n = 0;
	twalk_r(*tree, fusee_emitted_visit, &u);
	for (size_t i = 0; i < u.n; i++) {
		bytes += u.at[i]->bytes;
		tdelete(u.at[i], tree, order);
		free_element(u.at[i]);
	}
	free(u.at);
	p->bytes -= bytes < p->bytes ? bytes : p->bytes;
	return bytes;
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
