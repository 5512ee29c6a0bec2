/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that unwinders in the agent make: about a process, its memory and its files, claims and
 * source frames. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "process/procfs.h"
#include "unwind/internal/claims_state.h"
#include "opener/opener.h"

#define SECOND_NS 1000000000u

static struct process_code *code_of(uint64_t process)
{
	return (struct process_code *)(uintptr_t)process;
}

/* Is the process still there, and not another with its pid? */
static bool is_there(const struct process_code *p)
{
	uint64_t now;

	return p->identity && !p->process->replaced && !procfs_identity(p->process->pid, &now) &&
	       now == p->identity;
}

/* By the opener, as the process can keep who reads it waiting. 0 or -errno. */
static int read_start(struct process_code *p)
{
	char text[1024];
	const struct opener_query q = {.kind = OPENER_TEXT,
				       .pid = p->process->pid,
				       .path = "stat",
				       .buf = text,
				       .len = sizeof(text) - 1};
	struct opener_answer a;
	int r = p->start_ticks ? 0 : opener_call(p->claims->opener, &q, &a);

	if (r || p->start_ticks)
		return r;
	text[a.len] = '\0';
	return procfs_parse_start(text, &p->start_ticks);
}

static int host_info(uint64_t process, struct fusee_process_info *info)
{
	struct process_code *p = code_of(process);
	uint64_t tick = SECOND_NS / (uint64_t)sysconf(_SC_CLK_TCK);
	struct fusee_process_info all;
	struct procfs_status status;
	uint32_t size = info->size;
	int r = size < sizeof(size) ? -EINVAL : procfs_status(p->process->pid, &status);

	if (!r)
		r = read_start(p);
	if (r)
		return r;
	if (!is_there(p))
		return -ESRCH;
	all = (struct fusee_process_info){
		.size = size < sizeof(all) ? size : (uint32_t)sizeof(all),
		.pid = (uint32_t)p->process->pid,
		.ns_pid = (uint32_t)status.ns_pid,
		.uid = status.uid,
		.fs_uid = status.fs_uid,
		.start_ns = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME) +
			    p->start_ticks * tick,
	};
	memset(info, 0, size); /* smaller in older plugins, larger in newer */
	memcpy(info, &all, all.size);
	return 0;
}

static int host_open(uint64_t process, const char *path, uint32_t flags)
{
	struct process_code *p = code_of(process);
	const struct opener_query q = {.kind = flags & FUSEE_OPEN_DIRECTORY ? OPENER_FOLDER
									    : OPENER_FILE,
				       .pid = p->process->pid,
				       .path = path};
	struct opener_answer a;

	if (opener_call(p->claims->opener, &q, &a))
		return a.err;
	if (is_there(p) && !a.st.remote)
		return a.fd;
	close(a.fd);
	return a.st.remote ? -EREMOTE : -ESRCH;
}

/* Also of a file that was removed since. */
static bool is_named(const struct file *f, const char *name)
{
	const char *base = files_base_name(f);
	size_t len = strlen(name);

	return !strncmp(base, name, len) && (!base[len] || !strcmp(base + len, " (deleted)"));
}

/* By its path, which may be another file's by now, which the process may not read. */
static int open_by_path(struct process_code *p, const struct file *f)
{
	int fd = host_open((uint64_t)(uintptr_t)p, f->path, 0);

	if (fd < 0 || files_is_same(f, fd))
		return fd;
	close(fd);
	return -ESTALE;
}

/* Of a file that was opened as it was mapped; if it was closed and has changed, by its path. */
static int open_mapped(struct process_code *p, struct file *f)
{
	int fd;

	if (f->source.remote || f->source.copied)
		return -EREMOTE;
	fd = files_hold(f);
	if (fd < 0)
		return open_by_path(p, f);
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		fd = -errno;
	files_release(f);
	return fd;
}

static int host_mapped(uint64_t process, const char *name)
{
	struct process_code *p = code_of(process);
	int r = p->process->replaced ? -ESRCH : -ENOENT;

	for (uint32_t i = 0; i < p->process->n && r == -ENOENT; i++) {
		struct file *f = p->process->mappings[i].file;

		if (f && is_named(f, name))
			r = open_mapped(p, f);
	}
	return r;
}

static int host_read(uint64_t process, uint64_t addr, void *buf, uint32_t len)
{
	struct process_code *p = code_of(process);
	struct opener_query q = {.kind = OPENER_MEMORY, .pid = p->process->pid};
	struct opener_answer a;
	uint32_t done = 0;
	int err = 0;

	while (!err && done < len) {
		q.address = addr + done;
		q.buf = (char *)buf + done;
		q.len = len - done < OPENER_MAX_BYTES ? len - done : OPENER_MAX_BYTES;
		err = p->process->replaced ? -ESRCH : opener_call(p->claims->opener, &q, &a);
		done += q.len;
	}
	return p->process->replaced ? -ESRCH : err;
}

static uint32_t host_changed(uint64_t process)
{
	return ++code_of(process)->generation;
}

static uint32_t index_of(const struct claims *c, const struct fusee_instance *in)
{
	uint32_t i = 0;

	while (i < c->unwinders->n && c->unwinders->instances[i] != in)
		i++;
	return i;
}

static void report_change(struct process_code *p)
{
	if (p->claims->changed)
		p->claims->changed(p->claims->arg, p->process);
}

static int host_claim(struct fusee_instance *in, uint64_t process, const struct fusee_claim *c)
{
	struct process_code *p = code_of(process);
	struct claim claim = {.lo = c->range.lo,
			      .hi = c->range.hi,
			      .arg = c->arg,
			      .unwinder = index_of(p->claims, in),
			      .flags = c->flags};
	uint32_t n;
	int r;

	if (claim.unwinder == p->claims->unwinders->n)
		return -EINVAL;
	if (claim.lo >= claim.hi)
		return plugin_misused(in, PLUGIN_PROCESS_CLAIM_RANGE);
	n = p->list.n;
	r = process_code_has_room(p, "claim") ? -ENOSPC : claim_list_add(&p->list, &claim);
	if (!r) {
		p->list.follow |= (c->flags & FUSEE_CLAIM_REGISTERS) != 0;
		process_code_add_bytes(p, ((int64_t)p->list.n - n) * (int64_t)sizeof(claim));
		report_change(p);
	}
	return r;
}

static int host_unclaim(struct fusee_instance *in, uint64_t process, struct fusee_range range)
{
	struct process_code *p = code_of(process);
	uint32_t n = p->list.n;

	if (range.lo >= range.hi)
		return -EINVAL;
	claim_list_remove(&p->list, range.lo, range.hi, index_of(p->claims, in));
	process_code_add_bytes(p, ((int64_t)p->list.n - n) * (int64_t)sizeof(struct claim));
	report_change(p);
	return 0;
}

#define MAX_WORDS 65536u /* of an unwinder for one process */

static int host_slab(struct fusee_instance *in, uint64_t process, const uint32_t *words, uint64_t n)
{
	struct process_code *p = code_of(process);
	uint32_t i = index_of(p->claims, in);
	struct process_words *to;
	uint32_t *copy;

	if (i == p->claims->unwinders->n || i >= FILES_MAX_UNWINDERS)
		return -EINVAL;
	if (n > MAX_WORDS)
		return -EFBIG;
	to = &p->words[i];
	if (to->n == n && (!n || !memcmp(to->at, words, n * sizeof(*words))))
		return 0;
	if (n > to->n && process_code_has_room(p, "words"))
		return -ENOSPC;
	copy = malloc((n ? n : 1) * sizeof(*words));
	if (!copy)
		return -ENOMEM;
	memcpy(copy, words, n * sizeof(*words));
	free(to->at);
	process_code_add_bytes(p, ((int64_t)n - (int64_t)to->n) * (int64_t)sizeof(*words));
	*to = (struct process_words){copy, n};
	report_change(p);
	return 0;
}

static int host_frame(struct fusee_frame_out *out, const struct fusee_source_frame *frame)
{
	return out->frame(out, frame);
}

static const struct fusee_unwinder_host unwinder_host = {
	.size = sizeof(unwinder_host),
	.process_info = host_info,
	.process_open = host_open,
	.process_read = host_read,
	.process_claim = host_claim,
	.process_unclaim = host_unclaim,
	.process_changed = host_changed,
	.process_slab = host_slab,
	.frame = host_frame,
	.process_mapped = host_mapped,
};

const struct fusee_host claims_host = {
	.size = sizeof(claims_host),
	.abi_minor = FUSEE_ABI_MINOR,
	.log = plugin_host_log,
	.fail = plugin_host_fail,
	.count = plugin_host_count,
	.read_secret = plugin_host_read_secret,
	.unwinder = &unwinder_host,
};
