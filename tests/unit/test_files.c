/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/unwind
/* Files by their mappings: opened once for many mappings, and never confused. */
#include <sys/sysmacros.h>

#include "base/clock.h"
#include "plugin/plugin.h"
#include "process/procfs.h"
#include "files/internal/file_index.h"
#include "files/files.h"
#include "mapping_help.h"
#include "worker_help.h"

/* Maps a page of a new file of this name as code. */
static void *map_new(const char *name, struct expected_mapping *to)
{
	char path[128];
	void *p;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", test_dir(), name);
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

/* A process that maps ever new files has some of them open, and more when those are dropped. */
TEST(files_of_a_process_are_limited)
{
	struct worker_options o = {0};
	struct plugin_set set = {0};
	struct expected_mapping m[3];
	struct file *f[3];
	struct worker *w;
	struct files *fs;

	CHECK_INT(worker_new(&w, &o), 0);
	CHECK_INT(files_new(&fs, w, &set), 0);
	CHECK(fs->quota.of_process >= 16 && fs->quota.of_process <= fs->quota.of_user &&
	      fs->quota.of_user <= fs->quota.of_all);
	fs->quota.of_process = 2;
	map_new("limit_one", &m[0]);
	map_new("limit_two", &m[1]);
	map_new("limit_three", &m[2]);
	for (int i = 0; i < 3; i++)
		f[i] = files_of(fs, getpid(), &m[i].m);
	CHECK(f[0]->fd >= 0 && f[1]->fd >= 0 && f[2]->fd < 0);
	CHECK(fs->later && !fs->shortage);
	CHECK_INT(f[2]->state, FILE_REFUSED);
	CHECK(strstr(f[2]->text, "too many files"));
	CHECK_INT(worker_wait_until(w, 0), 0);
	files_drop(fs, f[0]->id);
	CHECK(files_of(fs, getpid(), &m[2].m)->fd >= 0);
	CHECK_INT(fs->quota.n, 2);
	CHECK_INT(worker_wait_until(w, 0), 0);
	worker_stop(w);
	files_free(fs);
}

/* Of a user some files stay open; the others are opened again when they are needed, and are the
 * same then. */
TEST(files_are_closed_and_opened_again)
{
	struct worker_options o = {0};
	struct plugin_set set = {0};
	struct expected_mapping m[3];
	struct file *f[3];
	struct worker *w;
	struct files *fs;
	char text[16] = "";
	void *at[3];
	int fd;

	CHECK_INT(worker_new(&w, &o), 0);
	CHECK_INT(files_new(&fs, w, &set), 0);
	fs->quota.kept = 1;
	at[0] = map_new("again_one", &m[0]);
	at[1] = map_new("again_two", &m[1]);
	at[2] = map_new("again_three", &m[2]);
	for (int i = 0; i < 3; i++)
		f[i] = files_of(fs, getpid(), &m[i].m);
	CHECK_INT(fs->quota.n, 3); /* they are being inspected */
	CHECK_INT(worker_wait_until(w, 0), 0);
	CHECK_INT(fs->quota.n, 1);
	CHECK_INT((f[0]->fd >= 0) + (f[1]->fd >= 0) + (f[2]->fd >= 0), 1);
	for (int i = 0; i < 3; i++) {
		CHECK(f[i]->source.readable && !f[i]->uses);
		fd = files_hold(f[i]);
		CHECK(fd >= 0 && fd == files_hold(f[i]));
		CHECK_INT(pread(fd, text, 11, 0), 11);
		CHECK_STR(text, "no ELF file");
		files_release(f[i]);
		CHECK_INT(f[i]->fd, fd);
		files_release(f[i]);
		CHECK(files_of(fs, getpid(), &m[i].m) == f[i]);
	}
	CHECK_INT(fs->quota.n, 1);
	for (int i = 0; i < 3; i++) {
		/* another file is there now */
		CHECK(!munmap(at[i], 4096) && !unlink(m[i].m.name));
		CHECK(!munmap(map_new(m[i].name, &(struct expected_mapping){0}), 4096));
		if (f[i]->fd < 0)
			CHECK(files_hold(f[i]) < 0);
	}
	CHECK_INT(fs->quota.n, 1);
	worker_stop(w);
	files_free(fs);
}

/* By users: root's processes have no limit but that of all. */
TEST(files_of_users_are_limited)
{
	struct file_quota q;

	file_quota_init(&q);
	q.of_process = 3;
	q.of_user = 5;
	q.of_all = 11;
	for (int i = 0; i < 6; i++)
		CHECK_INT(file_quota_add(&q, 100 + i / 3, 1000), i < 5 ? 0 : -EDQUOT);
	for (int i = 0; i < 7; i++)
		CHECK_INT(file_quota_add(&q, 200 + i / 3, 0), i < 6 ? 0 : -EDQUOT);
	file_quota_remove(&q, 100, 1000);
	CHECK_INT(file_quota_add(&q, 300, 0), 0);
	CHECK_INT(file_quota_add(&q, 301, 1001), -EDQUOT);
	file_quota_fini(&q);
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
	fs->recent[one.m.ino % FILES_RECENT].opened_ns = clock_now();
	CHECK(files_of(fs, getpid(), &more) == f);
	g = files_of(fs, getpid(), &two.m);
	CHECK(g && g != f && g->fd >= 0);
	CHECK_INT(worker_wait_until(w, 0), 0);
	files_drop(fs, g->id);
	CHECK(files_of(fs, getpid(), &two.m)); /* not what was freed */
	CHECK_INT(worker_wait_until(w, 0), 0);
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
}

/* Maps a page of memory by memfd_create() with these first bytes. */
static void map_memory(const char *bytes, struct procfs_mapping *to)
{
	struct stat st;
	void *p;
	int fd = memfd_create("made", MFD_CLOEXEC);

	CHECK(fd >= 0 && write(fd, bytes, strlen(bytes)) == (ssize_t)strlen(bytes));
	CHECK(!ftruncate(fd, 4096) && !fstat(fd, &st));
	p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	CHECK(p != MAP_FAILED);
	close(fd);
	*to = (struct procfs_mapping){.lo = (uintptr_t)p,
				      .hi = (uintptr_t)p + 4096,
				      .dev_major = major(st.st_dev),
				      .dev_minor = minor(st.st_dev),
				      .ino = st.st_ino,
				      .name = "/memfd:made (deleted)"};
}

/* Runtimes write code to such memory. A program or library may lie in it, too. */
TEST(memory_of_memfd_create)
{
	struct worker_options o = {0};
	struct procfs_mapping code, elf;
	struct plugin_set set = {0};
	struct worker *w;
	struct files *fs;
	struct file *f;

	CHECK_INT(worker_new(&w, &o), 0);
	CHECK_INT(files_new(&fs, w, &set), 0);
	map_memory("\x55\x5d\xc3", &code);
	map_memory("\x7f"
		   "ELF",
		   &elf);
	CHECK(!files_of(fs, getpid(), &code));
	CHECK(!fs->shortage && !fs->later);
	CHECK_INT(fs->quota.n, 0);
	CHECK(!munmap((void *)(uintptr_t)code.lo, 4096)); /* it can be opened no more */
	CHECK(!files_of(fs, getpid(), &code));
	CHECK(!fs->shortage && !fs->later);
	f = files_of(fs, getpid(), &elf);
	CHECK(f && f->fd >= 0 && f->source.readable);
	CHECK_INT(worker_wait_until(w, 0), 0);
	files_free(fs);
	worker_stop(w);
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
