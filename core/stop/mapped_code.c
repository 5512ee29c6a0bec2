/* SPDX-License-Identifier: Apache-2.0 */
#include "stop/mapped_code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "process/procfs.h"

struct code_range {
	uint64_t lo, hi, offset, ino;
	uint32_t dev_major, dev_minor;
};

static struct code_range range_of(const struct procfs_mapping *m)
{
	return (struct code_range){m->lo, m->hi, m->offset, m->ino, m->dev_major, m->dev_minor};
}

static int add(void *arg, const struct procfs_mapping *m)
{
	struct mapped_code *c = arg;
	struct code_range *to;

	/* Each program that the process begins has the vdso at another address, also the same
	 * program once more. */
	if (!m->ino && strcmp(m->name, "[vdso]") != 0)
		return 0;
	to = ARRAY_ADD(c->at, c->n, c->cap);
	if (!to)
		return -ENOMEM;
	*to = range_of(m);
	return 0;
}

int mapped_code_read(struct mapped_code *c, pid_t pid)
{
	return procfs_each_mapping(pid, add, c);
}

void mapped_code_fini(struct mapped_code *c)
{
	free(c->at);
	*c = (struct mapped_code){0};
}

/* Does b have the same code where a is? It may be a larger mapping. */
static bool covers(const struct code_range *b, const struct code_range *a)
{
	return b->lo <= a->lo && b->hi >= a->hi && b->lo - b->offset == a->lo - a->offset &&
	       b->ino == a->ino && b->dev_major == a->dev_major && b->dev_minor == a->dev_minor;
}

bool mapped_code_holds(const struct mapped_code *c, pid_t pid)
{
	struct mapped_code now = {0};
	uint32_t at = 0;
	bool holds = !mapped_code_read(&now, pid);

	for (uint32_t i = 0; holds && i < c->n; i++) {
		while (at < now.n && now.at[at].hi <= c->at[i].lo)
			at++;
		holds = at < now.n && covers(&now.at[at], &c->at[i]);
	}
	mapped_code_fini(&now);
	return holds;
}

/* NULL: it has none. */
static const struct code_range *vdso_of(const struct mapped_code *c)
{
	for (uint32_t i = 0; i < c->n; i++)
		if (!c->at[i].ino)
			return &c->at[i];
	return NULL;
}

bool mapped_code_is_same_program(const struct mapped_code *a, const struct mapped_code *b)
{
	const struct code_range *one = vdso_of(a), *other = vdso_of(b);

	if (!one || !other || !a->n || !b->n)
		return false;
	return one->lo == other->lo && a->at[0].ino == b->at[0].ino;
}
