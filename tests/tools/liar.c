// SPDX-License-Identifier: Apache-2.0
/*
 * fusee whose workers were taken over: as a worker this program answers any messages in any order,
 * as random numbers say, and everything that could lead the agent astray: names of secret files and
 * devices, texts with escape sequences, tables of random words. Linked with all of fusee.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "inspection/internal/block.h"
#include "worker/internal/protocol.h"
#include "worker/internal/symbolize_reply.h"

static const char *const paths[] = {
	"/etc/shadow",  "../../../etc/shadow", "/dev/mem",     "/dev/zero",
	"/proc/1/mem",  "/proc/1/environ",     "/etc/sudoers", "/proc/self/fd/3",
	"shadow",       "/dev/watchdog",       "..",           ".",
	"/etc/gshadow", "/proc/kcore",         "/dev/tty",     "/run/fusee/control"};
#define PATHS (sizeof(paths) / sizeof(*paths))

static const char *const texts[] = {"",
				    "main",
				    "\033[2J\033]0;x\007",
				    "\xe2\x80\xae"
				    "bad",
				    "\xff\xfe",
				    "../../etc/shadow",
				    "a\nb",
				    "%s%n%s"};
#define TEXTS (sizeof(texts) / sizeof(*texts))

static bool smooth; /* its messages are right in form, so that they are believed */

static uint8_t key[32]; /* of the last file */

static uint32_t any(uint32_t n)
{
	return (uint32_t)(random() % n);
}

static void fill(void *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		((uint8_t *)p)[i] = (uint8_t)random();
}

/* An inspection that is right in form more often than not. */
static void inspection(struct buf *b)
{
	static const char *const names[] = {"dwarf", "python", "ruby", "framepointer", "nobody"};
	static uint32_t words[4096];
	struct inspection_claim claim = {.lo = any(1 << 20), .hi = (1 << 20) + any(1 << 20)};
	struct inspection_slab slab = {.version = any(4), .words = words, .n = any(4096)};
	struct fusee_segment segment = {
		.offset = 0, .vaddr = 0, .filesz = 1 << 24, .memsz = 1 << 24, .flags = 5};
	struct inspection i = {.machine = 62,
			       .type = 3,
			       .segments = &segment,
			       .nsegments = any(2),
			       .slabs = &slab,
			       .nslabs = any(2),
			       .debuglink = smooth || any(2) ? "shadow" : paths[any(PATHS)],
			       .notes = texts[any(TEXTS)],
			       .build_id_len = any(3) ? 20 : 0};

	memcpy(i.key, key, sizeof(key));
	fill(i.build_id, sizeof(i.build_id));
	fill(words, sizeof(words));
	if (smooth)
		i.notes = i.compiler = "";
	strcpy(slab.unwinder, names[any(5)]);
	if (any(2)) {
		slab.claims = &claim;
		slab.nclaims = 1;
	}
	inspection_write(b, &i);
}

/* Names for the addresses, and a dwz file that is said to be missing. */
static void symbols(struct buf *b, uint32_t n)
{
	const char *name = texts[smooth ? 1 : any(TEXTS)], *path = paths[any(PATHS)];
	struct symbolize_reply head = {.magic = SYMBOLIZE_REPLY_MAGIC,
				       .n = n,
				       .nframes = n,
				       .alt_name = (uint32_t)strlen(name) + 2,
				       .alt_id_len = any(4) ? 20 : 0};
	struct symbolize_reply_frame f = {.name = 1, .system_name = 1, .file = 0, .line = any(100)};

	head.texts = strlen(name) + strlen(path) + 3;
	fill(head.alt_id, sizeof(head.alt_id));
	buf_add(b, &head, sizeof(head));
	for (uint32_t i = 0; i <= n; i++)
		buf_add(b, &i, sizeof(i));
	for (uint32_t i = 0; i < n; i++)
		buf_add(b, &f, sizeof(f));
	buf_add(b, "", 1);
	buf_add(b, name, strlen(name) + 1);
	buf_add(b, path, strlen(path) + 1);
}

/* The block of an answer, damaged now and then. */
static int block(const struct protocol_request *q, uint64_t *bytes)
{
	struct buf b = {0};
	int fd;

	if (q->kind == REQUEST_INSPECT)
		inspection(&b);
	else if (q->kind == REQUEST_SYMBOLIZE)
		symbols(&b, (uint32_t)(q->payload / 8));
	for (uint32_t i = smooth || any(8) ? 0 : any(20); i && b.len; i--)
		b.p[any((uint32_t)b.len)] ^= (char)(1 << any(8));
	*bytes = b.len;
	fd = b.len ? protocol_seal(b.p, b.len) : -1;
	buf_fini(&b);
	return fd;
}

static void answer(int sock, const struct protocol_request *q)
{
	struct protocol_reply r = {.kind = REPLY_DONE, .id = q->id, .valid = any(1 << 17)};
	int fd = block(q, &r.bytes);

	if (!any(10))
		r.err = -(int)any(200);
	if (q->kind == REQUEST_KEY)
		fill(key, sizeof(key));
	memcpy(r.key, key, sizeof(key));
	if (any(2))
		fill(r.regs, sizeof(r.regs));
	snprintf(r.text, sizeof(r.text), "%s", texts[any(TEXTS)]);
	r.magic = PROTOCOL_MAGIC;
	if (!smooth) {
		r.id += any(20) ? 0 : any(3);
		r.bytes += any(20) ? 0 : any(100);
		r.magic += !any(50);
	}
	protocol_send_reply(sock, &r, fd);
	if (fd >= 0)
		close(fd);
}

static void noise(int sock)
{
	struct protocol_reply r = {.magic = PROTOCOL_MAGIC, .kind = any(6), .id = any(10)};
	uint8_t bytes[700];

	switch (any(5)) {
	case 0:
		fill(bytes, sizeof(bytes));
		send(sock, bytes, any(sizeof(bytes)), MSG_NOSIGNAL);
		break;
	case 1:
		fprintf(stderr, "\033[31m%s\n\r\x9b", texts[any(TEXTS)]);
		break;
	case 2:
		_exit((int)any(5));
	case 3:
		for (uint32_t n = any(2000); n; n--)
			protocol_send_reply(sock, &r, -1);
		break;
	default:
		protocol_send_reply(sock, &r, -1);
	}
}

static void lie(int sock)
{
	static char payload[PROTOCOL_INLINE];
	struct protocol_reply ready = {.magic = PROTOCOL_MAGIC, .kind = REPLY_READY};
	struct protocol_request q;
	int fds[PROTOCOL_MAX_FDS];

	srandom((unsigned int)getpid());
	smooth = any(8);
	protocol_send_reply(sock, &ready, -1);
	while (protocol_receive_request(sock, &q, fds, payload) == 1) {
		for (int i = 0; i < PROTOCOL_MAX_FDS; i++)
			if (fds[i] >= 0)
				close(fds[i]);
		if (!smooth && !any(12))
			noise(sock);
		answer(sock, &q);
	}
	_exit(0);
}

__attribute__((constructor)) static void become_worker(int argc, char **argv)
{
	if (argc >= 4 && !strcmp(argv[1], "worker"))
		lie((int)strtol(argv[2], NULL, 10));
}
