/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs of language unwinders: the sampler linked with one more step, over the same maps. They
 * are loaded when bpf_sampler_load_languages() is called or code is claimed. A walk that comes to
 * code that another unwinder has claimed goes on in that unwinder's program. Loading takes up to
 * 0.2 s and is done by a child process, which puts the program into a map; the map keeps it loaded
 * when the child ends.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "bpf/internal/sampler_state.h"
#include "programs/sent_keys.h"

#define MAX_MAPS 320u
#define ATTEMPTS 3u           /* a crash may be a lack of memory */
#define PAUSE_NS 100000000ull /* before the second, twice as long before the third .. */
#define MOST_PAUSES 8u        /* .. up to 26 s */

/* ---- the child ---- */

/* An object that is loaded, to which a language unwinder's program is added. */
struct base {
	struct bpf_object *object;
	int programs; /* its map of programs */
	enum sampler_object which;
	enum uprobe_link_type type;
};

/* Both objects use the maps of the first; the plugin's own exist only in the second. */
static int load(const struct base *base, uint32_t unwinder, struct bpf_object *object)
{
	struct bpf_map *abi = bpf_object__find_map_by_name(object, "fusee_abi");
	struct bpf_program *p;
	int r, fd;

	if (abi)
		bpf_map__set_autocreate(abi, false);
	r = waits_share_maps(object, base->object, true);
	bpf_object__for_each_program(p, object)
		bpf_program__set_autoload(p, !strcmp(bpf_program__name(p), "sampler_language"));
	uprobe_link_set_type(object, base->type);
	if (!r)
		r = bpf_object__load(object);
	if (r)
		return r;
	p = bpf_object__find_program_by_name(object, "sampler_language");
	fd = p ? bpf_program__fd(p) : -1;
	if (fd < 0)
		return -ENOENT;
	return bpf_map_update_elem(base->programs, &unwinder, &fd, BPF_ANY) ? -errno : 0;
}

struct job {
	struct bpf_sampler *b;
	uint32_t unwinder;
};

static const struct fusee_plugin *plugin_of(const struct bpf_sampler *b, uint32_t unwinder)
{
	return b->set->instances[unwinder]->descriptor;
}

static int link_and_load_in(const struct job *j, const struct base *base, const char **what)
{
	struct linker_part parts[SAMPLER_PARTS];
	struct bpf_object *object;
	int out, r;

	*what = "its parts cannot be linked";
	out = memfd_create("sampler", MFD_CLOEXEC);
	r = out < 0 ? -errno
		    : linker_join(parts,
				  sampler_object_parts(j->b, base->which, (int)j->unwinder, parts),
				  out);
	if (!r)
		r = sampler_object_open(&object, out);
	if (r)
		return r;
	*what = "the kernel does not load it";
	return load(base, j->unwinder, object);
}

static int link_and_load(void *arg, char *why, size_t len)
{
	const struct job *j = arg;
	const struct bpf_sampler *b = j->b;
	const struct base first = {b->object, b->fds.programs, sampler_object_first(b),
				   b->probes.type};
	const struct base waits = {b->waits.object, b->waits.programs, OBJECT_WAITS, UPROBE_EVENTS};
	const char *what = sampler_object_wrong_step(plugin_of(b, j->unwinder)), *refusal;
	int r;

	if (what) {
		snprintf(why, len, "%s", what);
		return -EINVAL;
	}
	libbpf_log_start();
	r = link_and_load_in(j, &first, &what);
	if (!r && b->waits.beside)
		r = link_and_load_in(j, &waits, &what);
	for (uint32_t i = 0; !r && i < PROBE_OBJECTS; i++) {
		const struct probes *h = probes_at(b, i);
		const struct base probes = {h->object, h->programs, h->which, h->type};

		if (h->beside)
			r = link_and_load_in(j, &probes, &what);
	}
	refusal = libbpf_log_refusal();
	if (r)
		snprintf(why, len, "%s: %s", what, refusal ? refusal : strerror(-r));
	return r; /* the exit of this process frees the rest */
}

/* ---- the parent ---- */

static int keep_maps(struct bpf_object *object, int *keep, uint32_t *n)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, object)
	{
		if (*n == MAX_MAPS)
			return -E2BIG;
		if (bpf_map__fd(map) >= 0)
			keep[(*n)++] = bpf_map__fd(map);
	}
	return 0;
}

static int start(struct bpf_sampler *b, uint32_t unwinder)
{
	struct job j = {b, unwinder};
	int keep[MAX_MAPS];
	uint32_t n = 0;
	int r = keep_maps(b->object, keep, &n);

	if (!r && b->waits.beside)
		r = keep_maps(b->waits.object, keep, &n);
	for (uint32_t i = 0; !r && i < PROBE_OBJECTS; i++)
		if (probes_at(b, i)->beside)
			r = keep_maps(probes_at(b, i)->object, keep, &n);
	if (r)
		return r;
	return loader_start(&b->languages[unwinder].child, "loading it", link_and_load, &j, keep,
			    n);
}

/* May there be enough of it later? */
static bool is_shortage(int r)
{
	return r == -ENOMEM || r == -EAGAIN || r == -EMFILE || r == -ENFILE;
}

static bool is_retried(const struct language_program *l, int r)
{
	return is_shortage(r) || (r == -EFAULT && l->attempts < ATTEMPTS);
}

/* The attempt to load it has ended. */
static void settle(struct bpf_sampler *b, uint32_t unwinder, int r, const char *why)
{
	struct language_program *l = &b->languages[unwinder];
	const char *name = plugin_of(b, unwinder)->name;
	uint32_t pauses = l->attempts < MOST_PAUSES ? l->attempts : MOST_PAUSES;

	l->attempts++;
	if (!why)
		why = strerror(-r);
	if (!r) {
		l->state = LANGUAGE_READY;
		log_debug("the unwinder '%s' is loaded", name);
	} else if (is_retried(l, r)) {
		l->state = LANGUAGE_LATER;
		l->retry_ns = clock_now() + (PAUSE_NS << pauses);
		if (is_shortage(r) && l->attempts == ATTEMPTS)
			log_warning("the unwinder '%s' cannot be loaded yet, its frames are "
				    "missing, retrying: %s",
				    name, why);
	} else {
		l->state = LANGUAGE_NONE;
		log_warning("the unwinder '%s' cannot be loaded, its frames are missing: %s", name,
			    why);
	}
}

static void try(struct bpf_sampler *b, uint32_t unwinder)
{
	int r = start(b, unwinder);

	if (r)
		settle(b, unwinder, r, NULL);
	else
		b->languages[unwinder].state = LANGUAGE_LOADING;
}

enum language_program_state language_program_state(struct bpf_sampler *b, uint32_t unwinder)
{
	const struct fusee_unwinder_ops *ops = plugin_of(b, unwinder)->ops;
	struct language_program *l = &b->languages[unwinder];

	if (l->state == LANGUAGE_UNTRIED) {
		if (!sampler_object_is_language(ops))
			l->state = LANGUAGE_NONE;
		else
			try(b, unwinder);
	}
	return l->state;
}

void language_program_await(struct bpf_sampler *b, uint32_t unwinder)
{
	if (!b->languages[unwinder].awaited)
		log_debug("the unwinder '%s' is awaited", plugin_of(b, unwinder)->name);
	b->languages[unwinder].awaited = true;
}

/* true: the program was loaded, or can't be. */
static bool poll_program(struct bpf_sampler *b, uint32_t unwinder, bool wait)
{
	struct language_program *l = &b->languages[unwinder];
	char *why;
	int r;

	if (l->state == LANGUAGE_LATER && clock_now() >= l->retry_ns)
		try(b, unwinder);
	if (l->state != LANGUAGE_LOADING)
		return false;
	r = wait ? loader_wait(&l->child, &why) : loader_poll(&l->child, &why);
	if (r == -EINPROGRESS)
		return false;
	settle(b, unwinder, r, why);
	free(why);
	return true;
}

bool bpf_publish_poll_programs(struct bpf_sampler *b)
{
	bool settled = false;

	for (uint32_t u = 0; u < FILES_MAX_UNWINDERS; u++)
		settled |= poll_program(b, u, false);
	return settled;
}

bool bpf_publish_wait_programs(struct bpf_sampler *b)
{
	bool settled = false;

	for (uint32_t u = 0; u < FILES_MAX_UNWINDERS; u++)
		settled |= poll_program(b, u, b->languages[u].awaited);
	return settled;
}

/* Does a text name the unwinder, or, of a late unwinder, its run time? */
static bool is_named(const struct bpf_sampler *b, uint32_t unwinder, const char *in)
{
	const struct fusee_unwinder_ops *ops = plugin_of(b, unwinder)->ops;

	if (strstr(in, plugin_of(b, unwinder)->name))
		return true;
	for (uint32_t i = 0; FUSEE_HAS(ops, runtimes) && i < ops->runtimes.n; i++) {
		const struct fusee_runtime *r = FUSEE_AT(struct fusee_runtime, ops->runtimes, i);

		if (b->late >> unwinder & 1 && strcasestr(in, r->name))
			return true;
	}
	return false;
}

void bpf_sampler_load_languages(struct bpf_sampler *b, const char *in)
{
	for (uint32_t u = 0; u < b->set->n && u < FILES_MAX_UNWINDERS; u++) {
		if (in ? !is_named(b, u, in) : b->late >> u & 1)
			continue;
		if (language_program_state(b, u) != LANGUAGE_NONE && in)
			language_program_await(b, u);
	}
}

void language_programs_fini(struct bpf_sampler *b)
{
	for (uint32_t u = 0; u < FILES_MAX_UNWINDERS; u++)
		if (b->languages[u].state == LANGUAGE_LOADING)
			loader_end(&b->languages[u].child);
}

int bpf_publish_forget_sent(struct bpf_sampler *b, bool (*of)(void *arg, uint64_t process),
			    void *arg)
{
	return sent_keys_forget(b->object, of, arg);
}
