/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The units that are known, by their control groups: a target each. The bus says of each unit of
 * the system's manager that it runs; the paths of processes say it of all others. On the control
 * thread.
 */
#ifndef SYSTEMD_UNITS_H
#define SYSTEMD_UNITS_H

#include <stdint.h>

#include <fusee/helpers.h>

#define UNITS_MAX 20000u

/* Labels and selection, as the options say. */
struct units_options {
	struct fusee_table units, exclude; /* globs of names */
	uint8_t description, invocation_id;
};

/* What the bus says of a unit beside its name. Texts may be empty. */
struct unit_facts {
	const char *cgroup, *description, *invocation_id;
};

struct units;

/* NULL: no memory. Both are borrowed until units_close(). */
struct units *units_open(const struct fusee_self *, const struct units_options *);
void units_close(struct units *); /* NULL is fine */

/* The unit `name` runs, as the bus says. 0, -ENOMEM or what host->discovery->put() returned. */
int units_put(struct units *, const char *name, const struct unit_facts *);
/* The unit does not run any more, as the bus says. */
void units_remove(struct units *, const char *name);
/* A process is in this control group: the unit is put if it is not known. 0 or -errno. */
int units_see(struct units *, const char *cgroup);
/* The bus lists all units that run: units_put() for each, then units_end_list(), which removes
 * those of an earlier list that are in it no more. */
void units_begin_list(struct units *);
void units_end_list(struct units *);
/* Removes units whose control groups do not exist any more, of those that the bus has not said. To
 * be called now and then; reads at most 200 directories. */
void units_sweep(struct units *);
uint32_t units_count(const struct units *);
#endif
