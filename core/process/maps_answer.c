/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the mappings and names of one process. Runs in a thread of maps_reader.c. */
#include "process/internal/maps_answer.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"

struct kept {
	struct maps_answer *a;
	uint32_t most, code;      /* executable mappings */
	uint32_t room;            /* for a->text */
	size_t mappings, threads; /* for how many there is room */
};

/* Names are kept as positions in the text, which moves, until set_pointers(). */
static int keep_name(struct maps_answer *a, const char *name, uint32_t *room)
{
	uint32_t len = (uint32_t)strlen(name) + 1;
	const struct procfs_mapping *last = a->n ? &a->mappings[a->n - 1] : NULL;
	struct procfs_mapping *m = &a->mappings[a->n];
	char *grown;

	if (last && !strcmp(a->text + (uintptr_t)last->name, name)) {
		m->name = last->name;
		return 0;
	}
	if (len > MAPS_READER_TEXT - a->ntext)
		return -E2BIG;
	if (a->ntext + len > *room) {
		*room = 2 * *room > a->ntext + len ? 2 * *room : a->ntext + len;
		grown = realloc(a->text, *room);
		if (!grown)
			return -ENOMEM;
		a->text = grown;
	}
	memcpy(a->text + a->ntext, name, len);
	m->name = (const char *)(uintptr_t)a->ntext;
	a->ntext += len;
	return 0;
}

static int keep(struct kept *r, const struct procfs_mapping *m, bool beside)
{
	struct maps_answer *a = r->a;
	int err;

	if (r->code == r->most)
		return -E2BIG;
	if (!ARRAY_ROOM(a->mappings, a->n, r->mappings))
		return -ENOMEM;
	a->mappings[a->n] = *m;
	a->mappings[a->n].below = a->mappings[a->n].above = NULL;
	a->mappings[a->n].beside = beside;
	err = keep_name(a, m->name, &r->room);
	a->n += !err;
	r->code += !err && !beside;
	return err;
}

/* Keeps a mapping beside memory with code, unless it was kept before. *at: its number + 1 as a
 * pointer, until set_pointers(); NULL: m is NULL. */
static int keep_beside(struct kept *r, const struct procfs_mapping *m,
		       const struct procfs_mapping **at)
{
	const struct maps_answer *a = r->a;
	const struct procfs_mapping *last = a->n ? &a->mappings[a->n - 1] : NULL;
	int err = 0;

	*at = NULL;
	if (!m)
		return 0;
	if (last && last->below && a->mappings[(uintptr_t)last->below - 1].lo == m->lo) {
		*at = last->below;
		return 0;
	}
	if (!last || last->lo < m->lo) {
		err = keep(r, m, true);
		last = err ? NULL : &a->mappings[a->n - 1];
	}
	if (last && last->lo == m->lo)
		*at = (const struct procfs_mapping *)(uintptr_t)a->n;
	return err;
}

static int keep_mapping(void *arg, const struct procfs_mapping *m)
{
	struct kept *r = arg;
	struct maps_answer *a = r->a;
	const struct procfs_mapping *below, *above;
	uint32_t at;
	int err;

	if (a->n && a->mappings[a->n - 1].lo == m->lo) { /* it was kept as the one above */
		a->mappings[a->n - 1].beside = false;
		r->code++;
		return 0;
	}
	err = keep_beside(r, m->below, &below);
	if (err)
		return err;
	at = a->n;
	err = keep(r, m, false);
	if (err)
		return err;
	a->mappings[at].below = below;
	err = keep_beside(r, m->above, &above);
	a->mappings[at].above = above;
	return err;
}

static int keep_thread(void *arg, pid_t tid)
{
	struct kept *r = arg;
	struct maps_answer *a = r->a;
	struct maps_thread t = {.tid = tid};

	if (procfs_comm(a->pid, tid, t.comm))
		return 0;
	if (a->nthreads == MAPS_READER_NAMED || !ARRAY_ROOM(a->threads, a->nthreads, r->threads))
		return 1;
	a->threads[a->nthreads++] = t;
	return 0;
}

/* The text begins with the path of the executable. */
static int keep_exe(struct maps_answer *a, uint32_t *room)
{
	char *exe = malloc(PATH_MAX);

	if (!exe)
		return -ENOMEM;
	procfs_exe(a->pid, exe, PATH_MAX);
	a->text = exe;
	a->ntext = (uint32_t)strlen(exe) + 1;
	*room = PATH_MAX;
	return 0;
}

static void set_pointers(struct maps_answer *a)
{
	for (uint32_t i = 0; i < a->n; i++) {
		struct procfs_mapping *m = &a->mappings[i];

		m->name = a->text + (uintptr_t)m->name;
		m->below = m->below ? &a->mappings[(uintptr_t)m->below - 1] : NULL;
		m->above = m->above ? &a->mappings[(uintptr_t)m->above - 1] : NULL;
	}
}

void maps_answer_read(struct maps_answer *a, uint32_t most)
{
	struct kept r = {.a = a, .most = most};
	uint64_t began = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	a->err = keep_exe(a, &r.room);
	if (!a->err) {
		procfs_comm(a->pid, a->pid, a->comm);
		procfs_each_thread(a->pid, keep_thread, &r);
		a->err = procfs_each_mapping(a->pid, keep_mapping, &r);
	}
	set_pointers(a);
	a->exe = a->text ? a->text : "";
	a->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - began;
}

uint64_t maps_answer_bytes(const struct maps_answer *a)
{
	return sizeof(*a) + a->n * sizeof(*a->mappings) + a->nthreads * sizeof(*a->threads) +
	       a->ntext;
}

void maps_answer_free(struct maps_answer *a)
{
	if (!a)
		return;
	free(a->mappings);
	free(a->threads);
	free(a->text);
	free(a);
}
