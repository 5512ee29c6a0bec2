/* SPDX-License-Identifier: Apache-2.0 */
/* unwinder "jitdump": finds the jitdump files of processes by their mappings, claims the memory
 * that they describe, and symbolizes its frames with their lines. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fusee/helpers.h>

#include "dumpfile.h"
#include "reasons.h"

int fusee_step_jitdump(struct fusee_unwind *u);

FUSEE_EMBED(jitdump_bpf, "jitdump.bpf.o");

static const char *const reasons[] = JITDUMP_REASON_TEXTS;

/* Bytes of memory for the file of one process, for all of one user, and for all: any user can start
 * many processes. */
#define MAX_MEMORY (64u << 20)
#define MAX_OF_USER (72u << 20)
#define MAX_OF_ALL (112u << 20)

/* Time for one reading, and for all readings in a second: others wait meanwhile. */
#define READ_NS 50000000u
#define READ_ALL_NS 150000000u
#define SECOND_NS 1000000000u

struct jitdump;

/* A process that executes memory without a file. */
struct jit_process {
	struct jit_process *next;
	struct jitdump *jitdump;
	uint64_t process; /* the core's handle */
	uint32_t pid;     /* in fusee's pid namespace */
	uint32_t uid;
	struct dumpfile file;
	uint64_t bytes;     /* of memory, after the last reading */
	uint64_t looked_ns; /* when its mappings were last searched for the file */
	uint64_t counted[DUMP_FAULTS], counted_rewrites; /* of file, as last reported */
	int unopened;                                    /* the last error of a search; 0: none */
	bool reported;                                   /* that it is refused or damaged */
};

struct jitdump {
	struct fusee_self self;
	struct jit_process *processes;
	uint64_t bytes;           /* of all processes */
	uint64_t second, read_ns; /* when the current second began; time for readings in it */
	bool warned;
};

static struct jit_process *find(struct jitdump *j, uint64_t process)
{
	struct jit_process *k = j->processes;

	while (k && k->process != process)
		k = k->next;
	return k;
}

static uint32_t changed(void *arg)
{
	struct jit_process *k = arg;

	return k->jitdump->self.host->unwinder->process_changed(k->process);
}

/* ---- reports ---- */

/* Logs and counts, once, a file that is not read, or not to its end. */
static void report_refusal(struct jit_process *k)
{
	static const char *const why[] = {
		[DUMP_NO_DUMP] = "it is no jitdump file",
		[DUMP_OTHER_MACHINE] = "it is of another machine",
		[DUMP_OTHER_PROCESS] = "it is of another process",
	};
	const char *text = k->file.refusal   ? why[k->file.refusal]
			   : k->file.damaged ? "a record has a size that none can have"
					     : NULL;

	if (!text || k->reported)
		return;
	k->reported = true;
	fusee_count_by(&k->jitdump->self, "files_refused", "reason", text, 1);
	fusee_log(&k->jitdump->self, FUSEE_WARNING, "jit-%u.dump of process %u is not read%s: %s",
		  k->file.pid, k->pid, k->file.refusal ? "" : " any more", text);
}

/* Logs and counts a file that is mapped and cannot be opened, once for each error in a row. */
static void report_unopened(struct jit_process *k, int err)
{
	const char *why = err == -EREMOTE  ? "its file system can keep readers waiting"
			  : err == -ESTALE ? "its path may be another file's by now"
					   : "it cannot be opened";

	if (err == -ENOENT || err == -ESRCH || err == k->unopened)
		return;
	k->unopened = err;
	fusee_count_by(&k->jitdump->self, "files_refused", "reason", why, 1);
	fusee_log(&k->jitdump->self, FUSEE_WARNING,
		  "jit-%u.dump of process %u is not read: %s (%s)", k->file.pid, k->pid, why,
		  strerror(-err));
}

/* Counts what was refused since the last report. */
static void report_faults(struct jit_process *k)
{
	static const char *const why[] = {
		[DUMP_SHORT] = "too short",
		[DUMP_BAD_RANGE] = "bad range",
		[DUMP_NOT_MOVED] = "moved code is not known",
		[DUMP_NO_CODE] = "lines without code",
		[DUMP_TRUNCATED] = "name or lines truncated",
		[DUMP_FULL] = "no room",
	};
	struct dumpfile *s = &k->file;

	if (s->faults[DUMP_FULL] && !k->jitdump->warned) {
		k->jitdump->warned = true;
		fusee_log(&k->jitdump->self, FUSEE_WARNING,
			  "jit-%u.dump of process %u has no room: such files may take %u MiB of a "
			  "process, %u of a user, %u in all; not all of its code has names",
			  s->pid, k->pid, MAX_MEMORY >> 20, MAX_OF_USER >> 20, MAX_OF_ALL >> 20);
	}
	for (int i = 0; i < DUMP_FAULTS; i++) {
		fusee_count_by(&k->jitdump->self, "records_refused", "reason", why[i],
			       s->faults[i] - k->counted[i]);
		k->counted[i] = s->faults[i];
	}
	fusee_count_by(&k->jitdump->self, "files_rewritten", "reason", "truncated or replaced",
		       s->rewrites - k->counted_rewrites);
	k->counted_rewrites = s->rewrites;
}

/* ---- reading ---- */

/* The memory that the process may take. */
static uint64_t share_of(const struct jit_process *k)
{
	uint64_t all = k->jitdump->bytes - k->bytes, user = 0, most = MAX_MEMORY;

	for (const struct jit_process *o = k->jitdump->processes; o; o = o->next)
		user += o != k && o->uid == k->uid ? o->bytes : 0;
	user = user < MAX_OF_USER ? MAX_OF_USER - user : 0;
	all = all < MAX_OF_ALL ? MAX_OF_ALL - all : 0;
	most = user < most ? user : most;
	return all < most ? all : most;
}

/* How long a reading may take. 0: none may begin in this second. */
static uint64_t time_of_reading(struct jitdump *j, uint64_t now)
{
	if (now >= j->second + SECOND_NS) {
		j->second = now;
		j->read_ns = 0;
	}
	return j->read_ns < READ_ALL_NS ? READ_NS : 0;
}

/* The process maps the file executable, which has no other purpose than to be found. */
static void find_file(struct jit_process *k, uint64_t now)
{
	char name[32];
	int fd;

	if (k->looked_ns && now < k->looked_ns + SECOND_NS)
		return;
	k->looked_ns = now;
	snprintf(name, sizeof(name), "jit-%u.dump", k->file.pid);
	fd = k->jitdump->self.host->unwinder->process_mapped(k->process, name);
	if (fd >= 0)
		k->file.fd = fd;
	else
		report_unopened(k, fd);
}

static void count_bytes(struct jit_process *k, uint64_t bytes)
{
	k->jitdump->bytes += bytes - k->bytes;
	k->bytes = bytes;
}

/* Reads what was added to the file since the last call. */
static int update(struct jit_process *k)
{
	uint64_t now = fusee_now(CLOCK_MONOTONIC);
	int r;

	if (k->file.fd < 0)
		find_file(k, now);
	k->file.most_ns = time_of_reading(k->jitdump, now);
	if (k->file.fd < 0 || !k->file.most_ns)
		return 0;
	dumpfile_limit(&k->file, share_of(k));
	r = dumpfile_read(&k->file, changed, k);
	k->jitdump->read_ns += fusee_now(CLOCK_MONOTONIC) - now;
	count_bytes(k, dumpfile_bytes(&k->file));
	report_refusal(k);
	report_faults(k);
	return r;
}

/* ---- processes ---- */

/* 0 or -errno: -ESRCH if the process has ended. */
static int make(struct jitdump *j, uint64_t process, struct jit_process **ret)
{
	struct fusee_process_info info = FUSEE_SIZED(struct fusee_process_info);
	struct jit_process *k;
	int err = j->self.host->unwinder->process_info(process, &info);

	if (err)
		return err;
	k = calloc(1, sizeof(*k));
	if (!k)
		return -ENOMEM;
	k->jitdump = j;
	k->process = process;
	k->pid = info.pid;
	k->uid = info.uid;
	err = dumpfile_init(&k->file, info.ns_pid, MAX_MEMORY);
	if (err) {
		free(k);
		return err;
	}
	k->next = j->processes;
	j->processes = k;
	*ret = k;
	return 0;
}

/* Sets *arg, and ends at the first name that says whose code it is. */
static bool judge_kind(void *arg, struct fusee_str name)
{
	enum fusee_code_kind *kind = arg;

	*kind = fusee_codemap_kind(name);
	return *kind == FUSEE_CODE_PLAIN;
}

static int jitdump_mapped(void *ctx, uint64_t process, const struct fusee_mapping_view *m)
{
	struct jitdump *j = ctx;
	struct jit_process *k = find(j, process);
	struct fusee_claim claim = FUSEE_SIZED(struct fusee_claim, .flags = FUSEE_CLAIM_NAME,
					       .range = {m->lo, m->hi});
	int err = k ? 0 : make(j, process, &k);
	enum fusee_code_kind kind = FUSEE_CODE_PLAIN;

	if (err)
		return err;
	update(k);
	if (!dump_covers(k->file.dump, m->lo, m->hi, judge_kind, &kind))
		return 0;
	if (kind != FUSEE_CODE_PLAIN) {
		claim.flags |= FUSEE_CLAIM_STEP;
		claim.arg = kind == FUSEE_CODE_PYTHON ? JITDUMP_PYTHON : JITDUMP_ERLANG;
	}
	return j->self.host->unwinder->process_claim(j->self.in, process, &claim);
}

static int jitdump_refresh(void *ctx, uint64_t process)
{
	struct jit_process *k = find(ctx, process);

	return k ? update(k) : 0;
}

static int jitdump_symbolize(void *ctx, const struct fusee_raw_frame *raw,
			     struct fusee_frame_out *out)
{
	struct fusee_source_frame frame = FUSEE_SIZED(struct fusee_source_frame);
	struct jitdump *j = ctx;
	struct jit_process *k = find(j, raw->process);
	struct dump_found found;
	int r;

	if (!k || !dumpfile_lookup(&k->file, raw->addr, raw->generation, &found))
		return 0;
	fusee_codemap_split(found.name, &frame);
	if (found.file.len)
		frame.file = found.file;
	if (found.line >= frame.start_line) /* else it is of a function that was inlined */
		frame.line = found.line;
	r = j->self.host->unwinder->frame(out, &frame);
	return r ? r : 1;
}

static void jitdump_detach(void *ctx, uint64_t process)
{
	struct jitdump *j = ctx;

	for (struct jit_process **at = &j->processes; *at; at = &(*at)->next) {
		struct jit_process *k = *at;

		if (k->process != process)
			continue;
		*at = k->next;
		count_bytes(k, 0);
		dumpfile_fini(&k->file);
		free(k);
		return;
	}
}

/* ---- the plugin ---- */

static int jitdump_init(void *ctx, struct fusee_instance *in, const struct fusee_host *host)
{
	/* a host that unwinds nothing has no such table */
	if (host->unwinder && !FUSEE_HAS(host->unwinder, process_mapped))
		return host->fail(in, -ENOTSUP,
				  "this fusee does not tell which files a process maps");
	return fusee_self_init(ctx, in, host);
}

static void jitdump_fini(void *ctx)
{
	struct jitdump *j = ctx;

	while (j->processes)
		jitdump_detach(j, j->processes->process);
}

static const struct fusee_unwinder_ops ops = {
	.size = sizeof(ops),
	.flags = FUSEE_UNWINDER_LATE, /* most machines have no code that it steps */
	.order = 40,
	.slab_version = 1,
	.frame_type = "jit",
	.reasons = reasons,
	.bpf = jitdump_bpf,
	.bpf_end = jitdump_bpf_end,
	.native_step = fusee_step_jitdump,
	.mapped = jitdump_mapped,
	.refresh = jitdump_refresh,
	.symbolize = jitdump_symbolize,
	.detach = jitdump_detach,
};

FUSEE_PLUGIN(
	jitdump, FUSEE_UNWINDER, .version = "0.1",
	.doc = "Names code made at run time, with its lines, by the jitdump files of runtimes.",
	.ctx_size = sizeof(struct jitdump), .init = jitdump_init, .fini = jitdump_fini,
	.ops = &ops);
