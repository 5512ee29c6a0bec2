/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers core/executables
/* Files by build ID: a program that is mapped, and how requests of other threads end. */
#include "executables/executables.h"

#include "base/clock.h"
#include "mapping_help.h"
#include "files/files.h"
#include "worker_help.h"

#define TEXT_OF(literal)                     \
	{                                    \
		literal, sizeof(literal) - 1 \
	}

static char path[128];

/* Maps the code of a new program, after `then` was done to $P, it; `options` for the compiler, and
 * the name of a function, by which no two have the same build ID. */
static void *map_program(const char *name, const char *options, const char *then,
			 struct expected_mapping *to)
{
	char command[1024];
	struct stat st;
	void *p;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", test_dir(), name);
	snprintf(command, sizeof(command),
		 "P=%s; echo 'int %s(void) { return 1; } int main(void) { return 0; }' | "
		 "${CC:-cc} -Wl,--build-id=sha1 %s -o $P -x c - && %s",
		 path, name, options, then);
	CHECK(!system(command));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0 && !fstat(fd, &st));
	p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	CHECK(p != MAP_FAILED);
	close(fd);
	to->name = path;
	CHECK_INT(procfs_each_mapping(getpid(), find_mapping, to), 1);
	to->m.name = to->copy;
	return p;
}

/* What a sink has of an agent. */
struct world {
	struct plugin_set set;
	struct worker *w;
	struct files *fs;
	struct file_requests q;
	uint32_t waited; /* calls that had to wait for the worker */
};

static void world_new(struct world *s, bool opener)
{
	struct worker_options o = {.opener = opener};

	*s = (struct world){.waited = 0};
	file_requests_init(&s->q);
	CHECK_INT(worker_new(&s->w, &o), 0);
	CHECK_INT(files_new(&s->fs, s->w, &s->set), 0);
}

static void world_free(struct world *s)
{
	file_requests_fini(&s->q);
	worker_stop(s->w);
	files_free(s->fs);
}

static struct file *program(struct world *s, const char *name, const char *options,
			    const char *then)
{
	struct expected_mapping m;
	struct file *f;

	map_program(name, options, then, &m);
	WAIT_FOR((s->fs->later = false, f = files_of(s->fs, getpid(), &m.m), !s->fs->later));
	CHECK_INT(worker_wait_until(s->w, 0), 0);
	CHECK(f && f->state == FILE_READY && f->inspection->build_id_len == 20);
	return f;
}

static int find_once(struct world *s, const struct file *f, uint64_t max_bytes)
{
	return file_requests_find(&s->q, s->fs, f->inspection->build_id, 20, max_bytes);
}

static int find_file(struct world *s, const struct file *f, uint64_t max_bytes)
{
	int r = find_once(s, f, max_bytes);

	s->waited += r == -EINPROGRESS;
	for (; r == -EINPROGRESS; r = find_once(s, f, max_bytes))
		CHECK_INT(worker_wait_until(s->w, 0), 0);
	CHECK(!f->uses);
	return r;
}

/* Is it a descriptor of this file's own? Closes it. */
static bool is_of(int fd, const char *suffix)
{
	char name[160];
	struct stat st, found;
	bool same;

	snprintf(name, sizeof(name), "%s%s", path, suffix);
	CHECK(fd >= 0 && !fstat(fd, &found) && fcntl(fd, F_GETFD) & FD_CLOEXEC);
	CHECK(!stat(name, &st));
	same = st.st_ino == found.st_ino && st.st_dev == found.st_dev;
	close(fd);
	return same;
}

static uint64_t size_of(const char *suffix)
{
	char name[160];
	struct stat st;

	snprintf(name, sizeof(name), "%s%s", path, suffix);
	CHECK(!stat(name, &st));
	return (uint64_t)st.st_size;
}

TEST_IN_WORLD(a_mapped_program_is_found, false)
{
	struct expected_mapping named, bare;
	const struct inspection *i;
	struct stat st, found;
	uint8_t other[20] = {1};
	struct file *f, *stripped;
	int fd;

	map_program("stripped_program", "-s", "true", &bare);
	stripped = files_of(w->fs, getpid(), &bare.m);
	map_program("named_program", "", "true", &named);
	f = files_of(w->fs, getpid(), &named.m);
	CHECK_INT(worker_wait_until(w->w, 0), 0);
	CHECK(f && f->state == FILE_READY && stripped && stripped->state == FILE_READY);
	i = f->inspection;
	CHECK_INT(i->build_id_len, 20);
	CHECK(!stat(path, &st));
	fd = file_requests_find(&w->q, w->fs, i->build_id, 20, (uint64_t)st.st_size);
	CHECK(fd >= 0 && !fstat(fd, &found) && fcntl(fd, F_GETFD) & FD_CLOEXEC);
	CHECK(found.st_ino == st.st_ino && found.st_dev == st.st_dev && !f->uses);
	close(fd);
	CHECK_INT(file_requests_find(&w->q, w->fs, i->build_id, 20, (uint64_t)st.st_size - 1),
		  -EFBIG);
	CHECK_INT(file_requests_find(&w->q, w->fs, i->build_id, 19, 1 << 20), -ENOENT);
	CHECK_INT(file_requests_find(&w->q, w->fs, other, 20, 1 << 20), -ENOENT);
	CHECK_INT(file_requests_find(&w->q, w->fs, stripped->inspection->build_id, 20, 1 << 20),
		  -ENODATA);
	f->source.remote = true;
	CHECK_INT(file_requests_find(&w->q, w->fs, i->build_id, 20, 1 << 20), -EREMOTE);
	f->source.remote = false;
	/* it is written to */
	fd = open(path, O_WRONLY | O_CLOEXEC);
	CHECK(fd >= 0 && pwrite(fd, "x", 1, st.st_size - 1) == 1);
	close(fd);
	CHECK_INT(file_requests_find(&w->q, w->fs, i->build_id, 20, 1 << 20), -ESTALE);
}

/* ---- debug files ---- */

#define LINKED                                                          \
	"objcopy --only-keep-debug $P $P.debug && objcopy --strip-all " \
	"--add-gnu-debuglink=$P.debug $P"
#define SYMBOLS_LINKED                                                    \
	"objcopy --only-keep-debug $P $P.debug && objcopy --strip-debug " \
	"--add-gnu-debuglink=$P.debug $P"

TEST_IN_WORLD(a_stripped_program_has_its_debug_file, false)
{
	char name[160];
	int fd;
	struct file *f = program(w, "linked", "-g", LINKED);

	CHECK(is_of(find_file(w, f, size_of(".debug")), ".debug"));
	CHECK(is_of(find_file(w, f, 1 << 20), ".debug"));
	CHECK_INT(w->waited, 2);
	CHECK_INT(find_file(w, f, size_of(".debug") - 1), -EFBIG);
	CHECK_INT(w->q.debug.n, 0);
	/* it is written to after the worker has read it */
	CHECK_INT(find_once(w, f, 1 << 20), -EINPROGRESS);
	CHECK_INT(find_once(w, f, 1 << 20), -EINPROGRESS);
	CHECK_INT(w->q.debug.n, 1);
	CHECK_INT(worker_wait_until(w->w, 0), 0);
	snprintf(name, sizeof(name), "%s.debug", path);
	fd = open(name, O_WRONLY | O_APPEND | O_CLOEXEC);
	CHECK(fd >= 0 && write(fd, "x", 1) == 1);
	close(fd);
	CHECK_INT(find_once(w, f, 1 << 20), -ESTALE);
	CHECK(is_of(find_file(w, f, 1 << 20), ".debug"));
	if (!geteuid()) {
		CHECK(!chown(name, 1000, 1000));
		CHECK_INT(find_file(w, f, 1 << 20), -ENODATA);
		CHECK(!chown(name, 0, 0) && !chmod(name, 0664));
		CHECK(is_of(find_file(w, f, 1 << 20), ".debug")); /* the program is root's, too */
	}
}

TEST_IN_WORLD(only_a_debug_file_that_has_more, false)
{
	struct file *f;

	f = program(w, "complete", "-g",
		    "cp $P $P.debug && objcopy --add-gnu-debuglink=$P.debug $P");
	CHECK(is_of(find_once(w, f, 1 << 20), ""));
	f = program(w, "symbols", "-g", SYMBOLS_LINKED);
	CHECK(is_of(find_file(w, f, 1 << 20), ".debug"));
	/* the file itself, where the debug file is too large, or has no more */
	f = program(w, "large", "-g", SYMBOLS_LINKED " && truncate -s 1M $P.debug");
	CHECK(is_of(find_file(w, f, (1 << 20) - 1), ""));
	f = program(w, "no_more", "", SYMBOLS_LINKED);
	CHECK(is_of(find_file(w, f, 1 << 20), ""));
	f = program(w, "fewer", "", LINKED);
	CHECK(is_of(find_file(w, f, 1 << 20), ".debug"));
}

TEST_IN_WORLD(another_debug_file_is_none, false)
{
	struct file *f = program(w, "first", "-g", LINKED);

	f = program(w, "second", "-g", LINKED " && cp ${P%second}first.debug $P.debug");
	CHECK_INT(find_file(w, f, 1 << 20), -ENODATA);
	CHECK_INT(w->waited, 1);
	f = program(w, "third", "-g", LINKED " && cp ${P%third}first.debug $P.debug");
	CHECK_INT(find_file(w, f, 1 << 20), -ENODATA);
	f = program(w, "text", "-g", LINKED " && echo text > $P.debug");
	CHECK_INT(find_file(w, f, 1 << 20), -ENODATA);
	f = program(w, "damaged", "-g", LINKED " && truncate -s 1000 $P.debug");
	CHECK_INT(find_file(w, f, 1 << 20), -ENODATA);
	f = program(w, "removed", "-g", LINKED " && rm $P.debug");
	CHECK_INT(find_once(w, f, 1 << 20), -ENODATA);
	f = program(w, "fifo", "-g", LINKED " && rm $P.debug && mkfifo $P.debug");
	CHECK_INT(find_once(w, f, 1 << 20), -ENODATA);
}

/* A file with the same debug file and another build ID. */
static int find_as(struct world *s, const struct file *f, uint8_t n)
{
	struct inspection i = *f->inspection;
	struct file other = *f;

	i.build_id[0] = n;
	i.build_id[1] = f->inspection->build_id[1] ^ 1;
	other.inspection = &i;
	return debug_requests_find(&s->q.debug, &other, geteuid(), false, 1 << 20);
}

TEST_IN_WORLD(requests_for_debug_files_are_bounded, false)
{
	struct file *f = program(w, "bounded", "-g", LINKED);

	for (uint8_t n = 0; n < DEBUG_REQUESTS_MAX; n++)
		CHECK_INT(find_as(w, f, n), -EINPROGRESS);
	CHECK_INT(find_as(w, f, 100), -EAGAIN); /* the worker has answered none */
	CHECK_INT(worker_wait_until(w->w, 0), 0);
	CHECK_INT(find_as(w, f, 100), -EINPROGRESS); /* in the place of the oldest */
	CHECK_INT(w->q.debug.n, DEBUG_REQUESTS_MAX);
	CHECK_INT(find_as(w, f, 1), -ENOENT);
	CHECK_INT(find_as(w, f, 0), -EINPROGRESS);
	/* the worker reads two of them */
}

/* The opener's process. */
static pid_t opener_process(void)
{
	FILE *f = fopen("/proc/thread-self/children", "re");
	char name[64], line[64];
	pid_t pid, found = 0;

	while (f && fscanf(f, "%d", &pid) == 1) {
		FILE *g;

		snprintf(name, sizeof(name), "/proc/%d/cmdline", (int)pid);
		g = fopen(name, "re");
		if (g && fread(line, 1, sizeof(line), g) > 12 && !strcmp(line + 6, "opener"))
			found = pid;
		if (g)
			fclose(g);
	}
	if (f)
		fclose(f);
	return found;
}

TEST_IN_WORLD(a_debug_file_that_is_not_opened_in_time_is_tried_again, true)
{
	struct file *f;
	pid_t opener;
	int r;

	if (!worker_opener(w->w))
		SKIP("there is no opener");
	f = program(w, "late", "-g", LINKED);
	opener = opener_process();
	CHECK(opener && !kill(opener, SIGSTOP));
	CHECK_INT(find_once(w, f, 1 << 20), -EAGAIN);
	CHECK_INT(find_once(w, f, 1 << 20), -EAGAIN);
	CHECK_INT(w->q.debug.n, 0);
	CHECK(!kill(opener, SIGCONT));
	WAIT_FOR((worker_dispatch(w->w), (r = find_file(w, f, 1 << 20)) != -EAGAIN));
	CHECK(is_of(r, ".debug"));
}

/* ---- requests of other threads ---- */

TEST(requests_end)
{
	static const struct fusee_str ids[] = {TEXT_OF(""), TEXT_OF("abc"), TEXT_OF("AB"),
					       TEXT_OF("0g")};
	const struct fusee_str id = TEXT_OF("0123ab");
	struct file_requests q;
	struct loop *loop;
	uint64_t begin;

	file_requests_init(&q);
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		CHECK_INT(file_requests_open_file(&q, ids[i], 1), -EINVAL);
	CHECK_INT(file_requests_open_file(&q, id, 1), -EAGAIN); /* nothing serves it */
	CHECK_INT(loop_new(&loop), 0);
	file_requests_set(&q, loop, NULL);
	begin = clock_now();
	CHECK_INT(file_requests_open_file(&q, id, 1), -EAGAIN); /* the loop does not run */
	CHECK(clock_now() - begin >= FILE_REQUESTS_NS && !q.first);
	file_requests_close(&q);
	CHECK_INT(file_requests_open_file(&q, id, 1), -ECANCELED);
	file_requests_fini(&q);
	loop_free(loop);
}
