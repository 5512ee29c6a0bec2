/* SPDX-License-Identifier: Apache-2.0 */
/* Files by their mappings: opened once for many mappings, and never confused. */
#include "base/clock.h"
#include "plugin/plugin.h"
#include "process/procfs.h"
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
	/* who comes later, of another process, or with another number is looked at */
	CHECK(files_of(fs, getpid(), &one.m)->fd < 0);
	CHECK(files_of(fs, getpid(), &two.m)->fd >= 0);
	fs->recent.opened_ns -= 200000000;
	CHECK(!munmap((void *)(uintptr_t)two.m.lo, 4096) && !unlink(two.m.name));
	CHECK(files_of(fs, getpid(), &two.m)->fd < 0);
	files_free(fs);
	worker_stop(w);
	remove_scratch();
}
