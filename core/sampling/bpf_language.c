/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs of language unwinders: the sampler linked with one more step, over the same maps. One is
 * loaded when a process is first met whose files its unwinder has claimed, and then takes over the
 * ticks of such processes.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "sampling/bpf_link.h"
#include "sampling/bpf_state.h"

/* A stranger's object may bring its step, and maps of its own: no programs, and no memory that each
 * CPU would write at once. NULL, or what is wrong. */
static const char *check_object(const struct fusee_unwinder_ops *ops)
{
	LIBBPF_OPTS(bpf_object_open_opts, o, .object_name = "unwinder");
	struct bpf_object *object = bpf_object__open_mem(
		ops->bpf, (size_t)((const char *)ops->bpf_end - (const char *)ops->bpf), &o);
	const char *wrong = NULL;
	struct bpf_map *map;

	if (!object)
		return "it is no BPF object";
	if (bpf_object__next_program(object, NULL))
		wrong = "it brings a program of its own";
	bpf_object__for_each_map(map, object)
	{
		const char *name = bpf_map__name(map);

		if (bpf_map__is_internal(map) && !strstr(name, ".rodata"))
			wrong = "it has global variables that can be written";
	}
	bpf_object__close(object);
	return wrong;
}

/* All maps of the first object serve this one too; those of languages are its own. */
static int share_maps(struct bpf_sampler *b, struct bpf_object *object)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, object)
	{
		struct bpf_map *first = bpf_object__find_map_by_name(b->object, bpf_map__name(map));
		int r;

		if (!first || bpf_map__is_internal(map) || bpf_map__fd(first) < 0)
			continue;
		r = bpf_map__reuse_fd(map, bpf_map__fd(first));
		if (r)
			return r;
	}
	return 0;
}

static int load(struct bpf_sampler *b, uint32_t unwinder, struct bpf_object *object)
{
	struct bpf_program *p;
	int r = share_maps(b, object), fd;

	bpf_object__for_each_program(p, object)
		bpf_program__set_autoload(p, !strcmp(bpf_program__name(p), "sampler_language"));
	if (!r)
		r = bpf_object__load(object);
	if (r)
		return r;
	p = bpf_object__find_program_by_name(object, "sampler_language");
	fd = p ? bpf_program__fd(p) : -1;
	if (fd < 0)
		return -ENOENT;
	return bpf_map_update_elem(b->programs, &unwinder, &fd, BPF_ANY) ? -errno : 0;
}

static int open_program(struct bpf_sampler *b, uint32_t unwinder, char **why)
{
	const struct fusee_plugin *d = b->set->instances[unwinder]->descriptor;
	const struct fusee_unwinder_ops *ops = d->ops;
	const char *wrong = check_object(ops);
	int r;

	if (wrong) {
		*why = strdup(wrong);
		return -EINVAL;
	}
	r = bpf_sampler_link(b, (int)unwinder, &b->languages[unwinder].object, why);
	if (!r)
		r = load(b, unwinder, b->languages[unwinder].object);
	return r;
}

bool bpf_language_ready(struct bpf_sampler *b, uint32_t unwinder)
{
	struct bpf_language *l = &b->languages[unwinder];
	const struct fusee_plugin *d = b->set->instances[unwinder]->descriptor;
	const struct fusee_unwinder_ops *ops = d->ops;
	char *why = NULL;
	int r;

	if (l->tried || !ops->bpf || ops->flags & FUSEE_UNWINDER_NATIVE)
		return l->ready;
	r = open_program(b, unwinder, &why);
	if (r == -ENOMEM) { /* asked again when the next process comes */
		free(why);
		bpf_object__close(l->object);
		l->object = NULL;
		return false;
	}
	l->tried = true;
	l->ready = !r;
	if (r)
		log_warning("the unwinder '%s' cannot be loaded, its frames are left out: %s",
			    d->name, why ? why : strerror(-r));
	free(why);
	return l->ready;
}

void bpf_languages_close(struct bpf_sampler *b)
{
	for (uint32_t i = 0; i < FILES_MAX_UNWINDERS; i++)
		bpf_object__close(b->languages[i].object);
}
