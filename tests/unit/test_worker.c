// SPDX-License-Identifier: Apache-2.0
// check: fast, covers core/symbols
/* The agent's side with a real worker: answers, the cache, deaths, time limits, refusals, and its
 * end when idle. */
#include <inttypes.h>

#include "symbols/symbols.h"
#include "base/clock.h"
#include "lib/cached_worker.h"

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

#define TEST_OF_WORKER(id)                                                                   \
	TEST_WITH(id, struct worker *, w, start((struct worker_options){.cache_dir = NULL}), \
		  worker_stop(w))

TEST_OF_WORKER(what_an_inspection_says)
{
	struct inspected a = inspect_fd(w, open_file("/bin/true"));
	uint64_t vaddr;

	CHECK_INT(a.err, 0);
	CHECK_INT(a.i->machine, EM_X86_64);
	CHECK_INT(a.i->type, ET_DYN);
	CHECK_INT(a.i->build_id_len, 20);
	CHECK(a.i->flags & INSPECTION_DYNSYM &&
	      !(a.i->flags & (INSPECTION_GO | INSPECTION_DWARF | INSPECTION_CACHED)));
	CHECK(!(a.i->flags & INSPECTION_STARTS));
	CHECK(a.i->nsegments >= 2 && strstr(a.i->debuglink, ".debug"));
	for (uint32_t s = 0; s < a.i->nsegments; s++) {
		const struct fusee_segment *g = &a.i->segments[s];

		CHECK(inspection_vaddr(a.i, g->offset, &vaddr) == !!(g->flags & PF_X));
		if (g->flags & PF_X)
			CHECK_INT(vaddr, g->vaddr);
	}
	CHECK(a.i->entry && !a.i->nslabs);
	inspection_unref(a.i);
}

TEST_OF_WORKER(what_starts_other_programs)
{
	static const char *const programs[] = {"/bin/sh", "/usr/bin/env", "/proc/self/exe"};

	for (size_t i = 0; i < 3; i++) {
		struct inspected a = inspect_fd(w, open_file(programs[i]));

		CHECK_INT(a.err, 0);
		CHECK(a.i->flags & INSPECTION_STARTS);
		inspection_unref(a.i);
	}
}

TEST(second_time_from_disk)
{
	struct worker_options o = {.cache_dir = cache_dir(), .plugin_dir = nasty_plugins()};
	struct worker *w = start(o);
	struct inspected first = inspect_fd(w, open_file("/bin/true")), second;

	CHECK_INT(first.err, 0);
	CHECK(!(first.i->flags & INSPECTION_CACHED));
	CHECK_INT(first.i->nslabs, 1);
	CHECK_INT(cached_files(), 1);
	worker_stop(w);
	w = start(o);
	second = inspect_fd(w, open_file("/bin/true"));
	CHECK_INT(second.err, 0);
	CHECK(second.i->flags & INSPECTION_CACHED);
	CHECK(!memcmp(first.i->key, second.i->key, 32));
	CHECK_INT(second.i->nslabs, 1);
	CHECK(inspection_slab(second.i, "nasty") && !inspection_slab(second.i, "dwarf"));
	CHECK_INT(inspection_slab(second.i, "nasty")->words[0], (uint32_t)first.i->entry);
	CHECK_INT(first.i->bytes, second.i->bytes);
	inspection_unref(first.i);
	inspection_unref(second.i);
	worker_stop(w);
}

__attribute__((noinline)) void to_be_claimed(void);
__attribute__((noinline)) void to_be_claimed(void)
{
	__asm__ volatile("");
}

#define TEST_OF_NASTY(id)                 \
	TEST_WITH(id, struct worker *, w, \
		  start((struct worker_options){.plugin_dir = nasty_plugins()}), worker_stop(w))

TEST_OF_NASTY(claims_of_code)
{
	struct inspected a = inspect_fd(w, open_file("/proc/self/exe"));
	const struct inspection_claim *c;

	CHECK_INT(a.err, 0);
	CHECK_INT(inspection_slab(a.i, "nasty")->nclaims, 2);
	c = inspection_slab(a.i, "nasty")->claims;
	CHECK(c[0].lo + 1 == c[0].hi && c[0].hi == c[1].lo && c[0].arg == 8 && c[1].arg == 7);
	CHECK(c[1].hi > c[1].lo && c[1].hi - c[1].lo < 64);
	inspection_unref(a.i);
}

static uint32_t count(const char *text, const char *what)
{
	uint32_t n = 0;

	for (; (text = strstr(text, what)); text += strlen(what))
		n++;
	return n;
}

/* Each misuse by the plugin above is logged once. */
TEST(wrong_claims_are_said)
{
	int said = memfd_create("said", 0), before = dup(2);
	char text[4096] = "";
	struct worker *w;

	CHECK(dup2(said, 2) == 2);
	w = start((struct worker_options){.plugin_dir = nasty_plugins()});
	for (int i = 0; i < 2; i++) {
		struct inspected a = inspect_fd(w, open_file("/proc/self/exe"));

		CHECK_INT(a.err, 0);
		inspection_unref(a.i);
	}
	worker_stop(w);
	dup2(before, 2);
	CHECK(pread(said, text, sizeof(text) - 1, 0) > 0);
	CHECK_INT(count(text, "nasty: file_claim: the range is empty"), 1);
	CHECK_INT(count(text, "nasty: file_claim: flags must be FUSEE_CLAIM_STEP"), 1);
}

/* The path of the only file in the cache. */
static void cached_path(char path[160])
{
	char command[160];
	FILE *f;

	snprintf(command, sizeof(command), "find %s -type f", cache_dir());
	f = popen(command, "r");
	CHECK(f && fgets(path, 160, f));
	pclose(f);
	path[strcspn(path, "\n")] = 0;
}

/* Each byte of the cached file is changed in turn: never used, always made again. */
TEST(damaged_cache)
{
	struct worker_options o = {.cache_dir = cache_dir(), .plugin_dir = nasty_plugins()};
	int fd, file = elf_on_disk(DO_NOTHING, "file");
	struct worker *w = start(o);
	struct inspected a = inspect_fd(w, dup(file));
	char path[160], *bytes;
	struct stat st;

	CHECK_INT(a.err, 0);
	cached_path(path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0 && !fstat(fd, &st) && (st.st_mode & 0777) == 0600);
	bytes = malloc((size_t)st.st_size);
	CHECK(read(fd, bytes, (size_t)st.st_size) == st.st_size);
	close(fd);
	inspection_unref(a.i);
	for (off_t i = 0; i < st.st_size; i++) {
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		bytes[i] ^= 0x11;
		CHECK(fd >= 0 && write(fd, bytes, (size_t)st.st_size) == st.st_size);
		bytes[i] ^= 0x11;
		close(fd);
		a = inspect_fd(w, dup(file));
		CHECK_INT(a.err, 0);
		CHECK(!(a.i->flags & INSPECTION_CACHED));
		inspection_unref(a.i);
	}
	for (off_t len = 0; len < st.st_size; len += 8) {
		CHECK(!truncate(path, len));
		a = inspect_fd(w, dup(file));
		CHECK(!a.err && !(a.i->flags & INSPECTION_CACHED));
		inspection_unref(a.i);
	}
	a = inspect_fd(w, dup(file));
	CHECK(!a.err && a.i->flags & INSPECTION_CACHED);
	inspection_unref(a.i);
	free(bytes);
	close(file);
	worker_stop(w);
}

/* An inspection from disk stays what it was, whatever becomes of its file. */
TEST(a_cached_file_that_changes_while_it_is_used)
{
	struct worker_options o = {.cache_dir = cache_dir(), .plugin_dir = nasty_plugins()};
	struct worker *w = start(o);
	struct inspected used, again;
	struct fusee_segment before[16];
	uint8_t other[4096];
	char path[160];
	size_t len;
	int fd;

	memset(other, 0xff, sizeof(other));
	inspection_unref(inspect_fd(w, open_file("/bin/true")).i);
	used = inspect_fd(w, open_file("/bin/true"));
	CHECK(!used.err && used.i->flags & INSPECTION_CACHED);
	len = used.i->nsegments * sizeof(*before);
	CHECK(len && len <= sizeof(before));
	memcpy(before, used.i->segments, len);
	cached_path(path);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	CHECK(fd >= 0 && pwrite(fd, other, sizeof(other), 0) == sizeof(other));
	CHECK(!memcmp(before, used.i->segments, len));
	CHECK(!ftruncate(fd, 0)); /* a mapping of the file would be a SIGBUS from here on */
	CHECK(!memcmp(before, used.i->segments, len));
	CHECK_INT(inspection_slab(used.i, "nasty")->words[0], (uint32_t)used.i->entry);
	again = inspect_fd(w, open_file("/bin/true"));
	CHECK(!again.err && !(again.i->flags & INSPECTION_CACHED));
	CHECK(again.i->bytes == used.i->bytes);
	inspection_unref(again.i);
	inspection_unref(used.i);
	close(fd);
	worker_stop(w);
}

/* Whether this file's inspection came from the cache. */
static bool is_cached(struct worker *w, int fd)
{
	struct inspected a = inspect_fd(w, dup(fd));
	bool cached;

	CHECK_INT(a.err, 0);
	cached = a.i->flags & INSPECTION_CACHED;
	inspection_unref(a.i);
	return cached;
}

/* A process that is busy with another file keeps no inspection waiting that is on disk. */
TEST(from_disk_while_the_worker_is_busy)
{
	struct worker_options o = {.cache_dir = cache_dir(), .plugin_dir = nasty_plugins()};
	int kept = elf_on_disk(DO_NOTHING, "kept"), hangs = elf_on_disk(DO_HANG, "hangs");
	struct inspected busy = {0}, cached = {0};
	struct worker *w = start(o);

	CHECK(!is_cached(w, kept));
	WAIT_FOR(!background_waiting(worker_background(w)));
	CHECK_INT(worker_inspect(w, hangs, "hangs", NULL, answered, &busy), 0);
	CHECK_INT(worker_wait_until(w, clock_now() + 100000000), -ETIMEDOUT);
	CHECK_INT(worker_inspect(w, kept, "kept", NULL, answered, &cached), 0);
	CHECK_INT(cached.calls, 0);
	for (int i = 0; i < 100 && !cached.calls && !busy.calls; i++)
		worker_wait_until(w, clock_now() + 10000000);
	CHECK(cached.calls == 1 && !cached.err && !busy.calls);
	CHECK(cached.i->flags & INSPECTION_CACHED);
	inspection_unref(cached.i);
	worker_stop(w);
	CHECK_INT(busy.err, -ECANCELED);
	close(kept);
	close(hangs);
}

static int working_on_an_inspection(const struct worker *w)
{
	for (int i = 0; i < POOL_SLOTS; i++)
		if (w->slots[i].current && w->slots[i].unwinder >= 0)
			return w->slots[i].child.pid;
	return 0;
}

/* Until the process has worked on the file that hangs for as long as it may not be ended. */
static int hang(struct worker *w)
{
	int pid;

	do {
		worker_wait_until(w, clock_now() + 20000000);
		pid = working_on_an_inspection(w);
	} while (!pid);
	CHECK_INT(worker_wait_until(w, clock_now() + 150000000), -ETIMEDOUT);
	return pid;
}

/* A file that samples wait for is inspected before a file that takes long, which counts as no death
 * of the worker; a file gives way twice at most. */
TEST(urgent_while_the_worker_is_busy)
{
	struct worker_options o = {.plugin_dir = nasty_plugins()};
	struct worker_requester by = {.uid = geteuid(), .pid = getpid()};
	int hangs = elf_on_disk(DO_HANG, "hangs"), other = elf_on_disk(DO_NOTHING, "other");
	struct inspected busy = {0}, urgent[3] = {0};
	struct worker *w = start(o);
	int pid;

	CHECK_INT(worker_inspect(w, hangs, "hangs", NULL, answered, &busy), 0);
	for (int i = 0; i < 3; i++) {
		pid = hang(w);
		CHECK_INT(worker_inspect(w, other, "other", NULL, answered, &urgent[i]), 0);
		worker_hurry(w, &by, 8, &urgent[i]);
		while (i < 2 && !urgent[i].calls && !busy.calls)
			worker_wait_until(w, clock_now() + 10000000);
		CHECK_INT(urgent[i].calls, i < 2);
		CHECK_INT(busy.calls, 0);
	}
	CHECK_INT(working_on_an_inspection(w), pid);
	CHECK_STR(refusal(w), "");
	worker_stop(w);
	CHECK_INT(busy.err, -ECANCELED);
	CHECK_INT(urgent[2].err, -ECANCELED);
	for (int i = 0; i < 2; i++)
		inspection_unref(urgent[i].i);
	close(hangs);
	close(other);
}

/* Root's files (or the own user's), which nobody else can write, on a file system of root's. */
TEST(only_clean_files_are_kept)
{
	struct worker_options o = {.cache_dir = cache_dir(), .plugin_dir = nasty_plugins()};
	int clean = elf_on_disk(DO_NOTHING, "clean"), open_to_all = elf_on_disk(1, "open"),
	    foreign = elf_on_disk(2, "foreign"), memory = elf_with_entry(3),
	    late = elf_on_disk(DO_RUN_LATE, "late");
	struct worker *w = start(o);

	CHECK(!fchmod(open_to_all, 0666));
	CHECK(!is_cached(w, clean));
	CHECK_INT(cached_files(), 1);
	CHECK(is_cached(w, clean));
	CHECK(!is_cached(w, memory) && !is_cached(w, memory));
	CHECK(!is_cached(w, late) && !is_cached(w, late));
	if (!geteuid()) {
		CHECK(!fchown(foreign, 65534, 65534));
		CHECK(!is_cached(w, foreign) && !is_cached(w, foreign));
		CHECK(!is_cached(w, open_to_all) && !is_cached(w, open_to_all));
		CHECK_INT(cached_files(), 1);
	}
	/* Another content of the same size, with the old time of change: another file. */
	CHECK(pwrite(clean, "\x02", 1, 16) == 1);
	CHECK(!futimens(clean, (struct timespec[2]){{0, 0}, {0, 0}}));
	CHECK(!is_cached(w, clean));
	close(clean);
	close(open_to_all);
	close(foreign);
	close(late);
	close(memory);
	worker_stop(w);
}

/* A worker reads the files of one owner only. */
TEST(a_process_for_each_owner)
{
	struct worker *w = start((struct worker_options){.plugin_dir = nasty_plugins()});
	int root = elf_on_disk(DO_NOTHING, "root"), one = elf_on_disk(1, "one"),
	    two = elf_on_disk(2, "two"), pids[4];
	static const char *const names[] = {"root's", "a user's", "the same user's",
					    "another user's"};
	int files[4] = {root, one, one, two};

	if (geteuid() || fchown(one, 12345, 12345) || fchown(two, 12346, 12346)) {
		worker_stop(w);
		SKIP("takes root");
	}
	for (int i = 0; i < 4; i++) {
		struct inspected a = {0};

		CHECK_INT(worker_inspect(w, files[i], names[i], NULL, answered, &a), 0);
		worker_dispatch(w);
		pids[i] = worker_pid(w);
		CHECK_INT(worker_wait_until(w, 0), 0);
		CHECK_INT(a.err, 0);
		inspection_unref(a.i);
		CHECK(pids[i] > 0);
	}
	CHECK(pids[0] != pids[1] && pids[1] == pids[2]);
	CHECK(pids[3] != pids[0] && pids[3] != pids[1]);
	close(root);
	close(one);
	close(two);
	worker_stop(w);
}

/* One byte of the code behind the entry, of an unwind table, of a header: each makes another key.
 */
TEST_OF_WORKER(the_key_covers_what_matters)
{
	struct inspected first = inspect_fd(w, open_file("/bin/true")), other;
	static char bytes[1 << 20];
	int in = open_file("/bin/true"), fd;
	ssize_t len = read(in, bytes, sizeof(bytes));
	Elf64_Ehdr *h = (void *)bytes;
	size_t where[4] = {16, 64 + 20, 0, 0};
	Elf64_Shdr *s;

	CHECK(len > 4096 && len < (ssize_t)sizeof(bytes) && !first.err);
	s = (Elf64_Shdr *)(bytes + h->e_shoff);
	for (int i = 0; i < h->e_shnum; i++)
		if (!strcmp(bytes + s[h->e_shstrndx].sh_offset + s[i].sh_name, ".eh_frame"))
			where[2] = s[i].sh_offset + s[i].sh_size / 2;
	where[3] = h->e_entry + 10; /* of this file the code's addresses are its places */
	CHECK(where[2]);
	for (int i = 0; i < 4; i++) {
		fd = memfd_create("bent", MFD_CLOEXEC);
		bytes[where[i]] ^= 1;
		CHECK(write(fd, bytes, (size_t)len) == len);
		bytes[where[i]] ^= 1;
		other = inspect_fd(w, fd);
		CHECK_INT(other.err, 0);
		CHECK(memcmp(first.i->key, other.i->key, 32));
		inspection_unref(other.i);
	}
	fd = memfd_create("same", MFD_CLOEXEC);
	CHECK(write(fd, bytes, (size_t)len) == len);
	other = inspect_fd(w, fd);
	CHECK(!other.err && !memcmp(first.i->key, other.i->key, 32));
	inspection_unref(other.i);
	inspection_unref(first.i);
}

/* A cache folder that others can write to is not used. */
TEST(cache_of_others)
{
	struct worker *w;
	struct inspected a;
	char command[200];

	snprintf(command, sizeof(command), "mkdir -p %s && chmod 0777 %s", cache_dir(),
		 cache_dir());
	CHECK(!system(command));
	w = start((struct worker_options){.cache_dir = cache_dir()});
	a = inspect_fd(w, open_file("/bin/true"));
	CHECK_INT(a.err, 0);
	CHECK_INT(cached_files(), 0);
	inspection_unref(a.i);
	worker_stop(w);
}

TEST(ends_when_idle)
{
	struct worker *w = start((struct worker_options){.idle_ms = 100});
	struct inspected a = inspect_fd(w, open_file("/bin/true"));
	int pid = worker_pid(w);

	CHECK_INT(a.err, 0);
	CHECK(pid > 0 && !kill(pid, 0));
	while (worker_pid(w)) {
		struct pollfd p = {.fd = worker_fd(w), .events = POLLIN};

		CHECK(poll(&p, 1, (int)test_within(10) * 1000) == 1);
		worker_dispatch(w);
	}
	CHECK(kill(pid, 0) && errno == ESRCH);
	/* And back when there is something to do. */
	inspection_unref(a.i);
	a = inspect_fd(w, open_file("/bin/true"));
	CHECK(!a.err && worker_pid(w) > 0 && worker_pid(w) != pid);
	inspection_unref(a.i);
	worker_stop(w);
}

TEST_OF_NASTY(killed_in_the_middle_is_tried_again)
{
	struct inspected a = {0}, b = {0};
	int killed = 0, fd = elf_with_entry(DO_TAKE_LONG), other = elf_with_entry(DO_NOTHING);
	double from = now();

	CHECK_INT(worker_inspect(w, fd, "slow", NULL, answered, &a), 0);
	CHECK_INT(worker_inspect(w, other, "next", NULL, answered, &b), 0);
	CHECK_INT(worker_pending(w), 2);
	while (worker_pending(w)) {
		struct pollfd p = {.fd = worker_fd(w), .events = POLLIN};

		poll(&p, 1, 20);
		worker_dispatch(w);
		if (!killed && now() - from > 0.25 && worker_pid(w) > 0) {
			killed = worker_pid(w);
			CHECK(!kill(killed, SIGKILL));
		}
	}
	CHECK(killed);
	CHECK_INT(a.err, 0);
	CHECK_INT(a.calls, 1);
	CHECK_INT(b.err, 0);
	CHECK_INT(b.calls, 1);
	CHECK(worker_pid(w) != killed);
	inspection_unref(a.i);
	inspection_unref(b.i);
}

/* A process that others kill says nothing of the file: the request comes to its end, and the file
 * is not refused. */
TEST_OF_NASTY(killed_by_others_again_and_again)
{
	struct inspected a = {0}, b = {0};
	int killed[3] = {0}, n = 0, fd = elf_with_entry(DO_TAKE_LONG);

	CHECK_INT(worker_inspect(w, fd, "slow", NULL, answered, &a), 0);
	while (worker_pending(w)) {
		struct pollfd p = {.fd = worker_fd(w), .events = POLLIN};
		int pid;

		poll(&p, 1, 20);
		worker_dispatch(w);
		pid = worker_pid(w);
		if (n < 3 && pid > 0 && (!n || pid != killed[n - 1])) {
			killed[n++] = pid;
			CHECK(!kill(pid, SIGKILL));
		}
	}
	CHECK_INT(n, 3);
	CHECK_INT(a.err, 0);
	CHECK_INT(a.calls, 1);
	CHECK_INT(worker_inspect(w, fd, "slow", NULL, answered, &b), 0);
	CHECK_INT(worker_wait_until(w, 0), 0);
	CHECK_INT(b.err, 0);
	inspection_unref(a.i);
	inspection_unref(b.i);
}

static void count_refused(void *arg, const char *name, const char *text, bool partly)
{
	printf("# refused%s: %s: %s\n", partly ? " partly" : "", name, text);
	++*(int *)arg;
}

/* An unwinder whose inspect() kills the worker twice makes no tables of that file; all else goes
 * on. */
TEST_OF_NASTY(an_unwinder_that_kills)
{
	struct inspected a = inspect_fd(w, elf_with_entry(DO_ABORT));
	int n = 0, pid;

	CHECK_INT(a.err, 0);
	CHECK_INT(a.i->nslabs, 0);
	inspection_unref(a.i);
	CHECK(strstr(refusal(w), "the unwinder 'nasty'") && strstr(refusal(w), "signal 6"));
	CHECK_INT(inspect_err(w, elf_with_entry(DO_CRASH)), 0);
	CHECK(strstr(refusal(w), "signal 11"));
	CHECK_INT(inspect_err(w, elf_with_entry(DO_NOTHING)), 0);
	pid = worker_pid(w);
	/* The same content in another file: known by its key, and the worker goes on. */
	CHECK_INT(inspect_err(w, elf_with_entry(DO_ABORT)), 0);
	CHECK_INT(worker_pid(w), pid);
	worker_refused(w, count_refused, &n);
	CHECK_INT(n, 2);
}

TEST(an_unwinder_without_an_end)
{
	struct worker *w = start(
		(struct worker_options){.plugin_dir = nasty_plugins(), .request_ms = 1500});
	double from = now();
	int n = 0;

	CHECK_INT(inspect_err(w, elf_with_entry(DO_HANG)), 0);
	CHECK(strstr(refusal(w), "does not come to an end"));
	CHECK(now() - from < test_within(30));
	CHECK_INT(inspect_err(w, elf_with_entry(DO_HANG)), 0);
	CHECK_INT(inspect_err(w, elf_with_entry(DO_NOTHING)), 0);
	worker_refused(w, count_refused, &n);
	CHECK_INT(n, 1);
	worker_stop(w);
}

/* What counts is CPU time: other processes may have the CPUs. An unwinder that only waits is ended.
 */
TEST(an_unwinder_that_waits_for_a_cpu)
{
	struct worker *w = start(
		(struct worker_options){.plugin_dir = nasty_plugins(), .request_ms = 1000});
	struct inspected a = inspect_fd(w, elf_with_entry(DO_COMPUTE_SLOWLY));
	double from = now();

	CHECK_INT(a.err, 0);
	CHECK(inspection_slab(a.i, "nasty"));
	inspection_unref(a.i);
	CHECK_STR(refusal(w), "");
	CHECK_INT(inspect_err(w, elf_with_entry(DO_SLEEP)), 0);
	CHECK(strstr(refusal(w), "does not come to an end"));
	CHECK(now() - from < test_within(3));
	worker_stop(w);
}

TEST_OF_NASTY(what_an_unwinder_refuses)
{
	struct inspected a = inspect_fd(w, elf_with_entry(DO_REFUSE));

	CHECK_INT(a.err, 0);
	CHECK_INT(a.i->nslabs, 0);
	CHECK_STR(a.i->notes, "nasty: its \357\277\275[31mtables\357\277\275 lie");
	inspection_unref(a.i);
}

TEST(what_is_no_program)
{
	struct worker *w = start((struct worker_options){.request_ms = 5000});
	int p[2], sparse = memfd_create("sparse", MFD_CLOEXEC);

	CHECK(!pipe2(p, O_CLOEXEC));
	CHECK_INT(inspect_err(w, open_file("/")), -ENOEXEC);
	CHECK_INT(inspect_err(w, open_file("/dev/zero")), -ENOEXEC);
	CHECK_INT(inspect_err(w, p[0]), -ENOEXEC);
	CHECK_INT(inspect_err(w, open_file("/etc/passwd")), -ENOEXEC);
	CHECK_INT(inspect_err(w, memfd_create("empty", MFD_CLOEXEC)), -ENOEXEC);
	CHECK(!ftruncate(sparse, 1ll << 40));
	CHECK_INT(inspect_err(w, sparse), -ENOEXEC);
	worker_stop(w);
}

TEST(stopped_with_requests_under_way)
{
	struct worker *w = start((struct worker_options){.plugin_dir = nasty_plugins()});
	struct inspected a = {0}, b = {0};
	int fd = elf_with_entry(DO_HANG);

	CHECK_INT(worker_inspect(w, fd, "one", NULL, answered, &a), 0);
	CHECK_INT(worker_inspect(w, fd, "two", NULL, answered, &b), 0);
	worker_dispatch(w);
	worker_stop(w);
	CHECK(a.calls == 1 && a.err == -ECANCELED && b.calls == 1 && b.err == -ECANCELED);
}

struct names {
	int calls, err;
	uint32_t n, found;
	char first[256];
};

static void named(void *arg, int err, const char *text, const struct worker_symbols *s)
{
	struct names *n = arg;

	n->calls++;
	n->err = err;
	if (err) {
		printf("# %s\n", text);
		return;
	}
	n->n = s->n;
	for (uint32_t i = 0; i < s->n; i++)
		n->found += s->first[i + 1] > s->first[i] && *s->frames[s->first[i]].name;
	snprintf(n->first, sizeof(n->first), "%s", s->frames[0].name);
}

/* This program's own function, and so many addresses that they don't fit into a message. */
TEST_OF_WORKER(names_of_addresses)
{
	int fd = open_file("/proc/self/exe");
	struct inspected a = inspect_fd(w, open_file("/proc/self/exe"));
	static uint64_t addresses[20000];
	struct names n = {0};
	extern const char __ehdr_start[] __attribute__((visibility("hidden")));

	CHECK_INT(a.err, 0);
	for (size_t i = 0; i < 20000; i++)
		addresses[i] = (uintptr_t)cached_files - (uintptr_t)__ehdr_start + i % 16;
	CHECK_INT(worker_symbolize(w,
				   &(struct worker_symbolization){.inspection = a.i,
								  .fd = fd,
								  .debug_fd = -1,
								  .alt_fd = -1,
								  .name = "self",
								  .inlines = true,
								  .addresses = addresses,
								  .n = 20000},
				   NULL, named, &n),
		  0);
	CHECK_INT(worker_wait_until(w, 0), 0);
	CHECK(n.calls == 1 && !n.err);
	CHECK_INT(n.n, 20000);
	CHECK_INT(n.found, 20000);
	CHECK_STR(n.first, "cached_files");
	inspection_unref(a.i);
}
