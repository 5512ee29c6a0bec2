/* SPDX-License-Identifier: Apache-2.0 */
/* The parts that the loaded object is linked from. */
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <fusee/labeler.h>

#include "linker/constant.h"
#include "bpf/internal/sampler_state.h"

FUSEE_EMBED(sampler_bpf, "sampler.bpf.o");
FUSEE_EMBED(waits_bpf, "waits.bpf.o");
FUSEE_EMBED(probes_bpf, "probes.bpf.o");
FUSEE_EMBED(tracepoints_bpf, "tracepoints.bpf.o");

/* The native unwinders that the program calls, in its order, which is that of their tables too. */
static const char *const steps[SAMPLER_TABLES] = {"dwarf", "framepointer"};

static int step_number(const char *name)
{
	for (uint32_t i = 0; i < SAMPLER_TABLES; i++)
		if (!strcmp(steps[i], name))
			return (int)i;
	return -1;
}

int sampler_object_choose(struct bpf_sampler *b, char **why)
{
	const struct plugin_set *set = b->set;
	int last = -1;

	for (uint32_t i = 0; i < SAMPLER_TABLES; i++)
		b->unwinder[i] = -1;
	b->labelers.n = 0;
	for (uint32_t i = 0; i < set->n && i < FILES_MAX_UNWINDERS; i++) {
		const struct fusee_plugin *d = set->instances[i]->descriptor;
		const struct fusee_unwinder_ops *ops = d->ops;
		int number = step_number(d->name);

		b->late |= ops->flags & FUSEE_UNWINDER_LATE ? 1u << i : 0;
		if (ops->flags & FUSEE_UNWINDER_LABELS && ops->bpf &&
		    b->labelers.n < SAMPLER_LABELERS)
			b->labelers.at[b->labelers.n++] = (int)i;
		if (!ops->native_step || !(ops->flags & FUSEE_UNWINDER_NATIVE))
			continue;
		if (number <= last || !ops->bpf) {
			if (asprintf(why,
				     "the unwinder '%s' has no step for the kernel, or another "
				     "order",
				     d->name) < 0)
				*why = NULL;
			return -ENOTSUP;
		}
		b->unwinder[number] = (int)i;
		b->paged |= ops->flags & FUSEE_UNWINDER_PAGED ? 1u << i : 0;
		last = number;
	}
	return 0;
}

int sampler_object_open(struct bpf_object **ret, int fd)
{
	LIBBPF_OPTS(bpf_object_open_opts, o, .object_name = "sampler");
	struct stat st;
	void *bytes;

	if (fstat(fd, &st))
		return -errno;
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return -errno;
	*ret = bpf_object__open_mem(bytes, (size_t)st.st_size, &o);
	munmap(bytes, (size_t)st.st_size);
	return *ret ? 0 : -errno;
}

static struct linker_part part_of(const struct bpf_sampler *b, int unwinder)
{
	const struct fusee_plugin *d = b->set->instances[unwinder]->descriptor;
	const struct fusee_unwinder_ops *ops = d->ops;

	return (struct linker_part){.name = d->name, .from = ops->bpf, .to = ops->bpf_end};
}

#define NUMBER "fusee_sampler_number" /* of fusee/sampler_kernel.h */
#define OTHER_ABI "it was built for another version of the plugin ABI: build it again"

static struct linker_part chooser_part(const struct fusee_instance *chooser, uint32_t number)
{
	const struct fusee_sampler_ops *ops = chooser->descriptor->ops;

	return (struct linker_part){.name = chooser->descriptor->name,
				    .from = ops->bpf,
				    .to = ops->bpf_end,
				    .constant = NUMBER,
				    .value = number};
}

/* An object that was built before there could be several has no number. */
static bool has_number(const struct linker_part *part)
{
	size_t at;

	return !constant_find(part->from,
			      (size_t)((const char *)part->to - (const char *)part->from), NUMBER,
			      &at);
}

bool sampler_object_is_chooser(const struct bpf_program *p)
{
	return !strncmp(bpf_program__name(p), CHOOSER_PREFIX, sizeof(CHOOSER_PREFIX) - 1);
}

static const char *wrong_programs(const struct bpf_object *object)
{
	struct bpf_program *p;
	uint32_t n = 0;

	bpf_object__for_each_program(p, object)
	{
		if (!sampler_object_is_chooser(p))
			return "it has a program without FUSEE_SAMPLER_PROGRAM()";
		if (strncmp(bpf_program__section_name(p), "tp_btf/", 7) != 0)
			return "its programs must be at \"tp_btf/TRACEPOINT\"";
		n++;
	}
	return !n                  ? "it has no program: FUSEE_SAMPLER_PROGRAM()"
	       : n > CHOOSER_LINKS ? "it has more than 8 programs"
				   : NULL;
}

/* What is wrong with the maps of a plugin's object. prefix: with which names of its own maps must
 * begin; NULL: with any. */
static const char *wrong_maps(const struct bpf_object *object, const char *prefix)
{
	const char *wrong = OTHER_ABI;
	struct bpf_map *map;

	bpf_object__for_each_map(map, object)
	{
		const char *name = bpf_map__name(map);

		if (bpf_map__is_internal(map) && !strstr(name, ".rodata"))
			return "it has global variables that can be written";
		if (!strcmp(name, "fusee_abi") && bpf_map__max_entries(map) == FUSEE_BPF_ABI)
			wrong = NULL;
		if (prefix && !bpf_map__is_internal(map) && strncmp(name, "fusee_", 6) != 0 &&
		    strncmp(name, prefix, strlen(prefix)) != 0)
			return "names of its maps must begin with that of the plugin";
	}
	return wrong;
}

static struct bpf_object *open_part(const struct linker_part *part)
{
	LIBBPF_OPTS(bpf_object_open_opts, o, .object_name = "plugin");

	return bpf_object__open_mem(
		part->from, (size_t)((const char *)part->to - (const char *)part->from), &o);
}

const char *sampler_object_wrong_step(const struct fusee_plugin *d)
{
	const struct fusee_unwinder_ops *ops = d->ops;
	const struct linker_part part = {.name = d->name, .from = ops->bpf, .to = ops->bpf_end};
	struct bpf_object *object = open_part(&part);
	const char *wrong = !object ? "it is no BPF object"
			    : bpf_object__next_program(object, NULL)
				    ? "it brings a program of its own"
				    : NULL;

	if (!wrong)
		wrong = wrong_maps(object, ops->flags & FUSEE_UNWINDER_LABELS ? part.name : NULL);
	bpf_object__close(object);
	return wrong;
}

static int check_step(void *arg, char *why, size_t len)
{
	const struct fusee_instance *labeler = arg;
	const char *wrong = sampler_object_wrong_step(labeler->descriptor);

	if (wrong)
		snprintf(why, len, "%s", wrong);
	return wrong ? -EINVAL : 0;
}

int sampler_object_check_labeler(struct fusee_instance *labeler, char **why)
{
	struct loader child;
	int r = loader_start(&child, "reading its step", check_step, labeler, NULL, 0);

	return r ? r : loader_wait(&child, why);
}

int sampler_object_check_chooser(const struct fusee_instance *chooser, char **why)
{
	const struct linker_part part = chooser_part(chooser, 0);
	struct bpf_object *object = open_part(&part);
	const char *wrong = object ? wrong_programs(object) : "it is no BPF object";

	if (!wrong)
		wrong = wrong_maps(object, part.name);
	bpf_object__close(object);
	if (!wrong && !has_number(&part))
		wrong = OTHER_ABI;
	if (!wrong)
		return 0;
	if (asprintf(why, "the BPF half of %s: %s", chooser->name, wrong) < 0)
		*why = NULL;
	return -EINVAL;
}

enum sampler_object sampler_object_first(const struct bpf_sampler *b)
{
	return b->waits.sampled ? OBJECT_WAITS : b->probes.sampled ? b->probes.which : OBJECT_TICKS;
}

uint32_t sampler_object_parts(const struct bpf_sampler *b, enum sampler_object which, int language,
			      struct linker_part parts[SAMPLER_PARTS])
{
	bool waits = which == OBJECT_WAITS;
	uint32_t n = 0;

	if (waits)
		parts[n++] = (struct linker_part){.name = "waits",
						  .from = waits_bpf,
						  .to = waits_bpf_end,
						  .constant = "fusee_samplers",
						  .value = waits_samplers(b)};
	else if (which == OBJECT_TRACEPOINTS)
		parts[n++] = (struct linker_part){
			.name = "tracepoints", .from = tracepoints_bpf, .to = tracepoints_bpf_end};
	else if (which == OBJECT_PROBES)
		parts[n++] = (struct linker_part){
			.name = "probes", .from = probes_bpf, .to = probes_bpf_end};
	else
		parts[n++] = (struct linker_part){
			.name = "sampler", .from = sampler_bpf, .to = sampler_bpf_end};
	for (uint32_t i = 0; i < SAMPLER_TABLES; i++)
		if (b->unwinder[i] >= 0)
			parts[n++] = part_of(b, b->unwinder[i]);
	for (uint32_t i = 0; i < b->labelers.n; i++) {
		parts[n] = part_of(b, b->labelers.at[i]);
		parts[n++].labeler = i;
	}
	if (language >= 0)
		parts[n++] = part_of(b, language);
	for (uint32_t i = 0; language < 0 && waits && i < waits_samplers(b); i++)
		parts[n++] = chooser_part(b->waits.choosers->at[i], i);
	return n;
}

bool sampler_object_is_language(const struct fusee_unwinder_ops *ops)
{
	return ops->bpf && !(ops->flags & (FUSEE_UNWINDER_NATIVE | FUSEE_UNWINDER_LABELS));
}

static bool has_languages(const struct plugin_set *set)
{
	for (uint32_t i = 0; i < set->n; i++) {
		if (sampler_object_is_language(set->instances[i]->descriptor->ops))
			return true;
	}
	return false;
}

int sampler_object_exclude_languages(const struct bpf_sampler *b, struct bpf_object *object)
{
	static const char *const maps[] = {
		"fusee_abi",         "fusee_emission",    "fusee_notes",      "sampler_sent",
		"sampler_near_keys", "sampler_withdrawn", "sampler_emissions"};
	struct bpf_program *p = bpf_object__find_program_by_name(object, "sampler_language");
	int r = p ? bpf_program__set_autoload(p, false) : -ENOENT;
	uint32_t n = has_languages(b->set) ? 1 : sizeof(maps) / sizeof(*maps);

	for (uint32_t i = 0; !r && i < n; i++) {
		struct bpf_map *map = bpf_object__find_map_by_name(object, maps[i]);

		r = map ? bpf_map__set_autocreate(map, false) : -ENOENT;
	}
	return r;
}
