// SPDX-License-Identifier: Apache-2.0
// clang-format off
// sources: core/sandbox/spawn.c core/sandbox/message.c core/base/poller.c core/worker/worker.c core/worker/client.c core/worker/client_step.c core/worker/request.c
// sources: core/worker/names.c core/names/names.c core/worker/pool.c core/worker/turns.c core/inspection/owner.c core/worker/refusals.c core/base/pread.c
// sources: core/worker/child.c core/worker/output.c core/worker/protocol.c core/inspection/cache.c
// sources: core/inspection/block.c core/worker/symbolize_reply.c core/sandbox/sandbox.c
// sources: core/opener/opener.c core/opener/late.c core/opener/runqueue.c core/opener/protocol.c core/opener/serve.c
// sources: core/opener/compare.c core/opener/share.c core/opener/context.c core/fetcher/fetcher.c
// sources: core/process/procfs.c core/process/identity.c core/process/kept.c core/process/safe_open.c core/symbols/debugfile.c
// sources: core/sandbox/confine.c core/sandbox/isolate.c core/base/buf.c core/base/clock.c core/base/json.c core/base/metrics.c
// sources: core/base/text.c core/base/utf8.c core/base/hashmap.c core/base/background.c
// sources: core/inspection/cache_later.c
// flags: -Wl,--wrap=child_start -Wl,--wrap=waitpid -Wl,--wrap=kill -Wl,--wrap=clock_now -Wl,--wrap=poll
// flags: -Wl,--wrap=log_at -Wl,--wrap=open
// libs: -lpthread -lcrypto
// clang-format on
// The agent's side of the protocol against workers that send any messages in any order, end at any
// time, and print anything. Each request is answered once; what is believed leads nowhere outside
// of itself; a process gets files of one owner; what is logged has no control characters; no file
// is opened but the cache's.
#include "fuzz.h"
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/utf8.h"
#include "plugin/plugin.h"
#include "symbols/symbols.h"
#include "worker/internal/child.h"
#include "inspection/internal/block.h"
#include "worker/internal/symbolize_reply.h"
#include "worker/worker.h"

#define FILES 4
#define FAKES 64
#define FIRST_PID (1 << 24)

int __wrap_child_start(struct child *c, char *const *arguments, uint64_t memory,
		       struct output_limit *l);
pid_t __wrap_waitpid(pid_t pid, int *status, int options);
int __wrap_kill(pid_t pid, int sig);
uint64_t __wrap_clock_now(void);
int __wrap_poll(struct pollfd *p, nfds_t n, int ms);
void __wrap_log_at(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));
int __wrap_open(const char *path, int flags, ...);
int __real_open(const char *path, int flags, ...);

/* A worker process that is none. */
struct fake {
	int sock, writer;
	bool alive, ready;
	int status;
	int64_t owner; /* uid of the files that it was given; -1: none */
	struct protocol_request last;
};

static struct fake fakes[FAKES];
static uint32_t nfakes;
static uint64_t now_ns;
static int files[FILES];
static uint32_t requested, answered;

/* ---- in place of the system ---- */

/* The pool here has no unwinders. */
struct plugin_stamp plugin_stamp(const struct fusee_plugin *d)
{
	(void)d;
	abort();
}

uint64_t __wrap_clock_now(void)
{
	return now_ns;
}

int __wrap_poll(struct pollfd *p, nfds_t n, int ms)
{
	(void)p;
	(void)n;
	now_ns += (uint64_t)(ms > 0 ? ms : 1) * 1000000;
	return 0;
}

void __wrap_log_at(int level, const char *format, ...)
{
	static char text[4096];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	if (level <= 6 && !utf8_printable(text, strlen(text)))
		abort();
}

int __wrap_open(const char *path, int flags, ...)
{
	if (!strncmp(path, "/proc/", 6))
		abort();
	return __real_open(path, flags, 0600);
}

static void end(struct fake *f, int status)
{
	if (!f->alive)
		return;
	f->alive = false;
	f->status = status;
	close(f->sock);
	close(f->writer);
}

static struct fake *fake_of(pid_t pid)
{
	return pid >= FIRST_PID && pid < FIRST_PID + (int)nfakes ? &fakes[pid - FIRST_PID] : NULL;
}

pid_t __wrap_waitpid(pid_t pid, int *status, int options)
{
	struct fake *f = fake_of(pid);

	(void)options;
	if (!f)
		abort();
	if (f->alive)
		return 0;
	*status = f->status;
	return pid;
}

int __wrap_kill(pid_t pid, int sig)
{
	if (!fake_of(pid) || sig != SIGKILL)
		abort();
	end(fake_of(pid), SIGKILL);
	return 0;
}

int __wrap_child_start(struct child *c, char *const *arguments, uint64_t memory,
		       struct output_limit *l)
{
	struct fake *f = &fakes[nfakes];
	int pair[2], err;

	(void)arguments;
	(void)memory;
	if (nfakes == FAKES)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair))
		abort();
	*c = (struct child){.sock = pair[0]};
	err = output_open(&c->output, l, &f->writer);
	if (err || fcntl(f->writer, F_SETFL, O_NONBLOCK))
		abort();
	*f = (struct fake){.sock = pair[1], .writer = f->writer, .alive = true, .owner = -1};
	c->pid = FIRST_PID + (int)nfakes++;
	return 0;
}

/* ---- what the agent hears ---- */

static void on_inspected(void *arg, int err, const char *text, struct inspection *i)
{
	uint64_t vaddr;

	(void)arg;
	answered++;
	if (strlen(text) > 4096 || !err != !!i)
		abort();
	if (!i)
		return;
	for (uint32_t s = 0; s < i->nslabs; s++)
		if (i->slabs[s].n && !inspection_slab(i, i->slabs[s].unwinder))
			abort();
	for (uint32_t s = 0; s < i->nsegments; s++)
		inspection_vaddr(i, i->segments[s].offset, &vaddr);
	if (strchr(i->debuglink, '/'))
		abort();
	inspection_unref(i);
}

static void on_symbolized(void *arg, int err, const char *text, const struct worker_symbols *s)
{
	(void)arg;
	answered++;
	if (strlen(text) > 4096 || !err != !!s)
		abort();
	for (uint32_t i = 0; s && i < s->first[s->n]; i++)
		if (!utf8_printable(s->frames[i].name, strlen(s->frames[i].name)))
			abort();
}

static void on_stepped(void *arg, int err, const uint64_t regs[17], uint64_t valid)
{
	(void)arg;
	answered++;
	if (err > 1 || err < -4095 || valid >> 17 || !regs)
		abort();
}

/* ---- the input ---- */

struct input {
	const uint8_t *p, *end;
};

static uint8_t byte(struct input *in)
{
	return in->p < in->end ? *in->p++ : 0;
}

static size_t take(struct input *in, void *to, size_t most)
{
	size_t n = byte(in);

	n = n < most ? n : most;
	n = n < (size_t)(in->end - in->p) ? n : (size_t)(in->end - in->p);
	memcpy(to, in->p, n);
	in->p += n;
	return n;
}

static void request(struct worker *w, struct inspection *i, uint8_t op, struct input *in)
{
	static const char stack[256];
	uint64_t addresses[3] = {1, 2, 3};
	struct worker_requester by = {.uid = byte(in) % 3, .pid = byte(in) % 4};
	int fd = files[byte(in) % FILES], err = 0;

	if (op == 0)
		err = worker_inspect(w, fd, "a file", &by, on_inspected, NULL);
	if (op == 1)
		err = worker_symbolize(
			w,
			&(struct worker_symbolization){.inspection = byte(in) & 1 ? i : NULL,
						       .fd = fd,
						       .debug_fd = files[byte(in) % FILES],
						       .alt_fd = -1,
						       .name = "a file",
						       .addresses = addresses,
						       .n = 3},
			&by, on_symbolized, NULL);
	if (op == 2)
		err = worker_step(
			w,
			&(struct worker_step){
				.inspection = i, .fd = fd, .stack = stack, .len = sizeof(stack)},
			&by, on_stepped, NULL);
	requested += !err;
}

/* Reads what the process was sent: its files are of one owner. */
static void hear(struct fake *f)
{
	static char payload[PROTOCOL_INLINE];
	int fds[PROTOCOL_MAX_FDS];
	struct stat st;

	while (protocol_receive_request(f->sock, &f->last, fds, payload) == 1)
		for (int i = 0; i < PROTOCOL_MAX_FDS; i++) {
			if (fds[i] < 0)
				continue;
			if (i < 3 && !fstat(fds[i], &st)) {
				if (i == 0 && f->owner >= 0 && f->owner != (int64_t)st.st_uid)
					abort();
				if (i == 0)
					f->owner = st.st_uid;
				else if (st.st_uid && st.st_uid != f->owner)
					abort();
			}
			close(fds[i]);
		}
}

/* The block of a valid inspection with this key. */
static int valid_block(const uint8_t key[32], uint64_t *bytes)
{
	struct inspection i = {
		.machine = 62, .type = 3, .debuglink = "x.debug", .compiler = "", .notes = ""};
	struct buf b = {0};
	int fd;

	memcpy(i.key, key, sizeof(i.key));
	if (inspection_write(&b, &i))
		abort();
	*bytes = b.len;
	fd = protocol_seal(b.p, b.len);
	buf_fini(&b);
	return fd;
}

static void say(struct fake *f, uint8_t op, struct input *in)
{
	struct protocol_reply r = {.magic = PROTOCOL_MAGIC, .id = f->last.id};
	uint8_t bytes[256], how = byte(in);
	int fd = -1;

	r.kind = op == 3   ? REPLY_READY
		 : op == 4 ? REPLY_DENIED
		 : op == 5 ? REPLY_UNWINDER
			   : REPLY_DONE;
	r.call = byte(in);
	if (how & 1)
		r.err = -(int)byte(in);
	if (how & 2)
		take(in, r.text, sizeof(r.text) - 1);
	if (how & 4)
		r.id += byte(in);
	if (how & 8)
		take(in, r.key, sizeof(r.key));
	if (op == 6 && how & 16)
		fd = valid_block(r.key, &r.bytes);
	if (op == 6 && how & 32 && fd < 0) {
		r.bytes = take(in, bytes, sizeof(bytes));
		fd = r.bytes ? protocol_seal(bytes, r.bytes) : -1;
	}
	if (how & 64)
		r.bytes = byte(in);
	protocol_send_reply(f->sock, &r, fd);
	if (fd >= 0)
		close(fd);
}

/* Answers the last request as an honest worker does. */
static void answer(struct fake *f)
{
	struct protocol_reply r = {.magic = PROTOCOL_MAGIC, .kind = REPLY_READY};
	int fd = -1;

	if (!f->ready)
		protocol_send_reply(f->sock, &r, -1);
	f->ready = true;
	if (!f->last.id)
		return;
	r.kind = REPLY_DONE;
	r.id = f->last.id;
	r.key[0] = 1;
	if (f->last.kind == REQUEST_INSPECT)
		fd = valid_block(r.key, &r.bytes);
	if (f->last.kind == REQUEST_SYMBOLIZE)
		r.err = -ENOEXEC;
	protocol_send_reply(f->sock, &r, fd);
	if (fd >= 0)
		close(fd);
	f->last.id = 0;
}

static void act(struct worker *w, struct inspection *i, struct input *in)
{
	uint8_t op = byte(in) % 14, bytes[256];
	struct fake *f = nfakes ? &fakes[nfakes - 1 - byte(in) % nfakes] : NULL;

	if (op < 3) {
		request(w, i, op, in);
	} else if (op == 11) {
		now_ns += (uint64_t)byte(in) * 100000000;
	} else if (op == 10) {
		worker_dispatch(w);
	} else if (f && f->alive) {
		hear(f);
		if (op > 11)
			answer(f);
		else if (op < 7)
			say(f, op, in);
		else if (op == 7)
			(void)!write(f->sock, bytes, take(in, bytes, sizeof(bytes)));
		else if (op == 8)
			end(f, byte(in));
		else
			(void)!write(f->writer, bytes, take(in, bytes, sizeof(bytes)));
	}
}

static void make_files(void)
{
	static const uid_t owners[FILES] = {0, 1000, 1001, 0};

	for (int i = 0; i < FILES; i++) {
		char path[] = "/tmp/fusee-fuzz-XXXXXX";

		files[i] = i == 3 ? memfd_create("file", MFD_CLOEXEC) : mkostemp(path, O_CLOEXEC);
		if (files[i] < 0 || write(files[i], &i, sizeof(i)) != sizeof(i))
			abort();
		if (i != 3)
			unlink(path);
		if (!geteuid() && owners[i] && fchown(files[i], owners[i], owners[i]))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct inspection i = {.key = {1}};
	struct input in = {data, data + size};
	struct worker *w;

	if (!files[0])
		make_files();
	now_ns = 1000000000000;
	nfakes = requested = answered = 0;
	if (worker_new(&w, &(struct worker_options){0}))
		abort();
	while (in.p < in.end)
		act(w, &i, &in);
	for (int k = 0; k < 3; k++)
		worker_dispatch(w);
	worker_stop(w);
	if (requested != answered)
		abort();
	for (uint32_t k = 0; k < nfakes; k++)
		if (fakes[k].alive)
			abort();
	return 0;
}
