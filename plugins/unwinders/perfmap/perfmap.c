/* SPDX-License-Identifier: Apache-2.0 */
/* unwinder "perfmap": finds the perf maps of processes, claims the memory that they describe, and
 * symbolizes its frames. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <fusee/helpers.h>

#include "reasons.h"
#include "mapfile.h"
#include "runtimes.h"

int fusee_step_perfmap(struct fusee_unwind *u);

FUSEE_EMBED(perfmap_bpf, "perfmap.bpf.o");

static const char *const reasons[] = PERFMAP_REASON_TEXTS;

/* Bytes of memory for the map of one process, for all maps of one user, and for all maps: any user
 * can start many processes with large maps. */
#define MAX_MEMORY (64u << 20)
#define MAX_OF_USER (72u << 20)
#define MAX_OF_ALL (112u << 20)
/* A map without room is read again when there are so many free bytes. */
#define ROOM_AGAIN (16u << 20)

/* Time for one reading, and for all readings in a second: others wait meanwhile. */
#define READ_NS 50000000u
#define READ_ALL_NS 150000000u
#define SECOND_NS 1000000000u
#define FOLDER_TRIES 8u

struct perfmap;

enum room { ROOM_OF_PROCESS, ROOM_OF_USER, ROOM_OF_ALL };

/* A process that executes memory without a file. */
struct jit_process {
	struct jit_process *next;
	struct perfmap *perfmap;
	uint64_t process; /* the core's handle */
	uint32_t pid;     /* in fusee's pid namespace */
	struct mapfile file;
	uint64_t bytes; /* of memory of its map, after the last reading */
	uint64_t counted[MAP_FAULTS], counted_rewrites; /* of file, as last reported */
	enum mapfile_refusal reported;
	enum room room;        /* what bounds its map */
	uint32_t folder_tries; /* how often its folder was to be opened */
	uint64_t looked_up_ns; /* when the opener last looked its name up */
	bool full;             /* its map had no room for all lines, because of others */
};

struct perfmap {
	struct fusee_self self;
	struct jit_process *processes;
	uint64_t bytes;           /* of memory of all maps */
	uint64_t second, read_ns; /* when the current second began; time for readings in it */
	bool warned[ROOM_OF_ALL + 1];
};

static struct jit_process *find(struct perfmap *p, uint64_t process)
{
	struct jit_process *k = p->processes;

	while (k && k->process != process)
		k = k->next;
	return k;
}

static uint32_t changed(void *arg)
{
	struct jit_process *k = arg;

	return k->perfmap->self.host->unwinder->process_changed(k->process);
}

/* ---- reports ---- */

/* Logs and counts a map that is not read, once for each reason. */
static void report_refusal(struct jit_process *k)
{
	static const char *const why[] = {
		[MAPFILE_NOT_A_FILE] = "it is not a regular file",
		[MAPFILE_FOREIGN] = "its owner is neither root nor the user of the process",
		[MAPFILE_LINKED] = "it has more than one name",
		[MAPFILE_MOUNTED] = "another file is mounted on its name",
		[MAPFILE_REMOTE] = "its file system can keep readers waiting",
		[MAPFILE_OLD] = "it was written before its process began",
	};

	if (k->reported == k->file.refusal)
		return;
	k->reported = k->file.refusal;
	if (!k->reported)
		return;
	fusee_count_by(&k->perfmap->self, "maps_refused", "reason", why[k->reported], 1);
	fusee_log(&k->perfmap->self, k->reported == MAPFILE_OLD ? FUSEE_DEBUG : FUSEE_WARNING,
		  "/tmp/perf-%u.map of process %u is not read: %s", k->file.owner.pid, k->pid,
		  why[k->reported]);
}

/* Logs once for each limit that it was reached. */
static void warn_full(struct jit_process *k)
{
	static const char *const whose[] = {"process", "its user", "all processes"};
	static const uint32_t most[] = {MAX_MEMORY, MAX_OF_USER, MAX_OF_ALL};

	if (k->perfmap->warned[k->room])
		return;
	k->perfmap->warned[k->room] = k->room != ROOM_OF_PROCESS;
	fusee_log(&k->perfmap->self, FUSEE_WARNING,
		  "the perf map of process %u has no room: the maps of %s may take %u MiB; not all "
		  "of "
		  "its code has names",
		  k->pid, whose[k->room], most[k->room] >> 20);
}

/* Counts the lines that were refused since the last report. */
static void report_faults(struct jit_process *k)
{
	static const char *const why[] = {
		[MAP_NO_NUMBERS] = "no numbers",
		[MAP_BAD_RANGE] = "bad range",
		[MAP_FULL] = "no room",
		[MAP_TRUNCATED] = "name truncated",
	};
	static const char *const no_room[] = {"no room", "no room for its user", "no room for all"};
	struct mapfile *s = &k->file;

	if (s->faults[MAP_FULL] > k->counted[MAP_FULL]) {
		if (!k->counted[MAP_FULL])
			warn_full(k);
		k->full = k->room != ROOM_OF_PROCESS;
	}
	for (int i = 0; i < MAP_FAULTS; i++) {
		fusee_count_by(&k->perfmap->self, "lines_refused", "reason",
			       i == MAP_FULL ? no_room[k->room] : why[i],
			       s->faults[i] - k->counted[i]);
		k->counted[i] = s->faults[i];
	}
	fusee_count_by(&k->perfmap->self, "maps_rewritten", "reason", "truncated or replaced",
		       s->rewrites - k->counted_rewrites);
	k->counted_rewrites = s->rewrites;
}

static uint64_t bytes_of_user(const struct perfmap *p, uint32_t uid)
{
	uint64_t sum = 0;

	for (const struct jit_process *k = p->processes; k; k = k->next)
		sum += k->file.owner.uid == uid ? k->bytes : 0;
	return sum;
}

/* The memory that the map may take: the limit of one map, or what is free of its user's and of all.
 */
static uint64_t share_of(struct jit_process *k)
{
	const struct perfmap *p = k->perfmap;
	uint64_t all = p->bytes - k->bytes, user = 0;

	if (all > MAX_OF_USER - MAX_MEMORY) /* otherwise no user can have so much */
		user = bytes_of_user(p, k->file.owner.uid) - k->bytes;
	user = user < MAX_OF_USER ? MAX_OF_USER - user : 0;
	all = all < MAX_OF_ALL ? MAX_OF_ALL - all : 0;
	k->room = all < user && all < MAX_MEMORY ? ROOM_OF_ALL
		  : user < MAX_MEMORY            ? ROOM_OF_USER
						 : ROOM_OF_PROCESS;
	all = all < user ? all : user;
	return all < MAX_MEMORY ? all : MAX_MEMORY;
}

static void count_bytes(struct jit_process *k, uint64_t bytes)
{
	k->perfmap->bytes += bytes - k->bytes;
	k->bytes = bytes;
}

/* How long a reading may take. 0: none may begin in this second. */
static uint64_t time_of_reading(struct perfmap *p, uint64_t now)
{
	if (now >= p->second + SECOND_NS) {
		p->second = now;
		p->read_ns = 0;
	}
	return p->read_ns < READ_ALL_NS ? READ_NS : 0;
}

/* The folder could not be opened, for a temporary reason. */
static void open_folder(struct jit_process *k)
{
	if (k->folder_tries >= FOLDER_TRIES)
		return;
	k->folder_tries++;
	k->file.folder = k->perfmap->self.host->unwinder->process_open(k->process, "/tmp",
								       FUSEE_OPEN_DIRECTORY);
	if (k->file.folder == -EREMOTE)
		k->file.refusal = MAPFILE_REMOTE;
	if (k->file.folder != -EAGAIN && k->file.folder != -ETIMEDOUT)
		k->folder_tries = FOLDER_TRIES;
}

/* Has the opener look the name up: then the kernel's cache has it, or has that there is no such
 * file.
 */
static void look_up(struct jit_process *k, uint64_t now)
{
	char path[64];
	int fd;

	k->file.uncached = false;
	if (k->looked_up_ns && now < k->looked_up_ns + SECOND_NS)
		return;
	k->looked_up_ns = now;
	snprintf(path, sizeof(path), "/tmp/perf-%u.map", k->file.owner.pid);
	fd = k->perfmap->self.host->unwinder->process_open(k->process, path, 0);
	k->file.found = fd >= 0 || fd == -EINVAL || fd == -EREMOTE;
	if (fd >= 0)
		close(fd);
}

/* Reads what was added to the map since the last call. */
static int update(struct jit_process *k)
{
	uint64_t share = share_of(k), now = fusee_now(CLOCK_MONOTONIC);
	int r;

	k->file.most_ns = time_of_reading(k->perfmap, now);
	if (!k->file.most_ns)
		return 0;
	if (k->file.folder < 0)
		open_folder(k);
	if (k->full && share >= k->bytes + ROOM_AGAIN) {
		k->full = false;
		mapfile_reread(&k->file);
	}
	mapfile_limit(&k->file, share);
	r = mapfile_read(&k->file, changed, k);
	if (k->file.uncached) {
		look_up(k, now);
		r = mapfile_read(&k->file, changed, k);
	}
	k->perfmap->read_ns += fusee_now(CLOCK_MONOTONIC) - now;
	count_bytes(k, mapfile_bytes(&k->file));
	report_refusal(k);
	report_faults(k);
	return r;
}

/* ---- processes ---- */

/* 0 or -errno: -ESRCH if the process has ended. */
static int make(struct perfmap *p, uint64_t process, struct jit_process **ret)
{
	struct fusee_process_info info = FUSEE_SIZED(struct fusee_process_info);
	struct jit_process *k;
	struct mapfile_owner owner;
	int err = p->self.host->unwinder->process_info(process, &info);

	if (err)
		return err;
	k = calloc(1, sizeof(*k));
	if (!k)
		return -ENOMEM;
	owner = (struct mapfile_owner){info.ns_pid, info.uid, info.fs_uid, info.start_ns};
	k->perfmap = p;
	k->process = process;
	k->pid = info.pid;
	if (mapfile_init(&k->file, &owner, -1, MAX_MEMORY)) {
		mapfile_fini(&k->file);
		free(k);
		return -ENOMEM;
	}
	k->next = p->processes;
	p->processes = k;
	*ret = k;
	return 0;
}

static int perfmap_mapped(void *ctx, uint64_t process, const struct fusee_mapping_view *m)
{
	struct perfmap *p = ctx;
	struct jit_process *k = find(p, process);
	struct fusee_claim claim = FUSEE_SIZED(struct fusee_claim, .flags = FUSEE_CLAIM_NAME,
					       .range = {m->lo, m->hi});
	enum fusee_code_kind kind;
	int err = k ? 0 : make(p, process, &k);

	if (err)
		return err;
	update(k);
	if (!map_covers(k->file.map, m->lo, m->hi, &kind))
		return 0;
	if (kind != FUSEE_CODE_PLAIN) {
		claim.flags |= FUSEE_CLAIM_STEP;
		claim.arg = kind == FUSEE_CODE_PYTHON ? PERFMAP_PYTHON : PERFMAP_ERLANG;
	}
	return p->self.host->unwinder->process_claim(p->self.in, process, &claim);
}

static int perfmap_refresh(void *ctx, uint64_t process)
{
	struct jit_process *k = find(ctx, process);

	return k ? update(k) : 0;
}

static int perfmap_symbolize(void *ctx, const struct fusee_raw_frame *raw,
			     struct fusee_frame_out *out)
{
	struct fusee_source_frame frame = FUSEE_SIZED(struct fusee_source_frame);
	struct perfmap *p = ctx;
	struct jit_process *k = find(p, raw->process);
	struct fusee_str name;
	int r;

	if (!k || !mapfile_lookup(&k->file, raw->addr, raw->generation, &name))
		return 0;
	fusee_codemap_split(name, &frame);
	r = p->self.host->unwinder->frame(out, &frame);
	return r ? r : 1;
}

static void perfmap_detach(void *ctx, uint64_t process)
{
	struct perfmap *p = ctx;

	for (struct jit_process **at = &p->processes; *at; at = &(*at)->next) {
		struct jit_process *k = *at;

		if (k->process != process)
			continue;
		*at = k->next;
		count_bytes(k, 0);
		mapfile_fini(&k->file);
		free(k);
		return;
	}
}

/* ---- the plugin ---- */

static void perfmap_fini(void *ctx)
{
	struct perfmap *p = ctx;

	while (p->processes)
		perfmap_detach(p, p->processes->process);
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
	.runtimes = {perfmap_runtimes, PERFMAP_RUNTIMES, sizeof(struct fusee_runtime)},
};

FUSEE_PLUGIN(perfmap, FUSEE_UNWINDER, .version = "0.1",
	     .doc = "Names code made at run time by the perf maps that runtimes write to /tmp.",
	     .ctx_size = sizeof(struct perfmap), .init = fusee_self_init, .fini = perfmap_fini,
	     .ops = &ops);
