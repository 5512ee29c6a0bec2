// SPDX-License-Identifier: Apache-2.0
/* Fair order of requests. */
#include "worker/internal/turns.h"

#include <errno.h>
#include <stdlib.h>

#include "base/assert.h"

#define MINUTE_NS 60000000000ull
#define SMALLEST 65536u /* bytes: the first class of sizes */
#define URGENT 0        /* the class before those of sizes */
#define LATER (1 + TURNS_CLASSES)
#define CLASSES (LATER + 1)

struct turns_process {
	struct turns_process *next;
	pid_t pid;
	uint32_t n;
	struct turns_item *first[CLASSES], **last[CLASSES];
};

/* Kept while its minute lasts, even without items. */
struct turns_user {
	struct turns_user *next;
	uint32_t uid, n;                     /* n: items */
	struct turns_process *first, **last; /* the next in turn first */
	uint64_t began_ns, spent_ns, bytes;  /* the minute, and what the user had in it */
};

void turns_init(struct turns *q, uint32_t max)
{
	*q = (struct turns){.last = &q->first, .max = max};
}

void turns_fini(struct turns *q)
{
	struct turns_user *u;

	fusee_assert(!q->n);
	while ((u = q->first)) {
		q->first = u->next;
		free(u);
	}
	q->last = &q->first;
}

/* ---- users and processes ---- */

static struct turns_user *find_user(const struct turns *q, uint32_t uid)
{
	struct turns_user *u = q->first;

	while (u && u->uid != uid)
		u = u->next;
	return u;
}

/* NULL: no memory. */
static struct turns_user *get_user(struct turns *q, uint32_t uid)
{
	struct turns_user *u = find_user(q, uid);

	if (u)
		return u;
	u = calloc(1, sizeof(*u));
	if (!u)
		return NULL;
	u->uid = uid;
	u->last = &u->first;
	*q->last = u;
	q->last = &u->next;
	return u;
}

static struct turns_process *get_process(struct turns_user *u, pid_t pid)
{
	struct turns_process *p = u->first;

	while (p && p->pid != pid)
		p = p->next;
	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->pid = pid;
	for (int i = 0; i < CLASSES; i++)
		p->last[i] = &p->first[i];
	*u->last = p;
	u->last = &p->next;
	return p;
}

static int class_of(const struct turns_item *item)
{
	uint64_t bytes = item->bytes;
	int class = URGENT + 1;

	if (item->later)
		return LATER;
	if (item->urgent)
		return URGENT;
	while (class < LATER - 1 && bytes > SMALLEST) {
		bytes /= 16;
		class ++;
	}
	return class;
}

/* Urgent items are kept in order; all others are appended. */
static void insert(struct turns_process *p, struct turns_item *item)
{
	int class = class_of(item);
	struct turns_item **at = p->last[class];

	if (class == URGENT)
		for (at = &p->first[URGENT]; *at && (*at)->urgent >= item->urgent;)
			at = &(*at)->next;
	item->next = *at;
	*at = item;
	if (!item->next)
		p->last[class] = &item->next;
}

int turns_add(struct turns *q, struct turns_item *item)
{
	struct turns_user *u = get_user(q, item->uid);
	struct turns_process *p;

	if (u && u->n >= q->max)
		return -EBUSY;
	p = u ? get_process(u, item->pid) : NULL;
	if (!p)
		return -ENOMEM;
	insert(p, item);
	p->n++;
	u->n++;
	q->n++;
	return 0;
}

static struct turns_item *remove_item(struct turns_process *p,
				      bool (*is)(const struct turns_item *, const void *arg),
				      const void *arg)
{
	struct turns_item *item;

	for (int i = 0; i < CLASSES; i++)
		for (struct turns_item **at = &p->first[i]; (item = *at); at = &item->next) {
			if (!is(item, arg))
				continue;
			*at = item->next;
			if (!*at)
				p->last[i] = at;
			return item;
		}
	return NULL;
}

struct turns_item *turns_hurry(struct turns *q, uint32_t uid, pid_t pid, uint32_t urgent,
			       bool (*is)(const struct turns_item *, const void *arg),
			       const void *arg)
{
	struct turns_user *u = find_user(q, uid);
	struct turns_process *p = u ? u->first : NULL;
	struct turns_item *item;

	while (p && p->pid != pid)
		p = p->next;
	item = p ? remove_item(p, is, arg) : NULL;
	if (!item)
		return NULL;
	item->urgent = urgent;
	insert(p, item);
	return item;
}

/* ---- the share of a minute ---- */

static bool is_over(const struct turns_user *u, uint64_t now)
{
	return now - u->began_ns < MINUTE_NS &&
	       (u->spent_ns > TURNS_SHARE_NS || u->bytes > TURNS_SHARE_BYTES);
}

void turns_charge(struct turns *q, uint32_t uid, uint64_t now, uint64_t ns, uint64_t bytes)
{
	struct turns_user *u = get_user(q, uid);

	if (!u)
		return;
	if (now - u->began_ns >= MINUTE_NS) {
		u->began_ns = now;
		u->spent_ns = u->bytes = 0;
	}
	u->spent_ns += ns;
	u->bytes += bytes;
}

/* ---- taking ---- */

/* Takes the most urgent or the smallest item of the user's first process, which becomes the last.
 */
static struct turns_item *take_of(struct turns *q, struct turns_user *u)
{
	struct turns_process *p = u->first;
	struct turns_item *item = NULL;

	for (int i = 0; i < CLASSES && !item; i++) {
		item = p->first[i];
		if (!item)
			continue;
		p->first[i] = item->next;
		if (!item->next)
			p->last[i] = &p->first[i];
	}
	fusee_assert(item && p->n && q->n);
	q->n--;
	u->n--;
	u->first = p->next;
	if (!u->first)
		u->last = &u->first;
	p->next = NULL;
	if (--p->n) {
		*u->last = p;
		u->last = &p->next;
	} else {
		free(p);
	}
	return item;
}

/* The user's turn is over. */
static void to_the_end(struct turns *q, struct turns_user **at)
{
	struct turns_user *u = *at;

	if (!u->next)
		return;
	*at = u->next;
	u->next = NULL;
	*q->last = u;
	q->last = &u->next;
}

/* Frees users without requests whose minute is over. */
static void forget(struct turns *q, uint64_t now)
{
	struct turns_user **at = &q->first;

	while (*at) {
		struct turns_user *u = *at;

		if (u->first || now - u->began_ns < MINUTE_NS) {
			at = &u->next;
			continue;
		}
		*at = u->next;
		free(u);
	}
	q->last = at;
}

struct turns_item *turns_take(struct turns *q, uint64_t now, bool over, const uint32_t *prefer,
			      bool (*allowed)(void *arg, uint32_t uid), void *arg)
{
	struct turns_user *u = prefer ? find_user(q, *prefer) : NULL;

	if (!q->n)
		return NULL;
	if (u && u->first && !is_over(u, now) && (!allowed || allowed(arg, u->uid)))
		return take_of(q, u);
	forget(q, now);
	for (int pass = 0; pass <= over; pass++)
		for (struct turns_user **at = &q->first; (u = *at); at = &u->next) {
			struct turns_item *item;

			if (!u->first || is_over(u, now) != !!pass ||
			    (allowed && !allowed(arg, u->uid)))
				continue;
			item = take_of(q, u);
			to_the_end(q, at);
			return item;
		}
	return NULL;
}
