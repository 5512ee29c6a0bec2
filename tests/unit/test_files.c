/* SPDX-License-Identifier: Apache-2.0 */
/* Files by their mappings: opened once for many mappings, and never confused. */
#include "base/clock.h"
#include "plugin/plugin.h"
#include "process/procfs.h"
#include "unwind/file_index.h"
#include "unwind/files.h"
#include "mapping_help.h"
#include "worker_help.h"

/* Maps a page of a new file of this name as code. */
static void *map_new(const char *name, struct expected_mapping *to)
{
	char path[128];
	void *p;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", scratch(), name);
	unlink(path);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0700);
	CHECK(fd >= 0 && write(fd, "no ELF file", 11) == 11);
	p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	CHECK(p != MAP_FAILED);
	close(fd);
	to->name = name;
	CHECK_INT(procfs_each_mapping(getpid(), find_mapping, to), 1);
	to->m.name = to->copy;
	return p;
}

TEST(many_mappings_of_one_file_open_it_once)
{
	struct worker_options o = {0};
	struct plugin_set set = {0};
	struct expected_mapping one, two;
	struct procfs_mapping more;
	struct file *f, *g;
	struct worker *w;
	struct files *fs;
	void *at;

	CHECK_INT(worker_new(&w, &o), 0);
	CHECK_INT(files_new(&fs, w, &set), 0);
	at = map_new("recent_one", &one);
	map_new("recent_two", &two);
	f = files_of(fs, getpid(), &one.m);
	CHECK(f && f->fd >= 0);
	/* it can be opened no more, and is recognized all the same */
	CHECK(!munmap(at, 4096) && !unlink(one.m.name));
	more = one.m;
	more.lo += 4096;
	more.hi += 4096;
	CHECK(files_of(fs, getpid(), &more) == f);
	g = files_of(fs, getpid(), &two.m);
	CHECK(g && g != f && g->fd >= 0);
	CHECK_INT(worker_wait(w), 0);
	files_drop(fs, g->id);
	CHECK(files_of(fs, getpid(), &two.m)); /* not what was freed */
	CHECK_INT(worker_wait(w), 0);
	/* of another process, or later, it is looked at */
	CHECK(files_of(fs, 1, &one.m)->fd < 0);
	CHECK(files_of(fs, getpid(), &two.m)->fd >= 0);
	for (uint32_t i = 0; i < FILES_RECENT; i++)
		fs->recent[i].opened_ns -= 200000000;
	CHECK(!munmap((void *)(uintptr_t)two.m.lo, 4096) && !unlink(two.m.name));
	CHECK(files_of(fs, getpid(), &one.m)->fd < 0);
	CHECK(files_of(fs, getpid(), &two.m)->fd < 0);
	files_free(fs);
	worker_stop(w);
	remove_scratch();
}

static uint32_t add_key(struct files *fs, uint32_t key, uint64_t now)
{
	struct file *f = file_index_add(fs, &key, sizeof(key), "/x", now);

	CHECK(f && file_index_find(fs, &key, sizeof(key)) == f);
	return f->id;
}

/* Ids are used again after a while, the lowest first, and memory is given back. */
TEST(ids_are_used_again)
{
	const uint64_t second = 1000000000;
	struct plugin_set set = {0};
	struct files *fs;
	uint32_t key = 0;

	CHECK_INT(files_new(&fs, NULL, &set), 0);
	for (uint64_t t = 1; t <= 200; t++) {
		for (uint32_t i = 0; i < 1000; i++)
			CHECK(add_key(fs, ++key, t * second) < 40 * 1000);
		for (uint32_t i = 1; i < fs->n; i++)
			if (fs->all[i])
				file_index_remove(fs, fs->all[i], t * second);
		file_index_trim(fs, t * second);
	}
	CHECK(fs->n > 20 * 1000 && fs->by_hash.n == 0);
	file_index_trim(fs, 300 * second);
	CHECK(fs->n == 1 && fs->cap == 64 && fs->by_hash.nslots == 64);
	CHECK_INT(add_key(fs, 5, 301 * second), 1);
	CHECK(files_is_of_time(fs, 1, 301 * second) && !files_is_of_time(fs, 1, 300 * second));
	CHECK(!files_is_of_time(fs, 2, 301 * second));
	file_index_remove(fs, fs->all[1], 302 * second);
	files_free(fs);
}

/* Files that cannot be opened are bounded in number and memory, and forgotten. */
TEST(many_files_that_cannot_be_opened)
{
	struct procfs_mapping m = {.lo = 4096, .hi = 8192, .ino = 12345};
	struct plugin_set set = {0};
	char path[4000];
	struct files *fs;
	struct file *f;

	CHECK_INT(files_new(&fs, NULL, &set), 0);
	memset(path, 'x', sizeof(path));
	for (uint32_t i = 0; i < 6000; i++) {
		snprintf(path + 3800, 100, "/none/file-%u", i);
		path[0] = '/';
		m.name = path;
		f = files_of(fs, getpid(), &m);
		CHECK(f && f->state == FILE_REFUSED && f->text);
		if (i == 3000)
			CHECK_STR(f->path, "/none/file-3000");
	}
	CHECK_STR(f->path, "[files that cannot be read]");
	CHECK(fs->n < 4200 && fs->path_bytes < 10u << 20);
	for (uint32_t i = 1; i < fs->n; i++)
		files_drop(fs, i);
	CHECK(!fs->path_bytes && !fs->unreadable && !fs->by_hash.n);
	files_free(fs);
}
