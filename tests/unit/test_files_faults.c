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

struct nasty {
	struct plugin_set set;
	struct worker *w;
	struct files *fs;
};

static void nasty_new(struct nasty *n, const char *plugin_dir, const char *cache_dir)
{
	struct worker_options o = {.plugin_dir = plugin_dir, .cache_dir = cache_dir};

	*n = (struct nasty){0};
	CHECK_INT(plugin_set_open(o.plugin_dir, &plugin_host_base, NULL, &n->set), 0);
	o.unwinders = &n->set;
	CHECK_INT(worker_new(&n->w, &o), 0);
	CHECK_INT(files_new(&n->fs, n->w, &n->set), 0);
}

static void nasty_free(struct nasty *n)
{
	files_free(n->fs);
	worker_stop(n->w);
	plugin_set_close(&n->set);
}

/* Maps a file of which the unwinder does this. */
static void map_nasty(int what, const char *name, struct expected_mapping *to)
{
	int fd, elf = elf_with_entry((uint64_t)what);
	char path[128], bytes[64];

	snprintf(path, sizeof(path), "%s%s", test_dir(), name);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0700);
	CHECK(fd >= 0 && pread(elf, bytes, 64, 0) == 64 && write(fd, bytes, 64) == 64);
	CHECK(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) != MAP_FAILED);
	close(fd);
	close(elf);
	*to = mapping_of(name);
	to->m.name = to->copy;
}

/* Once a sample was in what a brief inspection has omitted, that is inspected, and kept on disk.
 */
TEST(what_was_omitted)
{
	const char *plugins = nasty_plugins();
	char cache[128];
	struct expected_mapping to;
	struct nasty n;
	struct file *f;

	snprintf(cache, sizeof(cache), "%s/cache", test_dir());
	map_nasty(DO_OMIT, "/omitted", &to);
	for (int run = 0; run < 3; run++) {
		nasty_new(&n, plugins, cache);
		f = files_of(n.fs, getpid(), &to.m);
		wait_answers(n.fs, n.w, 1);
		CHECK_INT(f->state, FILE_READY);
		CHECK(run ? f->inspection->flags & INSPECTION_CACHED
			  : !(f->inspection->flags & INSPECTION_CACHED));
		CHECK_INT(files_is_brief(f), run < 2);
		CHECK_INT(f->slabs[0]->words[1], run < 2);
		CHECK(!files_is_awaited(f));
		if (run == 1) { /* the first run needed nothing else */
			CHECK(files_inspect_rest(f) && files_is_awaited(f));
			CHECK(files_inspect_rest(f)); /* it is under way */
			wait_answers(n.fs, n.w, 2);
			CHECK(f->renewed && !files_is_awaited(f) && !files_is_brief(f));
			CHECK_INT(f->slabs[0]->words[1], 0);
		}
		if (run)
			CHECK(!files_inspect_rest(f));
		nasty_free(&n);
	}
}

/* The worker dies of what was omitted: the brief table stays. */
TEST(what_was_omitted_kills)
{
	struct expected_mapping to;
	struct nasty n;
	struct file *f;

	map_nasty(DO_DIE_OF_REST, "/deadly_rest", &to);
	nasty_new(&n, nasty_plugins(), NULL);
	f = files_of(n.fs, getpid(), &to.m);
	wait_answers(n.fs, n.w, 1);
	for (uint32_t i = 0; i < 2; i++) {
		CHECK(files_inspect_rest(f));
		wait_answers(n.fs, n.w, 2 + i);
		CHECK(f->state == FILE_READY && files_is_brief(f) && !f->renewed);
		CHECK_INT(f->slabs[0]->words[1], 1);
	}
	CHECK(!files_inspect_rest(f)); /* it will not do better */
	nasty_free(&n);
}

TEST(a_table_that_lacked_memory)
{
	struct expected_mapping to;
	struct nasty n;
	struct worker *w;
	struct files *fs;
	struct file *f;

	map_nasty(DO_LACK_MEMORY, "/lacks", &to);
	nasty_new(&n, nasty_plugins(), NULL);
	w = n.w;
	fs = n.fs;
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
	nasty_free(&n);
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
