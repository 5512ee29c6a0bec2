// SPDX-License-Identifier: Apache-2.0
/* The worker process: loads the plugins, closes the sandbox, answers one request after the other.
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "symbols/symbols.h"
#include "worker/host.h"
#include "worker/names.h"
#include "worker/protocol.h"
#include "worker/sandbox.h"
#include "worker/step.h"
#include "worker/worker.h"

#define DEFAULT_MEMORY (1ull << 30)

struct server {
	int sock;
	struct plugin_set plugins;
	struct stepper *stepper;
	char *payload; /* PROTOCOL_INLINE bytes */
};

/* One request and what becomes of it. */
struct answer {
	struct protocol_request q;
	int fds[PROTOCOL_MAX_FDS];
	struct protocol_reply r;
	struct buf block; /* goes back as a memfd where it is not empty */
};

static int fail(struct answer *a, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static int fail(struct answer *a, int err, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(a->r.text, sizeof(a->r.text), format, ap);
	va_end(ap);
	return err;
}

/* One sentence about what keeps a file from being read. */
static int explain(struct answer *a, int err)
{
	if (err == -ENOEXEC)
		return fail(a, err, "not an ELF file for this machine");
	if (err == -EBADMSG)
		return fail(a, err,
			    "not a valid ELF file: its headers contradict themselves or lead "
			    "outside of it");
	if (err == -ENOMEM)
		return fail(a, err, "needs more memory than the worker may have");
	return fail(a, err, "cannot be read: %s", strerror(-err));
}

static int open_file(struct answer *a, struct elf **elf)
{
	struct fusee_file_info info;
	int err = elf_open(elf, a->fds[0]);

	if (err)
		return explain(a, err);
	err = elf_info(*elf, &info);
#ifdef __x86_64__
	if (!err && info.machine != 62)
		err = -ENOEXEC;
#elif defined(__aarch64__)
	if (!err && info.machine != 183)
		err = -ENOEXEC;
#endif
	if (!err)
		return 0;
	elf_close(*elf);
	return explain(a, err);
}

static int answer_key(struct server *s, struct answer *a)
{
	struct elf *elf;
	int err = open_file(a, &elf);

	if (err)
		return err;
	err = host_key(elf, &s->plugins, a->r.key);
	elf_close(elf);
	return err ? explain(a, err) : 0;
}

static int answer_inspect(struct server *s, struct answer *a)
{
	bool cacheable = false, incomplete = false;
	struct elf *elf;
	int err = open_file(a, &elf);

	if (err)
		return err;
	err = host_inspect(elf, &s->plugins, &a->block, &cacheable, &incomplete);
	elf_close(elf);
	a->r.cacheable = cacheable;
	a->r.incomplete = incomplete;
	return err ? explain(a, err) : 0;
}

/* The addresses: inline, or from the memfd, which may be larger than the limit lets us hold. */
static int read_addresses(struct server *s, struct answer *a, uint64_t **ret)
{
	uint64_t len = a->q.payload;
	uint64_t *p;
	ssize_t n;

	if (len % 8 || len / 8 > NAMES_MAX_ADDRESSES)
		return -EBADMSG;
	p = malloc(len ? len : 1);
	if (!p)
		return -ENOMEM;
	if (a->fds[3] < 0 && len <= PROTOCOL_INLINE) {
		memcpy(p, s->payload, len);
	} else {
		n = pread(a->fds[3], p, len, 0);
		if (n < 0 || (uint64_t)n != len) {
			free(p);
			return -EBADMSG;
		}
	}
	*ret = p;
	return 0;
}

static int answer_symbolize(struct server *s, struct answer *a)
{
	struct symbols_files files = {a->fds[0], a->fds[1], a->fds[2]};
	struct symbols_quality quality;
	struct symbols *symbols;
	uint64_t *addresses;
	int err = read_addresses(s, a, &addresses);

	if (err)
		return fail(a, err, "asked for too many names at once");
	err = symbols_open(&symbols, &files, a->q.inlines);
	if (!err) {
		err = names_write(&a->block, symbols, addresses, (uint32_t)(a->q.payload / 8));
		symbols_quality(symbols, &quality);
		snprintf(a->r.text, sizeof(a->r.text), "%s", quality.note);
		symbols_close(symbols);
	}
	free(addresses);
	return err ? explain(a, err) : 0;
}

static int answer_step(struct server *s, struct answer *a)
{
	int fd = a->fds[0], r;

	a->fds[0] = -1;
	if (a->q.payload > PROTOCOL_INLINE) {
		close(fd);
		return -EINVAL;
	}
	r = stepper_step(s->stepper, &a->q, fd, s->payload);
	a->r.valid = a->q.valid;
	memcpy(a->r.regs, a->q.regs, sizeof(a->r.regs));
	return r;
}

static int answer(struct server *s, struct answer *a)
{
	switch (a->q.type) {
	case REQUEST_KEY:
		return answer_key(s, a);
	case REQUEST_INSPECT:
		return answer_inspect(s, a);
	case REQUEST_SYMBOLIZE:
		return answer_symbolize(s, a);
	case REQUEST_STEP:
		return answer_step(s, a);
	}
	return fail(a, -EINVAL, "the worker is of another version");
}

/* 1: go on; 0: the agent is gone; -errno. */
static int serve_one(struct server *s)
{
	struct answer a = {0};
	int block = -1;
	int err = protocol_receive_request(s->sock, &a.q, a.fds, s->payload);

	if (err <= 0)
		return err;
	a.r.magic = PROTOCOL_MAGIC;
	a.r.type = REPLY_DONE;
	a.r.id = a.q.id;
	a.r.err = answer(s, &a);
	if (!a.r.err && a.block.len) {
		block = protocol_seal(a.block.p, a.block.len);
		if (block < 0)
			a.r.err = fail(&a, -ENOMEM,
				       "the answer does not fit into the worker's memory");
		else
			a.r.bytes = a.block.len;
	}
	buf_fini(&a.block);
	a.r.refused_calls = sandbox_refused(&a.r.call);
	for (int i = 0; i < PROTOCOL_MAX_FDS; i++)
		if (a.fds[i] >= 0)
			close(a.fds[i]);
	err = protocol_send_reply(s->sock, &a.r, block);
	if (block >= 0)
		close(block);
	return err ? err : 1;
}

/* Says that we are ready, or why we never will be. */
static int start(struct server *s, const char *plugin_dir, uint64_t memory_limit)
{
	struct protocol_reply r = {.magic = PROTOCOL_MAGIC, .type = REPLY_READY};
	const char *what = "load its plugins";

	s->payload = malloc(PROTOCOL_INLINE);
	r.err = s->payload ? stepper_new(&s->stepper) : -ENOMEM;
	if (!r.err && plugin_dir)
		r.err = plugin_set_open(plugin_dir, &worker_host, NULL, &s->plugins);
	if (!r.err)
		r.err = sandbox_enter(s->sock, memory_limit ? memory_limit : DEFAULT_MEMORY, &what);
	if (r.err)
		snprintf(r.text, sizeof(r.text), "the worker cannot %s: %s", what,
			 strerror(-r.err));
	protocol_send_reply(s->sock, &r, -1);
	return r.err;
}

int worker_serve(int fd, const char *plugin_dir, uint64_t memory_limit)
{
	struct server s = {.sock = fd};
	int err;

	log_set_prefix("fusee worker: ");
	signal(SIGXFSZ, SIG_IGN); /* a memfd that grows too large is an error, no death */
	/* A sanitizer's own handlers would look for files and start programs: a plain death says
	 * more. */
	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
	signal(SIGFPE, SIG_DFL);
	signal(SIGILL, SIG_DFL);
	err = start(&s, plugin_dir, memory_limit);
	if (!err)
		do
			err = serve_one(&s);
		while (err > 0);
	stepper_free(s.stepper);
	free(s.payload);
	/* Plugins and their data end with the process: their fini() may call what the sandbox
	 * forbids. */
	return err;
}
