// SPDX-License-Identifier: Apache-2.0
// check: fast, covers core/process core/opener
/* The opener: answers, answers that come late, processes that end. */

#include "base/clock.h"
#include "opener/internal/runqueue.h"
#include "process/procfs.h"
#include "mapping_help.h"
#include "worker_help.h"

/* The opener's only process; 0: it has several or none. */
static pid_t process_of_opener(void)
{
	char path[64], text[256] = "";
	int fd, pid = 0, more = 0;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	close(fd);
	return n > 0 && sscanf(text, "%d %d", &pid, &more) == 1 ? pid : 0;
}

/* Repeats the query as long as the opener, which may have no CPU, does not answer in time. */
static int ask(struct opener *o, const struct opener_query *q, struct opener_answer *a)
{
	struct pollfd p = {.fd = opener_fd(o), .events = POLLIN};
	int err;

	while (opener_is_temporary(err = opener_call(o, q, a))) {
		poll(&p, 1, 100);
		opener_dispatch(o);
	}
	return err;
}

static int call_mapping(struct opener *o, const struct procfs_mapping *m)
{
	const struct opener_query q = {.kind = OPENER_MAPPING, .pid = getpid(), .mapping = *m};
	struct opener_answer a;
	int err = opener_call(o, &q, &a);

	if (!err) {
		CHECK(a.fd >= 0 && a.st.ino == m->ino && !a.st.copied && !a.st.remote);
		close(a.fd);
	}
	return err;
}

static int first_call(struct opener *o, const struct procfs_mapping *m)
{
	const struct opener_query q = {.kind = OPENER_MAPPING, .pid = getpid(), .mapping = *m};
	struct opener_answer a;
	int err = ask(o, &q, &a);

	if (!err)
		close(a.fd);
	return err;
}

static void map_page(struct expected_mapping *to)
{
	char path[160];
	int fd;

	snprintf(path, sizeof(path), "%s/page", test_dir());
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0755);
	CHECK(fd >= 0 && !ftruncate(fd, 4096));
	CHECK(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) != MAP_FAILED);
	close(fd);
	*to = (struct expected_mapping){.name = "/page"};
	CHECK_INT(procfs_each_mapping(getpid(), find_mapping, to), 1);
}

TEST(what_is_opened_and_read)
{
	char here[] = "these bytes", buf[64];
	struct opener_query q = {.kind = OPENER_MEMORY,
				 .pid = getpid(),
				 .address = (uint64_t)(uintptr_t)here,
				 .buf = buf,
				 .len = sizeof(here)};
	struct opener_answer a;
	struct opener *o;
	int err;

	CHECK_INT(opener_new(&o), 0);
	err = ask(o, &q, &a);
	if (err != -EPERM) { /* where ptrace is restricted to children */
		CHECK_INT(err, 0);
		CHECK_STR(buf, "these bytes");
		q.address = 4096;
		CHECK_INT(ask(o, &q, &a), -EFAULT);
	}
	q = (struct opener_query){
		.kind = OPENER_TEXT, .pid = getpid(), .path = "cmdline", .buf = buf, .len = 8};
	CHECK_INT(ask(o, &q, &a), 0);
	CHECK_INT(a.len, 8);
	q.path = "../../etc/passwd";
	CHECK_INT(ask(o, &q, &a), -EINVAL);
	q = (struct opener_query){.kind = OPENER_FOLDER, .pid = getpid(), .path = "/proc"};
	CHECK_INT(ask(o, &q, &a), 0);
	CHECK(a.fd >= 0 && fcntl(a.fd, F_GETFL) & O_PATH);
	close(a.fd);
	q.kind = OPENER_FILE;
	CHECK_INT(ask(o, &q, &a), -EINVAL);
	q.path = "/dev/null";
	CHECK_INT(ask(o, &q, &a), -EINVAL);
	opener_free(o);
}

/* Memory of this process and a file with the same bytes. */
TEST(memory_is_compared_with_a_file)
{
	enum { BYTES = 3 << 20 };
	unsigned char *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				 -1, 0);
	struct opener_query q = {.kind = OPENER_COMPARE,
				 .pid = getpid(),
				 .address = (uint64_t)(uintptr_t)at,
				 .offset = 5,
				 .bytes = BYTES,
				 .fd = memfd_create("file", MFD_CLOEXEC)};
	struct opener_answer a;
	struct opener *o;
	int err;

	CHECK(at != MAP_FAILED && !ftruncate(q.fd, BYTES + 5));
	CHECK_INT(opener_new(&o), 0);
	err = ask(o, &q, &a);
	if (err == -EPERM)
		SKIP("ptrace is restricted to children");
	CHECK_INT(err, -EILSEQ); /* the same, but all of one value */
	for (uint32_t i = 0; i < BYTES; i++)
		at[i] = (unsigned char)(i * 31 >> 4);
	CHECK_INT(pwrite(q.fd, at, BYTES, 5), BYTES);
	CHECK_INT(ask(o, &q, &a), 0);
	at[BYTES - 1] ^= 1;
	CHECK_INT(ask(o, &q, &a), -EILSEQ);
	q.bytes = BYTES - 1;
	CHECK_INT(ask(o, &q, &a), 0);
	at[0] ^= 1;
	CHECK_INT(ask(o, &q, &a), -EILSEQ);
	at[0] ^= 1;
	q.bytes = OPENER_COMPARED; /* each of them counts then */
	for (uint32_t i = 4000; i < OPENER_COMPARED; i += OPENER_COMPARED / 5) {
		at[i] ^= 1;
		CHECK_INT(ask(o, &q, &a), -EILSEQ);
		at[i] ^= 1;
	}
	q.offset = BYTES; /* the file ends */
	CHECK_INT(ask(o, &q, &a), -EILSEQ);
	q.offset = UINT64_MAX;
	CHECK_INT(ask(o, &q, &a), -EINVAL);
	q.offset = 5;
	CHECK(!munmap(at + 4096, 4096));
	CHECK_INT(ask(o, &q, &a), -EFAULT);
	close(q.fd);
	opener_free(o);
}

/* What an SDK of OpenTelemetry publishes (OTEP 4719). */
struct context {
	char signature[8];
	uint32_t version, size;
	uint64_t published_at, payload;
};

static int ask_context(struct opener *o, char *buf, uint32_t len, uint32_t *got)
{
	struct opener_query q = {.kind = OPENER_CONTEXT, .pid = getpid(), .buf = buf, .len = len};
	struct opener_answer a;
	int err = ask(o, &q, &a);

	*got = a.len;
	return err;
}

TEST(the_process_context_of_opentelemetry)
{
	static const char payload[] = "a message";
	struct context *c;
	char buf[64] = "";
	struct opener *o;
	uint32_t len;
	int fd, err;

	CHECK_INT(opener_new(&o), 0);
	err = ask_context(o, buf, sizeof(buf), &len);
	if (err == -EPERM) {
		opener_free(o);
		SKIP("ptrace is restricted to children");
	}
	CHECK_INT(err, -ENOENT);
	fd = memfd_create("OTEL_CTX", MFD_CLOEXEC);
	CHECK(fd >= 0 && !ftruncate(fd, 4096));
	c = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(c != MAP_FAILED);
	CHECK_INT(ask_context(o, buf, sizeof(buf), &len), -ENOENT); /* zeros */
	*c = (struct context){"OTEL_CTX", 2, sizeof(payload), 1, (uint64_t)(uintptr_t)payload};
	CHECK_INT(ask_context(o, buf, sizeof(buf), &len), 0);
	CHECK_INT(len, sizeof(payload));
	CHECK_STR(buf, payload);
	CHECK_INT(ask_context(o, buf, sizeof(payload) - 1, &len), -E2BIG);
	c->published_at = 0;
	CHECK_INT(ask_context(o, buf, sizeof(buf), &len), -EBUSY);
	c->published_at = 1;
	c->payload = 4096; /* nothing is mapped there */
	CHECK_INT(ask_context(o, buf, sizeof(buf), &len), -EFAULT);
	c->payload = UINT64_MAX;
	CHECK(ask_context(o, buf, sizeof(buf), &len) < 0);
	c->size = UINT32_MAX;
	CHECK_INT(ask_context(o, buf, sizeof(buf), &len), -E2BIG);
	c->version = 1;
	CHECK_INT(ask_context(o, buf, sizeof(buf), &len), -ENOENT);
	CHECK(!munmap(c, 4096));
	close(fd);
	opener_free(o);
}

/* One is stuck; so many more have timed out, or were refused. */
static void check_counts(struct opener *o, const struct opener_counts *before, uint64_t timed_out,
			 uint64_t refused)
{
	struct opener_counts c;

	opener_counts(o, &c);
	CHECK_INT(c.stuck, 1);
	CHECK_INT(c.timed_out, before->timed_out + timed_out);
	CHECK_INT(c.refused, before->refused + refused);
}

/* Of a comparison, for a caller who does not know that the memory has changed since. */
TEST(a_late_comparison_is_kept)
{
	unsigned char here[64] = "these bytes";
	struct opener_query q = {.kind = OPENER_COMPARE,
				 .pid = getpid(),
				 .address = (uint64_t)(uintptr_t)here,
				 .bytes = sizeof(here),
				 .fd = memfd_create("file", MFD_CLOEXEC)};
	struct opener_counts counts;
	struct opener_answer a;
	struct opener *o;
	pid_t pid;

	CHECK_INT(write(q.fd, here, sizeof(here)), sizeof(here));
	CHECK_INT(opener_new(&o), 0);
	if (ask(o, &q, &a) == -EPERM)
		SKIP("ptrace is restricted to children");
	pid = process_of_opener();
	if (!pid)
		SKIP("this kernel does not list children");
	CHECK(!kill(pid, SIGSTOP));
	CHECK_INT(opener_call(o, &q, &a), -ETIMEDOUT);
	CHECK(!kill(pid, SIGCONT));
	WAIT_FOR((opener_dispatch(o), opener_counts(o, &counts), !counts.stuck));
	here[1] ^= 1;
	q.since = clock_now();
	CHECK_INT(ask(o, &q, &a), -EILSEQ);
	q.since = 0;
	CHECK_INT(opener_call(o, &q, &a), 0);
	CHECK_INT(ask(o, &q, &a), -EILSEQ); /* it was taken */
	opener_free(o);
}

TEST(an_answer_that_comes_late_is_kept)
{
	struct expected_mapping to;
	struct opener_counts before;
	struct opener *o;
	pid_t pid;

	map_page(&to);
	CHECK_INT(opener_new(&o), 0);
	CHECK_INT(first_call(o, &to.m), 0);
	opener_counts(o, &before); /* on a busy machine some were late already */
	CHECK(!before.stuck);
	pid = process_of_opener();
	if (!pid)
		SKIP("this kernel does not list children");
	CHECK(!kill(pid, SIGSTOP));
	CHECK_INT(call_mapping(o, &to.m), -ETIMEDOUT);
	check_counts(o, &before, 1, 0);
	CHECK_INT(call_mapping(o, &to.m), -ETIMEDOUT);
	check_counts(o, &before, 1, 1); /* it was not waited for again */
	CHECK(!kill(pid, SIGCONT));
	WAIT_FOR((opener_dispatch(o), opener_counts(o, &before), !before.stuck));
	CHECK_INT(first_call(o, &to.m), 0);
	opener_free(o);
}

TEST(an_opener_that_ends_is_replaced)
{
	struct expected_mapping to;
	struct opener *o;
	pid_t pid;

	map_page(&to);
	CHECK_INT(opener_new(&o), 0);
	CHECK_INT(first_call(o, &to.m), 0);
	pid = process_of_opener();
	CHECK(!pid || !kill(pid, SIGKILL));
	CHECK_INT(first_call(o, &to.m), 0);
	CHECK(!pid || process_of_opener() != pid);
	opener_free(o);
}

/* A child that has this process's CPU too, or waits. */
static pid_t child(bool spins)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (spins)
		;
	for (;;)
		pause();
}

/* A query's time does not count while its process has no CPU. */
TEST(what_waits_for_a_cpu_does_not_sleep)
{
	cpu_set_t all, one;
	pid_t pids[3];
	int fds[2];

	CHECK(!sched_getaffinity(0, sizeof(all), &all));
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	CHECK(!sched_setaffinity(0, sizeof(one), &one));
	for (int i = 0; i < 3; i++)
		CHECK((pids[i] = child(i < 2)) > 0);
	CHECK(!sched_setaffinity(0, sizeof(all), &all));
	for (int i = 0; i < 2; i++)
		fds[i] = runqueue_open(pids[i]);
	CHECK(runqueue_has(pids[0]) && runqueue_has(pids[1]) && runqueue_has(getpid()));
	WAIT_FOR(!runqueue_has(pids[2]));
	if (fds[0] >= 0)
		WAIT_FOR(runqueue_wait_ns(fds[0]) > 1000000 && runqueue_wait_ns(fds[1]) > 1000000);
	for (int i = 0; i < 3; i++) {
		CHECK(!kill(pids[i], SIGKILL));
		CHECK_INT(waitpid(pids[i], NULL, 0), pids[i]);
		CHECK(!runqueue_has(pids[i]));
	}
	CHECK_INT(runqueue_wait_ns(-1), 0);
}
