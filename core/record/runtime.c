/* SPDX-License-Identifier: Apache-2.0 */
#include "record/internal/runtime.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dict.h"
#include "profile/str.h"
#include "record/internal/command.h"

#define LEAST_PART 20 /* a hint is for 1 / LEAST_PART of the profile and more */

#define MAX_RUNTIMES 32
#define NO_RUNTIME 255

/* A run time of a language, as unwinders describe it. */
struct runtime {
	const struct fusee_runtime
		*started;                 /* options with which it names its functions; or NULL */
	const struct fusee_runtime *read; /* an unwinder reads its memory for names; or NULL */
	const struct fusee_plugin *unwinder;
};

/* What the hints know of a location. */
struct seen_location {
	uint8_t runtime; /* index, or NO_RUNTIME */
	bool named;      /* a frame of a language, with its name */
	bool unnamed;    /* code made at run time that nothing names */
};

struct usage {
	uint64_t named_ns, unnamed_ns;
	unsigned int major, minor; /* of the file that was seen; 0: not known */
	pid_t pid;                 /* a process of the runtime */
};

struct study {
	const struct fusee_profile *p;
	struct seen_location *locations;
	struct dict processes; /* key: pid */
	uint8_t *runtime_of;   /* by id in processes */
	struct runtime runtimes[MAX_RUNTIMES];
	uint8_t n;
	struct usage usage[MAX_RUNTIMES];
};

static const struct fusee_runtime *any_of(const struct runtime *r)
{
	return r->started ? r->started : r->read;
}

/* The run time of this name, which is added if it is new. NULL: there are too many. */
static struct runtime *runtime_of_name(struct study *s, const char *name)
{
	for (uint8_t i = 0; i < s->n; i++)
		if (!strcmp(any_of(&s->runtimes[i])->name, name))
			return &s->runtimes[i];
	return s->n < MAX_RUNTIMES ? &s->runtimes[s->n++] : NULL;
}

static void add_runtimes(struct study *s, const struct plugin_set *unwinders)
{
	for (uint32_t i = 0; i < unwinders->n; i++) {
		const struct fusee_plugin *p = unwinders->instances[i]->descriptor;
		const struct fusee_unwinder_ops *ops = p->ops;

		for (uint32_t k = 0; FUSEE_HAS(ops, runtimes) && k < ops->runtimes.n; k++) {
			const struct fusee_runtime *from = FUSEE_AT(struct fusee_runtime,
								    ops->runtimes, k);
			struct runtime *to = runtime_of_name(s, from->name);

			if (to && from->environment)
				to->started = from;
			else if (to)
				*to = (struct runtime){to->started, from, p};
		}
	}
}

/* "libx3.11.so.1.0" is 3.11. */
static void read_version(struct fusee_str base, struct usage *u)
{
	char text[64];
	const char *digit;

	snprintf(text, sizeof(text), "%.*s", (int)base.len, base.p);
	digit = strpbrk(text, "0123456789");
	if (digit && sscanf(digit, "%u.%u", &u->major, &u->minor) != 2)
		u->major = u->minor = 0;
}

/* Whether the name is `beginning`, or that and a version: "node18" and not "nodeadm". */
static bool begins(struct fusee_str base, const char *with)
{
	size_t n = strlen(with);

	return str_begins(base, with) && (base.len == n || strchr("0123456789.-js", base.p[n]));
}

static uint8_t runtime_of_file(struct study *s, uint32_t path)
{
	struct fusee_str base = str_base_name(str_at(s->p, path));

	for (uint8_t i = 0; i < s->n; i++)
		for (const char *const *f = any_of(&s->runtimes[i])->files; *f; f++) {
			if (!begins(base, *f))
				continue;
			read_version(base, &s->usage[i]);
			return i;
		}
	return NO_RUNTIME;
}

static void look_at_location(struct study *s, uint32_t i)
{
	const struct fusee_profile *p = s->p;
	const struct fusee_location *l = FUSEE_AT(struct fusee_location, p->locations, i);
	const struct fusee_mapping *m = FUSEE_AT(struct fusee_mapping, p->mappings, l->mapping);
	struct seen_location *seen = &s->locations[i];
	bool stub = l->flags & FUSEE_LOCATION_STUB;

	seen->runtime = NO_RUNTIME;
	if (l->flags & FUSEE_LOCATION_REASON)
		return;
	seen->unnamed = stub && m->flags & FUSEE_MAPPING_JIT;
	seen->named = !stub && l->frame_type &&
		      !fusee_text_is(str_at(p, l->frame_type), "native") &&
		      !fusee_text_is(str_at(p, l->frame_type), "kernel") &&
		      !fusee_text_is(str_at(p, l->frame_type), "go");
	if (!(m->flags & (FUSEE_MAPPING_JIT | FUSEE_MAPPING_KERNEL)) && l->mapping)
		seen->runtime = runtime_of_file(s, m->path);
}

/* The id of the sample's process; a process that is new has no runtime yet. */
static int process_of(struct study *s, const struct fusee_sample *sample, uint32_t *id)
{
	uint32_t n = s->processes.n;
	uint8_t *all;

	*id = dict_add(&s->processes, &sample->pid, sizeof(sample->pid));
	if (*id == DICT_NONE)
		return -ENOMEM;
	if (s->processes.n == n && s->runtime_of)
		return 0;
	all = realloc(s->runtime_of, s->processes.n);
	if (!all)
		return -ENOMEM;
	memset(all + (s->runtime_of ? n : 0), NO_RUNTIME, s->processes.n - (s->runtime_of ? n : 0));
	s->runtime_of = all;
	return 0;
}

static const struct fusee_sample *sample_at(const struct study *s, uint32_t i)
{
	return FUSEE_AT(struct fusee_sample, s->p->samples, i);
}

static const struct seen_location *frame(const struct study *s, uint32_t stack, uint32_t i,
					 uint32_t *n)
{
	const struct fusee_stack *k = FUSEE_AT(struct fusee_stack, s->p->stacks, stack);

	*n = k->n;
	return i < k->n ? &s->locations[*FUSEE_AT(uint32_t, s->p->stack_locations, k->first + i)]
			: NULL;
}

/* The runtime of a process is found in any of its stacks, as a stack of code made at run time may
 * end before the runtime's own frames. */
static int find_runtimes(struct study *s)
{
	for (uint32_t i = 0; i < s->p->samples.n; i++) {
		const struct fusee_sample *sample = sample_at(s, i);
		const struct seen_location *f;
		uint32_t id, n;
		int r = process_of(s, sample, &id);

		if (r)
			return r;
		for (uint32_t k = 0; (f = frame(s, sample->stack, k, &n)); k++)
			if (f->runtime != NO_RUNTIME)
				s->runtime_of[id] = f->runtime;
	}
	return 0;
}

static void add_sample(struct study *s, uint32_t i)
{
	const struct fusee_sample *sample = sample_at(s, i);
	uint32_t id, n, types = s->p->types.n;
	bool named = false, unnamed = false, inside = false;
	const struct seen_location *f;
	struct usage *u;
	uint64_t ns;

	if (process_of(s, sample, &id) || s->runtime_of[id] == NO_RUNTIME)
		return;
	u = &s->usage[s->runtime_of[id]];
	ns = (uint64_t)*FUSEE_AT(int64_t, s->p->values, i * types + s->p->default_type);
	for (uint32_t k = 0; (f = frame(s, sample->stack, k, &n)); k++) {
		named |= f->named;
		unnamed |= f->unnamed;
		inside |= f->runtime != NO_RUNTIME;
	}
	u->pid = (pid_t)sample->pid;
	if (named)
		u->named_ns += ns;
	else if (unnamed || (inside && any_of(&s->runtimes[s->runtime_of[id]])->flags &
					       FUSEE_RUNTIME_INTERPRETS))
		u->unnamed_ns += ns;
}

/* How to start the run time so that it names its functions. */
static void put_start(const struct fusee_runtime *r, const struct usage *u,
		      const struct selection *o, struct buf *b)
{
	bool old = u->major &&
		   (u->major < r->major || (u->major == r->major && u->minor < r->minor));

	if (old) {
		buf_printf(b,
			   ". %s %u.%u cannot name them to profilers;\n  version %u.%u and later "
			   "can, with this in the environment:\n    %s\n",
			   r->name, u->major, u->minor, r->major, r->minor, r->environment);
	} else if (o->command) {
		buf_printf(b, ". This names them:\n    fusee record -- env %s ", r->environment);
		command_put(o->command, b);
		buf_str(b, "\n");
	} else if (r->command) {
		buf_printf(b,
			   ". While it is recorded:\n    %s %d %s\n  and for complete stacks "
			   "start it with this in the environment:\n    %s\n",
			   r->command, (int)u->pid, r->command_end, r->environment);
	} else {
		buf_printf(b, ". Start it with this in the environment:\n    %s\n", r->environment);
	}
}

/* Appends what has no names, and the command that changes it. */
static void put_hint(const struct runtime *r, const struct usage *u, const struct selection *o,
		     uint64_t all_ns, struct buf *b)
{
	buf_printf(b, "  %.0f %% of the profile is code of %s whose functions have no names",
		   100.0 * (double)u->unnamed_ns / (double)all_ns, any_of(r)->name);
	if (r->read)
		buf_printf(b,
			   ".\n  The unwinder %s reads them from %s %u.%u on, in the kernel "
			   "(fusee doctor)",
			   r->unwinder->name, r->read->name, r->read->major, r->read->minor);
	if (r->started)
		put_start(r->started, u, o, b);
	else
		buf_str(b, "\n");
}

static int study(struct study *s)
{
	int r = dict_init(&s->processes);

	s->locations = calloc(s->p->locations.n, sizeof(*s->locations));
	if (r || !s->locations)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->p->locations.n; i++)
		look_at_location(s, i);
	r = find_runtimes(s);
	for (uint32_t i = 0; !r && i < s->p->samples.n; i++)
		add_sample(s, i);
	return r;
}

int runtime_hints(const struct fusee_profile *p, const struct plugin_set *unwinders,
		  const struct selection *o, uint64_t all_ns, struct buf *b)
{
	struct study s = {.p = p};
	int r;

	add_runtimes(&s, unwinders);
	r = study(&s);
	for (uint8_t i = 0; !r && i < s.n; i++) {
		const struct usage *u = &s.usage[i];

		if (u->unnamed_ns * LEAST_PART >= all_ns && u->unnamed_ns > u->named_ns && all_ns)
			put_hint(&s.runtimes[i], u, o, all_ns, b);
	}
	free(s.locations);
	free(s.runtime_of);
	dict_fini(&s.processes);
	return r ? r : b->error;
}
