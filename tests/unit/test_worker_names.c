// SPDX-License-Identifier: Apache-2.0
// check: fast, covers core/worker core/names core/inspection
/* Tables of names with a real worker: which are kept, when one is made, and what can fail. */
#include <sys/resource.h>

#include "base/metrics.h"
#include "names/names.h"
#include "symbols/symbols.h"
#include "lib/cached_worker.h"

static int written;

static void made(void *arg, int err)
{
	int *at = arg;

	*at = err;
	written++;
}

/* Dispatches until a table is made, and written. Kills the worker that makes it so many times. */
__attribute__((noinline)) static void wait_for_table(struct worker *w, int kills)
{
	int killed = 0;

	written = 0;
	while (!written) {
		struct pollfd p = {.fd = worker_fd(w), .events = POLLIN};

		if (kills && worker_pid(w) > 0 && worker_pid(w) != killed) {
			killed = worker_pid(w);
			CHECK(!kill(killed, SIGKILL));
			kills--;
		}
		poll(&p, 1, 20);
		worker_dispatch(w);
	}
	WAIT_FOR(!background_waiting(worker_background(w)));
}

/* This program, as root's file in a folder that is known. */
static struct worker_symbolization self_at(const uint64_t *addresses, uint32_t n)
{
	return (struct worker_symbolization){.fd = open_file("/proc/self/exe"),
					     .debug_fd = -1,
					     .alt_fd = -1,
					     .name = "self",
					     .inlines = true,
					     .addresses = addresses,
					     .n = n};
}

static uint64_t own_function(void)
{
	extern const char __ehdr_start[] __attribute__((visibility("hidden")));

	return (uintptr_t)wait_for_table - (uintptr_t)__ehdr_start;
}

/* At the second request, as it is large, and then not before an hour. Nobody waits for it. */
TEST(a_table_of_names)
{
	struct worker *w = start((struct worker_options){.cache_dir = cache_dir()});
	struct worker_symbolization s = self_at(NULL, 0);
	const struct symbols_frame *f;
	struct names_table *t;
	uint8_t key[32];
	int err = 1;
	uint32_t n;

	CHECK_INT(worker_names_key(w, &s, NULL, key), 0);
	CHECK_INT(worker_names_open(w, key, &t), -ENOENT);
	CHECK_INT(worker_names_make(w, &s, NULL, made, &err), -EAGAIN);
	CHECK_INT(worker_names_make(w, &s, NULL, made, &err), 0);
	CHECK_INT(worker_pending(w), 0);
	wait_for_table(w, 1); /* a worker that is killed in the middle is tried again */
	CHECK_INT(err, 0);
	CHECK_INT(cached_files(), 1);
	CHECK_INT(worker_names_make(w, &s, NULL, made, &err), -EAGAIN);
	worker_stop(w);

	w = start((struct worker_options){.cache_dir = cache_dir()});
	CHECK_INT(worker_names_open(w, key, &t), 0);
	CHECK_INT(names_find(t, own_function(), &f, &n), 0);
	CHECK_STR(f[n - 1].name, "wait_for_table");
	CHECK(strstr(f[0].file, "test_worker_names.c") && f[0].line > 20 && names_quality(t));
	names_close(t);
	CHECK_INT(worker_pid(w), 0);
	/* Another file by its time: it has another key. */
	s.fd = elf_on_disk(1, "other");
	CHECK_INT(worker_names_key(w, &s, NULL, key), 0);
	CHECK_INT(worker_names_open(w, key, &t), -ENOENT);
	worker_stop(w);
}

/* Files that others can write to have none; nor has a program without a cache. */
TEST(tables_of_clean_files_only)
{
	struct worker *w = start((struct worker_options){.cache_dir = cache_dir()});
	struct worker_symbolization s = self_at(NULL, 0);
	uint8_t key[32];

	s.debug_fd = elf_on_disk(1, "debug");
	CHECK(!fchmod(s.debug_fd, 0666));
	CHECK_INT(worker_names_key(w, &s, NULL, key), -ENOTSUP);
	CHECK(!fchmod(s.debug_fd, 0644));
	CHECK_INT(worker_names_key(w, &s, NULL, key), 0);
	s.debug_fetched = true;
	CHECK_INT(worker_names_key(w, &s, NULL, key), -ENOTSUP);
	s.debug_fd = -1;
	s.fd = elf_with_entry(1); /* of no known file system */
	CHECK_INT(worker_names_key(w, &s, NULL, key), -ENOTSUP);
	worker_stop(w);
	w = start((struct worker_options){.cache_dir = NULL});
	s = self_at(NULL, 0);
	CHECK_INT(worker_names_key(w, &s, NULL, key), -ENOTSUP);
	CHECK_INT(worker_names_make(w, &s, NULL, made, NULL), -ENOTSUP);
	worker_stop(w);
}

#define WRITE_FAILURES "cache_write_failures_total"

/* A full disk, a folder that was removed, and a worker that dies each time: counted, and the file
 * is not refused. */
TEST(tables_that_fail)
{
	struct rlimit full = {.rlim_cur = 1000, .rlim_max = RLIM_INFINITY}, before;
	struct worker_symbolization s = self_at(NULL, 0);
	char command[120];
	struct worker *w;
	int err = 1;

	signal(SIGXFSZ, SIG_IGN);
	CHECK(!getrlimit(RLIMIT_FSIZE, &before));
	for (int i = 0; i < 3; i++) {
		w = start((struct worker_options){.cache_dir = cache_dir()});
		CHECK_INT(worker_names_make(w, &s, NULL, made, &err), -EAGAIN);
		CHECK_INT(worker_names_make(w, &s, NULL, made, &err), 0);
		snprintf(command, sizeof(command), "rm -rf %s", cache_dir());
		CHECK(i != 1 || !system(command));
		if (!i) {
			worker_dispatch(w); /* the worker has no limit */
			CHECK(!setrlimit(RLIMIT_FSIZE, &full));
		}
		wait_for_table(w, i == 2 ? 7 : 0); /* the first try, and six more */
		CHECK(!setrlimit(RLIMIT_FSIZE, &before));
		CHECK_INT(err, i == 2 ? -ENOMEM : 0);
		CHECK(metric_get(WRITE_FAILURES, NULL) == (i ? 2 : 1));
		CHECK(metric_get("name_tables_total", METRIC_LABELS("result", "failed")) ==
		      (i == 2));
		CHECK_INT(i == 1 ? 0 : cached_files(), 0);
		CHECK_STR(refusal(w), "");
		worker_stop(w);
	}
}

/* Its pages are damaged: it is removed when that is found. */
TEST(a_damaged_table)
{
	struct worker *w = start((struct worker_options){.cache_dir = cache_dir()});
	struct worker_symbolization s = self_at(NULL, 0);
	const struct symbols_frame *f;
	struct names_table *t;
	char command[200];
	uint8_t key[32];
	uint32_t n;
	int err = 1;

	CHECK_INT(worker_names_key(w, &s, NULL, key), 0);
	CHECK_INT(worker_names_make(w, &s, NULL, made, &err), -EAGAIN);
	CHECK_INT(worker_names_make(w, &s, NULL, made, &err), 0);
	wait_for_table(w, 0);
	CHECK_INT(worker_names_open(w, key, &t), 0);
	snprintf(command, sizeof(command), "truncate -s 9000 $(find %s -type f)", cache_dir());
	CHECK(!system(command));
	err = names_find(t, own_function(), &f, &n);
	CHECK_INT(err, -EBADMSG);
	names_close(t);
	worker_names_remove(w, key, err);
	CHECK_INT(cached_files(), 0);
	CHECK_INT(worker_names_open(w, key, &t), -ENOENT);
	CHECK(metric_get("name_tables_total", METRIC_LABELS("result", "damaged")) == 1);
	worker_stop(w);
}
