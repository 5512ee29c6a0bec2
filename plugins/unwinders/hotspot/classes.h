/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * How long a note of a method or class holds. Its memory is freed when its class is unloaded, or
 * after an agent has redefined the class, and may then be another's with the same addresses. The
 * JVM counts both, before it frees anything; what is on a thread's stack it does not free. So a
 * note holds for the walk in which it was made, and as long as neither number has changed since. A
 * part of the step: hotspot.bpf.c includes it.
 */
#ifndef HOTSPOT_CLASSES_H
#define HOTSPOT_CLASSES_H

#include "state.h"

/* The last words of such a note; the first are of what is noted. */
enum {
	CLASS_PART = 0,      /* of a class: see class_part() */
	NOTE_CHECKED = 4,    /* time of the walk in which it was last found to hold */
	NOTE_GENERATION = 5, /* 0: it is not known */
};

/* Words of the note of the walk's generation. */
enum { GENERATION_TIME, GENERATION };

#define GENERATION_KEY 0x67656e65726174ull

/* A number that is another after a class was unloaded or redefined. 0: it is not known. Both only
 * grow. */
FUSEE_FN __u64 count_changes(struct fusee_unwind *u)
{
	__u64 unloaded_at = address(u, HOTSPOT_UNLOADED), unloaded, redefined = 0;
	__u64 redefined_at = address(u, HOTSPOT_REDEFINED);
	__u8 may = 1;

	if (!unloaded_at || AT(u, &unloaded, unloaded_at))
		return 0;
	if (redefined_at)
		return AT(u, &redefined, redefined_at) ? 0 : unloaded + redefined + 1;
	return AT(u, &may, address(u, HOTSPOT_MAY_REDEFINE)) || may ? 0 : unloaded + 1;
}

/* Sets n->generation to this, as it is in this walk. 0 or -1. */
static int read_generation(struct fusee_unwind *u, __u32 unused)
{
	struct fusee_note *k = fusee_find_note(u, GENERATION_KEY);
	struct near *n = near(u);

	(void)unused;
	if (!n)
		return -1;
	if (k && k->word[GENERATION_TIME] == u->time_ns) {
		n->generation = k->word[GENERATION];
		return 0;
	}
	n->generation = count_changes(u);
	k = fusee_make_note(u, GENERATION_KEY);
	if (k) {
		k->word[GENERATION_TIME] = u->time_ns;
		k->word[GENERATION] = n->generation;
	}
	return 0;
}
FUSEE_PART(fusee_hotspot_read_generation, read_generation)

/* Does the note hold? By n->generation, if that is read in this walk. */
FUSEE_FN int holds(struct fusee_unwind *u, const struct near *n, struct fusee_note *k, int is_read)
{
	if (k->word[NOTE_CHECKED] == u->time_ns)
		return 1;
	if (!is_read || !k->word[NOTE_GENERATION] || k->word[NOTE_GENERATION] != n->generation)
		return 0;
	k->word[NOTE_CHECKED] = u->time_ns;
	return 1;
}

/* The note of this key, if it holds. Otherwise n->generation is read. */
FUSEE_FN struct fusee_note *holding_note(struct fusee_unwind *u, const struct near *n, __u64 key)
{
	struct fusee_note *k = fusee_find_note(u, key);

	if (k && holds(u, n, k, 0))
		return k;
	if (FUSEE_CALL(fusee_hotspot_read_generation, u, 0) || !k)
		return 0;
	k = fusee_find_note(u, key); /* the generation's may have taken its place */
	return k && holds(u, n, k, 1) ? k : 0;
}

/* Makes such a note of what was read in this walk, as n->generation was. NULL: there can be none.
 */
FUSEE_FN struct fusee_note *make_holding_note(struct fusee_unwind *u, const struct near *n,
					      __u64 key)
{
	struct fusee_note *k = fusee_make_note(u, key);

	if (k) {
		k->word[NOTE_CHECKED] = u->time_ns;
		k->word[NOTE_GENERATION] = n->generation;
	}
	return k;
}

#endif
