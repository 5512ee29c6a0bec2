/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The known units, by their control groups, with a target for each. Units of the system's manager
 * come from the bus, all others from the paths of processes. On the control thread.
 */
#ifndef SYSTEMD_UNITS_H
#define SYSTEMD_UNITS_H

#include <stdint.h>

#include <fusee/helpers.h>

#define UNITS_MAX 20000u

/* Labels and selection by the options. */
struct units_options {
	struct fusee_table units, exclude; /* globs of names */
	uint8_t description, invocation_id;
};

/* The bus's data about a unit, besides its name. Texts may be empty. */
struct unit_facts {
	const char *cgroup, *description, *invocation_id;
};

struct units;

/* NULL: no memory. Both are borrowed until units_close(). */
struct units *units_open(const struct fusee_self *, const struct units_options *);
void units_close(struct units *); /* NULL is fine */

/* Adds or updates a unit that runs according to the bus. 0, -ENOMEM or what host->discovery->put()
 * returned. */
int units_put(struct units *, const char *name, const struct unit_facts *);
/* Removes a unit that does not run any more according to the bus. */
void units_remove(struct units *, const char *name);
/* Adds the unit of a process in this control group, if it is not known. 0 or -errno. */
int units_see(struct units *, const char *cgroup);
/* The bus lists all units that run: units_put() for each, then units_end_list(), which removes
 * units of an earlier list that this list lacks. */
void units_begin_list(struct units *);
void units_end_list(struct units *);
/* Removes units that did not come from the bus and whose control groups do not exist any more. To
 * be called now and then; reads at most 200 directories. */
void units_sweep(struct units *);
uint32_t units_count(const struct units *);
#endif
