// SPDX-License-Identifier: Apache-2.0
#include "opener/internal/late.h"

#include <unistd.h>

#include "base/clock.h"

#define MS 1000000ull

void opener_late_init(struct opener_late *l)
{
	*l = (struct opener_late){0};
	for (uint32_t i = 0; i < OPENER_LATE; i++)
		l->all[i].answer.fd = -1;
}

struct opener_late_query opener_late_query(const struct opener_query *q, uint64_t sent)
{
	struct opener_late_query r = {.pid = q->pid, .sent = sent};

	if (q->kind == OPENER_MAPPING) {
		r.mapping = q->mapping;
		r.mapping.name = NULL;
	} else if (q->kind == OPENER_COMPARE) {
		r.address = q->address;
		r.bytes = q->bytes;
		r.offset = q->offset;
	}
	return r;
}

static uint64_t close_answer(const struct opener_answer *a)
{
	if (a->fd >= 0)
		close(a->fd);
	return a->st.copied;
}

uint64_t opener_late_keep(struct opener_late *l, const struct opener_late_query *q,
			  const struct opener_answer *a)
{
	uint32_t i = l->n % OPENER_LATE;
	uint64_t closed, kept_ms = OPENER_SUSPECT_MS;

	if (q->bytes) /* the memory may change */
		kept_ms = OPENER_COMPARED_MS;
	else if (!q->mapping.ino || a->err)
		return close_answer(a);
	l->n++;
	closed = close_answer(&l->all[i].answer);
	l->all[i].query = *q;
	l->all[i].answer = *a;
	l->all[i].until = clock_now() + kept_ms * MS;
	return closed;
}

static bool is_same(const struct procfs_mapping *a, const struct procfs_mapping *b)
{
	return a->ino && a->ino == b->ino &&
	       (!a->generation || !b->generation || a->generation == b->generation) &&
	       a->dev_major == b->dev_major && a->dev_minor == b->dev_minor;
}

static bool answers(const struct opener_late_query *kept, const struct opener_query *q)
{
	if (q->kind == OPENER_MAPPING)
		return is_same(&kept->mapping, &q->mapping);
	return q->kind == OPENER_COMPARE && kept->bytes && kept->bytes == q->bytes &&
	       kept->pid == q->pid && kept->address == q->address && kept->offset == q->offset &&
	       kept->sent >= q->since;
}

bool opener_late_take(struct opener_late *l, const struct opener_query *q, uint64_t now,
		      struct opener_answer *a)
{
	for (uint32_t i = 0; i < OPENER_LATE; i++) {
		if (now >= l->all[i].until || !answers(&l->all[i].query, q))
			continue;
		*a = l->all[i].answer;
		l->all[i].until = 0;
		l->all[i].answer = (struct opener_answer){.fd = -1};
		return true;
	}
	return false;
}

uint64_t opener_late_expire(struct opener_late *l, uint64_t now, uint64_t *at)
{
	uint64_t closed = 0;

	for (uint32_t i = 0; i < OPENER_LATE; i++) {
		if (!l->all[i].until)
			continue;
		if (now >= l->all[i].until) {
			closed += close_answer(&l->all[i].answer);
			l->all[i].until = 0;
			l->all[i].answer = (struct opener_answer){.fd = -1};
		} else if (at && (!*at || l->all[i].until < *at)) {
			*at = l->all[i].until;
		}
	}
	return closed;
}
