/* SPDX-License-Identifier: Apache-2.0 */
#include "files/files.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "files/internal/file_index.h"
#include "files/file_open.h"
#include "opener/opener.h"

#define VDSO "[vdso]"
/* So many samples must wait for a file, and then at each doubling the worker reorders: most
 * libraries execute a little when they are loaded, and some of them nothing later. */
#define URGENT_SAMPLES 8u
#define MAX_SHORTAGES 8u
#define MAX_RESTS 2u /* inspections of what a brief one has omitted: one may be dropped */
#define SHORTAGE_NS 200000000ull /* pause, doubled each time: the last begins after 25 s */
#define MAX_UNREADABLE 4096u     /* files that are known by their path only */
#define PATH_BYTES (8u << 20)
#define SHORT_PATH 255u
/* A file is recognized without a check for this long: later its content may differ. */
#define RECENT_NS 100000000ull

int files_new(struct files **ret, struct worker *worker, const struct plugin_set *unwinders)
{
	struct files *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->worker = worker;
	f->unwinders = unwinders;
	f->n = f->lowest = 1;
	file_quota_init(&f->quota);
	*ret = f;
	return 0;
}

void files_drop(struct files *fs, uint32_t id)
{
	struct file *f = fs->all[id];

	if (!f)
		return;
	for (uint32_t i = 0; i < FILES_RECENT; i++)
		if (fs->recent[i].file == f)
			fs->recent[i].file = NULL;
	inspection_unref(f->inspection);
	file_close(f);
	fs->unreadable -= !f->source.readable;
	opener_release_copy(worker_opener(fs->worker), f->source.copied);
	fs->path_bytes -= strlen(f->path);
	free(f->text);
	file_index_remove(fs, f, clock_now());
}

void files_trim(struct files *fs)
{
	file_index_trim(fs, clock_now());
}

void files_free(struct files *f)
{
	if (!f)
		return;
	f->worker = NULL;
	for (uint32_t i = 1; i < f->n; i++)
		files_drop(f, i);
	file_index_fini(f);
	file_quota_fini(&f->quota);
	free(f);
}

const char *files_base_name(const struct file *f)
{
	const char *slash = strrchr(f->path, '/');

	return slash && slash[1] ? slash + 1 : f->path;
}

/* ---- inspection ---- */

bool files_is_brief(const struct file *f)
{
	return f && f->inspection && f->inspection->flags & INSPECTION_BRIEF;
}

/* Has the file inspected again when there may be memory. */
static void schedule(struct file *f)
{
	if (f->counts.shortages == MAX_SHORTAGES)
		return;
	f->retry_ns = clock_now() + (SHORTAGE_NS << f->counts.shortages++);
	if (!f->files->retry_ns || f->retry_ns < f->files->retry_ns)
		f->files->retry_ns = f->retry_ns;
}

static void refused(struct file *f, int err, const char *text)
{
	f->state = FILE_REFUSED;
	free(f->text);
	f->text = strdup(text && *text ? text : strerror(-err));
	log_debug("%s: %s", f->path, f->text ? f->text : "");
}

/* Is the error temporary? -EIO: the worker does not start, or the disk does not answer. */
static bool is_temporary(int err)
{
	return err == -ENOMEM || err == -EIO;
}

#define MAX_NOTES 16u /* sentences of unwinders that are warnings; more are a flood */

/* Why unwinders cannot use the file: a sentence a line. */
static void print_notes(struct file *f, const struct inspection *i)
{
	const char *at = i->notes;

	while (*at) {
		int len = (int)strcspn(at, "\n");

		if (f->files->notes++ < MAX_NOTES)
			log_warning("%s: %.*s", f->path, len, at);
		else
			log_debug("%s: %.*s", f->path, len, at);
		at += len + (at[len] == '\n');
	}
}

/* Has it no table where the older inspection has one? An unwinder that did not survive the rest of
 * a file is not called for it again. */
static bool lacks_table(const struct file *f, const struct inspection *i)
{
	for (uint32_t u = 0; u < f->files->unwinders->n && u < FILES_MAX_UNWINDERS; u++)
		if (f->slabs[u] &&
		    !inspection_slab(i, f->files->unwinders->instances[u]->descriptor->name))
			return true;
	return false;
}

static void inspected(void *arg, int err, const char *text, struct inspection *i)
{
	struct file *f = arg;

	f->files->answers++;
	f->inspecting = false;
	f->counts.awaited = 0;
	f->again = err == -ECANCELED || err == -EBUSY || err == -EAGAIN;
	files_release(f);
	if (is_temporary(err) || (!err && i->incomplete))
		schedule(f);
	if (err) {
		if (!f->inspection) /* otherwise the older inspection stays */
			refused(f, err, text);
		return;
	}
	if (files_is_brief(f) && lacks_table(f, i)) {
		inspection_unref(i);
		return;
	}
	if (!f->inspection)
		print_notes(f, i);
	f->state = FILE_READY;
	f->renewed = f->inspection;
	inspection_unref(f->inspection);
	f->inspection = i;
	f->claimed = false;
	for (uint32_t u = 0; u < f->files->unwinders->n && u < FILES_MAX_UNWINDERS; u++) {
		f->slabs[u] = inspection_slab(i,
					      f->files->unwinders->instances[u]->descriptor->name);
		f->claimed |= f->slabs[u] && f->slabs[u]->nclaims;
	}
}

static bool is_needed(void *arg)
{
	const struct file *f = arg;

	return !f->unmapped;
}

static struct worker_requester requester_of(const struct file *f)
{
	return (struct worker_requester){
		.uid = f->uid, .pid = f->pid, .copy_of = f->source.copy_of, .needed = is_needed};
}

/* rest: what the inspection, which is brief, has omitted. */
static void inspect(struct file *f, bool rest)
{
	struct worker_requester by = requester_of(f);
	int r;

	f->retry_ns = 0;
	f->again = false;
	if (!f->inspection)
		f->state = FILE_PENDING;
	r = files_hold(f);
	if (r < 0) {
		/* the process that mapped it last may have ended: the next that does has it */
		f->again = opener_is_temporary(r) || r == -ESRCH || r == -ENOENT || r == -ESTALE;
		if (!f->inspection)
			refused(f, r, file_open_explain(r));
		return;
	}
	f->inspecting = true;
	by.brief = !rest;
	by.rest = rest;
	r = worker_inspect(f->files->worker, f->fd, f->path, &by, inspected, f);
	if (r)
		inspected(f, r == -EBUSY ? r : -ENOMEM,
			  r == -EBUSY ? "its user has too many files that wait for the worker" : "",
			  NULL);
}

void files_retry(struct files *fs, uint64_t now)
{
	if (!fs->retry_ns || now < fs->retry_ns)
		return;
	fs->retry_ns = 0;
	for (uint32_t i = 1; i < fs->n; i++) {
		struct file *f = fs->all[i];

		if (!f || !f->retry_ns)
			continue;
		if (f->retry_ns <= now)
			inspect(f, false);
		else if (!fs->retry_ns || f->retry_ns < fs->retry_ns)
			fs->retry_ns = f->retry_ns;
	}
}

void files_await(struct files *fs, uint32_t id)
{
	struct file *f = id < fs->n ? fs->all[id] : NULL;
	struct worker_requester by;

	if (!f || !f->inspecting || !files_is_awaited(f))
		return;
	if (++f->counts.awaited < URGENT_SAMPLES || f->counts.awaited & (f->counts.awaited - 1))
		return;
	by = requester_of(f);
	worker_hurry(fs->worker, &by, f->counts.awaited, f);
}

bool files_is_awaited(const struct file *f)
{
	return f->state == FILE_PENDING || (f->inspecting && files_is_brief(f));
}

bool files_inspect_rest(struct file *f)
{
	if (!files_is_brief(f))
		return false;
	if (!f->inspecting && f->counts.rests < MAX_RESTS) {
		f->counts.rests++;
		inspect(f, true);
	}
	return f->inspecting;
}

void files_clear_renewed(struct files *fs)
{
	for (uint32_t i = 1; i < fs->n; i++)
		if (fs->all[i])
			fs->all[i]->renewed = false;
}

/* ---- opening ---- */

/* A file with our vDSO, which all 64-bit processes of a kernel have in common. fd or -errno. */
static int open_vdso(void)
{
	uint64_t at = getauxval(AT_SYSINFO_EHDR), lo, hi;
	char *line = NULL;
	size_t cap = 0;
	int fd = -ENOENT;
	FILE *maps = fopen("/proc/self/maps", "re");

	if (!maps)
		return -errno;
	errno = 0;
	while (fd == -ENOENT && getline(&line, &cap, maps) > 0) {
		if (sscanf(line, "%lx-%lx", &lo, &hi) != 2 || lo != at)
			continue;
		fd = memfd_create("vdso", MFD_CLOEXEC);
		if (fd >= 0 && write(fd, (void *)at, hi - lo) != (ssize_t)(hi - lo)) {
			close(fd);
			fd = -EIO;
		}
	}
	if (fd == -ENOENT && errno == ENOMEM)
		fd = -ENOMEM;
	fclose(maps);
	free(line);
	return fd;
}

/* The user of a process; no user's id if it has ended. */
static uint32_t user_of(pid_t pid)
{
	uid_t uid;

	return procfs_user(pid, &uid) ? UINT32_MAX : uid;
}

/* It is mapped, again perhaps. */
static struct file *seen(struct file *f)
{
	f->unmapped = false;
	if (f->again && !f->inspecting)
		inspect(f, false);
	return f;
}

/* The path, or, once all paths take PATH_BYTES, the end of a long path. */
static const char *stored_path(const struct files *fs, const char *path)
{
	size_t len = strlen(path);
	const char *end = path + len - (len < SHORT_PATH ? len : SHORT_PATH), *slash;

	if (end == path || fs->path_bytes + len <= PATH_BYTES)
		return path;
	slash = strchr(end, '/');
	return slash && slash[1] ? slash : end;
}

/* Makes the file of a key. Takes fd, but not on failure. NULL: no memory. */
static struct file *add(struct files *fs, const void *key, size_t len, pid_t pid, const char *path)
{
	struct file *f = file_index_add(fs, key, len, stored_path(fs, path), clock_now());

	if (!f)
		return NULL;
	f->pid = pid;
	fs->path_bytes += strlen(f->path);
	return f;
}

static struct file *no_memory(struct files *fs)
{
	fs->shortage = true;
	return NULL;
}

/* A file that can't be opened: known by its path only, or, if there are very many, not even so. */
static struct file *without_file(struct files *fs, pid_t pid, const char *path, int err)
{
	struct file *f;

	if (err == -ENOMEM)
		return no_memory(fs);
	f = file_index_find(fs, path, strlen(path));
	if (!f && fs->unreadable >= MAX_UNREADABLE) {
		path = "[files that cannot be read]";
		f = file_index_find(fs, path, strlen(path));
	}
	if (f)
		return f;
	f = add(fs, path, strlen(path), pid, path);
	if (!f)
		return no_memory(fs);
	fs->unreadable++;
	f->state = FILE_REFUSED;
	f->text = strdup(file_open_explain(err));
	log_debug("%s: %s", f->path, f->text ? f->text : "");
	return f;
}

/* Makes the file of a key, and has it inspected. Takes the descriptor. NULL: no memory. */
static struct file *add_inspected(struct files *fs, const void *key, size_t len,
				  const struct opener_answer *a, pid_t pid, const char *path)
{
	uint32_t uid = user_of(pid);
	int err = file_quota_add(&fs->quota, pid, uid);
	struct file *f = err ? NULL : add(fs, key, len, pid, path);

	if (!f) {
		file_answer_close(fs, a);
		if (!err)
			file_quota_remove(&fs->quota, pid, uid);
		fs->later |= err == -EDQUOT;
		return err == -EDQUOT ? without_file(fs, pid, path, err) : no_memory(fs);
	}
	f->fd = a->fd;
	f->source.readable = true;
	f->source.copied = a->st.copied;
	f->source.copy_of = a->st.copied ? a->st.dev : 0;
	f->source.remote = a->st.remote;
	f->uid = uid;
	inspect(f, false);
	return f;
}

/* Is it made by memfd_create(), and no program or library? Runtimes map such memory twice, to write
 * code in one place and execute it in another: Erlang's, .NET's. */
static bool is_memory(const struct procfs_mapping *m, const struct opener_answer *a)
{
	char magic[SELFMAG];

	return !strncmp(m->name, "/memfd:", 7) && !a->st.remote &&
	       (pread(a->fd, magic, SELFMAG, 0) != SELFMAG || memcmp(magic, ELFMAG, SELFMAG));
}

/* Only its number is kept, so that it need not be opened for each of its mappings. NULL: no memory.
 */
static struct file *add_memory(struct files *fs, const void *key, size_t len,
			       const struct opener_answer *a, pid_t pid, const char *path)
{
	struct file *f = add(fs, key, len, pid, path);

	file_answer_close(fs, a);
	if (!f)
		return no_memory(fs);
	f->state = FILE_MEMORY;
	return f;
}

static struct file *vdso(struct files *fs, pid_t pid)
{
	struct file *f = file_index_find(fs, VDSO, strlen(VDSO));
	struct opener_answer a = {0};

	if (f)
		return f;
	a.fd = open_vdso();
	return a.fd < 0 ? without_file(fs, pid, VDSO, a.fd)
			: add_inspected(fs, VDSO, strlen(VDSO), &a, pid, VDSO);
}

/* A number without a generation may be another file's in another process: the file was removed and
 * its number used again. */
static struct file *recent(struct files *fs, pid_t pid, const struct procfs_mapping *m)
{
	const struct files_recent *r = &fs->recent[m->ino % FILES_RECENT];

	if (!r->file || !m->ino || r->ino != m->ino || r->dev_major != m->dev_major ||
	    r->dev_minor != m->dev_minor || r->generation != m->generation ||
	    (!m->generation && r->pid != pid) || clock_now() - r->opened_ns > RECENT_NS)
		return NULL;
	return r->file;
}

/* Where it is mapped, by which it is opened again. */
static void set_place(struct file *f, pid_t pid, const struct procfs_mapping *m)
{
	f->source.place = (struct files_place){.pid = pid, .mapping = *m};
	f->source.place.mapping.name = NULL;
}

static void remember(struct files *fs, pid_t pid, const struct procfs_mapping *m, struct file *f)
{
	fs->recent[m->ino % FILES_RECENT] = (struct files_recent){.pid = pid,
								  .dev_major = m->dev_major,
								  .dev_minor = m->dev_minor,
								  .ino = m->ino,
								  .generation = m->generation,
								  .opened_ns = clock_now(),
								  .file = f};
}

struct file *files_of(struct files *fs, pid_t pid, const struct procfs_mapping *m)
{
	struct file *f = recent(fs, pid, m);
	struct opener_answer a;
	struct file_identity id;
	int err;

	if (f)
		return f->state == FILE_MEMORY ? NULL : seen(f);
	if (!strcmp(m->name, VDSO))
		return vdso(fs, pid);
	if (!*m->name || !strncmp(m->name, "//anon", 6) || !strncmp(m->name, "/dev/zero", 9) ||
	    *m->name == '[')
		return NULL;
	err = file_open(fs, pid, m, &a);
	if (err) {
		fs->later |= opener_is_temporary(err);
		return without_file(fs, pid, m->name, err);
	}
	id = file_identity_of(&a.st);
	f = file_index_find(fs, &id, sizeof(id));
	if (f)
		file_answer_close(fs, &a);
	else
		f = (is_memory(m, &a) ? add_memory : add_inspected)(fs, &id, sizeof(id), &a, pid,
								    m->name);
	if (!f)
		return no_memory(fs);
	if (f->source.readable)
		set_place(f, pid, m);
	if (f->source.readable || f->state == FILE_MEMORY)
		remember(fs, pid, m, f);
	return f->state == FILE_MEMORY ? NULL : seen(f);
}

bool files_is_of_time(const struct files *fs, uint32_t id, uint64_t time)
{
	return id < fs->n && fs->all[id] && fs->all[id]->added_ns <= time;
}

bool files_base(struct process_mapping *m)
{
	uint64_t vaddr;

	if (!m->based && m->file && m->file->state == FILE_READY &&
	    inspection_vaddr(m->file->inspection, m->offset, &vaddr)) {
		m->bias = m->lo - vaddr;
		m->based = true;
	}
	return m->based;
}

struct file *files_with_table(const struct process *p, uint32_t unwinder)
{
	for (uint32_t i = 0; i < p->n; i++) {
		struct file *f = p->mappings[i].file;

		if (f && f->slabs[unwinder] && f->slabs[unwinder]->n)
			return f;
	}
	return NULL;
}
