/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/process core/unwind
/* Files for which there was no memory are opened again: in the agent, where each allocation
 * fails in turn, and in the worker, where an unwinder had none. */
#include "base/clock.h"
#include "plugin/plugin.h"
#include "process/procfs.h"
#include "files/files.h"
#include "mapping_help.h"
#include "worker_help.h"

#include "lib/faults.h"

static struct expected_mapping mapping_of(const char *name)
{
	struct expected_mapping w = {.name = name};

	CHECK_INT(procfs_each_mapping(getpid(), find_mapping, &w), 1);
	w.m.name = NULL;
	return w;
}

/* Until it has been called as often as that. */
static void wait_answers(struct files *fs, struct worker *w, uint32_t n)
{
	WAIT_FOR((files_retry(fs, clock_now()), !worker_wait_until(w, 0)) && fs->answers >= n);
}

TEST(a_table_that_lacked_memory)
{
	struct worker_options o = {.plugin_dir = nasty_plugins()};
	struct plugin_set set = {0};
	char path[128];
	struct expected_mapping to;
	struct worker *w;
	struct files *fs;
	struct file *f;
	int fd, elf = elf_with_entry(DO_LACK_MEMORY);
	char bytes[64];

	CHECK_INT(plugin_set_open(o.plugin_dir, &plugin_host_base, NULL, &set), 0);
	CHECK_INT(worker_new(&w, &o), 0);
	CHECK_INT(files_new(&fs, w, &set), 0);
	snprintf(path, sizeof(path), "%s/lacks", test_dir());
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0700);
	CHECK(fd >= 0 && pread(elf, bytes, 64, 0) == 64 && write(fd, bytes, 64) == 64);
	CHECK(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) != MAP_FAILED);
	to = mapping_of("/lacks");
	to.m.name = to.copy;
	f = files_of(fs, getpid(), &to.m);
	CHECK(f && f->inspecting && f->state == FILE_PENDING);
	wait_answers(fs, w, 1);
	/* what is known of it can be used meanwhile */
	CHECK(f->state == FILE_READY && !f->slabs[0] && !f->renewed && f->inspection->incomplete);
	wait_answers(fs, w, 2);
	CHECK(f->state == FILE_READY && !f->slabs[0]);
	wait_answers(fs, w, 3);
	CHECK(f->state == FILE_READY && f->slabs[0] && f->renewed && !f->inspection->incomplete);
	files_clear_renewed(fs);
	CHECK(!f->renewed && !f->inspecting && !fs->retry_ns);
	files_free(fs);
	worker_stop(w);
	plugin_set_close(&set);
}

/* One round: it may fail, but then says so, and the next time it is there. */
static void take(const char *name, const struct expected_mapping *to)
{
	struct worker_options o = {0};
	struct plugin_set set = {0};
	struct worker *w;
	struct files *fs;
	struct file *f;

	if (worker_new(&w, &o)) {
		CHECK(faults_happened());
		return;
	}
	if (files_new(&fs, w, &set)) {
		CHECK(faults_happened());
		worker_stop(w);
		return;
	}
	f = files_of(fs, getpid(), &to->m);
	if (!f) {
		CHECK(faults_happened() && fs->shortage);
		fs->shortage = false;
		f = files_of(fs, getpid(), &to->m);
	}
	CHECK(f && !fs->shortage && !strcmp(f->path, name));
	CHECK_INT(worker_wait_until(w, 0), 0);
	faults_stop();
	WAIT_FOR((files_retry(fs, clock_now()), !worker_wait_until(w, 0)) &&
		 f->state == FILE_READY);
	CHECK(f->inspection && !f->inspecting);
	files_free(fs);
	worker_stop(w);
}

static void take_all(const char *part, const char *name)
{
	struct expected_mapping to = mapping_of(part);
	unsigned long rounds = 0;

	to.m.name = to.copy;
	for (faults_from(0); faults_next(); rounds++)
		take(name ? name : to.copy, &to);
	CHECK(rounds > 8);
}

TEST_FOR(a_library, 120)
{
	take_all("/libc.so", NULL);
}

TEST_FOR(the_vdso, 120)
{
	take_all("[vdso]", "[vdso]");
}
