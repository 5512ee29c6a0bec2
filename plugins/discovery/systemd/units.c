/* SPDX-License-Identifier: Apache-2.0 */
#include "units.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "path.h"

#define BUCKETS 1024u
#define SWEEP 200u /* directories that one units_sweep() checks */
#define GROUP_MAX 4096u
#define LABELS 8u

/* The mount points of the hierarchies: v2; v2 beside v1; v1. */
static const char *const mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified",
				     "/sys/fs/cgroup/systemd"};

struct unit {
	struct unit *next;
	char *cgroup; /* the key, and the target's path */
	char *description, *invocation_id;
	char name[UNIT_NAME]; /* from the bus, or "" */
	struct unit_path path;
	uint32_t list; /* the last list of the bus that had it; 0: not from the bus */
};

struct units {
	const struct fusee_self *self;
	const struct units_options *o;
	struct unit *buckets[BUCKETS]; /* by cgroup */
	uint32_t n, list, swept;       /* swept: the bucket that the next sweep begins with */
	bool warned_full;
};

struct units *units_open(const struct fusee_self *self, const struct units_options *o)
{
	struct units *u = calloc(1, sizeof(*u));

	if (u) {
		u->self = self;
		u->o = o;
		u->list = 1;
	}
	return u;
}

/* ---- the table ---- */

static struct unit **place_of(struct units *u, const char *cgroup)
{
	struct unit **at = &u->buckets[fusee_text_hash(cgroup) % BUCKETS];

	while (*at && strcmp((*at)->cgroup, cgroup))
		at = &(*at)->next;
	return at;
}

static void free_unit(struct unit *unit)
{
	free(unit->cgroup);
	free(unit->description);
	free(unit->invocation_id);
	free(unit);
}

/* Removes the unit from the table and deletes its target. */
static void drop(struct units *u, struct unit **at)
{
	struct unit *unit = *at;

	*at = unit->next;
	u->n--;
	u->self->host->discovery->del(u->self->in, fusee_text(unit->cgroup));
	free_unit(unit);
}

void units_close(struct units *u)
{
	if (!u)
		return;
	for (uint32_t i = 0; i < BUCKETS; i++)
		for (struct unit *unit = u->buckets[i], *next; unit; unit = next) {
			next = unit->next;
			free_unit(unit);
		}
	free(u);
}

static bool is_full(struct units *u)
{
	if (u->n < UNITS_MAX)
		return false;
	fusee_count(u->self, "units_ignored", 1);
	if (!u->warned_full)
		fusee_log(u->self, FUSEE_WARNING, "more than %u units: the others have no labels",
			  UNITS_MAX);
	u->warned_full = true;
	return true;
}

/* NULL: no memory. */
static struct unit *add(struct units *u, struct unit **at, const char *cgroup,
			const struct unit_path *path)
{
	struct unit *unit = calloc(1, sizeof(*unit));

	if (!unit || !(unit->cgroup = strdup(cgroup))) {
		free(unit);
		return NULL;
	}
	unit->path = *path;
	*at = unit;
	u->n++;
	return unit;
}

/* ---- targets ---- */

static bool matches(const struct fusee_table *globs, const struct unit *unit)
{
	return fusee_text_matches(*globs, unit->path.unit) ||
	       (*unit->path.user_unit && fusee_text_matches(*globs, unit->path.user_unit));
}

static int put(struct units *u, const struct unit *unit)
{
	struct fusee_label labels[LABELS];
	struct fusee_target t = FUSEE_SIZED(
		struct fusee_target, .match = FUSEE_MATCH_CGROUP, .key = fusee_text(unit->cgroup),
		.cgroup = fusee_text(unit->cgroup), .labels = {labels, 0, sizeof(labels[0])});
	const char *name = *unit->path.user_unit ? unit->path.user_unit : unit->path.unit;

	if (matches(&u->o->exclude, unit) || (u->o->units.n && !matches(&u->o->units, unit)))
		return 0;
	fusee_add_label(&t.labels, LABELS, "unit", unit->path.unit);
	fusee_add_label(&t.labels, LABELS, "slice", unit->path.slice);
	fusee_add_label(&t.labels, LABELS, "type", unit_type(name));
	fusee_add_label(&t.labels, LABELS, "user_unit", unit->path.user_unit);
	fusee_add_label(&t.labels, LABELS, "machine", unit->path.machine);
	fusee_add_label(&t.labels, LABELS, "description", unit->description);
	fusee_add_label(&t.labels, LABELS, "invocation_id", unit->invocation_id);
	return u->self->host->discovery->put(u->self->in, &t);
}

/* ---- reports about units ---- */

/* Replaces *to. true: the text has changed. */
static bool replace(char **to, const char *text, int *error)
{
	char *copy;

	if (!strcmp(*to ? *to : "", text))
		return false;
	copy = strdup(text);
	if (!copy) {
		*error = -ENOMEM;
		return false;
	}
	free(*to);
	*to = copy;
	return true;
}

int units_put(struct units *u, const char *name, const struct unit_facts *facts)
{
	struct unit **at = place_of(u, facts->cgroup), *unit = *at;
	struct unit_path path;
	bool changed = !unit || !unit->list;
	int error = 0;

	/* A slice is a group of units, whose own paths name it. */
	if (!unit_path_parse(facts->cgroup, &path) || (!unit && is_full(u)))
		return 0;
	if (!unit)
		unit = add(u, at, facts->cgroup, &path);
	if (!unit)
		return -ENOMEM;
	unit->list = u->list;
	if (strcmp(unit->name, name)) {
		snprintf(unit->name, sizeof(unit->name), "%s", name);
		if (!*path.user_unit)
			snprintf(unit->path.unit, sizeof(unit->path.unit), "%s", name);
		changed = true;
	}
	if (u->o->description)
		changed |= replace(&unit->description, facts->description, &error);
	if (u->o->invocation_id)
		changed |= replace(&unit->invocation_id, facts->invocation_id, &error);
	return error ? error : changed ? put(u, unit) : 0;
}

void units_remove(struct units *u, const char *name)
{
	for (uint32_t i = 0; i < BUCKETS; i++)
		for (struct unit **at = &u->buckets[i]; *at;)
			if (!strcmp((*at)->name, name))
				drop(u, at);
			else
				at = &(*at)->next;
}

int units_see(struct units *u, const char *cgroup)
{
	char group[GROUP_MAX];
	struct unit_path path;
	struct unit **at;

	if (!unit_path_parse(cgroup, &path) || path.len >= sizeof(group))
		return 0;
	memcpy(group, cgroup, path.len);
	group[path.len] = '\0';
	at = place_of(u, group);
	if (*at || is_full(u))
		return 0;
	return add(u, at, group, &path) ? put(u, *at) : -ENOMEM;
}

void units_begin_list(struct units *u)
{
	u->list++;
}

void units_end_list(struct units *u)
{
	for (uint32_t i = 0; i < BUCKETS; i++)
		for (struct unit **at = &u->buckets[i]; *at;)
			if ((*at)->list && (*at)->list != u->list)
				drop(u, at);
			else
				at = &(*at)->next;
}

/* ---- control groups that are removed ---- */

static bool exists(const char *cgroup)
{
	char path[GROUP_MAX + 32];
	bool mounted = false;

	for (size_t i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++) {
		snprintf(path, sizeof(path), "%s/cgroup.procs", mounts[i]);
		if (access(path, F_OK))
			continue;
		mounted = true;
		snprintf(path, sizeof(path), "%s%s", mounts[i], cgroup);
		if (!access(path, F_OK))
			return true;
	}
	return !mounted; /* without a mount the answer is unknown */
}

void units_sweep(struct units *u)
{
	uint32_t looked = 0;

	for (uint32_t i = 0; i < BUCKETS && looked < SWEEP; i++) {
		for (struct unit **at = &u->buckets[u->swept]; *at;) {
			if ((*at)->list || (looked++, exists((*at)->cgroup)))
				at = &(*at)->next;
			else
				drop(u, at);
		}
		u->swept = (u->swept + 1) % BUCKETS;
	}
}

uint32_t units_count(const struct units *u)
{
	return u->n;
}
