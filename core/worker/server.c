// SPDX-License-Identifier: Apache-2.0
/* The worker process: loads the plugins, enters the sandbox, handles one request after the other.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "plugin/option_list.h"
#include "symbols/symbols.h"
#include "worker/internal/child.h"
#include "inspection/host.h"
#include "names/make.h"
#include "worker/internal/symbolize_reply.h"
#include "worker/internal/protocol.h"
#include "sandbox/sandbox.h"
#include "worker/internal/step.h"
#include "worker/worker.h"

#define DEFAULT_MEMORY (1ull << 30)

struct server {
	int sock;
	struct plugin_set plugins;
	struct stepper *stepper;
	char *payload; /* of the current request; PROTOCOL_INLINE bytes */
};

/* A request and its reply. */
struct exchange {
	struct protocol_request q;
	int fds[PROTOCOL_MAX_FDS];
	struct protocol_reply r;
	struct buf block; /* of the reply; empty: none */
};

static int fail(struct exchange *x, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static int fail(struct exchange *x, int err, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(x->r.text, sizeof(x->r.text), format, ap);
	va_end(ap);
	return err;
}

/* Sets one sentence about why a file cannot be read. */
static int explain(struct exchange *x, int err)
{
	if (err == -ENOEXEC)
		return fail(x, err, "not an ELF file for this machine");
	if (err == -EBADMSG)
		return fail(x, err,
			    "not a valid ELF file: its headers contradict themselves or lead "
			    "outside of it");
	if (err == -ENOMEM)
		return fail(x, err, "needs more memory than the worker may have");
	return fail(x, err, "cannot be read: %s", strerror(-err));
}

static int open_file(struct exchange *x, struct elf **elf)
{
	struct fusee_file_info info;
	int err = elf_open(elf, x->fds[0]);

	if (err)
		return explain(x, err);
	err = elf_info(*elf, &info);
#ifdef __x86_64__
	if (!err && info.machine != EM_X86_64)
		err = -ENOEXEC;
#elif defined(__aarch64__)
	if (!err && info.machine != EM_AARCH64)
		err = -ENOEXEC;
#endif
	if (!err)
		return 0;
	elf_close(*elf);
	return explain(x, err);
}

static int handle_key(struct server *s, struct exchange *x)
{
	struct elf *elf;
	int err = open_file(x, &elf);

	if (err)
		return err;
	err = host_key(elf, &s->plugins, x->r.key);
	elf_close(elf);
	return err ? explain(x, err) : 0;
}

struct announcement {
	int sock;
	uint64_t id;
};

/* Reports which inspect() begins: the agent blames that unwinder if the process dies or hangs. */
static void announce(void *arg, uint32_t i, const char *unwinder)
{
	const struct announcement *a = arg;
	struct protocol_reply r = {
		.magic = PROTOCOL_MAGIC, .kind = REPLY_UNWINDER, .id = a->id, .call = i};

	snprintf(r.text, sizeof(r.text), "%s", unwinder);
	protocol_send_reply(a->sock, &r, -1);
}

static int handle_inspect(struct server *s, struct exchange *x)
{
	struct announcement a = {s->sock, x->q.id};
	bool incomplete = false, late = false;
	struct host_inspection how = {.skip = x->q.skip,
				      .brief = x->q.brief,
				      .begins = announce,
				      .arg = &a,
				      .late = &late};
	struct elf *elf;
	int err = open_file(x, &elf);

	if (err)
		return err;
	err = host_inspect(elf, &s->plugins, &how, &x->block, &incomplete);
	elf_close(elf);
	x->r.incomplete = incomplete;
	x->r.late = late;
	return err ? explain(x, err) : 0;
}

/* A copy of the request's addresses, which are inline or in a memfd. */
static int read_addresses(struct server *s, struct exchange *x, uint64_t **ret)
{
	uint64_t len = x->q.payload;
	uint64_t *p;
	ssize_t n;

	if (len % 8 || len / 8 > SYMBOLIZE_MAX_ADDRESSES)
		return -EBADMSG;
	p = malloc(len ? len : 1);
	if (!p)
		return -ENOMEM;
	if (x->fds[3] < 0 && len <= PROTOCOL_INLINE) {
		memcpy(p, s->payload, len);
	} else {
		n = pread(x->fds[3], p, len, 0);
		if (n < 0 || (uint64_t)n != len) {
			free(p);
			return -EBADMSG;
		}
	}
	*ret = p;
	return 0;
}

static int handle_symbolize(struct server *s, struct exchange *x)
{
	struct symbols_files files = {x->fds[0], x->fds[1], x->fds[2]};
	struct symbols_quality quality;
	struct symbols *symbols;
	uint64_t *addresses;
	int err = read_addresses(s, x, &addresses);

	if (err)
		return err == -ENOMEM ? explain(x, err)
				      : fail(x, err, "the request has no valid addresses");
	err = symbols_open(&symbols, &files, x->q.inlines);
	if (!err) {
		err = symbolize_reply_write(&x->block, symbols, addresses,
					    (uint32_t)(x->q.payload / 8));
		symbols_quality(symbols, &quality);
		snprintf(x->r.text, sizeof(x->r.text), "%s", quality.note);
		symbols_close(symbols);
	}
	free(addresses);
	return err ? explain(x, err) : 0;
}

static int handle_names(struct exchange *x)
{
	struct symbols_files files = {x->fds[0], x->fds[1], x->fds[2]};
	struct symbols *symbols;
	int err = symbols_open(&symbols, &files, x->q.inlines);

	if (!err) {
		err = names_make(&x->block, symbols, symbolize_reply_quality);
		symbols_close(symbols);
	}
	if (err == -ENOTSUP || err == -EFBIG)
		return fail(x, err, "it is none of the files of which tables are made");
	return err ? explain(x, err) : 0;
}

static int handle_step(struct server *s, struct exchange *x)
{
	int fd = x->fds[0], r;

	x->fds[0] = -1;
	if (x->q.payload > PROTOCOL_INLINE) {
		close(fd);
		return -EINVAL;
	}
	r = stepper_step(s->stepper, &x->q, fd, s->payload);
	x->r.valid = x->q.valid;
	memcpy(x->r.regs, x->q.regs, sizeof(x->r.regs));
	return r;
}

static int handle(struct server *s, struct exchange *x)
{
	switch (x->q.kind) {
	case REQUEST_KEY:
		return handle_key(s, x);
	case REQUEST_INSPECT:
		return handle_inspect(s, x);
	case REQUEST_SYMBOLIZE:
		return handle_symbolize(s, x);
	case REQUEST_NAMES:
		return handle_names(x);
	case REQUEST_STEP:
		return handle_step(s, x);
	}
	return fail(x, -EINVAL, "the worker is of another version");
}

/* 1; 0: the agent closed its end; -errno. */
static int handle_one(struct server *s)
{
	struct exchange x = {0};
	int block = -1;
	int err = protocol_receive_request(s->sock, &x.q, x.fds, s->payload);

	if (err <= 0)
		return err;
	x.r.magic = PROTOCOL_MAGIC;
	x.r.kind = REPLY_DONE;
	x.r.id = x.q.id;
	x.r.err = handle(s, &x);
	if (!x.r.err && x.block.len) {
		block = protocol_seal(x.block.p, x.block.len);
		if (block < 0)
			x.r.err = fail(&x, -ENOMEM,
				       "the reply does not fit into the worker's memory");
		else
			x.r.bytes = x.block.len;
	}
	buf_fini(&x.block);
	x.r.refused_calls = sandbox_refused(&x.r.call);
	for (int i = 0; i < PROTOCOL_MAX_FDS; i++)
		if (x.fds[i] >= 0)
			close(x.fds[i]);
	err = protocol_send_reply(s->sock, &x.r, block);
	if (block >= 0)
		close(block);
	return err ? err : 1;
}

/* Where memory is short, the kernel ends a worker before the agent, and before most other
 * processes. */
static void give_way(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, "1000", 4) < 0)
		log_debug("the worker keeps its oom_score_adj: %s", strerror(errno));
	close(fd);
}

/* arguments: the plugins' folder, then name and options of unwinders. */
static int open_plugins(struct server *s, char *const *arguments)
{
	struct unwinder_options list[CHILD_MAX_ARGUMENTS / 2];
	struct instance_option *options[CHILD_MAX_ARGUMENTS / 2];
	struct unwinder_choice choice = {.options = list};
	int r = 0;

	for (char *const *a = arguments + 1; !r && a[0] && a[1]; a += 2) {
		struct unwinder_options *u = &list[choice.n];

		if (choice.n == CHILD_MAX_ARGUMENTS / 2)
			return -E2BIG;
		*u = (struct unwinder_options){.name = a[0], .where = ""};
		r = option_text_read(a[1], &options[choice.n], &u->n);
		u->options = options[choice.n];
		choice.n += !r;
	}
	if (!r)
		r = plugin_set_open(arguments[0], &worker_host, &choice, &s->plugins);
	for (uint32_t i = 0; i < choice.n; i++)
		instance_option_list_free(options[i], list[i].n);
	return r;
}

/* Runs in the handler of SIGSYS. */
static void report_denied(int sock, uint32_t call)
{
	protocol_send_reply(sock,
			    &(struct protocol_reply){
				    .magic = PROTOCOL_MAGIC, .kind = REPLY_DENIED, .call = call},
			    -1);
}

/* Prepares everything and sends REPLY_READY; after a failure with the reason. */
static int start(struct server *s, char *const *arguments, uint64_t memory_limit)
{
	struct protocol_reply r = {.magic = PROTOCOL_MAGIC, .kind = REPLY_READY};
	const char *what = "load its plugins";

	s->payload = malloc(PROTOCOL_INLINE);
	r.err = s->payload ? stepper_new(&s->stepper) : -ENOMEM;
	if (!r.err && arguments[0])
		r.err = open_plugins(s, arguments);
	if (!r.err)
		r.err = sandbox_enter(s->sock, report_denied,
				      memory_limit ? memory_limit : DEFAULT_MEMORY, &what);
	if (r.err)
		snprintf(r.text, sizeof(r.text), "the worker cannot %s: %s", what,
			 strerror(-r.err));
	protocol_send_reply(s->sock, &r, -1);
	return r.err;
}

int worker_run(int fd, uint64_t memory_limit, char *const *arguments)
{
	struct server s = {.sock = fd};
	int err;

	log_set_prefix("fusee worker: ");
	give_way();
	signal(SIGXFSZ, SIG_IGN); /* a memfd above RLIMIT_FSIZE is an error */
	/* A sanitizer's handlers would open files and start programs, which the sandbox forbids. */
	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
	signal(SIGFPE, SIG_DFL);
	signal(SIGILL, SIG_DFL);
	err = start(&s, arguments, memory_limit);
	if (!err)
		do
			err = handle_one(&s);
		while (err > 0);
	stepper_free(s.stepper);
	free(s.payload);
	/* Plugins are not closed: their fini() may make calls that the sandbox forbids. */
	return err;
}
