/* SPDX-License-Identifier: Apache-2.0 */
/* The perf map unwinder's descriptor: finds the maps of processes, claims the memory that they
 * describe, and names its frames. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <fusee/plugin.h>

#include "names.h"
#include "reasons.h"
#include "mapfile.h"

int fusee_step_perfmap(struct fusee_unwind *u);

FUSEE_EMBED(perfmap_bpf, "perfmap.bpf.o");

static const char *const reasons[] = PERFMAP_REASON_TEXTS;

#define MAX_MEMORY (64u << 20) /* of one process */

struct perfmap;

/* A process that executes memory without a file. */
struct known {
	struct known *next;
	struct perfmap *perfmap;
	uint64_t process;
	uint32_t pid; /* ours */
	struct mapfile file;
	uint64_t counted[MAP_FAULTS], counted_rewrites; /* what was told of the file's */
	enum mapfile_refusal told;
};

struct perfmap {
	struct fusee_instance *instance;
	const struct fusee_host *host;
	struct known *known;
};

static struct known *find(struct perfmap *p, uint64_t process)
{
	struct known *k = p->known;

	while (k && k->process != process)
		k = k->next;
	return k;
}

static uint32_t changed(void *arg)
{
	struct known *k = arg;

	return k->perfmap->host->unwinder->process_changed(k->process);
}

/* ---- what is told ---- */

static void count(struct perfmap *p, const char *metric, const char *reason, uint64_t n)
{
	struct fusee_label label = {.key = {"reason", 6}, .str = {reason, strlen(reason)}};

	if (n && p->host->count)
		p->host->count(p->instance, metric, &label, 1, n);
}

static void tell_refusal(struct known *k)
{
	static const char *const why[] = {
		[MAPFILE_NOT_A_FILE] = "it is no regular file",
		[MAPFILE_FOREIGN] = "it is neither root's nor its process's user's",
		[MAPFILE_LINKED] = "it has more than one name",
		[MAPFILE_OLD] = "it was written before its process began",
	};
	char text[160];

	if (k->told == k->file.refusal)
		return;
	k->told = k->file.refusal;
	if (!k->told)
		return;
	count(k->perfmap, "maps_refused", why[k->told], 1);
	snprintf(text, sizeof(text), "/tmp/perf-%u.map of process %u is not read: %s",
		 k->file.owner.pid, k->pid, why[k->told]);
	k->perfmap->host->log(k->perfmap->instance,
			      k->told == MAPFILE_OLD ? FUSEE_DEBUG : FUSEE_WARNING, text);
}

static void tell_faults(struct known *k)
{
	static const char *const why[] = {
		[MAP_NO_NUMBERS] = "no numbers",
		[MAP_BAD_RANGE] = "bad range",
		[MAP_FULL] = "no room",
		[MAP_CUT] = "name cut",
	};
	struct mapfile *s = &k->file;
	char text[160];

	if (s->faults[MAP_FULL] && !k->counted[MAP_FULL]) {
		snprintf(text, sizeof(text),
			 "the perf map of process %u takes more than %u MiB: not all of its code "
			 "is named",
			 k->pid, MAX_MEMORY >> 20);
		k->perfmap->host->log(k->perfmap->instance, FUSEE_WARNING, text);
	}
	for (int i = 0; i < MAP_FAULTS; i++) {
		count(k->perfmap, "lines_refused", why[i], s->faults[i] - k->counted[i]);
		k->counted[i] = s->faults[i];
	}
	count(k->perfmap, "maps_rewritten", "truncated or replaced",
	      s->rewrites - k->counted_rewrites);
	k->counted_rewrites = s->rewrites;
}

static int look(struct known *k)
{
	int r = mapfile_read(&k->file, changed, k);

	tell_refusal(k);
	tell_faults(k);
	return r;
}

/* ---- processes ---- */

static struct known *make(struct perfmap *p, uint64_t process)
{
	struct fusee_process_info info = {.size = sizeof(info)};
	struct known *k = calloc(1, sizeof(*k));
	struct mapfile_owner owner;

	if (!k || p->host->unwinder->process_info(process, &info)) {
		free(k);
		return NULL;
	}
	owner = (struct mapfile_owner){info.ns_pid, info.uid, info.fs_uid, info.start_ns};
	k->perfmap = p;
	k->process = process;
	k->pid = info.pid;
	if (mapfile_init(&k->file, &owner,
			 p->host->unwinder->process_open(process, "/tmp", FUSEE_OPEN_DIRECTORY),
			 MAX_MEMORY)) {
		mapfile_fini(&k->file);
		free(k);
		return NULL;
	}
	k->next = p->known;
	p->known = k;
	return k;
}

static int perfmap_mapped(void *ctx, uint64_t process, const struct fusee_mapping_view *m)
{
	struct perfmap *p = ctx;
	struct known *k = find(p, process);
	struct fusee_claim claim = {
		.size = sizeof(claim), .flags = FUSEE_CLAIM_NAME, .range = {m->lo, m->hi}};
	enum map_kind kind;

	if (!k)
		k = make(p, process);
	if (!k)
		return -ENOMEM;
	look(k);
	if (!map_covers(k->file.map, m->lo, m->hi, &kind))
		return 0;
	if (kind != MAP_FRAMES) {
		claim.flags |= FUSEE_CLAIM_STEP;
		claim.arg = kind == MAP_PYTHON ? PERFMAP_PYTHON : PERFMAP_ERLANG;
	}
	return p->host->unwinder->process_claim(p->instance, process, &claim);
}

static int perfmap_refresh(void *ctx, uint64_t process)
{
	struct known *k = find(ctx, process);

	return k ? look(k) : 0;
}

static int perfmap_symbolize(void *ctx, const struct fusee_raw_frame *raw,
			     struct fusee_frame_out *out)
{
	struct fusee_source_frame frame = {.size = sizeof(frame)};
	struct perfmap *p = ctx;
	struct known *k = find(p, raw->process);
	const char *name;
	uint32_t len;
	int r;

	if (!k || !mapfile_lookup(&k->file, raw->addr, raw->generation, &name, &len))
		return 0;
	names_split(name, len, &frame);
	r = p->host->unwinder->frame(out, &frame);
	return r ? r : 1;
}

static void perfmap_detach(void *ctx, uint64_t process)
{
	struct perfmap *p = ctx;

	for (struct known **at = &p->known; *at; at = &(*at)->next) {
		struct known *k = *at;

		if (k->process != process)
			continue;
		*at = k->next;
		mapfile_fini(&k->file);
		free(k);
		return;
	}
}

/* ---- life ---- */

static int perfmap_init(void *ctx, struct fusee_instance *instance, const struct fusee_host *host)
{
	struct perfmap *p = ctx;

	p->instance = instance;
	p->host = host;
	return 0;
}

static void perfmap_fini(void *ctx)
{
	struct perfmap *p = ctx;

	while (p->known)
		perfmap_detach(p, p->known->process);
}

static const struct fusee_unwinder_ops ops = {
	.size = sizeof(ops),
	.order = 50,
	.slab_version = 1,
	.frame_type = "jit",
	.reasons = reasons,
	.bpf = perfmap_bpf,
	.bpf_end = perfmap_bpf_end,
	.native_step = fusee_step_perfmap,
	.mapped = perfmap_mapped,
	.refresh = perfmap_refresh,
	.symbolize = perfmap_symbolize,
	.detach = perfmap_detach,
};

FUSEE_PLUGIN(perfmap, FUSEE_UNWINDER, .version = "0.1",
	     .doc = "Names code made at run time by the perf maps that runtimes write to /tmp.",
	     .ctx_size = sizeof(struct perfmap), .init = perfmap_init, .fini = perfmap_fini,
	     .ops = &ops);
