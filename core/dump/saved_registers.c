/* SPDX-License-Identifier: Apache-2.0 */
#include "dump/internal/saved_registers.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "process/thread_state.h"

#define FRESH_NS 2000000u /* records are read anew after this time .. */
#define SHARE 4u          /* .. or this many times the time that reading them takes */

struct saved_registers {
	struct task_registers *source; /* borrowed */
	pid_t pid;
	struct task_record *records;
	uint32_t n;
	size_t cap;
	uint64_t until_ns; /* the records are fresh */
};

struct saved_registers *saved_registers_new(struct task_registers *source, pid_t pid)
{
	struct saved_registers *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->source = source;
	s->pid = pid;
	return s;
}

void saved_registers_free(struct saved_registers *s)
{
	if (!s)
		return;
	free(s->records);
	free(s);
}

/* Without memory a thread is missing, and is stopped. */
static void add(void *arg, const struct task_record *r)
{
	struct saved_registers *s = arg;
	struct task_record *to = ARRAY_ADD(s->records, s->n, s->cap);

	if (to)
		*to = *r;
}

static void refresh(struct saved_registers *s)
{
	uint64_t from = clock_now(), now;

	if (from < s->until_ns)
		return;
	s->n = 0;
	task_registers_read(s->source, add, s);
	now = clock_now();
	s->until_ns = now + FRESH_NS + SHARE * (now - from);
}

const struct task_record *saved_registers_of(struct saved_registers *s, pid_t tid)
{
	refresh(s);
	for (uint32_t i = 0; i < s->n; i++)
		if (s->records[i].tid == (uint32_t)tid)
			return &s->records[i];
	return NULL;
}

bool saved_registers_hold(const struct saved_registers *s, const struct task_record *r)
{
	uint64_t nvcsw, nivcsw;

	return !thread_switches_read(s->pid, (pid_t)r->tid, &nvcsw, &nivcsw) && nvcsw == r->nvcsw &&
	       nivcsw == r->nivcsw;
}
