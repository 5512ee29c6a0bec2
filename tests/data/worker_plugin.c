// SPDX-License-Identifier: Apache-2.0
/* An unwinder that does to the worker what the file's entry address says: for the tests of the
 * worker. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <fusee/plugin.h>

#include "worker_plugin.h"

struct ctx {
	struct fusee_instance *instance;
	const struct fusee_host *host;
	uint32_t lacks;
};

static int init(void *ctx, struct fusee_instance *instance, const struct fusee_host *host)
{
	*(struct ctx *)ctx = (struct ctx){instance, host, 0};
	return 0;
}

static void spin(double seconds)
{
	struct timespec from, now;

	clock_gettime(CLOCK_MONOTONIC, &from);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((double)(now.tv_sec - from.tv_sec) + (double)(now.tv_nsec - from.tv_nsec) / 1e9 <
	       seconds);
}

/* Without a use of the CPU. Of what waits the sandbox has futex() alone. */
static void wait_for(long milliseconds)
{
	struct timespec t = {milliseconds / 1000, milliseconds % 1000 * 1000000};
	static uint32_t word;

	syscall(SYS_futex, &word, 0 /* FUTEX_WAIT */, 0, &t, NULL, 0);
}

/* Bytes that could be had before the limit, in MiB. */
static uint32_t take_memory(void)
{
	uint32_t n = 0;
	char *p;

	while (n < 100000 && (p = malloc(1 << 20))) {
		memset(p, 1, 1 << 20);
		n++;
	}
	return n;
}

/* The errno of an attempt that the worker survives. */
static uint32_t outcome(long r)
{
	return r == -1 ? (uint32_t)errno : 0;
}

static uint32_t attempt(uint64_t what)
{
	static const char *const argv[] = {"/bin/true", NULL};
	static struct stat st;

	switch (what) {
	case DO_ABORT:
		abort();
	case DO_CRASH:
		*(volatile int *)0x10 = 1;
		return 0;
	case DO_HANG:
		for (;;)
			__asm__ volatile("");
	case DO_SLEEP:
		for (;;)
			wait_for(1000);
	case DO_COMPUTE_SLOWLY:
		for (int i = 0; i < 50; i++) {
			spin(0.01);
			wait_for(20);
		}
		return 0;
	case DO_TAKE_LONG:
		spin(0.5);
		return 0;
	case DO_TAKE_MEMORY:
		return take_memory();
	case DO_OPEN:
		return outcome(open("/etc/shadow", O_RDONLY));
	case DO_CREATE:
		return outcome(open("/tmp/fusee-was-here", O_CREAT | O_WRONLY, 0600));
	case DO_STAT:
		return outcome(
			syscall(SYS_newfstatat, AT_FDCWD, "/etc/passwd", &st, AT_EMPTY_PATH));
	case DO_SOCKET:
		return outcome(socket(AF_INET, SOCK_STREAM, 0));
	case DO_EXECVE:
		return outcome(execve(argv[0], (char **)argv, NULL));
	case DO_FORK:
		return outcome(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
	case DO_PTRACE:
		return outcome(ptrace(PTRACE_ATTACH, 1, 0, 0));
	case DO_KILL:
		return outcome(kill(1, 0));
	case DO_TGKILL_OTHER:
		return outcome(syscall(SYS_tgkill, 1, 1, SIGCONT));
	case DO_BPF:
		return outcome(syscall(SYS_bpf, 0, NULL, 0));
	case DO_UNLINK:
		return outcome(syscall(SYS_unlinkat, AT_FDCWD, "/tmp/fusee-was-here", 0));
	case DO_MAP_EXEC:
		return outcome(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
				    -1, 0) == MAP_FAILED
				       ? -1
				       : 0);
	case DO_MAP_SHARED:
		return outcome(mmap(NULL, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0) ==
					       MAP_FAILED
				       ? -1
				       : 0);
	case DO_PROTECT_EXEC:
		return outcome(mprotect((void *)((uintptr_t)&errno & -4096ul), 4096,
					PROT_READ | PROT_EXEC));
	case DO_SIGACTION:
		return outcome(signal(SIGSYS, SIG_IGN) == SIG_ERR ? -1 : 0);
	}
	return 0;
}

static int claim_as(struct ctx *c, uint64_t file, struct fusee_range range, uint64_t arg,
		    uint32_t flags)
{
	struct fusee_claim claim = {
		.size = sizeof(claim), .flags = flags, .range = range, .arg = arg};

	return c->host->unwinder->file_claim(c->instance, file, &claim);
}

static int claim(struct ctx *c, uint64_t file, struct fusee_range range, uint64_t arg)
{
	return claim_as(c, file, range, arg, FUSEE_CLAIM_STEP);
}

/* Of a file that has such a symbol: its function, and the byte before; then what must be refused.
 */
static int claim_marked(struct ctx *c, uint64_t file)
{
	struct fusee_range symbol, at;
	int err = c->host->unwinder->file_symbol(file, "to_be_claimed", &symbol);

	if (err)
		return err == -ENOENT || err == -EBADMSG ? 0 : err;
	err = c->host->unwinder->file_function(file, symbol.lo, &at);
	if (!err)
		err = claim(c, file, at, 7);
	if (!err)
		err = claim(c, file, (struct fusee_range){at.lo - 1, at.lo}, 8);
	if (!err && (claim(c, file, (struct fusee_range){at.hi - 1, at.hi + 1}, 9) != -EEXIST ||
		     claim(c, file, (struct fusee_range){at.hi, at.hi}, 9) != -EINVAL ||
		     claim_as(c, file, (struct fusee_range){at.hi, at.hi + 1}, 9,
			      FUSEE_CLAIM_NAME) != -EINVAL))
		err = -EPROTO;
	return err;
}

/* The build id of a real program that it dies of. */
static const char deadly[] = "nastyabort";

static int inspect(void *ctx, uint64_t file)
{
	struct fusee_file_info info = {.size = sizeof(info)};
	struct ctx *c = ctx;
	int omits, brief;
	uint32_t words[2];
	int err = c->host->unwinder->file_info(file, &info);

	if (err)
		return c->host->fail(c->instance, err, "it has no header");
	if (info.entry == DO_REFUSE)
		return c->host->fail(c->instance, -EBADMSG, "its \033[31mtables\n lie");
	if (info.entry == DO_LACK_MEMORY && c->lacks++ < 2)
		return c->host->fail(c->instance, -ENOMEM, "no memory for its table");
	if (info.build_id.len == sizeof(deadly) - 1 &&
	    !memcmp(info.build_id.p, deadly, sizeof(deadly) - 1))
		abort();
	omits = info.entry == DO_OMIT || info.entry == DO_DIE_OF_REST;
	brief = omits && info.flags & FUSEE_FILE_BRIEF;
	if (info.entry == DO_DIE_OF_REST && !brief)
		abort();
	words[0] = (uint32_t)info.entry;
	words[1] = brief ? 1 : attempt(info.entry);
	err = c->host->unwinder->file_slab(c->instance, file, words, 2);
	if (!err)
		err = claim_marked(c, file);
	return err ? err : brief || info.entry == DO_RUN_LATE ? 2 : 1;
}

static const char *const reasons[] = {NULL};
static const struct fusee_unwinder_ops ops = {
	.size = sizeof(ops),
	.order = 50,
	.slab_version = 1,
	.frame_type = "native",
	.reasons = reasons,
	.inspect = inspect,
};

FUSEE_PLUGIN(nasty, FUSEE_UNWINDER, .version = "1", .doc = "does what it should not",
	     .ctx_size = sizeof(struct ctx), .init = init, .ops = &ops);
