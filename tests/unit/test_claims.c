/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/unwind
#include "test.h"

#include "lib/faults.h"
#include "process/procfs.h"
#include "unwind/claims.h"
#include "files/file_open.h"
#include "files/files.h"

/* Two unwinders that claim what the test says, and keep what they were called with. */
struct fake {
	const struct fusee_host *host;
	struct fusee_instance *instance;
	struct fusee_claim claim; /* made at mapped(); flags 0: none */
	const char *name;         /* symbolize()'s answer, NULL: none */
	int mapped, refreshed, detached;
	uint64_t kept; /* bytes of emissions */
	uint64_t process, lo, hi;
	struct fusee_raw_frame raw;
};

static int fake_mapped(void *ctx, uint64_t process, const struct fusee_mapping_view *m)
{
	struct fake *f = ctx;

	f->mapped++;
	f->process = process;
	f->lo = m->lo;
	f->hi = m->hi;
	if (f->claim.flags)
		CHECK_INT(f->host->unwinder->process_claim(f->instance, process, &f->claim), 0);
	return 0;
}

static int fake_refresh(void *ctx, uint64_t process)
{
	struct fake *f = ctx;

	CHECK(process == f->process);
	f->refreshed++;
	return 0;
}

static int fake_symbolize(void *ctx, const struct fusee_raw_frame *raw, struct fusee_frame_out *out)
{
	struct fake *f = ctx;
	struct fusee_source_frame frame = {.size = sizeof(frame)};

	f->raw = *raw;
	if (!f->name)
		return 0;
	frame.function = (struct fusee_str){f->name, strlen(f->name)};
	CHECK_INT(f->host->unwinder->frame(out, &frame), 0);
	return 1;
}

static void fake_detach(void *ctx, uint64_t process)
{
	struct fake *f = ctx;

	CHECK(!f->process || process == f->process);
	f->detached++;
}

/* Keeps what it is handed, as a language unwinder does. */
static int fake_record(void *ctx, uint64_t process, const struct fusee_emission *e)
{
	struct fake *f = ctx;

	f->kept += e->bytes.len;
	return (int)e->bytes.len;
}

static const struct fusee_unwinder_ops ops = {
	.size = sizeof(ops),
	.frame_type = "jit",
	.mapped = fake_mapped,
	.refresh = fake_refresh,
	.symbolize = fake_symbolize,
	.record = fake_record,
	.detach = fake_detach,
};
static const struct fusee_plugin descriptor = {.name = "fake", .ops = &ops};

struct world {
	struct fake fakes[2];
	struct fusee_instance instances[2], *list[2];
	struct plugin_set set;
	struct claims *claims;
	struct process process;
	struct process_mapping mapping;
};

static struct world *make(pid_t pid)
{
	struct world *w = calloc(1, sizeof(*w));

	for (int i = 0; i < 2; i++) {
		w->instances[i] = (struct fusee_instance){
			.descriptor = &descriptor, .name = "fake", .ctx = &w->fakes[i]};
		w->list[i] = &w->instances[i];
		w->fakes[i] = (struct fake){.host = &claims_host, .instance = w->list[i]};
	}
	w->set = (struct plugin_set){w->list, 2};
	CHECK_INT(claims_new(&w->claims, &w->set), 0);
	w->process = (struct process){.id = 7, .pid = pid};
	w->mapping = (struct process_mapping){.lo = 0x1000, .hi = 0x9000};
	return w;
}

static void drop(struct world *w)
{
	claims_free(w->claims);
	free(w);
}

#define SECOND 1000000000ull

/* A process of another user, where this may make it. */
static pid_t sleeper_of(uid_t uid)
{
	int ready[2];
	pid_t pid;
	char c;

	CHECK(!pipe(ready));
	pid = fork();
	if (!pid) {
		if (!geteuid() && setresuid(uid, uid, uid))
			_exit(1);
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* which setresuid() resets */
		if (write(ready[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	CHECK(read(ready[0], &c, 1) == 1);
	close(ready[0]);
	return pid;
}

static const struct claim *at(struct world *w, uint64_t addr, uint64_t time, uint32_t *generation)
{
	return claims_at(w->claims, &w->process, &w->mapping, addr, time, generation);
}

/* The unwinder that has addr: 0, 1, or -1. */
static int whose(struct world *w, uint64_t addr)
{
	uint32_t generation;
	const struct claim *c = at(w, addr, 1, &generation);

	CHECK(!c || (c->lo <= addr && addr < c->hi));
	return c ? (int)c->unwinder : -1;
}

static int claim(struct world *w, int by, uint64_t lo, uint64_t hi)
{
	struct fusee_claim c = {.size = sizeof(c), .flags = FUSEE_CLAIM_NAME, .range = {lo, hi}};

	return claims_host.unwinder->process_claim(w->list[by], w->fakes[0].process, &c);
}

#define TEST_OF_WORLD(id) TEST_WITH(id, struct world *, w, make(getpid()), drop(w))

/* Called at the first sample, and again 20 ms later, then ever more rarely; a claim is found
 * without a call. */
TEST_OF_WORLD(asking)
{
	uint32_t generation;

	CHECK(!at(w, 0x2000, 5 * SECOND, &generation));
	CHECK_INT(generation, 1);
	CHECK_INT(w->fakes[0].mapped, 1);
	CHECK_INT(w->fakes[1].mapped, 1);
	CHECK(w->fakes[0].lo == 0x1000 && w->fakes[0].hi == 0x9000);
	CHECK(!at(w, 0x3000, 5 * SECOND + 1, &generation));
	CHECK_INT(w->fakes[0].mapped, 1);
	w->fakes[1].claim = (struct fusee_claim){
		.flags = FUSEE_CLAIM_STEP, .range = {0x1000, 0x9000}, .arg = 3};
	CHECK(!at(w, 0x3000, 5 * SECOND + 2, &generation));
	CHECK(!at(w, 0x3000, 5 * SECOND + SECOND / 50, &generation));
	CHECK_INT(w->fakes[0].mapped, 1);
	CHECK(at(w, 0x3000, 5 * SECOND + SECOND / 50 + 1, &generation));
	CHECK_INT(w->fakes[0].refreshed, 0);
	CHECK(at(w, 0x3000, 6 * SECOND + 3, &generation));
	CHECK_INT(at(w, 0x3000, 6 * SECOND + 3, &generation)->arg, 3);
	CHECK_INT(at(w, 0x3000, 6 * SECOND + 3, &generation)->unwinder, 1);
	CHECK_INT(w->fakes[0].mapped, 2);
	/* claimed memory is looked at once a second */
	CHECK_INT(w->fakes[0].refreshed, 1);
	at(w, 0x3000, 7 * SECOND + 4, &generation);
	at(w, 0x3000, 7 * SECOND + 5, &generation);
	CHECK_INT(w->fakes[0].refreshed, 2);
	/* so it is where all frames of its stacks are pushed */
	claims_expect_pushed(w->claims, &w->process, 0, 7 * SECOND + 6);
	CHECK_INT(w->fakes[0].refreshed, 2);
	claims_expect_pushed(w->claims, &w->process, 0, 8 * SECOND + 5);
	claims_expect_pushed(w->claims, &w->process, 0, 8 * SECOND + 6);
	CHECK_INT(w->fakes[0].refreshed, 3);
	/* other mappings, but not many of them */
	for (uint64_t i = 0; i < 100; i++) {
		w->mapping.lo = 0x10000 + i * 0x1000;
		w->mapping.hi = w->mapping.lo + 0x1000;
		at(w, w->mapping.lo, 9 * SECOND, &generation);
	}
	CHECK(w->fakes[0].mapped > 3 && w->fakes[0].mapped <= 10);
}

/* Memory that nobody claims, in which there is a sample each millisecond for 20 s. */
TEST_OF_WORLD(asking_in_vain)
{
	uint32_t generation;
	int first;

	for (uint64_t ms = 1; ms <= 1000; ms++)
		CHECK(!at(w, 0x2000, 5 * SECOND + ms * 1000000, &generation));
	first = w->fakes[0].mapped;
	CHECK(first >= 5 && first <= 7);
	for (uint64_t ms = 1001; ms <= 20000; ms++)
		CHECK(!at(w, 0x2000, 5 * SECOND + ms * 1000000, &generation));
	CHECK(w->fakes[0].mapped >= first + 14 && w->fakes[0].mapped <= first + 20);
}

TEST_OF_WORLD(who_claims_first)
{
	const struct fusee_unwinder_host *host = claims_host.unwinder;

	whose(w, 0x2000);
	CHECK_INT(claim(w, 0, 0x2000, 0x4000), 0);
	CHECK_INT(claim(w, 1, 0x1000, 0x6000), 0);
	CHECK_INT(whose(w, 0x1fff), 1);
	CHECK_INT(whose(w, 0x2000), 0);
	CHECK_INT(whose(w, 0x3fff), 0);
	CHECK_INT(whose(w, 0x4000), 1);
	CHECK_INT(whose(w, 0x6000), -1);
	CHECK_INT(claim(w, 0, 0, 0x8000), 0); /* fills what is free */
	CHECK_INT(whose(w, 0x7fff), 0);
	CHECK_INT(whose(w, 0x5fff), 1);
	CHECK_INT(host->process_unclaim(w->list[1], w->fakes[0].process,
					(struct fusee_range){0x1800, 0x5000}),
		  0);
	CHECK_INT(whose(w, 0x17ff), 1);
	CHECK_INT(whose(w, 0x1800), -1);
	CHECK_INT(whose(w, 0x2000), 0);
	CHECK_INT(whose(w, 0x4fff), -1);
	CHECK_INT(whose(w, 0x5000), 1);
	CHECK_INT(claim(w, 0, 0x3000, 0x3000), -EINVAL);
}

/* Emits functions in a process of its own of this user, until that is refused. */
static void emit_all(struct world *w, struct process *process)
{
	const struct fusee_emission e = {.size = sizeof(e), .bytes = {"", 512}};
	int r = 0;

	for (int i = 0; !r && i < 1 << 20; i++)
		r = claims_record(w->claims, process, 0, &e);
	CHECK_INT(r, -EDQUOT);
}

/* Ever new functions, claims and words of a user's processes take no room from others, and no more
 * than there is. */
TEST_OF_WORLD(what_a_process_makes_grow_is_bounded)
{
	enum { MOST = 4 << 20, PROCESSES = 40 };
	static uint32_t words[1024];
	struct process attackers[PROCESSES], victim = {.id = 1000, .pid = 1};
	const struct fusee_emission e = {.size = sizeof(e), .bytes = {"", 512}};
	pid_t user = sleeper_of(65534);

	claims_set_limit(w->claims, MOST);
	for (uint64_t i = 0; i < PROCESSES; i++) {
		attackers[i] = (struct process){.id = i + 10, .pid = geteuid() ? getpid() : user};
		if (i < 20)
			emit_all(w, &attackers[i]);
	}
	CHECK(claims_bytes(w->claims) > MOST / 4 && claims_bytes(w->claims) < MOST / 2);
	CHECK(w->fakes[0].kept == claims_bytes(w->claims));
	CHECK_INT(claims_record(w->claims, &victim, 0, &e), 0);
	/* a process of that user that has nothing yet */
	w->process = attackers[PROCESSES - 1];
	whose(w, 0x2000);
	CHECK_INT(claim(w, 0, 0x2000, 0x4000), -ENOSPC);
	CHECK_INT(claims_host.unwinder->process_slab(w->list[0], w->fakes[0].process, words, 1024),
		  -ENOSPC);
	w->process = victim;
	whose(w, 0x2000);
	CHECK_INT(claim(w, 0, 0x2000, 0x4000), 0);
	CHECK_INT(claims_host.unwinder->process_slab(w->list[0], w->fakes[0].process, words, 1024),
		  0);
	CHECK_INT(claims_host.unwinder->process_slab(w->list[0], w->fakes[0].process, words, 0), 0);
	w->fakes[0].process = w->fakes[1].process = 0; /* detach() is called for each of them */
	for (uint64_t i = 0; i < PROCESSES; i++)
		claims_forget(w->claims, i + 10);
	CHECK(claims_bytes(w->claims) < 1024);
	claims_forget(w->claims, victim.id);
	CHECK(claims_bytes(w->claims) == 0);
	kill(user, SIGKILL);
	waitpid(user, NULL, 0);
}

/* Each allocation failed in turn. */
TEST(what_is_not_counted_for_want_of_memory)
{
	const struct fusee_range all = {0, 0x10000};
	uint32_t word = 1;

	for (faults_from(0); faults_next();) {
		struct world *w;

		faults.armed = false;
		w = make(getpid());
		claims_set_limit(w->claims, 1 << 20);
		whose(w, 0x2000);
		faults.armed = true;
		claim(w, 0, 0x2000, 0x4000);
		claims_host.unwinder->process_slab(w->list[0], w->fakes[0].process, &word, 1);
		claims_host.unwinder->process_slab(w->list[0], w->fakes[0].process, &word, 0);
		claims_host.unwinder->process_unclaim(w->list[0], w->fakes[0].process, all);
		CHECK(claims_bytes(w->claims) <= sizeof(struct fusee_claim));
		drop(w);
	}
}

/* Against a table of an owner for each place. */
TEST(random_claims)
{
	enum { SPACE = 128 };
	uint32_t seed = 1;

	for (int round = 0; round < 200; round++) {
		struct world *w = make(getpid());
		int owner[SPACE];

		memset(owner, 0xff, sizeof(owner));
		whose(w, 0x2000);
		for (int i = 0; i < 30; i++) {
			uint32_t lo, hi;
			int by;

			seed = seed * 1103515245 + 12345;
			by = seed >> 30 & 1;
			lo = seed >> 16 & 63;
			hi = lo + 1 + (seed >> 22 & 31);
			if (seed >> 29 & 1) {
				CHECK_INT(claim(w, by, lo, hi), 0);
			} else {
				claims_host.unwinder->process_unclaim(w->list[by],
								      w->fakes[0].process,
								      (struct fusee_range){lo, hi});
			}
			for (uint32_t k = lo; k < hi; k++) {
				if (seed >> 29 & 1 && owner[k] < 0)
					owner[k] = by;
				else if (!(seed >> 29 & 1) && owner[k] == by)
					owner[k] = -1;
			}
			for (uint64_t k = 0; k < SPACE; k++)
				CHECK_INT(whose(w, k), owner[k]);
		}
		drop(w);
	}
}

struct got {
	struct fusee_frame_out out;
	char name[32];
	int n;
};

static int take(struct fusee_frame_out *out, const struct fusee_source_frame *f)
{
	struct got *g = (struct got *)out;

	snprintf(g->name, sizeof(g->name), "%.*s", (int)f->function.len, f->function.p);
	g->n++;
	return 0;
}

TEST_OF_WORLD(naming)
{
	struct got g = {.out = {take}};
	const char *type;

	CHECK_INT(claims_symbolize(w->claims, 7, 0x2000, 1, &g.out, &type), 0);
	whose(w, 0x2000);
	w->fakes[0].name = "first";
	w->fakes[1].name = "second";
	/* nobody's: whoever knows it */
	CHECK_INT(claims_symbolize(w->claims, 7, 0x2000, 1, &g.out, &type), 1);
	CHECK_STR(g.name, "first");
	CHECK_INT(claim(w, 1, 0x2000, 0x3000), 0);
	CHECK_INT(claims_symbolize(w->claims, 7, 0x2000, 5, &g.out, &type), 1);
	CHECK_STR(g.name, "second");
	CHECK_STR(type, "jit");
	CHECK_INT(w->fakes[1].raw.generation, 5);
	CHECK_INT(w->fakes[1].raw.addr, 0x2000);
	CHECK(w->fakes[1].raw.process == w->fakes[1].process);
	w->fakes[1].name = NULL; /* who claimed it does not know: nobody does */
	CHECK_INT(claims_symbolize(w->claims, 7, 0x2000, 5, &g.out, &type), 0);
	claims_mark(w->claims, 7);
	CHECK(claims_is_marked(w->claims, 7) && !claims_is_marked(w->claims, 8));
	claims_unmark(w->claims);
	CHECK(!claims_is_marked(w->claims, 7));
	claims_forget(w->claims, 7);
	CHECK_INT(w->fakes[0].detached, 1);
	CHECK_INT(claims_symbolize(w->claims, 7, 0x2000, 5, &g.out, &type), 0);
}

TEST_OF_WORLD(generations)
{
	uint32_t generation;

	at(w, 0x2000, 1, &generation);
	CHECK_INT(generation, 1);
	CHECK_INT(claims_host.unwinder->process_changed(w->fakes[0].process), 2);
	at(w, 0x2000, 1, &generation);
	CHECK_INT(generation, 2);
}

/* What the pid runs now is not this life's: nobody looks, and nothing is opened. */
TEST_OF_WORLD(replaced)
{
	struct fusee_process_info info = {.size = sizeof(info)};
	const struct fusee_unwinder_host *host = claims_host.unwinder;

	whose(w, 0x2000);
	CHECK_INT(host->process_info(w->fakes[0].process, &info), 0);
	CHECK_INT(info.pid, getpid());
	CHECK_INT(info.uid, geteuid());
	w->process.replaced = true;
	claims_refresh(w->claims);
	CHECK_INT(w->fakes[0].refreshed, 0);
	CHECK_INT(host->process_info(w->fakes[0].process, &info), -ESRCH);
	CHECK_INT(host->process_open(w->fakes[0].process, "/tmp", FUSEE_OPEN_DIRECTORY), -ESRCH);
	CHECK_INT(host->process_read(w->fakes[0].process, (uintptr_t)&info, &info, 1), -ESRCH);
}

static int open_it(struct world *w, const char *dir, const char *name, uint32_t flags)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = claims_host.unwinder->process_open(w->fakes[0].process, path, flags);
	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

TEST_OF_WORLD(opening)
{
	const char *dir = test_dir();

	CHECK(!system("cd $TMPDIR && mkdir -p a/b && echo x > a/b/file && ln -s a link && "
		      "ln -s a/b/file flink && mkfifo fifo"));
	whose(w, 0x2000);
	CHECK_INT(open_it(w, dir, "a/b/file", 0), 0);
	CHECK_INT(open_it(w, dir, "//a/./b//file", 0), 0);
	CHECK_INT(open_it(w, dir, "a/b", FUSEE_OPEN_DIRECTORY), 0);
	CHECK_INT(open_it(w, dir, "a/b", 0), -EINVAL);
	CHECK_INT(open_it(w, dir, "a/b/file", FUSEE_OPEN_DIRECTORY), -ENOTDIR);
	CHECK(open_it(w, dir, "link/b/file", 0) < 0);
	CHECK(open_it(w, dir, "link", FUSEE_OPEN_DIRECTORY) < 0);
	CHECK(open_it(w, dir, "flink", 0) < 0);
	CHECK_INT(open_it(w, dir, "fifo", 0), -EINVAL);
	CHECK_INT(open_it(w, dir, "a/../a/b/file", 0), -EINVAL);
	CHECK_INT(open_it(w, dir, "a/b/nothing", 0), -ENOENT);
}

/* The file that is mapped, whatever its name is now. */
TEST_OF_WORLD(mapped_file)
{
	const struct fusee_unwinder_host *host = claims_host.unwinder;
	char path[] = "/somewhere/jit-7.dump", removed[] = "/somewhere/jit-7.dump (deleted)",
	     text[3];
	struct file f = {.state = FILE_REFUSED, .path = path, .source = {.readable = true}};
	struct process_mapping m = {.lo = 0x9000, .hi = 0xa000, .file = &f};
	uint64_t process;
	int fd;

	whose(w, 0x2000);
	process = w->fakes[0].process;
	f.fd = memfd_create("jit", MFD_CLOEXEC);
	CHECK_INT(write(f.fd, "abc", 3), 3);
	w->process.mappings = &m;
	w->process.n = 1;
	CHECK_INT(host->process_mapped(process, "jit-8.dump"), -ENOENT);
	CHECK_INT(host->process_mapped(process, "jit-7.dum"), -ENOENT);
	CHECK_INT(host->process_mapped(process, "-7.dump"), -ENOENT);
	for (int i = 0; i < 2; i++) {
		fd = host->process_mapped(process, "jit-7.dump");
		CHECK(fd >= 0 && fd != f.fd && !f.uses);
		CHECK_INT(pread(fd, text, 3, 0), 3);
		CHECK(!memcmp(text, "abc", 3) && !close(fd));
		f.path = removed;
	}
	f.source.remote = true;
	CHECK_INT(host->process_mapped(process, "jit-7.dump"), -EREMOTE);
	w->process.replaced = true;
	CHECK_INT(host->process_mapped(process, "jit-7.dump"), -ESRCH);
	close(f.fd);
}

/* A file that was closed, and has grown: by its path, if that is the same file. */
TEST_OF_WORLD(mapped_file_by_path)
{
	const struct fusee_unwinder_host *host = claims_host.unwinder;
	struct file_identity id = {0};
	struct file f = {.state = FILE_REFUSED, .fd = -1, .key = &id, .key_len = sizeof(id)};
	struct process_mapping m = {.lo = 0x9000, .hi = 0xa000, .file = &f};
	char path[256];
	struct stat st;
	int fd;

	whose(w, 0x2000);
	w->process.mappings = &m;
	w->process.n = 1;
	snprintf(path, sizeof(path), "%s/jit-7.dump", test_dir());
	f.path = path;
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && !fstat(fd, &st) && write(fd, "abc", 3) == 3);
	/* which file it was is not known */
	CHECK_INT(host->process_mapped(w->fakes[0].process, "jit-7.dump"), -ESTALE);
	f.source.readable = true;
	id.dev = st.st_dev;
	id.ino = st.st_ino;
	CHECK(files_is_same(&f, fd));
	id.ino++;
	CHECK(!files_is_same(&f, fd));
	close(fd);
}

/* A process that has ended is known to have. */
TEST(ended)
{
	static int word = 5;
	struct fusee_process_info info = {.size = sizeof(info)};
	pid_t pid = fork();
	struct world *w;
	int copy = 0;

	if (!pid) {
		pause();
		_exit(0);
	}
	w = make(pid);
	whose(w, 0x2000);
	CHECK_INT(claims_host.unwinder->process_read(w->fakes[0].process, (uintptr_t)&word, &copy,
						     sizeof(copy)),
		  0);
	CHECK_INT(copy, 5);
	CHECK_INT(claims_host.unwinder->process_read(w->fakes[0].process, 16, &copy, sizeof(copy)),
		  -EFAULT);
	CHECK_INT(claims_host.unwinder->process_info(w->fakes[0].process, &info), 0);
	CHECK_INT(info.ns_pid, pid);
	/* a plugin that knows less of the struct */
	info = (struct fusee_process_info){
		.size = offsetof(struct fusee_process_info, uid), .uid = 7, .start_ns = 8};
	CHECK_INT(claims_host.unwinder->process_info(w->fakes[0].process, &info), 0);
	CHECK(info.ns_pid == (uint32_t)pid && info.uid == 7 && info.start_ns == 8 &&
	      info.size == offsetof(struct fusee_process_info, uid));
	info.size = sizeof(info);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	CHECK_INT(claims_host.unwinder->process_info(w->fakes[0].process, &info), -ESRCH);
	CHECK_INT(claims_host.unwinder->process_open(w->fakes[0].process, "/tmp",
						     FUSEE_OPEN_DIRECTORY),
		  -ESRCH);
	CHECK_INT(claims_host.unwinder->process_read(w->fakes[0].process, (uintptr_t)&word, &copy,
						     sizeof(copy)),
		  -ESRCH);
	drop(w);
}
