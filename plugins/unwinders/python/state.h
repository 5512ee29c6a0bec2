/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Finds the thread's state and its innermost frame. A part of the step: python.bpf.c includes it.
 */
#ifndef PYTHON_STATE_H
#define PYTHON_STATE_H

#define GLIBC_KEYS 0x310 /* struct pthread: the first block of 32 {sequence number, value} */
#define THREADS 512      /* that are looked at; the verifier's time grows as the square of a loop */
#define THREADS_IN_A_PART 16

#define STATE_BYTES 192u /* of a thread state that are read */

/* A word of the thread state that is_own() has read. 0 or -1. */
FUSEE_FN int state_word(struct fusee_unwind *u, const struct near *n, __u32 at, __u64 *to)
{
	if (at > STATE_BYTES - 8)
		return AT(u, to, u->scratch[WORK] + at);
	*to = n->word[at / 8 & 31];
	return 0;
}

/* Is WORK the state of this thread? thread_id is what pthread_self() returned, the thread pointer.
 */
FUSEE_FN int is_own(struct fusee_unwind *u)
{
	struct near *n = near(u);
	__u64 id;

	return n && u->scratch[WORK] && !(u->scratch[WORK] & 7) &&
	       !fusee_read(u, n->word, STATE_BYTES, u->scratch[WORK]) &&
	       !state_word(u, n, n->table[PYTHON_THREAD_ID], &id) && id == u->tls;
}

/* The state that the thread keeps under a key of pthread's. 1: WORK is it; 0: there is none. */
static int state_by_key(struct fusee_unwind *u, __u32 unused)
{
	struct near *n = near(u);
	__u64 at, known;
	struct {
		__u32 made, key;
	} k;

	(void)unused;
	if (!n)
		return 0;
	at = u->scratch[BASE] + n->table[PYTHON_KEY];
	known = fusee_recall(u, at);
	if (known && !AT(u, &u->scratch[WORK], u->tls + known) && is_own(u))
		return 1;
	if (at == u->scratch[BASE] || AT(u, &k, at) || !k.made || k.key >= 32)
		return 0;
	known = GLIBC_KEYS + 16ull * k.key + 8;
	if (AT(u, &u->scratch[WORK], u->tls + known) || !is_own(u))
		return 0;
	fusee_remember(u, at, known);
	return 1;
}
FUSEE_PART(fusee_python_state_by_key, state_by_key)

/* Goes from WORK to the next thread in the lists of all interpreters; NEXT is the next interpreter.
 * 1: it is this thread's; 0: it is another's; -1: there are no more. */
FUSEE_FN int next_state(struct fusee_unwind *u, const struct near *n)
{
	__u64 interpreter;

	if (u->scratch[WORK]) {
		if (AT(u, &u->scratch[WORK], u->scratch[WORK] + 8))
			return -1;
	} else {
		interpreter = u->scratch[NEXT];
		if (!interpreter || AT(u, &u->scratch[NEXT], interpreter + n->table[PYTHON_NEXT]) ||
		    AT(u, &u->scratch[WORK], interpreter + n->table[PYTHON_THREADS]))
			return -1;
	}
	return is_own(u);
}

/* Goes on in the lists by some threads; other: to a state that is not STATE. As above. */
static int next_states(struct fusee_unwind *u, __u32 other)
{
	struct near *n = near(u);

	for (int i = 0; n && i < THREADS_IN_A_PART; i++) {
		int r = next_state(u, n);

		if (r < 0)
			return r;
		if (r && (!other || u->scratch[WORK] != u->scratch[STATE]))
			return 1;
	}
	return 0;
}
FUSEE_PART(fusee_python_next_states, next_states)

/* The state by the runtime's lists, which may change meanwhile; other: not STATE. 1: WORK is it. */
static int state_by_list(struct fusee_unwind *u, __u32 other)
{
	struct near *n = near(u);
	int r = 0;

	u->scratch[WORK] = 0;
	if (!n || AT(u, &u->scratch[NEXT], u->scratch[BASE] + n->table[PYTHON_INTERPRETERS]))
		return 0;
	for (int i = 0; i < THREADS / THREADS_IN_A_PART && !r; i++)
		r = FUSEE_CALL(fusee_python_next_states, u, other);
	return r;
}
FUSEE_PART(fusee_python_state_by_list, state_by_list)

/* To 3.10: a thread that runs a second interpreter keeps the state of the first under its key. The
 * thread that has the GIL runs the state that the runtime names. 0: WORK is the state that runs;
 * -1: it cannot be known. */
static int running_state(struct fusee_unwind *u, __u32 unused)
{
	__u64 state = u->scratch[WORK], next;
	struct near *n = near(u);
	__u32 at;

	(void)unused;
	if (!n)
		return -1;
	at = n->table[PYTHON_HOLDER];
	if (!at)
		return 0;
	if (!AT(u, &u->scratch[WORK], u->scratch[BASE] + at) && is_own(u))
		return 0;
	u->scratch[WORK] = state;
	if (AT(u, &next, u->scratch[BASE] + n->table[PYTHON_INTERPRETERS]) || !next ||
	    AT(u, &next, next + n->table[PYTHON_NEXT]))
		return -1;
	return next ? -1 : 0; /* there are several interpreters */
}
FUSEE_PART(fusee_python_running_state, running_state)

FUSEE_FN __u8 placed(const struct fusee_unwind *u)
{
	return (__u8)u->scratch[PLACED];
}

/* FRAME becomes the innermost frame of the thread; other: of the other interpreter that the thread
 * runs, from which it called the first. 0, or -1: there is no state. */
static int find_state(struct fusee_unwind *u, __u32 other)
{
	struct near *n = near(u);
	__u32 family, current;
	__u64 at;

	u->scratch[PLACED] = (u->scratch[PLACED] & ~255ull) | (1 + other);
	u->scratch[FRAME] = 0;
	if (!n)
		return -1;
	family = n->table[PYTHON_FAMILY];
	current = n->table[PYTHON_CURRENT];
	if (other) {
		if (FUSEE_CALL(fusee_python_state_by_list, u, 1) != 1)
			return -1;
	} else if (!u->tls ||
		   (FUSEE_CALL(fusee_python_state_by_key, u, 0) != 1 &&
		    FUSEE_CALL(fusee_python_state_by_list, u, 0) != 1) ||
		   FUSEE_CALL(fusee_python_running_state, u, 0)) {
		return -1;
	}
	u->scratch[STATE] = u->scratch[WORK];
	/* if the runtime names who has the GIL, what was read last may be another's */
	if (n->table[PYTHON_HOLDER] ? AT(u, &at, u->scratch[STATE] + current)
				    : state_word(u, n, current, &at))
		return -1;
	if (family == PYTHON_ENTRIES || family == PYTHON_SHIMS) /* it is the current cframe */
		return AT(u, &u->scratch[FRAME], at + (family == PYTHON_ENTRIES ? 8 : 0));
	u->scratch[FRAME] = at;
	return 0;
}
FUSEE_PART(fusee_python_find_state, find_state)

#endif
