/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dict.h"
#include "base/log.h"

int files_new(struct files **ret, struct worker *worker, const struct plugin_set *unwinders)
{
	struct files *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->keys = calloc(1, sizeof(*f->keys));
	if (!f->keys || dict_init(f->keys)) {
		free(f->keys);
		free(f);
		return -ENOMEM;
	}
	f->worker = worker;
	f->unwinders = unwinders;
	f->n = 1;
	*ret = f;
	return 0;
}

void files_drop(struct files *fs, uint32_t id)
{
	struct file *f = fs->all[id];

	if (!f)
		return;
	inspection_unref(f->inspection);
	if (f->fd >= 0)
		close(f->fd);
	free(f->path);
	free(f->text);
	free(f);
	fs->all[id] = NULL;
}

void files_free(struct files *f)
{
	if (!f)
		return;
	for (uint32_t i = 1; i < f->n; i++)
		files_drop(f, i);
	dict_fini(f->keys);
	free(f->keys);
	free(f->all);
	free(f);
}

const char *files_base_name(const struct file *f)
{
	const char *slash = strrchr(f->path, '/');

	return slash && slash[1] ? slash + 1 : f->path;
}

static void inspected(void *arg, int err, const char *text, struct inspection *i)
{
	struct file *f = arg;

	f->files->answers++;
	if (err) {
		f->state = FILE_REFUSED;
		f->text = strdup(text && *text ? text : strerror(-err));
		log_debug("%s: %s", f->path, f->text ? f->text : "");
		return;
	}
	f->state = FILE_READY;
	f->inspection = i;
	for (uint32_t u = 0; u < f->files->unwinders->n && u < FILES_MAX_UNWINDERS; u++)
		f->slabs[u] = inspection_slab(i,
					      f->files->unwinders->instances[u]->descriptor->name);
}

/* The vDSO is the same for all 64-bit processes of a kernel: ours, as a file. fd or -errno. */
static int open_vdso(void)
{
	uint64_t at = getauxval(AT_SYSINFO_EHDR), lo, hi;
	char *line = NULL;
	size_t cap = 0;
	int fd = -ENOENT;
	FILE *maps = fopen("/proc/self/maps", "re");

	while (maps && fd == -ENOENT && getline(&line, &cap, maps) > 0) {
		if (sscanf(line, "%lx-%lx", &lo, &hi) != 2 || lo != at)
			continue;
		fd = memfd_create("vdso", MFD_CLOEXEC);
		if (fd >= 0 && write(fd, (void *)at, hi - lo) != (ssize_t)(hi - lo)) {
			close(fd);
			fd = -EIO;
		}
	}
	if (maps)
		fclose(maps);
	free(line);
	return fd;
}

static int open_mapping(pid_t pid, const struct procfs_mapping *m)
{
	return strcmp(m->name, "[vdso]") ? procfs_open_mapping(pid, m) : open_vdso();
}

/* What makes two mappings' files the same content. */
struct identity {
	uint64_t dev, ino, size, mtime, mtime_ns;
};

/* The file of this id, which has none. NULL: no memory. */
static struct file *add(struct files *fs, uint32_t id, int fd, pid_t pid, const char *path)
{
	struct file *f = calloc(1, sizeof(*f));

	if (id >= fs->cap) {
		uint32_t cap = fs->cap ? fs->cap : 64;
		struct file **all;

		while (cap <= id)
			cap *= 2;
		all = realloc(fs->all, cap * sizeof(struct file *));
		if (!all)
			goto fail;
		memset(all + fs->cap, 0, (cap - fs->cap) * sizeof(struct file *));
		fs->all = all;
		fs->cap = cap;
	}
	if (!f)
		goto fail;
	*f = (struct file){.id = id, .fd = fd, .pid = pid, .path = strdup(path), .files = fs};
	if (!f->path)
		goto fail;
	fs->all[id] = f;
	if (id >= fs->n)
		fs->n = id + 1;
	return f;
fail:
	free(f);
	return NULL;
}

/* The id of what has this identity, DICT_NONE: no memory; *ret: the file, NULL: there is none (any
 * more). */
static uint32_t find(struct files *fs, const void *key, size_t len, struct file **ret)
{
	uint32_t id = dict_add(fs->keys, key, len);

	*ret = id != DICT_NONE && id < fs->n ? fs->all[id] : NULL;
	return id;
}

/* A mapping whose file cannot be had any more: known by its path alone. */
static struct file *without_file(struct files *fs, pid_t pid, const char *path, int err)
{
	struct file *f;
	uint32_t id = find(fs, path, strlen(path), &f);

	if (f || id == DICT_NONE)
		return f;
	f = add(fs, id, -1, pid, path);
	if (!f)
		return NULL;
	f->state = FILE_REFUSED;
	f->text = strdup(err == -ESTALE || err == -ENOENT || err == -ESRCH
				 ? "the file was gone or replaced before it could be opened"
				 : strerror(-err));
	return f;
}

struct file *files_of(struct files *fs, pid_t pid, const struct procfs_mapping *m)
{
	struct identity id;
	struct stat st;
	struct file *f;
	uint32_t number;
	int fd;

	if (!*m->name || !strncmp(m->name, "//anon", 6) || !strncmp(m->name, "/dev/zero", 9) ||
	    (*m->name == '[' && strcmp(m->name, "[vdso]")))
		return NULL;
	fd = open_mapping(pid, m);
	if (fd < 0)
		return without_file(fs, pid, m->name, fd);
	if (fstat(fd, &st)) {
		close(fd);
		return NULL;
	}
	id = (struct identity){st.st_dev, st.st_ino, (uint64_t)st.st_size,
			       (uint64_t)st.st_mtim.tv_sec, (uint64_t)st.st_mtim.tv_nsec};
	if (strcmp(m->name, "[vdso]"))
		number = find(fs, &id, sizeof(id), &f);
	else
		number = find(fs, "[vdso]", 6, &f);
	if (f || number == DICT_NONE) {
		close(fd);
		return f;
	}
	f = add(fs, number, fd, pid, m->name);
	if (!f) {
		close(fd);
		return NULL;
	}
	if (worker_inspect(fs->worker, fd, f->path, inspected, f))
		inspected(f, -ENOMEM, "", NULL);
	return f;
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
